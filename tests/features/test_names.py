import pytest

from segtrust.errors import ParameterError
from segtrust.features import feature_names


@pytest.mark.parametrize(
    ("ndim", "counts"),
    [
        (2, {"shape2D": 9, "firstorder": 18, "glcm": 24, "glrlm": 16, "glszm": 16, "gldm": 14}),
        (3, {"shape": 14, "firstorder": 18, "glcm": 24, "glrlm": 16, "glszm": 16, "gldm": 14}),
    ],
)
def test_names_are_distinct_and_in_order(ndim, counts):
    names = feature_names(ndim)
    classes = [name.partition("_")[0] for name in names]
    assert len(set(names)) == len(names) == sum(counts.values())
    assert {each: classes.count(each) for each in classes} == counts
    assert list(dict.fromkeys(classes)) == list(counts)


@pytest.mark.needs("radiomics")
@pytest.mark.parametrize("ndim", [2, 3])
def test_names_are_those_of_pyradiomics(ndim):
    from importlib import import_module

    from segtrust.features.pyradiomics import _CALCULATORS

    expected = []
    for group in dict.fromkeys(name.partition("_")[0] for name in feature_names(ndim)):
        calculator = getattr(import_module(f"radiomics.{group}"), _CALCULATORS[group])
        names = calculator.getFeatureNames().items()
        expected += [f"{group}_{name}" for name, deprecated in names if not deprecated]
    assert sorted(feature_names(ndim)) == sorted(expected)


@pytest.mark.parametrize("ndim", [0, 1, 4, "2"])
def test_other_dimensions_are_refused(ndim):
    with pytest.raises(ParameterError, match="expected 2 or 3"):
        feature_names(ndim)
