"""A volume is the same way up wherever it is seen, however its file keeps it."""

import base64
import io

import numpy as np
import pytest
from PIL import Image
from scipy.ndimage import distance_transform_edt, label

from segtrust.io import ArrayRef, CaseFiles
from segtrust.report.html.page import write_report
from tests.browser import pictures
from tests.browser.pages import expect, open_case
from tests.browser.pictures import Storing, has_colour, save_arrays, shot_when
from tests.review import desks

pytestmark = [pytest.mark.slow, pytest.mark.needs("playwright", "chromium", "node", "nibabel")]

ROOM = (13, 11, 9)  # right, anterior, superior
SPACING = (2.0, 3.0, 4.0)
STORINGS = {
    "RAS": Storing(spacing_mm=SPACING),
    "LPS": Storing(backwards=(0, 1), spacing_mm=SPACING),
    "LAS": Storing(backwards=(0,), spacing_mm=SPACING),
    "PIR": Storing(order=(1, 2, 0), backwards=(1, 2), spacing_mm=SPACING),
    "LSA": Storing(order=(0, 2, 1), backwards=(0,), spacing_mm=SPACING),
}
PLAIN = "array alone"


def mask():
    """On the patient's right an L in each plane: its feet lead from the back to the left, and up."""
    found = np.zeros(ROOM, bool)
    found[6:9, 2:8, 2:5] = True
    found[3:9, 2:6, 2:5] = True
    found[6:9, 2:6, 2:7] = True
    found[8, 2:9, 2:5] = True
    return found


def room():
    """The map and the grey image."""
    p = np.where(mask(), np.float32(0.95), np.float32(0.0))
    p[..., 4][mask()[..., 4]] = 0.8
    return p, np.random.default_rng(0).uniform(60, 120, ROOM).astype(np.float32)


def case_of(folder, name):
    """The room in files; the image has axes of its own."""
    p, image = room()
    paths = {role: folder / f"{name}_{role}.nii.gz" for role in ("probabilities", "image")}
    STORINGS[name].save(paths["probabilities"], p)
    STORINGS["LSA" if name != "LSA" else "LPS"].save(paths["image"], image)
    return CaseFiles(name, **{role: ArrayRef(path) for role, path in paths.items()})


@pytest.fixture(scope="module")
def client(tmp_path_factory, static):
    folder = tmp_path_factory.mktemp("orientation")
    (folder / "files").mkdir()
    cases = [case_of(folder / "files", name) for name in STORINGS]
    cases.append(CaseFiles(PLAIN, **save_arrays(folder / "files", "plain", probabilities=room()[0])))
    with desks.desk_on(desks.score_run(folder, cases), static=static) as (_, client):
        yield client


def number_of(client, name):
    (row,) = client.get("/api/cases", params={"search": name}).json()["rows"]
    return row["number"]


def seen_from(through, at):
    """A plane of the mask as a radiologist sees it: (rows, columns), and height and width in millimetres."""
    across, up = (each for each in range(3) if each != through)
    plane = np.take(mask(), at, axis=through)[::-1, ::-1].T
    return plane, SPACING[up] * ROOM[up], SPACING[across] * ROOM[across]


def expected_of(name, number):
    """The same of a slice by its number."""
    storing = STORINGS[name]
    at = ROOM[storing.through] - 1 - number if storing.through in storing.backwards else number
    return seen_from(storing.through, at)


def frames_in(seen):
    """Where pictures are, from the left upper one on: slices of rows and columns."""
    labels, count = label(seen.max(-1) > 8, np.ones((3, 3)))
    boxes = [np.nonzero(labels == each) for each in range(1, count + 1)]
    found = [(slice(r.min(), r.max() + 1), slice(c.min(), c.max() + 1)) for r, c in boxes if r.size > 2000]
    return sorted(found, key=lambda box: (box[0].start, box[1].start))


def sampled(picture, shape, place=0.5):
    """The colours of the voxels of a picture, in their middles or at another place of each."""
    rows, columns = (
        ((np.arange(count) + place) * length / count).astype(int)
        for count, length in zip(shape, picture.shape[:2], strict=True)
    )
    return picture[np.ix_(rows, columns)]


def is_coloured(picture, shape, place=0.5):
    """Where probabilities lie over a grey image; letters are grey."""
    return np.ptp(sampled(picture, shape, place), axis=-1) > 25


def shows(picture, expected, place=0.5):
    """Assert that a picture is a plane: its mask, and as tall as it is."""
    plane, height, width = expected
    assert picture.shape[0] / picture.shape[1] == pytest.approx(height / width, rel=0.03)
    np.testing.assert_array_equal(is_coloured(picture, plane.shape, place), plane)


