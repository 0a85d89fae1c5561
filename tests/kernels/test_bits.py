"""Entropies and bit patterns of single doubts."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from segtrust.kernels.bits import binary_entropy, bits_of_float, doubt_at_entropy, float_of_bits
from tests.references import close, entropies

doubts = st.floats(0, 0.5)


@given(doubts)
def test_entropy_equals_the_formula(doubt):
    assert close(binary_entropy(doubt), entropies(doubt), 1e-15)


@given(doubts, doubts)
def test_patterns_are_ordered_like_floats(one, other):
    assert (bits_of_float(one) < bits_of_float(other)) == (one < other)
    assert float_of_bits(bits_of_float(one)) == one


@given(doubts)
def test_doubt_at_entropy_includes_the_pixel_whose_entropy_it_is(doubt):
    found = doubt_at_entropy(binary_entropy(doubt))
    assert found >= doubt
    assert binary_entropy(found) <= binary_entropy(doubt) * (1 + 1e-15)


@given(st.floats(0, 1))
def test_doubt_at_entropy_is_the_largest_that_does_not_exceed_it(tau):
    doubt = doubt_at_entropy(tau)
    allowed = tau * (1 + 4 * np.finfo(float).eps)
    assert binary_entropy(doubt) <= allowed
    assert doubt == 0.5 or binary_entropy(math.nextafter(doubt, 1)) > allowed


@pytest.mark.parametrize(("tau", "doubt"), [(0.0, 0.0), (1.0, 0.5)])
def test_doubt_at_the_ends(tau, doubt):
    assert doubt_at_entropy(tau) == doubt
