"""Threads, tiles and layouts change no number, and no bad value is missed, wherever a map lies."""

import tracemalloc
from pathlib import Path
from tempfile import mkdtemp

import numpy as np
import pytest

from segtrust._compile import use_threads
from segtrust.confidence import (
    PatchLevel,
    ThresholdLevel,
    dice_bounds,
    entropy_quantile,
    full_posterior_dice,
    patch_level_confidence,
    score,
)
from segtrust.errors import (
    EmptyArrayError,
    MaskShapeError,
    NotBinaryError,
    ProbabilityRangeError,
    ProbabilityTypeError,
)
from segtrust.kernels import UncertaintyNeeds, open_map
from segtrust.kernels.map_view import SMALLEST_SEGMENT
from segtrust.maps import Prediction
from tests.references import close, logit_normal

EVERYTHING = ["sdc", "idc", "amsp", "apc", "ane", "mmmc", ThresholdLevel(0.3), PatchLevel(10)]


def as_dask(array, chunks, tmp_path):
    import dask.array

    return dask.array.from_array(array, chunks=chunks)


def as_zarr(array, chunks, tmp_path):
    import zarr

    return zarr.create_array(Path(mkdtemp(dir=tmp_path)) / "p.zarr", data=array, chunks=chunks)


def as_old_zarr(array, chunks, tmp_path):
    """Zarr's version 2 with chunks in Fortran order."""
    import zarr

    stored = zarr.create_array(
        tmp_path / "old.zarr", shape=array.shape, dtype=array.dtype, chunks=chunks, order="F", zarr_format=2
    )
    stored[...] = array
    return stored


def as_hdf5(array, chunks, tmp_path):
    import h5py

    file = h5py.File(Path(mkdtemp(dir=tmp_path)) / "p.h5", "w")
    return file.create_dataset("p", data=array, chunks=chunks)


def as_plain_hdf5(array, chunks, tmp_path):
    return as_hdf5(array, None, tmp_path)


KINDS = [
    pytest.param(as_dask, marks=pytest.mark.needs("dask")),
    pytest.param(as_zarr, marks=pytest.mark.needs("zarr")),
    pytest.param(as_old_zarr, marks=pytest.mark.needs("zarr")),
    pytest.param(as_hdf5, marks=pytest.mark.needs("h5py")),
    pytest.param(as_plain_hdf5, marks=pytest.mark.needs("h5py")),
]
CUTS = {
    "even": ((60, 80), (20, 20)),
    "uneven": ((61, 83), (17, 25)),
    "smaller than the box": ((26, 20), (4, 3)),
    "rows": ((50, 40), (1, 40)),
    "one chunk": ((30, 20), (30, 20)),
    "thinner than the box": ((3, 90), (2, 13)),
    "a line": ((500,), (37,)),
    "a volume": ((21, 18, 25), (6, 5, 25)),
    "a film": ((6, 5, 12, 13), (4, 2, 12, 5)),
}


def assert_same(found, reference, tolerance=1e-12):
    assert {name: close(found[name], reference[name], tolerance) for name in found} == dict.fromkeys(
        found, True
    )


@pytest.mark.needs("dask")
@pytest.mark.parametrize("cut", CUTS)
def test_a_map_in_chunks_equals_the_map_in_memory(cut, tmp_path):
    shape, chunks = CUTS[cut]
    p = logit_normal(shape).astype(np.float32)
    for stored in (p, (255 * p).astype(np.uint8)):
        in_chunks = as_dask(stored, chunks, tmp_path)
        assert_same(score(in_chunks, estimators=EVERYTHING), score(stored, estimators=EVERYTHING))


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_store_with_masks_in_chunks_or_in_memory(kind, tmp_path):
    shape, chunks = CUTS["uneven"]
    p = logit_normal(shape)
    mask = np.random.default_rng(0).random(shape) < 0.3
    expected = score(p, mask, EVERYTHING)
    stored = kind(p, chunks, tmp_path)
    assert_same(score(stored, mask, EVERYTHING), expected)
    assert_same(score(stored, as_hdf5(mask, None, tmp_path), EVERYTHING), expected)
    assert_same(score(p, as_hdf5(mask, None, tmp_path), EVERYTHING), expected)


@pytest.mark.needs("dask")
@pytest.mark.parametrize("order", "CF")
def test_boxes_cross_chunks(order, tmp_path):
    p = np.asarray(logit_normal((31, 45)), order=order)
    stored = as_dask(p, ((1, 9, 2, 19), (30, 3, 12)), tmp_path)
    for side in (1, 2, 5, 13, 40):
        assert close(patch_level_confidence(stored, size=side), patch_level_confidence(p, size=side), 1e-13)


