"""Members of an ensemble in files: found by name, read one after the other, fused."""

import csv
import json
import re

import numpy as np
import pytest

import segtrust as st
from segtrust.engine import ScoreJob, reopen_case
from segtrust.io.checksums import checksum_of, memory_of, stamps_of
from segtrust.io.dataset import find_cases
from segtrust.io.formats import _common
from segtrust.io.loading import ReadOptions, load_case
from segtrust.io.table import read_table
from tests.commands import segtrust
from tests.engine.files import NNUNET, write_maps
from tests.tuning_cases import blob

BOTH = ("--estimators", "sdc,pairwise-dice")


@pytest.fixture
def folders(tmp_path):
    """Maps of three members, of four cases; truths beside."""
    made = write_maps(tmp_path / "fold_a", 4, truths=tmp_path / "truths")
    for number, name in enumerate(("fold_b", "fold_c"), 1):
        (tmp_path / name).mkdir()
        for at, case in enumerate(made):
            p = np.clip(case.prediction.probabilities * (1 - 0.2 * number) + 0.03 * number, 0, 1)
            np.save(tmp_path / name / f"case_{at:03d}.npy", p.astype(np.float32))
    return [tmp_path / name for name in ("fold_a", "fold_b", "fold_c")]


def options(folders):
    return [each for folder in folders[1:] for each in ("--member", folder)]


def maps_of(folders, name="case_000.npy"):
    return [np.load(folder / name) for folder in folders]


@pytest.mark.parametrize("how", ["mean-probability", "mean-logit"])
def test_all_estimators_score_the_fused_map(folders, tmp_path, how):
    out = tmp_path / "scores.csv"
    done = segtrust("score", folders[0], *options(folders), "-o", out, "--fuse", how, "--estimators", "all")
    assert done.returncode == 0, done.stderr
    row = read_table(out).rows[0]
    fused = st.fuse(maps_of(folders), how)
    expected = st.score(fused, estimators=["sdc", "idc", "amsp", "pla"])
    assert {name: row[name] for name in expected} == expected
    assert row["pairwise-dice"] == st.pairwise_dice(maps_of(folders))
    assert row["members"] == 3
    assert row["member_files"].split(";") == [str(folder / "case_000.npy") for folder in folders[1:]]


@pytest.mark.parametrize(
    "more", [("--workers", "2"), pytest.param(("--dask",), marks=pytest.mark.needs("distributed"))]
)
def test_the_same_in_processes_and_on_dask(folders, tmp_path, more):
    command = ("score", folders[0], *options(folders), "--truth", tmp_path / "truths", *BOTH)
    for name, how in (("a", ()), ("b", more)):
        assert segtrust(*command, "-o", tmp_path / f"{name}.csv", *how).returncode == 0
    first, second = (read_table(tmp_path / f"{name}.csv") for name in "ab")
    for column in ("case", "sdc", "pairwise-dice", "dice", "checksum", "member_files"):
        assert first.column(column) == second.column(column)


def test_dice_is_that_of_the_fused_mask(folders, tmp_path):
    found = find_cases(folders[:1], truth=tmp_path / "truths", members=folders[1:])
    (row,) = ScoreJob((st.SoftDice(),))(found.cases[0]).rows
    truth = np.load(tmp_path / "truths/case_000.npy")
    assert row["dice"] == st.dice(truth, st.fuse(maps_of(folders)) >= 0.5)


def test_a_case_that_lacks_a_member_is_told(folders, tmp_path):
    (folders[2] / "case_001.npy").unlink()
    (folders[1] / "stranger.npy").write_bytes((folders[1] / "case_002.npy").read_bytes())
    (folders[1] / "case_003.npy").write_bytes(b"")
    out = tmp_path / "out/scores.csv"
    done = segtrust("score", folders[0], *options(folders), "-o", out, *BOTH)
    assert done.returncode == 1
    assert read_table(out).column("case") == ["case_000", "case_002"]
    with (tmp_path / "out/failures.csv").open(newline="") as file:
        told = {row["case"]: row["reason"] for row in csv.DictReader(file)}
    assert told.keys() == {"case_001", "stranger", "case_003"}
    assert f"expected its map by the member {folders[2]}" in told["case_001"]
    assert "without one of the first" in told["stranger"]
    assert str(folders[1] / "case_003.npy") in told["case_003"]


