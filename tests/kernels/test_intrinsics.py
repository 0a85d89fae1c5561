"""Bit patterns in plain Python; the tests of the compiled loops cover the intrinsics."""

import struct

import numpy as np
import pytest

from segtrust.kernels.intrinsics import _unsigned_pattern


@pytest.mark.parametrize("value", [0.0, 0.1, 0.5, 1.0, -0.0, 5e-324])
def test_patterns_of_all_kinds_of_floats(value):
    (double,), (single,) = (
        struct.unpack("=Q", struct.pack("=d", value)),
        struct.unpack("=I", struct.pack("=f", value)),
    )
    assert _unsigned_pattern(value) == _unsigned_pattern(np.float64(value)) == double
    assert _unsigned_pattern(np.float32(value)) == single
    assert _unsigned_pattern(np.float32(value)).dtype == np.uint32