@pytest.mark.needs("dask")
@pytest.mark.parametrize("mean", [-9, -6, 0, 5])
def test_mass_is_folded_alike(mean, tmp_path):
    p = logit_normal((900, 800), mean=mean)
    stored = as_dask(p, (70, 800), tmp_path)
    assert_same(score(stored, estimators=["sdc", "idc", "mmmc"]), score(p, estimators=["sdc", "idc", "mmmc"]))
    assert close(dice_bounds(stored).relative_error, dice_bounds(p).relative_error)
    assert close(full_posterior_dice(stored, p > 0.4), full_posterior_dice(p, p > 0.4))


@pytest.mark.needs("zarr")
def test_a_data_set_of_chunked_maps_has_the_same_quantile(tmp_path):
    maps = [logit_normal((40, 30 + i), i) for i in range(5)]
    stored = [Prediction(as_zarr(p, (7, 9), tmp_path)) for p in maps]
    in_memory = [Prediction(p) for p in maps]
    for fraction in (0.0, 0.3, 0.5, 0.97, 1.0):
        assert entropy_quantile(stored, fraction) == entropy_quantile(in_memory, fraction)
    assert ThresholdLevel().fit(stored) == ThresholdLevel().fit(in_memory)


@pytest.mark.needs("zarr")
@pytest.mark.parametrize("value", [np.nan, -0.5, 1.5])
def test_a_bad_value_in_chunks_is_located_in_the_whole_map(value, tmp_path):
    p = np.full((40, 50), 0.25)
    p[25, 33] = value
    stored = as_zarr(p, (20, 20), tmp_path)
    for estimator in EVERYTHING:
        for threads in (1, 2):
            with (
                pytest.raises(ProbabilityRangeError, match=r"^p: .* at index \(25, 33\)"),
                use_threads(threads),
            ):
                score(stored, estimators=[estimator])


def test_a_bad_value_of_a_map_with_gaps_is_located():
    p = np.full((1100, 1000, 2), 0.25, np.float32)[..., 0]
    p[903, 44] = np.nan
    for estimator in EVERYTHING:
        with pytest.raises(ProbabilityRangeError, match=r"^p: .* at index \(903, 44\)"):
            score(p, estimators=[estimator])


@pytest.mark.needs("zarr")
def test_negative_zeros_in_chunks_are_zeros(tmp_path):
    p = np.where(logit_normal((40, 50), mean=0) < 0.5, -0.0, 0.3)
    found = score(as_zarr(p, (9, 20), tmp_path), estimators=EVERYTHING)
    assert_same(found, score(np.abs(p), estimators=EVERYTHING))


@pytest.mark.needs("zarr")
def test_bad_input_in_chunks_is_rejected(tmp_path):
    stored = as_zarr(np.full((4, 5), 0.25), (2, 2), tmp_path)
    with pytest.raises(MaskShapeError, match=r"\(4, 5\), got \(4, 4\)"):
        score(stored, np.zeros((4, 4)))
    with pytest.raises(NotBinaryError, match="7"):
        score(stored, np.full((4, 5), 7))
    with pytest.raises(EmptyArrayError, match=r"\(0, 5\)"):
        score(as_hdf5(np.zeros((0, 5)), None, tmp_path))
    with pytest.raises(ProbabilityTypeError, match=r"p: .*int32"):
        score(as_zarr(np.ones((4, 5), np.int32), (2, 2), tmp_path))


@pytest.mark.needs("zarr")
def test_a_store_is_scored_in_bounded_memory(tmp_path):
    import zarr

    rows, columns, chunk = 4096, 4096, 64
    size = {"shape": (rows, columns), "chunks": (chunk, columns)}
    stored = zarr.create_array(tmp_path / "large.zarr", **size, dtype="float32", compressors=None)
    piece = logit_normal((chunk, columns)).astype(np.float32)
    for first in range(0, rows, chunk):
        stored[first : first + chunk] = piece
    score(stored[:chunk], estimators=EVERYTHING)  # what is imported and compiled once does not count
    tracemalloc.start()
    found = score(stored, estimators=EVERYTHING)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert close(found["sdc"], score(piece, estimators=["sdc"])["sdc"])
    assert peak < stored.nbytes / 5


# Large maps that the loops cannot read where they lie: each with a mask that fits, or one that does not.
AWKWARD = {
    "a channel of channels last": lambda p: np.stack([p, 1 - p], axis=-1)[..., 0],
    "every second column": lambda p: np.repeat(p, 2, axis=2)[:, :, ::2],
    "big-endian": lambda p: p.astype(">f4"),
    "turned": lambda p: p.transpose(1, 0, 2).copy().transpose(1, 0, 2),
    "long doubles": lambda p: p.astype(np.longdouble),
    "with a mask of integers": lambda p: p,
    "Fortran order with a mask in C order": np.asfortranarray,
}


