"""Files of every release are read by this one; those of versions that it does not know are refused."""

import json
import lzma
import shutil
import sqlite3
from pathlib import Path

import numpy as np
import pytest

import segtrust as st
from segtrust.calibration import Scaling
from segtrust.engine import read_scores, unversioned
from segtrust.errors import SavedStateError, SegtrustError
from segtrust.io import Table, read_table, write_table
from segtrust.policy import Policy, StructurePolicies
from segtrust.report.runs import open_run
from tests.commands import segtrust

RELEASES = sorted((Path(__file__).parent / "fixtures").glob("release-*"))
TORCH = pytest.mark.needs("torch", "PIL")
VERSIONS = ("0", "99")


@pytest.fixture(params=RELEASES, ids=lambda folder: folder.name)
def release(request, tmp_path):
    """A copy of the files of a release."""
    return Path(shutil.copytree(request.param, tmp_path / "release"))


@pytest.fixture
def numbers(release):
    return json.loads((release / "numbers.json").read_text())


def unpacked(release, name):
    path = release / name
    path.write_bytes(lzma.decompress((release / f"{name}.xz").read_bytes()))
    return path


@pytest.mark.parametrize(
    "ending",
    ["csv", "json", pytest.param("parquet", marks=pytest.mark.needs("pyarrow"))],
)
def test_tables(release, numbers, ending):
    table = read_scores(release / f"scores.{ending}")
    assert len(table.rows) == numbers["cases"]
    sums = {name: float(np.sum(table.column(name))) for name in numbers["sums"]}
    assert sums == pytest.approx(numbers["sums"], rel=1e-12)
    assert table.about["format"] == "segtrust-scores-2"
    assert unversioned(table) == ""


def test_an_unfinished_run_starts_again_and_says_so(release, numbers, caplog):
    """Issue: an unfinished 0.1.0 run starts again and says so."""
    (release / "maps").mkdir()
    np.save(release / "maps" / "a.npy", np.eye(8, dtype=np.float32))
    (release / "scores.csv").unlink()
    done = segtrust("score", release / "maps", "--estimators", "sdc", "-o", release / "scores.csv")
    assert done.returncode == 0, done
    assert "an unfinished run of segtrust 0.1 cannot be resumed, so it starts again" in caplog.text
    assert not (release / ".scores.csv.journal").exists()


def test_policies(release, numbers):
    policy = Policy.load(release / "policy.json")
    confidences = read_table(release / "scores.csv").column("sdc")
    assert policy.threshold == numbers["threshold"]
    assert sum(str(policy.decide(each)) == "accept" for each in confidences) == numbers["accepted"]
    assert list(policy.reference.confidences) == sorted(confidences)
    both = StructurePolicies.load(release / "structures.json")
    assert {name: each.threshold for name, each in both.policies.items()} == dict.fromkeys(
        ("cup", "disc"), policy.threshold
    )


def test_scalings(release, numbers):
    found = Scaling.load(release / "scaling.json").apply(np.array([0.1, 0.5, 0.9])).tolist()
    assert found == pytest.approx(numbers["scaled"], rel=1e-12)


@pytest.mark.needs("sqlalchemy")
def test_verdicts(release, numbers):
    from segtrust.review.entries import Seen, Verdict
    from segtrust.review.store import Store

    store = Store.open(release / "verdicts.sqlite", "scores.csv")
    found = [[each.id, each.case, each.verdict, each.reviewer, each.undoes] for each in store.entries()]
    assert found == numbers["verdicts"]
    added = store.add(("", "case_002", ""), Verdict.ACCEPT, Seen(), comment="", reviewer="ann")
    assert added.id == len(found) + 1
    store.close()


@TORCH
def test_trainings_go_on(release, numbers, tmp_path):
    from tools.release_fixtures import opened_training

    (tmp_path / "run" / "training").mkdir(parents=True)
    shutil.copy(unpacked(release, "last.pt"), tmp_path / "run" / "training" / "last.pt")
    losses = [row["loss"] for row in opened_training(tmp_path / "run", tmp_path / "busi", until=2).run()]
    assert losses == pytest.approx(numbers["losses"], rel=1e-3)


@TORCH
def test_weights(release):
    from segtrust.paper.networks.registry import create
    from tools.release_fixtures import WEIGHT

    tensors = create("unext", weights=unpacked(release, "best.pt")).state_dict()
    values = [float(each.unique()) for each in tensors.values() if each.is_floating_point()]
    assert values == pytest.approx([WEIGHT] * len(values))


def test_runs(release):
    open_run(release, command="evaluate")
    with pytest.raises(SegtrustError, match="or of `reproduce validity`, got one of `evaluate`"):
        open_run(release, command="reproduce validity")


