"""The compiled features against PyRadiomics, feature by feature."""

import logging
from importlib import import_module

import numpy as np
import pytest

from segtrust.errors import GreyLevelsError
from segtrust.features import extract_features, feature_names
from segtrust.features.pyradiomics import CALCULATORS
from tests.masks import SHAPES, masks
from tests.selective.polyps import INSIDE, OUTSIDE, read_png

pytestmark = pytest.mark.needs("radiomics")

TOLERANCE = 1e-9
NOISE = 1e-5
"""Width that PyRadiomics gives a line by rounding, which is exactly 0 here."""
NAMED = [pytest.param(mask, id=f"{ndim}-D {name}") for ndim in (2, 3) for name, mask in masks(ndim).items()]


def differences(image, mask, **options):
    """Features in which the backends differ."""
    ours, theirs = (
        extract_features(image, mask, backend=backend, **options) for backend in ("compiled", "pyradiomics")
    )
    assert np.isfinite(theirs).all()
    assert np.isfinite(ours).all()
    same = np.isclose(ours, theirs, rtol=TOLERANCE, atol=1e-12)
    rows = zip(feature_names(image.ndim), ours.tolist(), theirs.tolist(), same, strict=True)
    return {
        name: (our, their) for name, our, their, equal in rows if not (equal or is_noise(name, our, their))
    }


def is_noise(name, our, their):
    return name.endswith(("AxisLength", "Elongation", "Flatness")) and our == 0 and abs(their) < NOISE


def entropy_map(path):
    p = read_png(path) / 255
    q = np.clip(p, 1e-300, 1), np.clip(1 - p, 1e-300, 1)
    return -sum(each * np.log2(each) for each in q)


@pytest.mark.parametrize("ndim", [2, 3])
def test_names_are_those_of_pyradiomics(ndim):
    expected = []
    for group in dict.fromkeys(name.partition("_")[0] for name in feature_names(ndim)):
        calculator = getattr(import_module(f"radiomics.{group}"), CALCULATORS[group])
        names = calculator.getFeatureNames().items()
        expected += [f"{group}_{name}" for name, deprecated in names if not deprecated]
    assert sorted(feature_names(ndim)) == sorted(expected)


@pytest.mark.parametrize("mask", NAMED)
def test_masks_of_every_kind(mask):
    assert not differences(np.random.default_rng(0).random(mask.shape), mask)


@pytest.mark.parametrize("ndim", [2, 3])
@pytest.mark.parametrize("seed", range(4))
def test_masks_anywhere_in_their_array(ndim, seed):
    rng = np.random.default_rng(seed)
    margins = rng.integers(0, 6, (ndim, 2))
    mask = np.pad(rng.random(SHAPES[ndim]) < rng.random(), margins)
    assert not differences(rng.random(mask.shape) ** 4, mask)


@pytest.mark.parametrize("value", [0.0, 0.1, 1 / 3])
def test_constant_maps(value):
    mask = masks(2)["blob 0"]
    assert not differences(np.full(mask.shape, value), mask)


def test_single_floats():
    mask = masks(3)["blob 0"]
    assert not differences(np.random.default_rng(0).random(mask.shape, np.float32), mask)


def test_one_level_of_a_narrow_bin():
    mask = masks(2)["blob 1"]
    image = np.random.default_rng(0).uniform(0.501, 0.549, mask.shape)
    assert not differences(image, mask, bin_width=0.05)


@pytest.mark.needs("data:polyp")
@pytest.mark.parametrize("name", INSIDE + OUTSIDE)
def test_entropy_maps_of_polyps(data, name):
    paths = sorted((data("polyp") / name / "predictions").glob("*.png"))
    for path in paths[:: len(paths) // 3]:
        u = entropy_map(path)
        for tau in (0.5, 0.95):
            assert not differences(u, u > tau), path.name


@pytest.mark.needs("data:hippocampus", "nibabel")
def test_hippocampi(data):
    import nibabel

    paths = sorted((data("hippocampus") / "labels").glob("*.nii.gz"))
    for path in paths[:: len(paths) // 4]:
        labels = np.asarray(nibabel.load(path).dataobj)
        image = np.random.default_rng(0).random(labels.shape)
        for mask in (labels > 0, labels == 2):
            assert not differences(image, mask), path.name


@pytest.mark.parametrize("ndim", [2, 3])
def test_other_widths_go_to_pyradiomics(ndim):
    mask = masks(ndim)["blob 0"]
    image = np.random.default_rng(0).random(mask.shape)
    chosen = extract_features(image, mask, bin_width=0.05)
    found = dict(zip(feature_names(ndim), chosen, strict=True))
    expected = extract_features(image, mask, bin_width=0.05, backend="pyradiomics")
    assert chosen == pytest.approx(expected, rel=TOLERANCE, abs=1e-12)
    assert found["glcm_Contrast"] > 1
    assert found["firstorder_Entropy"] > 1


def plainly(image, mask, group, name, width):
    """One class called on the whole arrays, as a script would."""
    from SimpleITK import GetImageFromArray

    calculator = getattr(import_module(f"radiomics.{group}"), name)
    pair = GetImageFromArray(image), GetImageFromArray(mask.astype(np.uint8))
    return calculator(*pair, binWidth=width).execute()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("ndim", [2, 3])
@pytest.mark.parametrize("width", [25, 0.05])
def test_backend_gives_what_plain_calls_give(ndim, width):
    mask = np.pad(masks(ndim)["noise 0.3"], 3)
    image = np.random.default_rng(0).random(mask.shape)
    vector = extract_features(image, mask, bin_width=width, backend="pyradiomics")
    found = dict(zip(feature_names(ndim), vector.tolist(), strict=True))
    shape = ("shape", "RadiomicsShape") if ndim == 3 else ("shape2D", "RadiomicsShape2D")
    others = [
        ("firstorder", "RadiomicsFirstOrder"),
        *((g, f"Radiomics{g.upper()}") for g in ("glcm", "glrlm", "glszm", "gldm")),
    ]
    for group, name in (shape, *others):
        for feature, value in plainly(image, mask, group, name, width).items():
            assert found[f"{group}_{feature}"] == pytest.approx(float(value), rel=1e-12, abs=1e-15)


def test_more_levels_than_there_is_room_for_are_rejected():
    image = np.random.default_rng(0).random((9, 9))
    with pytest.raises(GreyLevelsError, match=r"at most 1000 grey levels, got more: a width of 1e-06"):
        extract_features(image, image > 0.5, bin_width=1e-6)


def test_its_log_is_left_as_it_was():
    logger = logging.getLogger("radiomics")
    before = logger.level
    extract_features(np.eye(5), np.eye(5), backend="pyradiomics")
    assert logger.level == before


def test_a_class_that_fails_gives_zeros(monkeypatch):
    from radiomics.glcm import RadiomicsGLCM

    def fail(self):
        raise RuntimeError("out of luck")

    monkeypatch.setattr(RadiomicsGLCM, "execute", fail)
    vector = extract_features(np.eye(5), np.eye(5), backend="pyradiomics")
    found = dict(zip(feature_names(2), vector, strict=True))
    assert {value for name, value in found.items() if name.startswith("glcm")} == {0.0}
    assert found["glszm_ZonePercentage"] == 0.2


def test_ragged_volumes_with_several_levels_do_not_wait_for_its_diameters():
    """Its shape alone would take minutes here."""
    rng = np.random.default_rng(0)
    image = rng.random((40, 60, 60))
    assert np.isfinite(extract_features(image, rng.random(image.shape) < 0.5, bin_width=0.05)).all()
