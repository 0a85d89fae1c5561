"""Channels of a model, and the labels that belong to them."""

from pathlib import Path

import numpy as np
import pytest

from segtrust.errors import ProbabilityTypeError, UnknownNameError, WrongContentError
from segtrust.io.structures import FOREGROUND, LabelScheme, Structure
from segtrust.io.volumes import Volume
from segtrust.maps import Prediction

PLAIN = LabelScheme((("organ", (1,)), ("lesion", (2,))), is_regions=False)
REGIONS = LabelScheme((("whole", (1, 2)), ("core", (2,))), is_regions=True)
ONE = LabelScheme((("organ", (1,)),), is_regions=False)


def volume_of(values, *, has_channels=True):
    def load(channel):
        return values if channel is None else values[channel]

    return Volume(Path("a.npz"), values.shape, values.dtype, load, has_channels)


def test_channels_of_a_softmax_begin_after_the_background():
    assert [(each.name, each.channel, each.values) for each in PLAIN.structures] == [
        ("organ", 1, (1,)),
        ("lesion", 2, (2,)),
    ]
    assert (PLAIN.channels, PLAIN.known) == (3, (0, 1, 2))


def test_channels_of_regions_begin_at_once():
    assert [(each.name, each.channel, each.values) for each in REGIONS.structures] == [
        ("whole", 0, (1, 2)),
        ("core", 1, (2,)),
    ]
    assert (REGIONS.channels, REGIONS.known) == (2, (0, 1, 2))


def test_the_usual_structure():
    assert REGIONS.usual.name == "whole"
    assert (ONE.usual.name, ONE.usual.channel, ONE.usual.is_complement) == ("organ", 1, False)
    usual = PLAIN.usual
    assert (usual.name, usual.channel, usual.is_complement, usual.values) == (FOREGROUND, 0, True, (1, 2))


def test_structures_are_chosen_by_name():
    assert PLAIN.chosen(()) == (PLAIN.usual,)
    assert PLAIN.chosen(("each",)) == PLAIN.structures
    assert PLAIN.chosen(("lesion", "organ")) == PLAIN.structures[::-1]
    assert PLAIN.chosen(("foreground",)) == (PLAIN.usual,)


@pytest.mark.parametrize("name", ["Lesion", "tumour", "", "background"])
def test_an_unknown_name_lists_the_known(name):
    with pytest.raises(
        UnknownNameError, match=f"Unknown region '{name}'; available: organ, lesion, foreground, each"
    ):
        PLAIN.chosen((name,))


P = np.array([[[0.75, 0.0, 1.0]], [[0.25, 1.0, 0.0]]])


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", ">f4"])
def test_the_complement_of_floats_keeps_their_type(dtype):
    found = Structure(channel=0, is_complement=True).probabilities(volume_of(P.astype(dtype)))
    wanted = "f4" if dtype == "f2" else dtype  # half of the digits would be lost
    assert found.dtype == np.dtype(wanted).newbyteorder("=")
    assert found.tolist() == [[0.25, 1.0, 0.0]]


@pytest.mark.parametrize("dtype", ["u1", "u2"])
def test_the_complement_of_integers_is_that_of_their_range(dtype):
    most = np.iinfo(dtype).max
    p = np.array([[0, 1, most]], dtype)
    found = Structure(channel=0, is_complement=True).probabilities(volume_of(p[np.newaxis]))
    assert found.dtype == p.dtype
    assert found.tolist() == [[most, most - 1, 0]]


def test_the_complement_of_truth_values():
    p = np.array([[[True, False]]])
    found = Structure(channel=0, is_complement=True).probabilities(volume_of(p))
    assert found.tolist() == [[False, True]]


def test_the_complement_of_what_is_no_probability_is_refused_later():
    found = Structure(channel=0, is_complement=True).probabilities(volume_of(np.zeros((2, 3, 3), np.int16)))
    with pytest.raises(ProbabilityTypeError):
        Prediction(found)


def test_the_complement_of_nothing_is_nothing():
    p = np.zeros((2, 0, 3), np.float32)
    assert Structure(channel=0, is_complement=True).probabilities(volume_of(p)).shape == (0, 3)


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8"])
def test_sums_that_miss_one_in_the_last_digit_are_no_error(dtype):
    above = np.nextafter(np.ones((1, 2, 2), dtype), np.array(2, dtype))
    found = Structure(channel=0, is_complement=True).probabilities(volume_of(above))
    assert found.tolist() == [[0.0, 0.0], [0.0, 0.0]]


@pytest.mark.parametrize("worst", [1.5, np.nan])
def test_other_values_are_left_to_be_refused(worst):
    found = Structure(channel=0, is_complement=True).probabilities(volume_of(np.full((1, 2, 2), worst)))
    assert not (found >= 0).any()


def test_what_is_read_is_not_changed():
    p = np.full((1, 2, 2), 1.0 + 1e-7)
    Structure(channel=0, is_complement=True).probabilities(volume_of(p))
    assert (p == 1.0 + 1e-7).all()


def test_one_map_is_taken_whole():
    assert Structure().probabilities(volume_of(P, has_channels=None)) is P
    assert Structure().probabilities(volume_of(P, has_channels=False)) is P
    assert Structure().probabilities(volume_of(P[:1])).shape == (1, 3)


def test_several_channels_are_not_one_map():
    with pytest.raises(WrongContentError, match=r"^a\.npz: expected one map, got 2 channels\. .* --channel"):
        Structure().probabilities(volume_of(P))


def test_masks_are_those_of_the_labels():
    labels = np.array([0, 1, 2])
    assert PLAIN.usual.mask(labels, "a.nii.gz").tolist() == [False, True, True]
    assert REGIONS.structures[1].mask(labels, "a.nii.gz").tolist() == [False, False, True]
    assert Structure().mask(labels[:2], "a.nii.gz").tolist() == [False, True]
