"""Entropies and bit patterns of single doubts."""

import numpy as np
import pytest
from hypothesis import given, strategies as st

from segtrust.kernels.bits import binary_entropy, bits_of_float, doubt_at_entropy, float_of_bits
from tests.references import close, entropies

doubts = st.just(0.0) | st.floats(1e-290, 0.5)


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
    assert doubt <= found <= doubt * (1 + 2e-9)
    assert binary_entropy(found) <= binary_entropy(doubt) * (1 + 1e-15) + 60 * 2**-53


@given(st.floats(0, 1))
def test_doubt_at_entropy_is_the_largest_that_does_not_exceed_it(tau):
    doubt = doubt_at_entropy(tau)
    more, less = doubt * (1 + 3e-9) + 5e-324, doubt * (1 - 3e-9)
    assert doubt == 0.5 or binary_entropy(more) > tau
    assert binary_entropy(less) <= tau * (1 + 1e-15)


@pytest.mark.parametrize("levels", [255, 65535])
def test_both_codes_of_one_doubt_lie_on_the_same_side(levels):
    codes = np.arange(1, levels // 2 + 1, max(1, levels // 1000))
    low, high = codes / levels, 1 - (levels - codes) / levels
    assert (low != high).any()
    for doubts in (low, high):
        limits = np.array([doubt_at_entropy(binary_entropy(doubt)) for doubt in doubts])
        assert (np.maximum(low, high) <= limits).all()
        assert (limits < low + 0.5 / levels).all()


@pytest.mark.parametrize(("tau", "doubt"), [(0.0, 0.0), (1.0, 0.5)])
def test_doubt_at_the_ends(tau, doubt):
    assert doubt_at_entropy(tau) == doubt
