"""Cases and data sets are values."""

from pathlib import Path

from segtrust.io.cases import CaseFiles, DataSet, Unpaired
from segtrust.io.places import Place

CASE = CaseFiles("a", Place(Path("a.npz")), group="patient 1", split="test")


def test_a_case_gets_a_mask_or_a_truth():
    place = Place(Path("a.png"))
    assert CASE.having("mask", place).mask == place
    assert CASE.having("mask", place).truth is None
    assert CASE.having("truth", place).truth == place
    assert CASE.having("truth", place).group == "patient 1"
    assert CASE.mask is None


def test_data_sets_add_up():
    lonely = Unpaired("b", "b.png", "a mask without a probability map")
    assert DataSet((CASE,)) + DataSet((), (lonely,)) == DataSet((CASE,), (lonely,))
    assert sum([DataSet((CASE,)), DataSet()], DataSet()) == DataSet((CASE,))
