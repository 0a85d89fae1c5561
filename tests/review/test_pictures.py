"""Layers are drawn as they are, however large, and nothing is read that is not shown."""

import io
from dataclasses import replace

import nibabel
import numpy as np
import pytest
import zarr
from hypothesis import given, strategies as st
from PIL import Image

from segtrust.errors import UnsafeFileError, WrongContentError
from segtrust.io import read_table
from segtrust.report.html.planes import planes_of
from segtrust.review import pictures
from segtrust.review.cache import ByteCache
from segtrust.review.nifti_file import nifti_bytes
from segtrust.review.pictures import Layer, OpenedCase, open_case
from segtrust.review.tiles import TILE, Box, box_of, level_count, reduced
from tests.review import desks


def pixels(png):
    return np.asarray(Image.open(io.BytesIO(png)))


def opened(p, **more):
    values = {"mask": None, "truth": None, "image": None, "threshold": 0.5, "spacing_mm": None}
    return OpenedCase(p, **{**values, "affine": np.eye(4), **more})


def mean_of_blocks(values, factor):
    rows, columns = (range(0, length, factor) for length in values.shape[:2])
    return np.array(
        [[values[r : r + factor, c : c + factor].mean((0, 1)) for c in columns] for r in rows], np.float64
    )


@given(st.integers(1, 700), st.integers(1, 700))
def test_tiles_cover_each_level_once(height, width):
    shape = (height, width)
    for level in range(level_count(shape)):
        side = TILE << level
        seen = np.zeros(shape, int)
        for row in range(-(-height // side)):
            for column in range(-(-width // side)):
                box = box_of(shape, level, row, column)
                seen[box.rows, box.columns] += 1
        assert (seen == 1).all()
        assert box_of(shape, level, -(-height // side), 0) is None
    assert box_of(shape, level_count(shape), 0, 0) is None
    assert max(shape) <= TILE << (level_count(shape) - 1)


@pytest.mark.parametrize("factor", [1, 2, 4])
@pytest.mark.parametrize("kind", ["memory", "chunks"])
def test_small_levels_are_means_and_masks_keep_any(factor, kind, monkeypatch):
    monkeypatch.setattr("segtrust.review.tiles._BAND", 700)  # several bands
    values = np.random.default_rng(0).random((61, 47)).astype(np.float32)
    array = values if kind == "memory" else zarr.array(values, chunks=(16, 16))
    box = Box(slice(8, 61), slice(0, 47), factor)
    shown = reduced(array, box, np.asarray)
    np.testing.assert_allclose(shown, mean_of_blocks(values[8:61], factor), rtol=1e-5)
    single = np.zeros((61, 47), np.uint8)
    single[60, 46] = 1
    assert reduced(single, box, np.asarray, keep_any=True).sum() == 1


def test_a_large_map_is_not_read_whole(tmp_path):
    reads = []

    class Watched:
        shape, dtype, chunks = (20_000, 20_000), np.dtype("f4"), (512, 512)

        def __getitem__(self, at):
            reads.append(at)
            rows, columns = (range(*part.indices(20_000)) for part in at)
            return np.full((len(rows), len(columns)), 0.5, np.float32)

    case = opened(Watched())
    assert case.levels == 8
    assert (pixels(case.tile(Layer.PROBABILITIES, 0, box_of(case.shape, 0, 3, 5), None)) == 128).all()
    (rows, columns), *_ = reads
    assert (rows.start, rows.stop, columns.start, columns.stop) == (768, 1024, 1280, 1536)
    reads.clear()
    whole = pixels(case.tile(Layer.MASK, 0, box_of(case.shape, 7, 0, 0), None))
    assert whole.shape == (157, 157)
    assert (whole == 255).all()
    assert max(len(range(*rows.indices(20_000))) for rows, _ in reads) <= 512


def test_layers_of_a_picture():
    rng = np.random.default_rng(0)
    p = rng.random((300, 40)).astype(np.float32)
    truth, image = rng.integers(0, 2, p.shape), rng.integers(0, 256, (*p.shape, 3), np.uint8)
    case = opened(p, truth=truth, image=image)
    assert case.layers == list(Layer)
    box = box_of(case.shape, 0, 1, 0)
    rows = slice(256, 300)
    assert np.array_equal(pixels(case.tile(Layer.PROBABILITIES, 0, box, None)), np.rint(255 * p[rows]))
    assert np.array_equal(pixels(case.tile(Layer.MASK, 0, box, None)), 255 * (p[rows] >= 0.5))
    assert np.array_equal(pixels(case.tile(Layer.TRUTH, 0, box, None)), 255 * truth[rows])
    assert np.array_equal(pixels(case.tile(Layer.IMAGE, 0, box, (0.0, 255.0))), image[rows])
    assert (case.window.low, case.window.most, case.slices.uncertain) == (0.0, 255.0, 0)


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, bool])
def test_probabilities_of_few_bits(dtype):
    p = np.array([[0, 1]], bool) if dtype is bool else np.array([[0, np.iinfo(dtype).max]], dtype)
    case = opened(p)
    box = box_of(case.shape, 0, 0, 0)
    for layer in (Layer.PROBABILITIES, Layer.MASK):
        assert pixels(case.tile(layer, 0, box, None)).tolist() == [[0, 255]]


def test_slices_and_window_of_a_volume():
    p = np.full((5, 8, 9), 0.01, np.float32)
    p[3] = 0.5
    image = np.linspace(-100.0, 300.0, p.size, dtype=np.float32).reshape(p.shape)
    case = opened(p, image=image, mask=np.ones(p.shape, bool))
    assert (case.slices.middle, case.slices.uncertain) == (2, 3)
    assert (case.window.least, case.window.most) == (-100.0, 300.0)
    box = box_of((8, 9), 0, 0, 0)
    shown = pixels(case.tile(Layer.IMAGE, 4, box, (0.0, 100.0)))
    assert np.array_equal(shown, np.rint(255 * np.clip(image[4] / 100.0, 0, 1)))
    flat = pixels(case.tile(Layer.IMAGE, 4, box, (7.0, 7.0)))
    assert flat.shape == (8, 9)


def test_volumes_are_what_nibabel_reads():
    rng = np.random.default_rng(0)
    affine = np.diag([-0.5, 0.7, 3.0, 1.0])
    affine[:3, 3] = 4.0, 5.0, -6.0
    for values in (rng.random((3, 4, 5)).astype(np.float32), rng.integers(0, 256, (3, 4, 5), np.uint8)):
        found = nibabel.Nifti1Image.from_bytes(nifti_bytes(values, affine))
        assert np.array_equal(np.asarray(found.dataobj).T, values)
        assert found.get_data_dtype() == values.dtype
        np.testing.assert_allclose(found.affine, affine)
        np.testing.assert_allclose(found.header.get_zooms(), (0.5, 0.7, 3.0), rtol=1e-6)
        assert found.header.get_xyzt_units()[0] == "mm"


def test_a_volume_that_is_too_large_is_refused(monkeypatch):
    monkeypatch.setattr(pictures, "MOST_BYTES", 100)
    case = opened(np.zeros((5, 5, 5), np.float32))
    with pytest.raises(UnsafeFileError, match="Look at its slices"):
        case.volume(Layer.PROBABILITIES)


def test_cases_are_opened_as_they_were_scored(run_folder):
    table = read_table(run_folder / "scores.csv")
    picture, volume = (open_case(table.rows[at], table.about) for at in (0, -1))
    assert (picture.shape, picture.layers) == ((300, 280), list(Layer))
    assert volume.layers == [Layer.IMAGE, Layer.PROBABILITIES, Layer.MASK]
    assert volume.shape == (9, 20, 24)
    np.testing.assert_allclose(volume.spacing_mm, (3.0, 0.7, 0.5), rtol=1e-6)
    np.testing.assert_allclose(volume.affine, np.diag([-0.5, -0.7, 3.0, 1.0]), atol=1e-6)
    mask = np.asarray(nibabel.Nifti1Image.from_bytes(volume.volume(Layer.MASK)).dataobj)
    assert np.array_equal(mask.T, desks.blob((9, 20, 24), 51) >= 0.4)


def test_a_map_on_disk_is_not_counted_as_memory(tmp_path):
    np.save(tmp_path / "a.npy", np.zeros((2000, 1000), np.float32))
    on_disk = np.load(tmp_path / "a.npy", mmap_mode="r")
    case = opened(on_disk)
    assert case.memory < on_disk.nbytes
    assert replace(case, probabilities=np.array(on_disk)).memory == on_disk.nbytes


def test_a_map_of_four_axes_is_refused(monkeypatch, run_folder):
    table = read_table(run_folder / "scores.csv")
    loaded = pictures.reopen_case(table.rows[0], table.about)
    wide = replace(loaded.prediction, probabilities=np.zeros((2, 2, 2, 2)), mask=None)
    monkeypatch.setattr(pictures, "reopen_case", lambda *_: replace(loaded, prediction=wide))
    with pytest.raises(WrongContentError, match="expected a picture or a volume"):
        open_case(table.rows[0], table.about)


def test_what_is_used_is_kept_and_made_once():
    cache, made = ByteCache(most=10), []

    def get(key):
        return cache.get(key, lambda: made.append(key) or key * 4, len)

    for key in "abaca":
        assert get(key) == key * 4
    assert made == ["a", "b", "c"]
    assert cache.keys() == ["c", "a"]
    assert get("d" * 9) == "d" * 36  # larger than all room: kept alone
    assert cache.keys() == ["d" * 9]


def scored_alone(folder, image):
    """A row of a table whose only case has this image."""
    case = desks.picture_case(folder, "a", 0, shape=(30, 28))
    Image.fromarray(image).save(folder / "0.png")
    desks.score_run(folder, [case])
    table = read_table(folder / "scores.csv")
    return table.rows[0], table.about


def test_greys_of_12_bits_have_a_window(tmp_path):
    image = np.random.default_rng(0).integers(0, 4096, (30, 28)).astype(np.uint16)
    case = open_case(*scored_alone(tmp_path, image))
    assert (case.window.least, case.window.most) == (image.min(), image.max())
    tile = case.tile(Layer.IMAGE, 0, box_of((30, 28), 0, 0, 0), (1000.0, 2000.0))
    np.testing.assert_array_equal(pixels(tile), np.rint(np.clip((image - 1000.0) / 1000.0, 0, 1) * 255))


def test_dark_colours_are_as_bright_as_in_the_report(tmp_path):
    dark = np.random.default_rng(0).integers(0, (9, 5, 3), (30, 28, 3)).astype(np.uint8)
    row, about = scored_alone(tmp_path, dark)
    case = open_case(row, about)
    shown = pixels(case.tile(Layer.IMAGE, 0, box_of((30, 28), 0, 0, 0), None))
    assert (case.window.low, case.window.high) == (0.0, 8.0)
    np.testing.assert_array_equal(shown, np.rint(dark * (255 / 8)))  # each colour by the same window
    np.testing.assert_array_equal(shown, planes_of(row, about).planes[0].image)


def test_a_case_without_an_image_says_how_to_give_one(tmp_path):
    case = desks.picture_case(tmp_path, "a", 0, shape=(30, 28))
    desks.score_run(tmp_path, [replace(case, image=None)])
    table = read_table(tmp_path / "scores.csv")
    assert "Score with --image-dir FOLDER" in open_case(table.rows[0], table.about).note


def test_an_image_without_a_number_is_black():
    case = opened(np.zeros((4, 5), np.float32), image=np.full((4, 5), np.nan, np.float32))
    assert case.window is None
    assert not pixels(case.tile(Layer.IMAGE, 0, box_of((4, 5), 0, 0, 0), None)).any()


def test_an_image_of_another_size_is_told_of(tmp_path):
    case = open_case(*scored_alone(tmp_path, np.zeros((60, 56, 3), np.uint8)))
    assert Layer.IMAGE not in case.layers
    assert "0.png: expected an image of the map's shape, 30 × 28, got 60 × 56 × 3" in case.note
