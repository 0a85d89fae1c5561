"""The compiled features against their definitions, and where a feature is undefined."""

import math

import numpy as np
import pytest

from segtrust.errors import GreyLevelsError
from segtrust.features import extract_features, feature_names
from segtrust.features.extraction import has_one_level
from tests.features import references
from tests.masks import SHAPES, at, masks

SOME = ("noise 0.1", "blob 0", "one in the corner", "two apart", "slanting line", "slice")
NAMED = [pytest.param(masks(ndim)[name], id=f"{ndim}-D {name}") for ndim in (2, 3) for name in SOME]


def image_of(shape, seed=0):
    return np.random.default_rng(seed).random(shape)


def features(mask, image=None):
    image = image_of(mask.shape) if image is None else image
    return references.named(mask.ndim, extract_features(image, mask, backend="compiled"))


def of_class(found, name):
    return {key.partition("_")[2]: value for key, value in found.items() if key.startswith(f"{name}_")}


@pytest.mark.parametrize("ndim", [2, 3])
@pytest.mark.parametrize("share", [0.1, 0.5])
def test_first_order_is_as_defined(ndim, share):
    image = image_of(SHAPES[ndim], 1) ** 3
    mask = image_of(SHAPES[ndim], 2) < share
    expected = references.first_order(image[mask])
    assert of_class(features(mask, image), "firstorder") == pytest.approx(expected, rel=1e-9)


def test_shape_of_a_rectangle():
    found = features(at(2, (slice(3, 7), slice(4, 10))))
    cut = 4 * (math.sqrt(0.5) - 1)
    assert found["shape2D_PixelSurface"] == 24
    assert found["shape2D_MeshSurface"] == 23.5
    assert found["shape2D_Perimeter"] == pytest.approx(20 + cut, rel=1e-14)
    assert found["shape2D_MaximumDiameter"] == pytest.approx(math.hypot(6, 3), rel=1e-14)
    assert found["shape2D_MajorAxisLength"] == pytest.approx(4 * math.sqrt(35 / 12), rel=1e-14)
    assert found["shape2D_MinorAxisLength"] == pytest.approx(4 * math.sqrt(15 / 12), rel=1e-14)
    assert found["shape2D_Elongation"] == pytest.approx(math.sqrt(15 / 35), rel=1e-14)


def test_shape_of_a_box():
    found = features(at(3, (slice(2, 6), slice(1, 6), slice(3, 9))))
    assert found["shape_VoxelVolume"] == 120
    assert found["shape_LeastAxisLength"] == pytest.approx(4 * math.sqrt(15 / 12), rel=1e-14)
    assert found["shape_MinorAxisLength"] == pytest.approx(4 * math.sqrt(24 / 12), rel=1e-14)
    assert found["shape_MajorAxisLength"] == pytest.approx(4 * math.sqrt(35 / 12), rel=1e-14)
    assert found["shape_Flatness"] == pytest.approx(math.sqrt(15 / 35), rel=1e-14)
    assert found["shape_Maximum2DDiameterSlice"] == pytest.approx(math.hypot(6, 4), rel=1e-14)
    assert found["shape_Maximum2DDiameterColumn"] == pytest.approx(math.hypot(6, 3), rel=1e-14)
    assert found["shape_Maximum2DDiameterRow"] == pytest.approx(math.hypot(5, 3), rel=1e-14)
    assert found["shape_Maximum3DDiameter"] == pytest.approx(math.sqrt(36 + 16 + 9), rel=1e-14)
    sphericity = (36 * math.pi * found["shape_MeshVolume"] ** 2) ** (1 / 3) / found["shape_SurfaceArea"]
    assert found["shape_Sphericity"] == pytest.approx(sphericity, rel=1e-14)


@pytest.mark.parametrize("mask", NAMED)
def test_turned_masks_have_the_same_axes_and_diameters(mask):
    found, turned = features(mask), features(mask.swapaxes(0, -1)[..., ::-1])
    shape = "shape" if mask.ndim == 3 else "shape2D"
    for name in ("MajorAxisLength", "MinorAxisLength", "Elongation"):
        assert turned[f"{shape}_{name}"] == pytest.approx(found[f"{shape}_{name}"], rel=1e-9)
    name = "Maximum3DDiameter" if mask.ndim == 3 else "MaximumDiameter"
    assert turned[f"{shape}_{name}"] == found[f"{shape}_{name}"]


@pytest.mark.parametrize("name", ["straight line", "slanting line", "two across", "two apart"])
@pytest.mark.parametrize("ndim", [2, 3])
def test_lines_have_no_width(ndim, name):
    found = features(masks(ndim)[name])
    shape = "shape" if ndim == 3 else "shape2D"
    assert found[f"{shape}_MinorAxisLength"] == found[f"{shape}_Elongation"] == 0
    assert found[f"{shape}_MajorAxisLength"] > 1


def test_where_a_mask_lies_moves_nothing_but_a_ragged_volume():
    mask = masks(3)["noise 0.5"]
    image = image_of(mask.shape)
    near, far = ((i, 5 - i) for i in (1, 4))
    found, moved = (
        references.named(3, extract_features(np.pad(image, width), np.pad(mask, width)))
        for width in (near, far)
    )
    differing = {name for name in found if found[name] != moved[name]}
    assert differing <= {"shape_MeshVolume", "shape_Sphericity", "shape_SurfaceVolumeRatio"}


@pytest.mark.parametrize("ndim", [2, 3])
def test_an_empty_mask_gives_zeros(ndim):
    vector = extract_features(image_of(SHAPES[ndim]), np.zeros(SHAPES[ndim], bool))
    assert vector.tolist() == [0.0] * len(feature_names(ndim))


@pytest.mark.parametrize("mask", NAMED)
@pytest.mark.parametrize("value", [0.1, -7.0])
def test_constant_maps_have_no_spread(mask, value):
    found = features(mask, np.full(mask.shape, value))
    assert all(map(math.isfinite, found.values()))
    for name in ("Variance", "Skewness", "Kurtosis", "MeanAbsoluteDeviation", "RobustMeanAbsoluteDeviation"):
        assert found[f"firstorder_{name}"] == 0
    assert found["firstorder_Mean"] == pytest.approx(value, rel=1e-12)


@pytest.mark.parametrize(
    ("values", "width", "one"),
    [
        ((0.0, 1.0), 25, True),
        ((0.0, 24.999), 25, True),
        ((0.0, 25.0), 25, False),
        ((-0.1, 0.1), 25, False),
        ((-0.2, -0.1), 25, True),
        ((25.0, 25.0), 25, True),
        ((0.51, 0.54), 0.05, True),
        ((0.49, 0.51), 0.05, False),
        ((0.0, 1e9), 1e-9, False),
        ((0.15, 0.15), 0.05, True),
    ],
)
def test_number_of_grey_levels(values, width, one):
    assert has_one_level(np.array(values), width) is one


def test_several_levels_are_rejected():
    with pytest.raises(GreyLevelsError, match=r"width of 0\.05 .* values from .* 'pyradiomics'"):
        extract_features(image_of((5, 5)), np.ones((5, 5), bool), bin_width=0.05, backend="compiled")


def test_ragged_volumes_stay_quick_enough_to_be_computed_at_all():
    """All pairs of the vertices of this one would be 10^11."""
    rng = np.random.default_rng(0)
    image = rng.random((60, 80, 80))
    vector = extract_features(image, rng.random(image.shape) < 0.5)
    assert np.isfinite(vector).all()
