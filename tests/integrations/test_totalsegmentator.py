"""A confidence for each structure of TotalSegmentator's output, on files of its layout."""

import json
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import segtrust as st
from segtrust.cli import app
from segtrust.errors import GeometryError, UnknownNameError, WrongContentError
from segtrust.integrations.totalsegmentator import score_structures
from segtrust.io import read_scheme, read_table
from tests.totalsegmentator_files import soft_maps, write_probabilities, write_segmentation

pytestmark = pytest.mark.needs("totalsegmentator", "nibabel", "SimpleITK")


def names_of(task):
    return {number: name for name, (number,) in read_scheme(Path(f"totalsegmentator:{task}")).labels}


@pytest.fixture(scope="module")
def whole():
    """Probabilities of all structures of the task total, as its fast model gives them."""
    return soft_maps(118)


@pytest.fixture
def case(tmp_path, whole):
    """One case of the fast model: probabilities, and a mask of twice the resolution."""
    path = write_probabilities(tmp_path / "ct.npz", whole)
    return path, write_segmentation(tmp_path / "ct.nii.gz", whole.argmax(0), names_of("total"))


def test_one_row_a_structure_by_its_name(case, whole):
    table = score_structures(*case, estimators=["sdc", "idc"])
    labels, names = whole.argmax(0), names_of("total")
    assert [row["structure"] for row in table.rows] == list(names.values())
    for number, row in enumerate(table.rows, start=1):
        mask = labels == number
        assert row["k"] == mask.sum(), row["structure"]
        assert row["sdc"] == pytest.approx(st.soft_dice_confidence(whole[number], mask), rel=1e-12)
        assert row["idc"] == pytest.approx(st.ideal_dice_confidence(whole[number], mask), rel=1e-12)
    assert {row["mask"] for row in table.rows} == {"delivered"}


def test_names_come_from_the_package_too(case):
    named = score_structures(case[0], task="total", structures=["liver", "spleen"])
    assert [row["structure"] for row in named.rows] == ["liver", "spleen"]
    assert {row["mask"] for row in named.rows} == {"threshold"}
    expected = st.soft_dice_confidence(np.load(case[0])["probabilities"][5])
    assert named.rows[0]["sdc"] == pytest.approx(expected, rel=1e-12)


def test_the_command_line_gives_the_same(case, tmp_path):
    expected = score_structures(*case)
    for extra in ([], ["--names", "totalsegmentator:total"]):
        out = tmp_path / "scores.csv"
        command = ["score", case[0].parent, "-o", out, "--region", "each", "--resample", "truth", *extra]
        found = CliRunner().invoke(app, [*map(str, command), "--estimators", "sdc", "--overwrite"])
        assert found.exit_code == 0, found.output
        rows = read_table(out).rows
        assert [(row["case"], row["structure"], row["sdc"]) for row in rows] == [
            ("ct", row["structure"], row["sdc"]) for row in expected.rows
        ]


class TestPartModels:
    """Of five models of the task total, each writes its probabilities over those of the one before."""

    @pytest.fixture
    def ribs(self, tmp_path):
        p = soft_maps(27, seed=1)
        whole, part = names_of("total"), read_scheme(Path("totalsegmentator:total/ribs")).labels
        labels = np.array([0, *(values[0] for _, values in part)])[p.argmax(0)]
        labels[:2] = next(number for number, name in whole.items() if name == "liver")  # of another model
        path = write_probabilities(tmp_path / "ct.npz", p)
        return path, write_segmentation(tmp_path / "ct.nii.gz", labels, whole), labels

    def test_the_last_one_is_scored_by_its_names(self, ribs):
        path, mask, labels = ribs
        table = score_structures(path, mask, task="total/ribs")
        part = read_scheme(Path("totalsegmentator:total/ribs")).labels
        assert [row["structure"] for row in table.rows] == [name for name, _ in part]
        assert [row["k"] for row in table.rows] == [(labels == values[0]).sum() for _, values in part]

    def test_it_is_not_taken_for_the_whole(self, ribs):
        with pytest.raises(WrongContentError, match=r"expected 118 channels.*got 27\. For a task that runs"):
            score_structures(*ribs[:2], task="total")

    def test_without_names_classes_have_numbers(self, ribs):
        rows = score_structures(ribs[0]).rows
        assert [row["structure"] for row in rows] == [f"class {i}" for i in range(1, 27)]


def test_a_part_of_a_large_image_is_refused(tmp_path, whole):
    """Images that are cut into three for lack of memory: only the probabilities of the first are kept."""
    path = write_probabilities(tmp_path / "ct.npz", whole[:, : whole.shape[1] // 3])
    mask = write_segmentation(tmp_path / "ct.nii.gz", whole.argmax(0), names_of("total"))
    with pytest.raises(GeometryError, match="labelled pixels outside it"):
        score_structures(path, mask)


def test_unknown_structures_are_named(case):
    with pytest.raises(UnknownNameError, match="Unknown region 'lever'; available: spleen"):
        score_structures(*case, structures=["lever"])


def test_one_channel_of_a_large_array_is_in_memory_at_a_time(tmp_path, monkeypatch):
    monkeypatch.setattr("segtrust.io.formats.numpy._AT_ONCE", 0)
    p = np.zeros((40, 32, 64, 64), np.float32)
    p[0] = 1.0
    path = write_probabilities(tmp_path / "ct.npz", p)
    scheme = {"labels": {"background": 0, **{f"organ {i}": i for i in range(1, 40)}}}
    (tmp_path / "dataset.json").write_text(json.dumps(scheme))
    score_structures(path, structures=["organ 1"])  # compiles
    tracemalloc.start()
    table = score_structures(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(table.rows) == 39
    assert peak < p.nbytes / 4
