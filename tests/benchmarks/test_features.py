"""The benchmark of the features gives its lines, small; how fast they are is not tested."""

import sys

import numpy as np
import pytest

from benchmarks.features import compare_features, lesion, plain_features, time_ragged
from segtrust.errors import MissingExtraError
from segtrust.features import extract_features, feature_names


@pytest.mark.needs("radiomics")
@pytest.mark.filterwarnings("ignore")
def test_lines_against_pyradiomics():
    lines = list(compare_features({(8, 20, 20): 200, (30, 40): 150}, rounds=1))
    assert [line.what for line in lines] == ["102 features", "97 features"]
    assert all(line.ratio > 0 and line.target == ">= 5" for line in lines)


@pytest.mark.needs("radiomics")
@pytest.mark.filterwarnings("ignore")
def test_yardstick_computes_the_same():
    image, mask = lesion((9, 20, 21), 300)
    plain = [float(value) for each in plain_features(image, mask) for value in each.values()]
    assert sorted(plain) == pytest.approx(sorted(extract_features(image, mask)), rel=1e-9, abs=1e-9)
    assert len(plain) == len(feature_names(3))


def test_lines_of_ragged_masks():
    lines = list(time_ragged((6, 20, 20), rounds=1))
    assert [line.met for line in lines] == [True] * 3


def test_lesion_has_the_pixels_asked_for():
    image, mask = lesion((20, 30), 77)
    assert mask.sum() == 77
    assert np.ptp(image) <= 1


def test_absent_pyradiomics_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "radiomics", None)
    with pytest.raises(MissingExtraError, match=r"segtrust\[radiomics\]"):
        list(compare_features(rounds=1))