def outline_fits(picture, plane):
    """Assert that the outline of the mask, and nothing else of its colour, runs along the edge of a plane."""
    line = has_colour(picture, pictures.MASK_COLOUR, 60)
    rows, columns = (np.arange(n) * m // n for n, m in zip(picture.shape[:2], plane.shape, strict=True))
    whole = np.pad(plane[np.ix_(rows, columns)], 1)
    edge = (np.diff(whole, axis=0)[:-1, 1:-1] != 0) | (np.diff(whole, axis=1)[1:-1, :-1] != 0)
    near = 0.4 * min(picture.shape[0] / plane.shape[0], picture.shape[1] / plane.shape[1]) + 1.5
    assert distance_transform_edt(~edge)[line].max() <= near
    assert distance_transform_edt(~line)[edge].max() <= 1.2 * near


def slice_on(page):
    return int(page.get_by_test_id("slice-number").inner_text().partition("/")[0]) - 1


def has_outline(seen):
    return has_colour(seen, pictures.MASK_COLOUR, 12).any()


def opened(visit, client, name):
    page = visit(client)
    open_case(page, number_of(client, name))
    assert page.get_by_test_id("viewer").get_attribute("data-kind") == "volume"
    return page


@pytest.mark.parametrize("name", STORINGS)
def test_the_case_is_seen_as_by_a_radiologist(visit, client, name):
    page = opened(visit, client, name)
    (frame,) = frames_in(seen := shot_when(page, has_outline))
    expected = expected_of(name, slice_on(page))
    shows(seen[frame], expected)
    page.keyboard.press("o")
    bare = shot_when(page, lambda seen: not (is_coloured(seen[frame], (40, 40))[1::3, 1::3]).all())
    outline_fits(bare[frame], expected[0])
    expect(page.get_by_test_id("orientation-note")).to_have_count(0)


@pytest.mark.parametrize("name", STORINGS)
def test_outlines_lie_on_the_mask_in_three_planes(visit, client, name):
    page = opened(visit, client, name)
    page.get_by_test_id("go-middle").click()
    page.get_by_test_id("multiplanar").click()
    seen = shot_when(page, lambda seen: len(frames_in(seen)) == 3 and has_outline(seen))
    storing, number = STORINGS[name], slice_on(page)
    at = [length // 2 for length in ROOM]
    at[storing.through] = (
        ROOM[storing.through] - 1 - number if storing.through in storing.backwards else number
    )
    for frame, through in zip(frames_in(seen), (1, 0, 2), strict=True):  # coronal, sagittal, axial
        expected = seen_from(through, at[through])
        assert expected[0].any()
        shows(seen[frame], expected, 0.3)  # in the middle of one is the crosshair
        outline_fits(seen[frame], expected[0])


def thumbnail(page):
    """The picture beside the worklist, cut to what is not black."""
    url = page.get_by_test_id("thumbnail").evaluate("(canvas) => canvas.toDataURL()")
    data = base64.b64decode(url.partition(",")[2])
    found = np.array(Image.open(io.BytesIO(data)).convert("RGB")).astype(int)
    frames = frames_in(found)
    return found[frames[0]] if frames else found[:1, :1]


@pytest.mark.parametrize("name", STORINGS)
def test_preview_and_report_show_the_same(visit, client, browser, tmp_path, name):
    page = visit(client)
    page.get_by_test_id("row").filter(has_text=name).click()
    expect(page.get_by_test_id("preview-case")).to_have_text(name)
    view = client.get(f"/api/cases/{number_of(client, name)}").json()["view"]
    expected = expected_of(name, view["slices"]["uncertain"])
    page.get_by_test_id("thumbnail").wait_for()
    for _ in range(100):
        if thumbnail(page).shape[0] > 1 and is_coloured(thumbnail(page), expected[0].shape).any():
            break
        page.wait_for_timeout(50)
    shows(thumbnail(page), expected)
    report = browser.new_page(viewport={"width": 1280, "height": 800})
    desks.score_run(tmp_path, [case_of(tmp_path, name)])
    report.goto(write_report(tmp_path / "scores.csv").as_uri())
    picture = report.locator(f"svg[aria-label^='Probability map of {name}'][aria-label*='uncertain']").first
    shape = expected[0].shape
    found = np.array(Image.open(io.BytesIO(picture.screenshot())).convert("RGB")).astype(int)
    assert found.shape[0] / found.shape[1] == pytest.approx(expected[1] / expected[2], rel=0.03)
    np.testing.assert_array_equal(sampled(found, shape).sum(-1) > 300, expected[0])
    report.close()


@pytest.mark.parametrize("name", ["LAS", "PIR", PLAIN])
def test_without_webgl_it_is_the_same(visit, client, name):
    page = visit(client, None)
    page.add_init_script(
        "const get = HTMLCanvasElement.prototype.getContext;"
        "HTMLCanvasElement.prototype.getContext = function (kind, ...more) {"
        "  return kind === 'webgl2' ? null : get.call(this, kind, ...more); };"
    )
    page.goto(str(client.base_url))
    open_case(page, number_of(client, name))
    assert page.get_by_test_id("viewer").get_attribute("data-kind") == "picture"
    seen = shot_when(page, has_outline)
    if name == PLAIN:
        fits_alone(page, slice_on(page))
    else:
        (frame,) = frames_in(seen)
        shows(seen[frame], expected_of(name, slice_on(page)))


def hide_note(page):
    """Hide what is said of an array that lies nowhere; it is said."""
    note = page.get_by_test_id("orientation-note")
    expect(note).to_have_text("orientation unknown")
    note.evaluate("(note) => { note.style.visibility = 'hidden' }")


def fits_alone(page, number):
    """Assert that the mask of an array that lies nowhere is seen with its first row on top."""
    hide_note(page)
    seen = shot_when(page, lambda seen: has_outline(seen) and slice_on(page) == number)
    plane = mask()[number]
    rows, columns = np.flatnonzero(plane.any(1)), np.flatnonzero(plane.any(0))
    inside = plane[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1]
    (frame,) = frames_in(seen)
    np.testing.assert_array_equal(sampled(seen[frame], inside.shape).max(-1) > 60, inside)


def test_an_array_that_lies_nowhere_is_shown_as_it_is(visit, client):
    page = opened(visit, client, PLAIN)
    page.get_by_test_id("slice").focus()
    page.keyboard.press("Home")
    for _ in range(3):
        page.keyboard.press("ArrowRight")
    fits_alone(page, 3)


def test_a_map_without_an_image_fades_as_a_picture_does(visit, client):
    page = opened(visit, client, PLAIN)
    hide_note(page)
    page.keyboard.press("m")
    full = shot_when(page, lambda seen: seen.any() and not has_outline(seen))
    page.get_by_test_id("opacity").focus()
    for _ in range(50):
        page.keyboard.press("ArrowLeft")
    half = shot_when(page, lambda seen: seen.max() < 0.6 * full.max())
    assert half.max() == pytest.approx(0.5 * full.max(), abs=8)
    page.keyboard.press("o")
    shot_when(page, lambda seen: not seen.any())
    page.keyboard.press("o")
    assert (shot_when(page, lambda seen: seen.any()) == half).all()


@pytest.mark.parametrize("ratio", [1, 1.25, 2])
def test_tiles_meet_without_seams(visit, tmp_path, static, ratio):
    places = save_arrays(tmp_path / "files", "even", probabilities=np.full((900, 900), 0.9, np.float32))
    desks.score_run(tmp_path, [CaseFiles("even", **places)])
    with desks.desk_on(tmp_path, static=static) as (_, client):
        page = visit(client, device_scale_factor=ratio)
        open_case(page, 0)
        for step in ("zoom-in", "zoom-in", "zoom-in", "zoom-out"):
            page.get_by_test_id(step).click()
            page.mouse.move(5, 5)
            page.wait_for_timeout(300)
            box = page.get_by_test_id("canvas").bounding_box()
            clip = {"x": box["x"] + 330, "y": box["y"] + 150, "width": 280, "height": 280}
            inner = np.array(Image.open(io.BytesIO(page.screenshot(clip=clip))).convert("RGB"))
            assert np.ptp(inner.reshape(-1, 3), axis=0).max() <= 1, f"a seam after {step}"
        page.close()  # before its desk is gone


@pytest.mark.parametrize("name", ["RAS", "PIR", PLAIN])
def test_letters_are_left_and_on_top(visit, client, name):
    page = opened(visit, client, name)
    (frame, *_) = frames_in(shot_when(page, has_outline))
    page.keyboard.press("m")
    shot_when(page, lambda seen: not has_outline(seen))
    url = page.get_by_test_id("outlines").evaluate("(canvas) => canvas.toDataURL()")
    drawn = np.array(Image.open(io.BytesIO(base64.b64decode(url.partition(",")[2]))))[..., 3] > 200
    letters, count = label(drawn, np.ones((3, 3)))
    assert count == (0 if name == PLAIN else 2)
    middle = [(part.start + part.stop) / 2 for part in frame]
    edges = [frame[0].start, frame[1].start]
    places = sorted(np.mean(np.nonzero(letters == each), axis=1).tolist() for each in range(1, count + 1))
    expected = [[edges[0] + 10, middle[1]], [middle[0], edges[1] + 9]][:count]
    np.testing.assert_allclose(places, expected, atol=5)
