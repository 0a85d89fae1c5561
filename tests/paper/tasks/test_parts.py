"""The small parts that declarations are made of: resizing, intensities, augmentation, squares, labels."""

import numpy as np
import pytest
from scipy.ndimage import zoom

from segtrust.errors import NotBinaryError
from segtrust.paper.tasks import (
    Labels,
    Sample,
    box_about,
    cut_to_box,
    flipped_and_turned,
    fundus_changed,
    imagenet,
    imagenet_twice_scaled,
    patch_changed,
    volume_changed,
    zscored,
)
from segtrust.paper.tasks.augmenting import cut
from segtrust.paper.tasks.resizing import resized, resized_labels


@pytest.mark.needs("PIL")
def test_bilinear_has_the_weights_of_a_plain_interpolation():
    rng = np.random.default_rng(0)
    image = rng.integers(0, 256, (1, 10, 14), np.uint8)
    rows, columns = ((np.arange(n) + 0.5) * old / n - 0.5 for n, old in ((25, 10), (7, 14)))
    rows, columns = rows.clip(0, 9), columns.clip(0, 13)
    top, left = rows.astype(int), columns.astype(int)
    down, across = (rows - top)[:, None], columns - left
    bottom, right = (top + 1).clip(max=9), (left + 1).clip(max=13)
    corners = [image[0].astype(float)[np.ix_(a, b)] for a in (top, bottom) for b in (left, right)]
    expected = (corners[0] * (1 - across) + corners[1] * across) * (1 - down)
    expected += (corners[2] * (1 - across) + corners[3] * across) * down
    assert np.abs(resized(image, (25, 7), "bilinear")[0] - expected).max() <= 0.5 + 1e-4


@pytest.mark.needs("PIL")
def test_antialiased_keeps_the_mean_and_bilinear_skips_pixels():
    stripes = np.tile(np.array([0, 0, 0, 200], np.uint8), (1, 16, 16))
    assert abs(resized(stripes, (16, 16), "antialiased").mean() - 50.0) < 1.0
    assert resized(stripes, (16, 16), "none") is stripes
    assert resized(stripes, (4, 16), "bilinear").shape == (1, 4, 16)


def test_labels_are_those_of_the_nearest_pixels():
    labels = np.random.default_rng(0).integers(0, 3, (8, 12)).astype(np.uint8)
    assert np.array_equal(
        resized_labels(labels, (16, 24), "bilinear"), zoom(labels, 2, order=0, grid_mode=True, mode="nearest")
    )
    assert set(np.unique(resized_labels(labels, (5, 7), "bilinear"))) <= {0, 1, 2}


def test_unext_sees_blue_first_and_tiny_numbers():
    colours = np.zeros((1, 3, 1, 1), np.uint8)
    colours[0, 2] = 255  # blue
    seen = imagenet_twice_scaled(colours)[0, :, 0, 0]
    assert np.allclose(seen, np.array([(1 - 0.485) / 0.229, -0.456 / 0.224, -0.406 / 0.225]) / 255, atol=1e-7)
    assert imagenet(colours).dtype == np.float32


def test_zeros_stay_zero():
    volume = np.zeros((3, 3, 3), np.float32)
    assert not zscored(volume).any()
    volume[0] = np.arange(1, 10).reshape(3, 3)
    seen = zscored(volume)
    assert not seen[1:].any()
    assert abs(seen[0].mean()) < 1e-6
    assert abs(seen[0].std() - 1.0) < 1e-6


@pytest.mark.parametrize(
    ("augment", "shape", "size"),
    [
        (flipped_and_turned, (20, 20), (20, 20)),
        (fundus_changed, (20, 20), (20, 20)),
        (patch_changed, (40, 24, 40), (16, 16, 16)),
        (patch_changed, (10, 24, 12), (16, 32, 16)),
        (volume_changed, (20, 30, 22), (32, 32, 32)),
    ],
)
def test_image_and_labels_are_changed_alike_and_by_the_numbers_alone(augment, shape, size):
    labels = np.zeros(shape, np.uint8)
    labels[tuple(slice(side // 4, side // 2) for side in shape)] = 1
    flat = len(shape) == 2
    image = np.stack([labels * 255] * 3) if flat else labels[None].astype(np.float32)
    for seed in range(6):
        (changed, moved), (again, _) = (
            augment(image, labels, size, np.random.default_rng(seed)) for _ in range(2)
        )
        assert np.array_equal(changed, again)
        assert changed.shape == (len(image), *size)
        assert moved.shape == size
        assert changed.dtype == (np.uint8 if flat else np.float32)
        seen = changed[0] > (100 if flat else 0.5)
        assert (seen != (moved > 0)).mean() < 0.06


def test_turns_and_flips_are_all_there():
    labels = np.arange(9, dtype=np.uint8).reshape(3, 3)
    found = {
        flipped_and_turned(labels[None], labels, (3, 3), np.random.default_rng(seed))[1].tobytes()
        for seed in range(200)
    }
    assert len(found) == 8


def test_patches_are_cut_about_foreground_four_times_of_five():
    labels = np.zeros((60, 60, 60), np.uint8)
    labels[28:31, 28:31, 28:31] = 1
    hits = [
        cut(labels[None], labels, (16, 16, 16), np.random.default_rng(seed))[1].any() for seed in range(200)
    ]
    assert 0.7 < np.mean(hits) < 0.9


def test_square_reaches_beyond_the_picture():
    image = np.arange(16, dtype=np.uint8).reshape(1, 4, 4)
    mask = np.zeros((4, 4), bool)
    mask[0, 0] = True
    box = box_about(mask, side=3)
    assert box == (-1, -1, 2, 2)
    found, labels = cut_to_box(image, mask.astype(np.uint8), Sample("a", box=box))
    assert found[0].tolist() == [[0, 0, 0], [0, 0, 1], [0, 4, 5]]
    assert labels[1, 1] == 1
    assert box_about(np.zeros((4, 4), bool), side=2) == (1, 1, 3, 3)


def test_grey_masks():
    soft = Labels(at_least=128)
    assert soft.of(np.array([True, False]), "a.png").tolist() == [1, 0]
    assert soft.of(np.zeros(2, np.uint8), "a.png").tolist() == [0, 0]
    with pytest.raises(NotBinaryError, match=r"a\.png.*Save the mask as 0 and 255"):
        soft.of(np.array([0, 1], np.uint8), "a.png")
