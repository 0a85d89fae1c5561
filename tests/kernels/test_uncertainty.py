"""The vectorised entropy, against logarithms in long doubles."""

import numpy as np
import pytest
from hypothesis import given, strategies as st

from segtrust.kernels import view_map
from segtrust.kernels.uncertainty import entropy_map
from tests.references import close, entropies

# The polynomial of the larger part is good to 6e-15.
TIGHT = 8e-15


def entropies_of(p):
    view = view_map(p)
    return entropy_map(view.values, view.codes)


def around(values):
    return np.concatenate([np.nextafter(values, 0), values, np.nextafter(values, 1)])


POWERS_OF_TWO = 2.0 ** -np.arange(1, 1022)
GRIDS = {
    "decades": np.logspace(-300, np.log10(0.5), 5000),
    "straight": np.linspace(1e-9, 1 - 1e-9, 20001),
    "around powers of two": around(POWERS_OF_TWO),
    "around 1 minus powers of two": around(1 - POWERS_OF_TWO[:52])[:-1],
    "around a half": 0.5 + np.arange(-50, 51) * 2.0**-53,
}


@pytest.mark.parametrize("grid", GRIDS)
def test_keeps_its_digits(grid):
    p = GRIDS[grid]
    p = p[(p > 0) & (p < 1)]
    reference = entropies(p)
    assert np.abs(entropies_of(p) / reference - 1).max() < TIGHT


@given(st.floats(1e-300, 1, exclude_max=True))
def test_of_any_probability(p):
    assert close(entropies_of(np.array([p]))[0], entropies(p), TIGHT)


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16])
def test_of_every_code(dtype):
    p = np.arange(np.iinfo(dtype).max + 1, dtype=dtype)
    assert np.allclose(entropies_of(p), entropies(p).astype(float), rtol=TIGHT, atol=0)


def test_of_every_half_precision_probability():
    p = np.arange(0x3C01, dtype=np.uint16).view(np.float16)
    assert p[-1] == 1
    assert np.allclose(entropies_of(p), entropies(p).astype(float), rtol=TIGHT, atol=0)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_certain_pixels_have_none(dtype):
    assert entropies_of(np.array([0, 1, -0.0], dtype)).tolist() == [0, 0, 0]


def test_the_smallest_doubts_have_next_to_none():
    found = entropies_of(np.array([5e-324, 1e-310, 2.3e-308]))
    assert (found >= 0).all()
    assert (found < 1e-304).all()


def test_even_chances_have_one_bit():
    assert close(entropies_of(np.array([0.5]))[0], 1, TIGHT)
