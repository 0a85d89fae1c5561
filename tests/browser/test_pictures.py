"""Pictures in the browser: every layer is seen, lies where it should, and can be looked at closely."""

import re

import numpy as np
import pytest

from tests.browser import pictures
from tests.browser.pages import Held, expect, open_case
from tests.browser.pictures import Box, box_of, differs, has_colour, other_than, same_as, shot, shot_when
from tests.review import desks

pytestmark = [pytest.mark.slow, pytest.mark.needs("playwright", "chromium", "node", "zarr")]

PICTURE, GREY, LARGE = range(3)
ALL_FINE = 2 * 12 * 10  # tiles of 256 × 256 of the large map and of its mask


@pytest.fixture(scope="module")
def client(tmp_path_factory, static):
    folder = tmp_path_factory.mktemp("pictures")
    made = [make(folder / "files") for make in (pictures.picture, pictures.grey, pictures.large)]
    with desks.desk_on(desks.score_run(folder, made), static=static) as (_, client):
        yield client


@pytest.fixture
def page(visit, client):
    page = visit(client)
    open_case(page, PICTURE)
    return page


def share(box):
    """Where a box of array indices lies in a picture."""
    (rows, columns), (height, width) = box, pictures.PICTURE_SHAPE
    return Box(columns.start / width, columns.stop / width, rows.start / height, rows.stop / height)


def bare(page):
    """The image alone."""
    for layer in ("overlay", "mask", "truth"):
        page.get_by_test_id(f"show-{layer}").uncheck()
    return shot_when(
        page, lambda seen: not any(has_colour(seen, each, 12).any() for each in LINES) and not is_tinted(seen)
    )


LINES = (pictures.MASK_COLOUR, pictures.TRUTH_COLOUR)


def is_tinted(seen):
    """Whether there is any colour but those of the image and black."""
    known = [has_colour(seen, each, 6) for each in (pictures.LEFT, pictures.RIGHT, (0, 0, 0))]
    return np.count_nonzero(~np.logical_or.reduce(known)) > 0.02 * seen[..., 0].size


def test_the_image_is_seen_as_it_is(page):
    seen = bare(page)
    frame = pictures.frame_of(seen.any(-1))
    assert has_colour(seen, pictures.LEFT, 4).any()
    right = box_of(has_colour(seen, pictures.RIGHT, 4), frame)
    assert right.close_to(Box(0.5, 1.0, 0.0, 1.0), 0.01)


@pytest.mark.parametrize(
    ("layer", "key", "place"),
    [("overlay", "o", pictures.MASK), ("mask", "m", pictures.MASK), ("truth", "t", pictures.TRUTH)],
)
def test_each_layer_is_seen_where_it_lies_and_can_be_switched(page, layer, key, place):
    alone = bare(page)
    frame = pictures.frame_of(alone.any(-1))
    page.get_by_test_id(f"show-{layer}").check()
    seen = shot_when(page, other_than(alone))
    assert box_of(differs(seen, alone), frame).close_to(share(place))
    inside = differs(seen, alone).sum() / (share_area(place) * (frame[1] - frame[0]) * (frame[3] - frame[2]))
    assert inside > 0.95 if layer == "overlay" else 0.01 < inside < 0.3
    page.keyboard.press(key)
    shot_when(page, same_as(alone))
    page.keyboard.press(key)
    shot_when(page, same_as(seen))


def share_area(place):
    box = share(place)
    return (box.right - box.left) * (box.bottom - box.top)


def test_outlines_have_their_colours(page):
    alone = bare(page)
    for layer, colour in zip(("mask", "truth"), LINES, strict=True):
        page.get_by_test_id(f"show-{layer}").check()
        seen = shot_when(page, other_than(alone))
        assert has_colour(seen, colour, 12).sum() > 200
        page.get_by_test_id(f"show-{layer}").uncheck()
        shot_when(page, same_as(alone))


def middle_of_mask(seen, frame):
    top, bottom, left, right = frame
    box = share(pictures.MASK)
    row = top + round((box.top + box.bottom) / 2 * (bottom - top))
    return seen[row, left + round((box.left + box.right) / 2 * (right - left))]


def test_opacity_goes_from_the_image_to_the_probabilities(page):
    alone = bare(page)
    frame = pictures.frame_of(alone.any(-1))
    page.get_by_test_id("show-overlay").check()
    half = shot_when(page, other_than(alone))
    page.get_by_test_id("opacity").focus()
    page.keyboard.press("End")
    full = shot_when(page, other_than(half))
    np.testing.assert_allclose(middle_of_mask(full, frame), (220, 227, 42), atol=20)  # viridis at 0.95
    page.keyboard.press("Home")
    shot_when(page, same_as(alone))
    mixed = 0.45 * middle_of_mask(full, frame) + 0.55 * middle_of_mask(alone, frame)
    np.testing.assert_allclose(middle_of_mask(half, frame), mixed, atol=3)


def width_of_mask(seen):
    box = box_of(has_colour(seen, pictures.MASK_COLOUR, 12))
    return box.right - box.left


