"""Threads change nothing, and no bad value is passed over."""

import numpy as np
import pytest

from segtrust.confidence import PatchLevel, ThresholdLevel, score
from segtrust.errors import ProbabilityRangeError
from segtrust.kernels.needs import UncertaintyNeeds
from segtrust.kernels.opening import open_map
from segtrust.kernels.sums import SEGMENT
from segtrust.settings import use_threads
from tests.references import logit_normal

EVERYTHING = ["sdc", "idc", "amsp", "apc", "ane", "mmmc", ThresholdLevel(0.3), PatchLevel(10)]
NAMES = ["sdc", "idc", "amsp", "apc", "ane", "mmmc", "tla", "pla"]

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
    "NaN": (lambda info: np.nan, "never ranked"),
    "infinite": (lambda info: np.inf, "never ranked"),
    "minus infinite": (lambda info: -np.inf, "never ranked"),
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


def estimator(name):
    return {"tla": ThresholdLevel(0.3), "pla": PatchLevel(10)}.get(name, name)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("name", NAMES)
def test_every_estimator_refuses_a_bad_value_in_the_middle(name, place, threads):
    shape = PLACES[place]
    p = np.full(shape, 0.25, np.float32)
    at = tuple(3 * length // 5 for length in shape)
    p[at] = np.nan
    with pytest.raises(ProbabilityRangeError) as caught, use_threads(threads):
        score(p, estimators=[estimator(name)])
    assert f"p: expected probabilities in [0, 1], got nan at index {at}" in str(caught.value)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("kind", BAD_VALUES)
@pytest.mark.parametrize("name", NAMES)
def test_every_estimator_refuses_every_bad_value(name, kind, dtype):
    value_in, remedy = BAD_VALUES[kind]
    p = np.full((40, 50), 0.25, dtype)
    p[17, 30] = value_in(np.finfo(dtype))
    for layout in (p, np.asfortranarray(p), p[:, ::-1]):
        index = (17, 19) if layout.base is p else (17, 30)
        with pytest.raises(ProbabilityRangeError) as caught:
            score(layout, estimators=[estimator(name)])
        assert f"at index {index}" in str(caught.value)
        assert remedy in str(caught.value)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("at", [0, 4095, 4096, SEGMENT - 1, SEGMENT, -1])
def test_bad_values_at_block_borders(name, at):
    p = np.zeros(2 * SEGMENT + 3)
    p[at] = 1.5
    with pytest.raises(ProbabilityRangeError, match=rf"got 1\.5 at index \({at % p.size},\)"):
        score(p, estimators=[estimator(name)])


@pytest.mark.parametrize("name", NAMES)
def test_logits_are_refused(name):
    logits = np.random.default_rng(0).normal(-3, 5, (300, 300)).astype(np.float32)
    with pytest.raises(ProbabilityRangeError, match=r"These look like logits: convert them first"):
        score(logits, estimators=[estimator(name)])


@pytest.mark.parametrize("name", NAMES)
def test_floats_of_8_bit_levels_are_refused(name):
    levels = np.random.default_rng(0).integers(0, 256, (30, 30)).astype(np.float32)
    with pytest.raises(ProbabilityRangeError, match=r"divide by 255 or pass them as uint8"):
        score(levels, estimators=[estimator(name)])


@pytest.mark.parametrize("name", NAMES)
def test_every_value_may_be_bad(name):
    with pytest.raises(ProbabilityRangeError, match="got nan"):
        score(np.full(SEGMENT + 1, np.nan, np.float32), estimators=[estimator(name)])


def test_negative_zeros_in_many_segments_cost_little_more():
    p = np.full(6 * SEGMENT, -0.0, np.float32)
    p[5] = 0.75
    assert score(p, estimators=["sdc", "amsp"]) == score(np.abs(p), estimators=["sdc", "amsp"])


@pytest.mark.parametrize("shape", [(7, 40, 50), (300, 300), (2000,)])
def test_every_pixel_is_counted_once_however_a_map_is_walked(shape):
    p = np.random.default_rng(0).random(shape)
    for needs in (UncertaintyNeeds(side=3), UncertaintyNeeds(entropies=True)):
        assert open_map(p).measure(needs).n == p.size
