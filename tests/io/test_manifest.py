"""Manifests of every kind."""

from pathlib import Path

import numpy as np
import pytest

from segtrust.errors import PairingError
from segtrust.io.array_ref import ArrayRef
from segtrust.io.manifest import is_manifest, read_manifest


@pytest.fixture
def write(tmp_path):
    def written(text, name="cases.csv", encoding="utf-8"):
        path = tmp_path / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode(encoding))
        return path

    return written


def parquet(path, columns):
    import pyarrow.parquet

    pyarrow.parquet.write_table(pyarrow.table(columns), path)
    return path


def test_manifests_are_known_by_their_ending():
    assert all(is_manifest(Path(f"a{ending}")) for ending in (".csv", ".tsv", ".parquet", ".CSV"))
    assert not is_manifest(Path("a.npz"))


def test_all_columns_are_read(write, tmp_path):
    path = write(
        "case,probabilities,mask,truth,image,group,split,colour\n"
        "007,maps/a.npz::p[3],masks/a.png,truths/a.png,/data/a.png,patient 1,test,red\n"
    )
    (case,) = read_manifest(path).cases
    assert case.id == "007"
    assert case.probabilities == ArrayRef(tmp_path / "maps/a.npz", "p", 3)
    assert case.mask == ArrayRef(tmp_path / "masks/a.png")
    assert case.truth == ArrayRef(tmp_path / "truths/a.png")
    assert case.image == ArrayRef(Path("/data/a.png"))
    assert (case.group, case.split) == ("patient 1", "test")


def test_only_probabilities_must_be_there(write, tmp_path):
    cases = read_manifest(write("probabilities\na_prob.nii.gz\nb.npy\n")).cases
    assert [(case.id, case.mask, case.truth, case.group) for case in cases] == [
        ("a", None, None, ""),
        ("b", None, None, ""),
    ]


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("\ufeffcase,probabilities\na,x.npy\n", "a.csv"),
        ("case\tprobabilities\na\tx.npy\n", "a.tsv"),
        ("case,probabilities\r\na,x.npy\r\n", "a.csv"),
        ("case, probabilities\na, x.npy \n", "a.csv"),
        ('"case","probabilities"\n"a","x.npy"', "a.csv"),
        ("case,probabilities,mask\na,x.npy\n", "a.csv"),
        ("case,probabilities,mask\na,x.npy,,\n,,\n\n", "a.csv"),
        ("probabilities,case\nx.npy,a\n", "A.CSV"),
    ],
)
def test_tables_of_other_programs_are_read(write, tmp_path, text, name):
    (case,) = read_manifest(write(text, name)).cases
    assert (case.id, case.probabilities, case.mask) == ("a", ArrayRef(tmp_path / "x.npy"), None)


def test_names_may_hold_anything(write):
    (case,) = read_manifest(write('case,probabilities\n"ä, ""b""\n2",x.npy\n')).cases
    assert case.id == 'ä, "b"\n2'


def test_semicolons_are_told(write):
    path = write("case;probabilities\na;x.npy\n")
    with pytest.raises(
        PairingError, match=rf"^{path}: .*got case;probabilities\. Columns are separated by commas"
    ):
        read_manifest(path)


@pytest.mark.parametrize("text", ["", "case,probabilities\n", "\n\n"])
def test_a_manifest_of_nothing_is_told(write, text):
    path = write(text)
    with pytest.raises(PairingError, match=f"^{path}: expected a row for each case, got none"):
        read_manifest(path)


def test_a_row_without_a_map_is_told(write):
    path = write("case,probabilities\na,x.npy\nb,\n")
    found = read_manifest(path)
    assert [case.id for case in found.cases] == ["a"]
    assert [(each.case, each.reason) for each in found.failures] == [
        ("b", "expected probabilities in row 2, got none")
    ]


def test_a_missing_column_lists_those_that_are_there(write):
    with pytest.raises(PairingError, match=r"expected a column 'probabilities', .*; got case, map\."):
        read_manifest(write("case,map\na,x.npy\n"))


@pytest.mark.parametrize(
    "content", ["case,probabilities\nä,x\n".encode("utf-16"), b"\xff\xfe\xff", b'a,"' + b"x" * 200_000]
)
def test_what_is_no_text_is_told(write, content):
    path = write(content)
    with pytest.raises(PairingError, match=f"^{path}: expected"):
        read_manifest(path)


@pytest.mark.parametrize("name", ["a.csv", "a.parquet"])
def test_an_absent_manifest_is_told(tmp_path, name):
    with pytest.raises(PairingError, match=rf"^{tmp_path}/{name}: no such manifest"):
        read_manifest(tmp_path / name)


@pytest.mark.needs("pyarrow")
def test_parquet_is_read(tmp_path):
    columns = {
        "case": [7, 0],
        "probabilities": ["x.npy", "y.npy"],
        "truth": ["x.png", None],
        "mask": [np.nan, np.nan],
        "group": [1.5, np.nan],
    }
    first, second = read_manifest(parquet(tmp_path / "a.parquet", columns)).cases
    assert (first.id, first.truth, first.mask, first.group) == (
        "7",
        ArrayRef(tmp_path / "x.png"),
        None,
        "1.5",
    )
    assert (second.id, second.truth, second.mask, second.group) == ("0", None, None, "")


@pytest.mark.needs("pyarrow")
def test_damaged_parquet_is_told(tmp_path):
    path = parquet(tmp_path / "a.parquet", {"probabilities": ["x.npy"] * 50})
    content = path.read_bytes()
    for damaged in (b"words", b"", b"PAR1" * 4, content[:-10], content[:20] + bytes(60) + content[80:]):
        path.write_bytes(damaged)
        with pytest.raises(PairingError, match=f"^{path}: expected a table"):
            read_manifest(path)
