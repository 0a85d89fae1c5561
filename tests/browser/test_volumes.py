"""Volumes in the browser: whatever the order of a file's axes, the outline lies where the mask is."""

import numpy as np
import pytest
from scipy.ndimage import label

from tests.browser import pictures
from tests.browser.pages import expect, open_case
from tests.browser.pictures import (
    ROOM,
    STORINGS,
    UNCERTAIN,
    box_of,
    differs,
    has_colour,
    other_than,
    same_as,
    shot,
    shot_when,
)
from tests.review import desks

pytestmark = [pytest.mark.slow, pytest.mark.needs("playwright", "chromium", "node", "nibabel")]


@pytest.fixture(scope="module")
def client(tmp_path_factory, static):
    folder = tmp_path_factory.mktemp("volumes")
    made = [pictures.volume(folder / "files", name) for name in STORINGS]
    with desks.desk_on(desks.score_run(folder, made), static=static) as (_, client):
        yield client


def opened(visit, client, name="straight"):
    page = visit(client)
    (row,) = client.get("/api/cases", params={"search": name}).json()["rows"]
    open_case(page, row["number"])
    assert page.get_by_test_id("viewer").get_attribute("data-kind") == "volume"
    return page


def slice_on(page):
    """The slice that is shown, from 0 on, and how many there are."""
    at, of = page.get_by_test_id("slice-number").inner_text().split("/")
    return int(at) - 1, int(of)


def has_outline(seen):
    return has_colour(seen, pictures.MASK_COLOUR, 12).any()


def layers_apart(page):
    """The picture with all layers, without the outline, and the image alone."""
    whole = shot_when(page, has_outline)
    page.keyboard.press("m")
    without = shot_when(page, lambda seen: not has_outline(seen))
    page.keyboard.press("o")
    return whole, without, shot_when(page, other_than(without))


@pytest.mark.parametrize("name", STORINGS)
def test_overlay_and_outline_lie_where_the_mask_is(visit, client, name):
    page = opened(visit, client, name)
    whole, without, image = layers_apart(page)
    rim = pictures.frame_of((image > 230).all(-1))
    expected = STORINGS[name].box()
    assert box_of(has_colour(whole, pictures.MASK_COLOUR, 12), rim).close_to(expected)
    assert box_of(differs(whole, without), rim).close_to(expected)
    assert box_of(differs(without, image), rim).close_to(expected)


def test_layers_can_be_switched_on_again(visit, client):
    page = opened(visit, client)
    whole, _, image = layers_apart(page)
    assert image.any()
    page.get_by_test_id("show-overlay").check()
    page.get_by_test_id("show-mask").check()
    shot_when(page, same_as(whole))


def test_opacity(visit, client):
    page = opened(visit, client)
    _, without, image = layers_apart(page)
    page.get_by_test_id("opacity").focus()
    page.keyboard.press("End")
    full = shot_when(page, other_than(image))
    assert abs(full - image).sum() > 1.5 * abs(without - image).sum()
    page.keyboard.press("Home")
    shot_when(page, same_as(image))


@pytest.mark.parametrize("name", ["straight", "all backwards"])
def test_begins_at_the_most_uncertain_slice(visit, client, name):
    page = opened(visit, client, name)
    storing = STORINGS[name]
    assert slice_on(page) == (storing.slice_of(UNCERTAIN), ROOM[2])
    page.get_by_test_id("go-middle").click()
    filled = sorted(storing.slice_of(at) for at in range(ROOM[2])[pictures.INSIDE[2]])
    expect(page.get_by_test_id("slice-number")).to_have_text(f"{filled[len(filled) // 2] + 1}/{ROOM[2]}")
    page.keyboard.press("x")
    expect(page.get_by_test_id("slice-number")).to_have_text(f"{storing.slice_of(UNCERTAIN) + 1}/{ROOM[2]}")


@pytest.mark.parametrize("name", ["straight", "all backwards"])
def test_the_outline_is_on_the_slices_of_the_mask_alone(visit, client, name):
    page = opened(visit, client, name)
    inside = {STORINGS[name].slice_of(at) for at in range(ROOM[2])[pictures.INSIDE[2]]}
    page.get_by_test_id("slice").focus()
    page.keyboard.press("Home")
    for at in range(ROOM[2]):
        expect(page.get_by_test_id("slice-number")).to_have_text(f"{at + 1}/{ROOM[2]}")
        shot_when(page, lambda seen, at=at: has_outline(seen) == (at in inside))
        page.keyboard.press("ArrowRight")


