"""The batch against enumeration, the library and itself in other company."""

import numpy as np
import pytest

from segtrust.confidence import ideal_dice_confidence
from segtrust.paper.synthetic.batch import MOST_PIXELS, expected_dices
from tests.references import counted_tversky, enumerated_tversky


def maps(images, n, seed=0, spread=5.0):
    rng = np.random.default_rng(seed)
    p = 1 / (1 + np.exp(-rng.normal(-2.0, spread, (images, n))))
    return p, rng.random((images, n)) < 0.4


@pytest.mark.parametrize("n", [1, 2, 3, 7, 10, 12])
def test_small_images_are_exact(n):
    p, masks = maps(40, n)
    wanted = [float(enumerated_tversky(*image)) for image in zip(p, masks, strict=True)]
    np.testing.assert_allclose(expected_dices(p, masks), wanted, rtol=2e-14)


@pytest.mark.parametrize("n", [100, MOST_PIXELS, MOST_PIXELS + 1])
def test_larger_images_are_exact(n):
    p, masks = maps(4, n)
    wanted = [float(counted_tversky(*image)) for image in zip(p, masks, strict=True)]
    np.testing.assert_allclose(expected_dices(p, masks), wanted, rtol=1e-12)


def test_agrees_with_the_library():
    p, masks = maps(70, 10)
    wanted = [ideal_dice_confidence(*image) for image in zip(p, masks, strict=True)]
    np.testing.assert_allclose(expected_dices(p, masks), wanted, rtol=1e-12)


def test_certain_and_impossible_pixels():
    p = np.array([[1.0, 1.0, 0.0], [0.0, 0.0, 0.0], [1.0, 0.5, 1e-300], [1e-300, 0.0, 1.0]])
    masks = np.array([[1, 1, 0], [1, 0, 0], [1, 1, 1], [1, 0, 0]], bool)
    wanted = [float(enumerated_tversky(*image)) for image in zip(p, masks, strict=True)]
    np.testing.assert_allclose(expected_dices(p, masks), wanted, rtol=1e-14)


def test_an_empty_mask_scores_0():
    assert expected_dices(np.full((3, 10), 0.3), np.zeros((3, 10), bool)).tolist() == [0.0, 0.0, 0.0]


def test_an_image_does_not_depend_on_its_neighbours():
    p, masks = maps(130, 10)
    together = expected_dices(p, masks)
    alone = [expected_dices(p[i : i + 1], masks[i : i + 1])[0] for i in range(130)]
    assert together.tolist() == alone