@pytest.mark.parametrize("layout", AWKWARD)
def test_awkward_layouts_are_read_tile_by_tile(layout):
    p = logit_normal((120, 200, 140)).astype(np.float32)
    mask = (p > 0.3).astype(np.int64) if "mask" in layout else None
    if "C order" in layout:
        mask = mask.astype(bool)
    expected = score(p, None if mask is None else mask.astype(bool), EVERYTHING)
    awkward = AWKWARD[layout](p)
    found = score(awkward, mask, EVERYTHING)
    tracemalloc.start()
    score(awkward, mask, EVERYTHING)  # nothing is compiled any more
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert {name: close(found[name], value) for name, value in expected.items()} == dict.fromkeys(found, True)
    assert peak < 0.7 * p.nbytes


SHAPES = [(7,), (2_500_000,), (1000, 1300), (1300, 1001), (60, 210, 211), (3, 40, 30_000), (3, 4, 260, 270)]


def scored(p, mask, threads):
    with use_threads(threads):
        return score(p, mask, EVERYTHING)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", ["float32", "uint8"])
def test_threads_do_not_change_a_bit(shape, dtype):
    p = logit_normal(shape).astype(np.float32)
    p = (p * 255).astype(np.uint8) if dtype == "uint8" else p
    mask = p > 0.3 * p.max() if len(shape) == 2 else None
    one = scored(p, mask, 1)
    assert [scored(p, mask, threads) for threads in (2, 3)] == [one, one]


BAD_VALUES = {
    "NaN": (lambda info: np.nan, "cannot be scored"),
    "infinite": (lambda info: np.inf, "cannot be scored"),
    "minus infinite": (lambda info: -np.inf, "cannot be scored"),
    "negative": (lambda info: -0.1, "look like logits"),
    "hardly negative": (lambda info: -info.smallest_subnormal, "looks like a rounding error"),
    "above 1": (lambda info: 1.1, "look like logits"),
    "hardly above 1": (lambda info: 1 + info.eps, "looks like a rounding error"),
    "8-bit level": (lambda info: 255.0, "look like 8-bit levels"),
}
PLACES = {
    "a line": (2_300_000,),
    "an image": (1500, 1400),
    "a volume": (20, 320, 330),
    "a film": (2, 3, 300, 300),
}


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("place", PLACES)
def test_a_bad_value_in_the_middle_is_located(place, threads):
    shape = PLACES[place]
    p = np.full(shape, 0.25, np.float32)
    at = tuple(3 * length // 5 for length in shape)
    p[at] = np.nan
    for estimator in EVERYTHING:
        with pytest.raises(ProbabilityRangeError) as caught, use_threads(threads):
            score(p, estimators=[estimator])
        assert f"p: expected probabilities in [0, 1], got nan at index {at}" in str(caught.value)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("kind", BAD_VALUES)
def test_every_estimator_rejects_every_bad_value(kind, dtype):
    value_in, remedy = BAD_VALUES[kind]
    p = np.full((40, 50), 0.25, dtype)
    p[17, 30] = value_in(np.finfo(dtype))
    for layout in (p, np.asfortranarray(p), p[:, ::-1]):
        index = (17, 19) if layout.base is p else (17, 30)
        for estimator in EVERYTHING:
            with pytest.raises(ProbabilityRangeError) as caught:
                score(layout, estimators=[estimator])
            assert f"at index {index}" in str(caught.value)
            assert remedy in str(caught.value)


@pytest.mark.parametrize("at", [0, 4095, 4096, SMALLEST_SEGMENT - 1, SMALLEST_SEGMENT, -1])
def test_bad_values_at_block_borders(at):
    p = np.zeros(2 * SMALLEST_SEGMENT + 3)
    p[at] = 1.5
    for estimator in EVERYTHING:
        with pytest.raises(ProbabilityRangeError, match=rf"got 1\.5 at index \({at % p.size},\)"):
            score(p, estimators=[estimator])


def test_maps_of_bad_values():
    random = np.random.default_rng(0)
    maps = {
        "These look like logits: convert them first": random.normal(-3, 5, (300, 300)),
        "divide by 255 or pass them as uint8": random.integers(0, 256, (30, 30)),
        "got nan": np.full(SMALLEST_SEGMENT + 1, np.nan),
    }
    for message, p in maps.items():
        for estimator in EVERYTHING:
            with pytest.raises(ProbabilityRangeError, match=message):
                score(p.astype(np.float32), estimators=[estimator])


def test_negative_zeros_in_many_segments_cost_little_more():
    p = np.full(6 * SMALLEST_SEGMENT, -0.0, np.float32)
    p[5] = 0.75
    assert score(p, estimators=["sdc", "amsp"]) == score(np.abs(p), estimators=["sdc", "amsp"])


@pytest.mark.parametrize("shape", [(7, 40, 50), (300, 300), (2000,)])
def test_every_pixel_is_counted_once_however_a_map_is_walked(shape):
    p = np.random.default_rng(0).random(shape)
    for needs in (UncertaintyNeeds(side=3), UncertaintyNeeds(entropies=True)):
        assert open_map(p).measure(needs).n == p.size