@pytest.mark.parametrize(
    ("values", "said"),
    [
        (np.full((5, 6), 0.5), "expected the shape of the first member"),
        (np.full((40, 48), np.nan), "case_000.npy.*nan"),
        (np.full((40, 48), 1.7), "case_000.npy.*1.7"),
        (np.full((40, 48), "a"), "case_000.npy"),
    ],
)
def test_a_member_that_does_not_fit_is_named(folders, tmp_path, values, said):
    shape = maps_of(folders)[0].shape
    np.save(folders[1] / "case_000.npy", np.resize(values, shape) if values.shape != (5, 6) else values)
    found = find_cases(folders[:1], members=folders[1:])
    failure = ScoreJob((st.SoftDice(),))(found.cases[0]).failure
    assert str(folders[1]) in failure.reason
    assert re.search(said, failure.reason), failure.reason


def test_the_same_folder_twice_is_refused(folders, tmp_path):
    done = segtrust("score", folders[0], "--member", folders[0], "-o", tmp_path / "a.csv", *BOTH)
    assert done.returncode == 2
    assert "got the same file twice" in done.stderr


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (BOTH, "pairwise-dice compares the members of an ensemble.*--member"),
        (("--fuse", "mean-logit"), "fuse: expected several maps per case"),
        (("--fuse", "median"), "fuse: expected one of 'mean-probability', 'mean-logit', got 'median'"),
        (("--member", "nowhere"), "nowhere: no such file or folder"),
    ],
)
def test_what_makes_no_sense_is_one_line(folders, tmp_path, more, said):
    done = segtrust("score", folders[0], "-o", tmp_path / "a.csv", *more)
    assert done.returncode == 2
    assert re.search(said, done.stderr), done.stderr
    assert segtrust("score", folders[0], "-o", tmp_path / "b.csv", "--estimators", "all").returncode == 0


