"""Order statistics by counting bit patterns."""

import numpy as np
import pytest
from hypothesis import given, strategies as st
from hypothesis.extra import numpy as arrays

from segtrust.kernels.radix import doubt_of_rank

doubts = arrays.arrays(
    float, st.integers(1, 80), elements=st.floats(0, 0.5) | st.sampled_from([0.0, 0.1, 0.5])
)


@given(st.lists(doubts, min_size=1, max_size=4), st.floats(0, 1))
def test_equals_sorting(pieces, fraction):
    ordered = np.sort(np.concatenate(pieces))
    rank = int(fraction * (ordered.size - 1))
    assert doubt_of_rank(lambda: pieces, rank) == ordered[rank]


@pytest.mark.parametrize("rank", [0, 1, 2, 3])
def test_zeros_with_a_sign_are_zeros(rank):
    assert doubt_of_rank(lambda: [np.array([-0.0, 0.25, 0.0, 0.5])], rank) == (0.0, 0.0, 0.25, 0.5)[rank]
