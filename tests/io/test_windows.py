"""Windows of images: the same for greys and colours, and safe where there is nothing to see."""

import numpy as np
import pytest

from segtrust.io.windows import stretched, window_of


def test_greys_are_cut_at_both_ends_and_colours_at_the_bright_one():
    values = np.arange(100, 1101.0).reshape(-1, 7, 1).repeat(3, 2)
    grey, coloured = window_of(values), window_of(values, has_colours=True)
    assert (grey.low, grey.high) == pytest.approx((105.0, 1095.0), abs=0.01)
    assert (coloured.low, coloured.high) == (0.0, grey.high)
    assert (grey.least, coloured.least, coloured.most) == (100.0, 0.0, 1100.0)


def test_what_is_no_number_does_not_count():
    values = np.array([np.nan, 0.0, np.inf, 4.0])
    window = window_of(values)
    assert (window.least, window.most) == (0.0, 4.0)
    assert stretched(values, 0.0, 4.0).tolist() == [0.0, 0.0, 255.0, 255.0]
    assert window_of(np.array([np.nan])) is None


def test_an_image_of_few_bright_pixels_is_seen_by_its_whole_range():
    values = np.zeros(1000)
    values[0] = 9.0
    window = window_of(values)
    assert (window.low, window.high) == (0.0, 9.0)
    assert stretched(np.array([5.0]), 5.0, 5.0).tolist() == [0.0]