def test_a_manifest_names_members(folders, tmp_path):
    with (tmp_path / "cases.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(("case", "probabilities", "members", "truth"))
        writer.writerow(("a", "fold_a/case_000.npy", "fold_b/case_000.npy; fold_c/case_000.npy", ""))
        writer.writerow(("b", "fold_a/case_001.npy", "", "truths/case_001.npy"))
    out = tmp_path / "scores.csv"
    done = segtrust("score", tmp_path / "cases.csv", "-o", out, "--estimators", "sdc")
    assert done.returncode == 0, done.stderr
    first, second = read_table(out).rows
    assert first["sdc"] == st.soft_dice_confidence(st.fuse(maps_of(folders)))
    assert (first["members"], second["members"]) == (3, None)
    done = segtrust("score", tmp_path / "cases.csv", "-o", tmp_path / "b.csv", *BOTH)
    assert done.returncode == 1  # one has members, the other says that it has none
    assert "b: " in done.stderr
    assert "--member" in done.stderr


def test_masks_beside_the_first_member_are_not_the_ensemble_s(tmp_path):
    from shutil import copytree

    source = NNUNET / "regions/predictions"
    first, second = (copytree(source, tmp_path / name) for name in ("one", "two"))
    alone = find_cases([first]).cases
    assert all(case.mask is not None for case in alone)
    found = find_cases([first], members=second)
    assert not found.failures
    assert all(case.mask is None and len(case.members) == 1 for case in found.cases)
    given = find_cases([first], members=second, masks=first)
    assert all(case.mask is not None for case in given.cases)


def test_each_region_is_fused_on_its_own(tmp_path):
    from shutil import copytree

    folders = [copytree(NNUNET / "regions/predictions", tmp_path / name) for name in ("one", "two")]
    for path in folders[1].glob("*.npz"):
        values = np.load(path)["probabilities"]
        np.savez_compressed(path, probabilities=values**2)
    found = find_cases(folders[:1], members=folders[1])
    each = ReadOptions(regions=("each",))
    alone = [list(load_case(find_cases([folder]).cases[0], each)) for folder in folders]
    fused = list(load_case(found.cases[0], each))
    assert len(fused) > 1
    for one, other, both in zip(*alone, fused, strict=True):
        members = [one.prediction.probabilities, other.prediction.probabilities]
        assert np.array_equal(both.prediction.probabilities, st.fuse(members))
        assert both.prediction.agreement.pairwise_dice(of_empty=0.0) == st.pairwise_dice(members)
        assert np.array_equal(both.grid.affine, one.grid.affine)


def test_a_changed_member_is_scored_again_and_other_members_are_another_run(folders, tmp_path):
    out = tmp_path / "scores.csv"
    command = ("score", folders[0], *options(folders), "-o", out, *BOTH)
    assert segtrust(*command).returncode == 0
    before = read_table(out)
    np.save(folders[2] / "case_001.npy", maps_of(folders)[0] * 0.5)
    assert segtrust(*command).returncode == 0
    after = read_table(out)
    changed = [a != b for a, b in zip(before.column("checksum"), after.column("checksum"), strict=True)]
    assert changed == [False, True, False, False]
    assert after.column("pairwise-dice")[1] != before.column("pairwise-dice")[1]
    assert segtrust(*command, "--fuse", "mean-probability").returncode == 0  # the usual one, said aloud
    other = segtrust(*command, "--fuse", "mean-logit")
    assert other.returncode == 2
    assert "fuse none (now mean-logit)" in other.stderr
    fewer = segtrust("score", folders[0], "--member", folders[1], "-o", out, *BOTH)
    assert fewer.returncode == 0
    assert set(read_table(out).column("members")) == {2}


def test_stamps_digests_and_memory_know_the_members(folders):
    alone = find_cases(folders[:1]).cases[0]
    both = find_cases(folders[:1], members=folders[1:]).cases[0]
    assert stamps_of([alone])["case_000"] != stamps_of([both])["case_000"]
    assert memory_of(both) > memory_of(alone)
    assert memory_of(both) < 6 * memory_of(alone)
    (row,), (single,) = (ScoreJob((st.SoftDice(),))(case).rows for case in (both, alone))
    assert single["checksum"] == checksum_of(alone.probabilities.path)
    assert row["checksum"] != single["checksum"]
    assert "members" not in single


@pytest.mark.needs("pandas", "pyarrow", "matplotlib")
def test_report_and_desk_show_the_fused_map(folders, tmp_path):
    from segtrust.review.pictures import open_case, stamp_of_case

    run = tmp_path / "run"
    told = ("--truth", tmp_path / "truths", "--fuse", "mean-logit", "--resamples", "100")
    done = segtrust("evaluate", folders[0], *options(folders), "-o", run, *told, *BOTH)
    assert done.returncode == 0, done.stderr
    assert "pairwise Dice" in (run / "report.html").read_text()
    table = read_table(run / "scores.parquet")
    loaded = reopen_case(table.rows[0], table.about)
    fused = st.fuse(maps_of(folders), "mean-logit")
    assert np.array_equal(loaded.prediction.probabilities, fused)
    opened = open_case(table.rows[0], table.about)
    assert np.array_equal(opened.probabilities, fused)
    before = stamp_of_case(table.rows[0], table.about)
    (folders[2] / "case_000.npy").unlink()
    assert stamp_of_case(table.rows[0], table.about) != before
    with pytest.raises(st.errors.SegtrustError, match=r"fold_c/case_000\.npy: expected the map of the case"):
        reopen_case(table.rows[0], table.about)


@pytest.mark.needs("pyarrow", "matplotlib")
def test_another_set_has_members_of_its_own(folders, tmp_path):
    for name in ("away_a", "away_b"):
        (tmp_path / name).mkdir()
        np.save(tmp_path / name / "x.npy", blob(31 + len(name)).prediction.probabilities)
        np.save(tmp_path / name / "y.npy", blob(32).prediction.probabilities ** (1 + (name == "away_b")))
    (tmp_path / "away_truths").mkdir()
    for name, number in (("x", 31), ("y", 32)):
        np.save(tmp_path / f"away_truths/{name}.npy", blob(number).truth.astype(np.uint8))
    sets = ("--ood", f"B={tmp_path / 'away_a'}", "--ood-truth", f"B={tmp_path / 'away_truths'}")
    command = ("evaluate", folders[0], *options(folders[:2]), "--truth", tmp_path / "truths", *sets, *BOTH)
    more = ("--ood-member", f"B={tmp_path / 'away_b'}", "--resamples", "100", "-o", tmp_path / "run")
    done = segtrust(*command, *more)
    assert done.returncode == 0, done.stderr
    rows = read_table(tmp_path / "run/scores.parquet").rows
    assert {(row["set"], row["members"]) for row in rows} == {("ID", 2), ("B", 2)}


def test_a_policy_of_single_maps_is_not_certified_for_ensembles(tmp_path):
    write_maps(tmp_path / "one", 60, truths=tmp_path / "truths")
    write_maps(tmp_path / "two", 60, first=100)
    table, policy = tmp_path / "scores.csv", tmp_path / "policy.json"
    assert segtrust("score", tmp_path / "one", "--truth", tmp_path / "truths", "-o", table).returncode == 0
    told = ("--estimator", "sdc", "--target-risk", "0.9", "--predictor", "m", "-o", policy)
    assert segtrust("calibrate", table, *told).returncode == 0
    standing = {}
    for name, more in (("alone", ()), ("both", ("--member", tmp_path / "two"))):
        command = ("triage", tmp_path / "one", *more, "--policy", policy, "--predictor", "m")
        done = segtrust(*command, "-o", tmp_path / name, "--json")
        standing[name] = json.loads(done.stdout)["standing"]
    assert (set(standing["alone"].values()), set(standing["both"].values())) == ({"certified"}, {"estimated"})


def test_new_cases_are_fused_as_those_of_the_policy(tmp_path):
    for at, name in enumerate(("first", "second")):
        write_maps(tmp_path / name, 60, first=100 * at, truths=tmp_path / "truths")
    member = ("--member", tmp_path / "second")
    scored = ("score", tmp_path / "first", *member, "--truth", tmp_path / "truths", "--fuse", "mean-logit")
    assert segtrust(*scored, "-o", tmp_path / "a.csv").returncode == 0
    promise = ("--target-risk", "0.9", "--predictor", "m")
    assert segtrust("calibrate", tmp_path / "a.csv", "-o", tmp_path / "p.json", *promise).returncode == 0
    told = ("triage", tmp_path / "first", "--policy", tmp_path / "p.json", "--predictor", "m", "--json")
    for name, more, standing in (("fused", member, "certified"), ("single", (), "estimated")):
        done = segtrust(*told, "-o", tmp_path / name, *more)
        assert done.returncode == 0, done.stderr
        assert set(json.loads(done.stdout)["standing"].values()) == {standing}
    fused = read_table(tmp_path / "fused" / "scores.csv").column("sdc")
    assert fused == read_table(tmp_path / "a.csv").column("sdc")
    other = segtrust(*told, "-o", tmp_path / "other", *member, "--fuse", "mean-probability")
    assert other.returncode == 2
    assert "fuse 'mean-logit', not 'mean-probability'" in other.stderr


@pytest.mark.needs("zarr")
def test_zarr_is_fused_piece_by_piece(folders, tmp_path, monkeypatch):
    import zarr

    monkeypatch.setattr(_common, "_AT_ONCE", 8)
    names = []
    for folder in folders:
        path = tmp_path / f"{folder.name}_zarr" / "case_000.zarr"
        values = np.load(folder / "case_000.npy").astype(np.float32)
        zarr.create_array(path, data=values, chunks=(16, 16))
        names.append(path.parent)
    found = find_cases(names[:1], members=names[1:])
    (loaded,) = load_case(found.cases[0], ReadOptions())
    assert not isinstance(loaded.prediction.probabilities, np.ndarray)
    (row,) = ScoreJob((st.SoftDice(), st.PairwiseDice()))(found.cases[0]).rows
    maps = [each.astype(np.float32) for each in maps_of(folders)]
    assert row["sdc"] == pytest.approx(st.soft_dice_confidence(st.fuse(maps)), rel=1e-13)
    assert row["pairwise-dice"] == st.pairwise_dice(maps)