# Files of versions that this release does not know.


def reversioned(path, version):
    """Give a text file another version of its format; it is the last release that gave it this one."""
    text = path.read_text()
    head, found, rest = text.partition('"format": "segtrust-')
    assert found
    kind, _, tail = rest.partition('"')
    path.write_text(f'{head}{found}{kind.rpartition("-")[0]}-{version}"{tail}')
    return path.read_bytes()


@pytest.mark.needs("sqlalchemy")
@pytest.mark.parametrize("version", VERSIONS)
def test_verdicts_of_another_version_are_not_touched(tmp_path, version):
    from segtrust.review.store import Store

    path = tmp_path / "verdicts.sqlite"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE segtrust_formats (name TEXT PRIMARY KEY, format TEXT)")
        connection.execute(
            "INSERT INTO segtrust_formats VALUES ('verdicts', ?)", [f"segtrust-verdicts-{version}"]
        )
        connection.execute("CREATE TABLE segtrust_verdicts (verdict TEXT)")  # with columns of its own
        connection.execute("INSERT INTO segtrust_verdicts VALUES ('accept')")
    connection.close()
    with pytest.raises(
        SavedStateError, match=f"expected format .*got 'segtrust-verdicts-{version}'.*Use that"
    ):
        Store.open(path)
    with sqlite3.connect(path) as connection:
        names = {
            name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type != 'index'")
        }
        assert connection.execute("SELECT * FROM segtrust_verdicts").fetchall() == [("accept",)]
    connection.close()
    assert names == {"segtrust_formats", "segtrust_verdicts"}


@TORCH
@pytest.mark.parametrize("version", VERSIONS)
def test_checkpoints_of_another_version(tmp_path, version):
    import torch

    from segtrust.paper.networks.registry import create
    from tools.release_fixtures import opened_training

    for name in ("last.pt", "best.pt"):
        (tmp_path / name).write_bytes(lzma.decompress((RELEASES[-1] / f"{name}.xz").read_bytes()))
        saved = torch.load(tmp_path / name, weights_only=True)
        kind = saved["format"].rpartition("-")[0]
        torch.save({**saved, "format": f"{kind}-{version}"}, tmp_path / name)
    with pytest.raises(SegtrustError, match=f"best.pt: expected format .*-{version}', of another version"):
        create("unext", weights=tmp_path / "best.pt")
    training = tmp_path / "run" / "training"
    training.mkdir(parents=True)
    before = shutil.copy(tmp_path / "last.pt", training / "last.pt").read_bytes()
    with pytest.raises(
        SegtrustError, match=r"last\.pt: expected a checkpoint of the format .*another version"
    ):
        opened_training(tmp_path / "run", tmp_path / "busi", until=2).run()
    assert (training / "last.pt").read_bytes() == before


def test_a_table_that_was_parted_from_what_it_was_made_with_is_told(tmp_path):
    shutil.copy(RELEASES[-1] / "scores.csv", tmp_path)
    arguments = ("calibrate", tmp_path / "scores.csv", "-o", tmp_path / "p.json", "--target-risk", "0.4")
    done = segtrust(*arguments)
    assert "scores.csv: expected a table that says how it was made (format 'segtrust-scores-2'" in done.stderr
    assert "scores.csv.about.json" in done.stderr
    assert unversioned(Table.of([{"case": "a", "sdc": 0.5, "dice": 0.4}])) == ""  # from elsewhere


def test_what_a_table_was_made_with_is_never_that_of_another(tmp_path, monkeypatch):
    """A process that is killed between the two files leaves none of them with the other's."""
    path = tmp_path / "scores.csv"
    write_table(path, Table.of([{"case": "a"}], {"threshold": 0.5}))
    replace_file, seen = Path.replace, []

    def watched(draft, target):
        seen.append((path.read_text(), path.with_name("scores.csv.about.json").exists()))
        return replace_file(draft, target)

    monkeypatch.setattr(Path, "replace", watched)
    write_table(path, Table.of([{"case": "b"}], {"threshold": 0.7}))
    assert seen == [("case\na\n", False), ("case\nb\n", False)]
    seen.clear()
    write_table(path, Table.of([{"case": "c"}], {"threshold": 0.7}))  # what is the same stays
    assert seen == [("case\nb\n", True), ("case\nc\n", True)]
    assert read_table(path).about == {"threshold": 0.7}


def test_every_release_is_kept():
    assert f"release-{st.__version__}" in [each.name for each in RELEASES]
    size = sum(each.stat().st_size for folder in RELEASES for each in folder.iterdir())
    assert size < 300_000 * len(RELEASES)
