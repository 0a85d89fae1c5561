"""What a page is made of: pictures, outlines, axes, colours, and text that stays text."""

import io

import numpy as np
import pytest
from hypothesis import given, strategies as st

from segtrust.report.html.axes import Frame, span_of, ticks_of
from segtrust.report.html.charts import Chart, chart_figure
from segtrust.report.html.colours import colour_rules, lightened
from segtrust.report.html.contours import outline
from segtrust.report.html.markup import Html, joined, tag
from segtrust.report.html.png import png_bytes
from segtrust.report.html.scatter import shown_dots
from segtrust.report.styles import STYLES


@pytest.mark.needs("PIL")
@pytest.mark.parametrize("shape", [(5, 7), (1, 1), (4, 3, 3)])
def test_pictures_are_read_again_as_they_were(shape):
    from PIL import Image

    pixels = np.random.default_rng(0).integers(0, 256, shape).astype(np.uint8)
    with Image.open(io.BytesIO(png_bytes(pixels))) as image:
        np.testing.assert_array_equal(np.asarray(image), pixels)


@pytest.mark.needs("PIL")
def test_a_palette_gives_the_colours():
    from PIL import Image

    palette = np.random.default_rng(0).integers(0, 256, (256, 3)).astype(np.uint8)
    levels = np.arange(256, dtype=np.uint8).reshape(16, 16)
    with Image.open(io.BytesIO(png_bytes(levels, palette))) as image:
        np.testing.assert_array_equal(np.asarray(image.convert("RGB")), palette[levels])


def test_outlines_are_as_long_as_the_border():
    mask = np.zeros((6, 7), bool)
    mask[1:4, 2:5] = True
    mask[2, 3] = False
    lengths = [int(part.split("h")[-1].split("v")[-1]) for part in outline(mask).split("M")[1:]]
    assert sum(lengths) == 12 + 4
    assert outline(np.zeros((3, 3), bool)) == ""


@given(st.text())
def test_no_text_becomes_an_element(text):
    shown = tag("p", text, title=text)
    assert shown.count("<") == 2
    assert shown.count('"') == 2
    shown.encode("utf-8")


def test_html_is_not_escaped_twice():
    assert joined(tag("b", "<"), Html("<i>")) == "<b>&lt;</b><i>"


@given(st.floats(-1e6, 1e6), st.floats(1e-6, 1e6))
def test_ticks_lie_within(low, width):
    high = low + width
    if high > low:
        ticks = ticks_of(low, high)
        room = 1e-6 * max(abs(low), abs(high), 1.0)
        assert all(low - room <= each <= high + room for each in ticks)
        assert len(ticks) <= 12


def test_a_span_has_a_width():
    low, high = span_of([3.0, 3.0])
    assert low < 3.0 < high


def test_data_cannot_end_their_element():
    chart = Chart("t", "d", Frame((0, 1), (0, 1)), Html(""), "c", {"cases": ["</script><b>", "\u2028&"]})
    assert chart_figure(chart, "x").count("</script>") == 1


def test_colours_can_be_seen_on_dark_ground():
    for style in STYLES.values():
        red, green, blue = (int(lightened(style.colour)[at : at + 2], 16) for at in (1, 3, 5))
        assert 0.3 * red + 0.6 * green + 0.1 * blue > 95
    assert ".e-sdc{--c:#d55e00}" in colour_rules(["sdc"])


def test_extremes_stay_among_the_dots():
    rng = np.random.default_rng(1)
    confidence, quality = rng.random(5000), rng.random(5000)
    at = shown_dots(confidence, quality, 500)
    assert at.size <= 500
    assert {confidence.argmin(), confidence.argmax(), quality.argmin(), quality.argmax()} <= set(at.tolist())