def test_zoom_by_button_key_and_wheel_and_fit(page):
    at_first = shot(page)
    for act in (
        page.get_by_test_id("zoom-in").click,
        lambda: page.keyboard.press("+"),
        lambda: wheel(page, -250 * np.log(1.25) * 2),
    ):
        act()
        closer = shot_when(page, other_than(at_first))
        assert width_of_mask(closer) / width_of_mask(at_first) == pytest.approx(1.25, abs=0.03)
        page.get_by_test_id("fit").click()
        shot_when(page, same_as(at_first))
    page.get_by_test_id("zoom-out").click()
    farther = shot_when(page, other_than(at_first))
    assert width_of_mask(farther) / width_of_mask(at_first) == pytest.approx(0.8, abs=0.03)
    page.keyboard.press("0")
    shot_when(page, same_as(at_first))


def wheel(page, distance):
    box = page.get_by_test_id("canvas").bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.mouse.wheel(0, distance)


def test_dragging_moves_the_picture(page):
    at_first = shot(page)
    box = page.get_by_test_id("canvas").bounding_box()
    page.mouse.move(box["x"] + 300, box["y"] + 200)
    page.mouse.down()
    page.mouse.move(box["x"] + 340, box["y"] + 230, steps=4)
    page.mouse.up()
    moved = shot_when(page, other_than(at_first))
    before, after = (
        pictures.frame_of(has_colour(each, pictures.MASK_COLOUR, 12)) for each in (at_first, moved)
    )
    assert (after[0] - before[0], after[2] - before[2]) == (30, 40)


def test_window_and_level_of_a_grey_image(page):
    open_case(page, GREY)
    at_first = shot(page)
    for control in ("level", "window"):
        page.get_by_test_id(control).focus()
        page.keyboard.press("Home")
        seen = shot_when(page, other_than(at_first))
        assert abs(seen - at_first).mean() > 5
        page.get_by_test_id("reset-levels").click()
        shot_when(page, same_as(at_first))


def tiles_in(requests):
    """Layer and level of each tile that was asked for."""
    found = (re.search(r"/tiles/(\w+)/\d+/(\d+)/(\d+)/(\d+)\.png", url) for url in requests)
    return [(each[1], int(each[2]), int(each[3]), int(each[4])) for each in found if each]


def test_a_large_map_comes_by_tiles_of_the_level_that_is_seen(page):
    requests = []
    page.on("request", lambda request: requests.append(request.url))
    open_case(page, LARGE)
    asked = tiles_in(requests)
    assert {level for _, level, _, _ in asked} == {2}  # 3000 rows on some 650 of the screen
    assert {layer for layer, *_ in asked} == {"probabilities", "mask"}
    assert len(asked) == len(set(asked)) > 4
    requests.clear()
    at_first = shot(page)
    for _ in range(8):
        page.keyboard.press("+")
    expect(page.locator("[data-testid=viewer][data-state=ready]")).to_be_visible()
    shot_when(page, other_than(at_first))
    becomes_fine(page, requests)


def becomes_fine(page, requests):
    """Zoomed in the tiles are of full size, several of them, but not all."""
    page.wait_for_function(
        "performance.getEntriesByType('resource').some(({name}) => name.includes('/0/0/'))"
    )
    fine = {(layer, row, column) for layer, level, row, column in tiles_in(requests) if level == 0}
    assert 4 <= len(fine) < ALL_FINE / 2


def test_coarser_outlines_stand_in_while_fine_ones_are_on_their_way(page):
    open_case(page, LARGE)
    page.get_by_test_id("show-overlay").uncheck()
    held = Held(page, re.compile(r"/tiles/mask/\d+/[01]/"))
    for _ in range(4):
        page.keyboard.press("+")
    expect(page.locator("[data-testid=viewer][data-state=refining]")).to_be_visible()
    shot_when(page, lambda seen: has_colour(seen, pictures.MASK_COLOUR, 30).any())
    held.let_go()
    page.locator("[data-testid=viewer][data-state=ready]").wait_for()
    shot_when(page, lambda seen: has_colour(seen, pictures.MASK_COLOUR, 30).any())


def test_a_map_without_an_image_can_be_switched_off(page):
    open_case(page, LARGE)
    seen = shot_when(page, lambda seen: seen.any())
    page.keyboard.press("m")
    page.keyboard.press("o")
    shot_when(page, lambda seen: not seen.any())
    page.keyboard.press("m")
    page.keyboard.press("o")
    shot_when(page, same_as(seen))


def test_outlines_run_on_across_tiles(page):
    open_case(page, LARGE)
    page.get_by_test_id("show-overlay").uncheck()
    seen = shot_when(page, lambda seen: has_colour(seen, pictures.MASK_COLOUR, 30).any())
    line = has_colour(seen, pictures.MASK_COLOUR, 100)
    rows = np.flatnonzero(line.any(1))
    assert (np.diff(rows) == 1).all()  # no gap at the seams
