"""PLA*: the side of the box that ranks the tuning cases best."""

import numpy as np
import pytest

from segtrust.confidence import PatchLevel, TunedPatchLevel
from segtrust.confidence.tuned_patch_level import SIDES
from segtrust.errors import CaseLengthError, ParameterError
from segtrust.maps import Case, Prediction
from segtrust.selective import risk_coverage_curve
from tests.tuning_cases import blobs, losses_of


def test_the_grid_is_that_of_the_paper():
    assert SIDES[:10] == (1, 2, 3, 4, 5, 6, 7, 8, 9, 10)
    assert SIDES[10:13] == (15, 20, 25)
    assert (SIDES[-1], len(SIDES)) == (200, 48)


@pytest.mark.parametrize("shape", [(40,), (24, 30), (9, 12, 10)])
@pytest.mark.parametrize("n", [2, 5, 12])
def test_takes_the_first_side_with_the_smallest_area(shape, n):
    cases = blobs(n, shape)
    losses = losses_of(cases)
    areas = [
        risk_coverage_curve([PatchLevel(side).score(case) for case in cases], losses).aurc for side in SIDES
    ]
    best = np.flatnonzero(np.array(areas) <= min(areas) + 1e-12)[0]
    fitted = TunedPatchLevel().fit(cases)
    assert fitted.size == SIDES[best]
    assert [fitted.score(case) for case in cases] == [PatchLevel(SIDES[best]).score(case) for case in cases]


def test_ties_go_to_the_smallest_side():
    cases = [Case(Prediction(np.full((5, 5), p)), np.ones((5, 5), bool)) for p in (0.6, 0.7, 0.8)]
    assert TunedPatchLevel().fit(cases).size == 1


def test_boxes_are_capped_by_the_image():
    case = blobs(1)[0]
    sums = TunedPatchLevel().observe(case)["sums"]
    assert len(sums) == len(SIDES)
    capped = [side >= 30 for side in SIDES]
    assert len(set(sums[capped])) == 1


def test_a_side_of_its_own_is_observed_too():
    case = blobs(1)[0]
    tuned = TunedPatchLevel(size=11)
    assert tuned.score_observation(tuned.observe(case)) == pytest.approx(
        PatchLevel(11).score(case), rel=1e-12
    )
    with pytest.raises(CaseLengthError, match="made for other sides than 11"):
        tuned.score_observation(TunedPatchLevel().observe(case))


@pytest.mark.parametrize("size", [0, -1, 1.5, "3"])
def test_sides_without_pixels_are_refused(size):
    with pytest.raises(ParameterError, match="size: expected a whole number of at least 1"):
        TunedPatchLevel(size)