def test_slices_by_wheel_keys_and_slider(visit, client):
    page = opened(visit, client)
    number = page.get_by_test_id("slice-number")
    box = page.get_by_test_id("canvas").bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    start, count = slice_on(page)
    page.mouse.wheel(0, 100)
    expect(number).not_to_have_text(f"{start + 1}/{count}")
    assert abs(slice_on(page)[0] - start) == 1
    page.mouse.wheel(0, -100)
    expect(number).to_have_text(f"{start + 1}/{count}")
    for key, step in (("ArrowUp", 1), ("PageUp", 2), ("ArrowDown", 1), ("PageDown", 0)):
        page.keyboard.press(key)
        expect(number).to_have_text(f"{start + step + 1}/{count}")
    slider = page.get_by_test_id("slice").bounding_box()
    page.mouse.click(slider["x"] + slider["width"] - 3, slider["y"] + slider["height"] / 2)
    expect(number).to_have_text(f"{count}/{count}")
    page.keyboard.press("Home")
    expect(number).to_have_text(f"1/{count}")


def test_zoom_and_fit(visit, client):
    page = opened(visit, client)
    at_first = shot_when(page, has_outline)
    width = [width_of(at_first)]
    for testid in ("zoom-in", "zoom-out", "zoom-out"):
        before = shot(page)
        page.get_by_test_id(testid).click()
        width.append(width_of(shot_when(page, other_than(before))))
    assert np.allclose(np.divide(width[1:], width[0]), (1.25, 1.0, 0.8), atol=0.03)
    page.get_by_test_id("fit").click()
    shot_when(page, same_as(at_first))


def width_of(seen):
    box = box_of(has_colour(seen, pictures.MASK_COLOUR, 12))
    return box.right - box.left


def test_three_planes_each_with_an_outline(visit, client):
    page = opened(visit, client)
    one = shot_when(page, has_outline)
    page.get_by_test_id("multiplanar").click()
    expect(page.get_by_test_id("multiplanar")).to_have_attribute("aria-pressed", "true")
    shot_when(page, other_than(one))
    page.get_by_test_id("show-overlay").uncheck()
    three = shot_when(page, lambda seen: outlines_in(seen) == 3)
    page.get_by_test_id("multiplanar").click()
    shot_when(page, lambda seen: outlines_in(seen) == 1 and other_than(three)(seen))


def outlines_in(seen):
    """How many outlines there are that do not touch; smoothing may break one into near pieces."""
    line = has_colour(seen, pictures.MASK_COLOUR)
    whole = line[: line.shape[0] // 16 * 16, : line.shape[1] // 16 * 16]
    blocks = whole.reshape(whole.shape[0] // 16, 16, -1, 16).any((1, 3))
    return label(blocks, np.ones((3, 3)))[1]


def test_window_and_level(visit, client):
    page = opened(visit, client)
    at_first = shot_when(page, has_outline)
    page.get_by_test_id("level").focus()
    page.keyboard.press("End")
    shot_when(page, other_than(at_first))
    page.get_by_test_id("reset-levels").click()
    shot_when(page, same_as(at_first))


def test_a_volume_without_an_image_can_be_switched_off(visit, tmp_path, static):
    made = pictures.volume(tmp_path / "files", "straight")
    desks.score_run(tmp_path, [type(made)("no image", made.probabilities)])
    with desks.desk_on(tmp_path, static=static) as (_, client):
        page = opened(visit, client, "no image")
        seen = shot_when(page, has_outline)
        page.keyboard.press("m")
        page.keyboard.press("o")
        dark = shot_when(page, lambda seen: (np.ptp(seen, axis=-1) < 20).all())  # but for grey letters
        page.keyboard.press("o")
        page.keyboard.press("m")
        shot_when(page, same_as(seen))
        assert other_than(seen)(dark)
        page.context.close()  # before the desk is: it would ask in vain
