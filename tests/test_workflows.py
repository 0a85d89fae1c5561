"""The jobs from Python: the same results as the command line, with and without files."""

import json
import os
import pickle
import pty
import shutil
import subprocess
import sys
from contextlib import suppress
from dataclasses import replace

import numpy as np
import pytest
from PIL import Image

import segtrust as st
from segtrust.io import ReadOptions, Table, read_table
from segtrust.policy import reference_path
from tests.commands import segtrust

SIZE = 24


def write_cases(folder, count, *, first=0, shift=0.0, with_truth=True):
    """Write maps of discs, some of them wrong, with their ground truth."""
    rng = np.random.default_rng(first)
    y, x = np.mgrid[:SIZE, :SIZE]
    for name in ("maps", "labels"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    for number in range(first, first + count):
        truth = (y - 12) ** 2 + (x - 12) ** 2 < (4 + number % 6) ** 2
        blur = 0.25 + 0.2 * rng.random() + shift
        p = np.clip(np.where(truth, 1 - blur, blur / 16) + rng.normal(0, 0.05, truth.shape), 0, 1)
        np.save(folder / f"maps/c{number}.npy", p.astype(np.float32))
        if with_truth:
            Image.fromarray((255 * truth).astype(np.uint8)).save(folder / f"labels/c{number}.png")
    return folder


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return write_cases(tmp_path_factory.mktemp("cases"), 60)


@pytest.fixture(scope="module")
def data(folder):
    return st.find_cases(folder / "maps", truth=folder / "labels")


@pytest.fixture(scope="module")
def table(data):
    return st.score_cases(data, ["sdc"], progress=False)


@pytest.fixture(scope="module")
def tonight(tmp_path_factory):
    return write_cases(tmp_path_factory.mktemp("tonight"), 20, first=100, with_truth=False) / "maps"


def plain(rows):
    return [{name: value for name, value in row.items() if name != "seconds"} for row in rows]


@pytest.mark.needs("pyarrow")
def test_scores_are_those_of_the_command(folder, data, tmp_path):
    path = tmp_path / "scores.parquet"
    command = segtrust("score", folder / "maps", "--truth", folder / "labels", "-o", path)
    assert command.returncode == 0, command.stderr
    table = st.score_cases(data, output=tmp_path / "python.parquet", progress=False)
    assert plain(table.rows) == plain(read_table(path).rows)
    assert table.source == str(tmp_path / "python.parquet")
    saved = read_table(tmp_path / "python.parquet")
    assert plain(saved.rows) == plain(table.rows)
    for name in ("estimators", "read", "segtrust", "with_truth", "checksum", "empty"):
        assert saved.about[name] == read_table(path).about[name]


def test_without_an_output_nothing_is_left_behind(data, tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path / "temporary"))
    monkeypatch.setattr("tempfile.tempdir", None)
    (tmp_path / "temporary").mkdir()
    monkeypatch.chdir(tmp_path)
    table = st.score_cases(data, ["sdc"], progress=False)
    assert (table.cases, table.source) == (60, "table")
    assert [path.name for path in tmp_path.iterdir()] == ["temporary"]
    assert not [path for path in (tmp_path / "temporary").iterdir() if path.name.startswith("segtrust-")]


def test_a_run_is_resumed_and_a_bad_case_is_listed(folder, tmp_path):
    copy = write_cases(tmp_path / "some", 4)
    (copy / "maps/c1.npy").write_bytes(b"no map")
    counts = []
    first = st.score_cases(copy / "maps", ["sdc"], output=tmp_path / "s.csv", progress=False)
    assert [failure.case for failure in first.failures] == ["c1"]
    assert (tmp_path / "failures.csv").exists()
    np.save(copy / "maps/c1.npy", np.full((SIZE, SIZE), 0.8))
    second = st.score_cases(
        copy / "maps", ["sdc"], output=tmp_path / "s.csv", progress=lambda *values: counts.append(values)
    )
    assert (second.cases, second.failures) == (4, ())
    before = {row["case"]: row for row in first.rows}
    assert all(row == before.get(row["case"], row) for row in second.rows), "also the seconds"
    assert counts[0] == ("cases", 0, 4)
    assert counts[-1] == ("cases", 4, 4)


def test_estimators_with_settings_of_their_own(data):
    table = st.score_cases(data, [st.PatchLevel(3), "sdc"], progress=False)
    assert set(table.estimators) == {"pla", "sdc"}
    assert table.about["estimators"]["pla"]["size"] == 3


def test_options_may_come_as_one_value(data):
    by_name = st.score_cases(data, ["sdc"], threshold=0.3, progress=False)
    as_one = st.score_cases(data, ["sdc"], reading=ReadOptions(threshold=0.3), progress=False)
    assert plain(by_name.rows) == plain(as_one.rows)
    assert by_name.about["read"]["threshold"] == 0.3


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda data, table: st.score_cases(data, treshold=0.3), "treshold: no such option. Did you mean"),
        (lambda data, table: st.calibrate(table, target=0.3), "target: no such option"),
    ],
)
def test_an_unknown_option_is_an_error(data, table, call, said):
    with pytest.raises(TypeError, match=said):
        call(data, table)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"threshold": 0.3}, "--threshold applies to maps"),
        ({"ood": {"a": "b"}}, "--ood applies to maps"),
        ({"tune": "aef"}, "--tune applies to maps"),
        ({"estimators": ["idc"]}, "expected some that were scored, got idc"),
        ({"loss": "dice", "loss_column": "dice"}, "expected --loss, or --losses"),
    ],
)
def test_a_table_is_not_scored_again(table, options, said):
    with pytest.raises(st.errors.ParameterError, match=said):
        st.evaluate(table, **options)


@pytest.mark.needs("pyarrow")
def test_an_evaluation_is_that_of_the_command(folder, data, tmp_path):
    command = segtrust(
        "evaluate", folder / "maps", "--truth", folder / "labels", "-o", tmp_path / "run", "--json"
    )
    assert command.returncode == 0, command.stderr
    values = json.loads(command.stdout)
    evaluation = st.evaluate(data, progress=False)
    assert list(evaluation.areas.rows) == values["areas"]
    assert list(evaluation.coverages.rows) == values["coverages"]
    assert list(evaluation.comparisons.rows) == values["comparisons"]
    assert evaluation.curves["ID", "foreground"]["sdc"].aurc == values["areas"][0]["aurc"]
    assert "\nSDC " in str(evaluation)
    assert str(evaluation).splitlines()[0] == "60 of 60 evaluated."
    page = evaluation.report(tmp_path / "python")
    files = {path.relative_to(tmp_path / "run") for path in (tmp_path / "run").rglob("*") if path.is_file()}
    written = {path.relative_to(page.parent) for path in page.parent.rglob("*") if path.is_file()}
    assert {str(path) for path in files - written} == {".scores.parquet.log"}
    assert not written - files


def test_other_sets_are_evaluated_beside_the_first(data, tmp_path):
    other = write_cases(tmp_path / "other", 20, first=200, shift=0.2)
    found = st.find_cases(other / "maps", truth=other / "labels")
    evaluation = st.evaluate(data, ood={"other": found}, estimators=["sdc"], progress=False)
    assert [each.name for each in evaluation.sets] == ["ID", "other"]
    assert {row["case"].partition("/")[0] for row in evaluation.scores.rows if row["set"] == "other"} == {
        "other"
    }


def test_cases_without_ground_truth_cannot_be_evaluated(tonight):
    with pytest.raises(st.errors.ParameterError, match="expected the ground truth of its cases, got none"):
        st.evaluate(tonight, progress=False)


@pytest.mark.needs("pyarrow")
def test_a_policy_and_its_decisions_are_those_of_the_commands(folder, table, tonight, tmp_path):
    table.save(tmp_path / "scores.parquet")
    options = ("--target-risk", 0.3, "--predictor", "fold 0")
    command = segtrust(
        "calibrate", tmp_path / "scores.parquet", "-o", tmp_path / "policy.json", *options, "--json"
    )
    assert command.returncode == 0, command.stderr
    policy = st.calibrate(st.ScoreTable.load(tmp_path / "scores.parquet"), target_risk=0.3, model="fold 0")
    assert policy.threshold == json.loads(command.stdout)["foreground"]["threshold"]
    assert policy.reference.confidences == tuple(sorted(table.column("sdc")))
    command = segtrust(
        *("triage", tonight, "--policy", tmp_path / "policy.json", "-o", tmp_path / "triage"),
        *("--predictor", "fold 0", "--json"),
    )
    values = json.loads(command.stdout)
    result = st.triage(tonight, policy, model="fold 0", progress=False)
    assert {str(decision): result.count(decision) for decision in st.Decision} == values["counts"]
    assert {name: test.to_dict() for name, test in result.drift.items()} == values["drift"]
    assert {str(each.status) for each in result.table.policies.values()} == {"certified"}
    assert values["standing"] == {"foreground": "certified"}
    decided = {row["case"] for row in (*result.accepted.rows, *result.deferred.rows)}
    assert decided == {row["case"] for row in result.table.rows}
    margins = [row["margin"] for row in result.deferred.rows]
    assert margins == sorted(margins)
    again = st.triage(st.score_cases(tonight, ["sdc"], progress=False), policy, model="fold 0")
    assert again.decisions == result.decisions


def test_a_table_is_decided_by_the_policy_that_is_passed(table, tonight, tmp_path):
    """A table that had been scored with another policy used to keep the decisions of that one."""
    lax = st.calibrate(replace(table, looks={}), target_risk=0.4, model="fold 0")
    surer = sorted(table.rows, key=lambda row: -row["sdc"])[:30]
    strict = st.calibrate(replace(table, rows=tuple(surer), looks={}), target_risk=0.4, model="fold 0")
    assert lax.threshold < strict.threshold
    scored = st.score_cases(tonight, policy=lax, model="fold 0", progress=False)
    decided = st.triage(scored, strict, model="another model")
    assert decided.decisions == st.triage(tonight, strict, progress=False).decisions
    assert {row["policy"] for row in decided.table.rows} == {strict.fingerprint}
    assert str(decided.table.policies["foreground"].status) == "estimated"


def test_failed_cases_of_a_table_are_deferred_also_of_a_file(table, tonight, tmp_path):
    policy = st.calibrate(replace(table, looks={}), target_risk=0.3, model="fold 0")
    shutil.copytree(tonight, tmp_path / "maps")
    (tmp_path / "maps/bad.npy").write_bytes(b"no map")
    path = tmp_path / "run/scores.csv"
    scored = st.score_cases(tmp_path / "maps", output=path, progress=False)
    for data in (scored, st.ScoreTable.load(path), path, str(path)):
        assert st.triage(data, policy, model="fold 0").decisions["bad"] is st.Decision.DEFER
    result = st.triage(path, policy, model="fold 0", output=tmp_path / "triage")
    written = st.ScoreTable.load(tmp_path / "triage/scores.csv")
    assert written.column("decision") == result.table.column("decision")
    assert [failure.case for failure in written.failures] == ["bad"]
    assert st.triage(tmp_path / "triage/scores.csv", policy, model="fold 0").decisions == result.decisions
    with pytest.raises(st.errors.ParameterError, match="--threshold applies to maps"):
        st.triage(path, policy, threshold=0.3)
    with pytest.raises(st.errors.ParameterError, match="--channel applies to maps"):
        st.evaluate(table, channel=0)


def test_failures_of_masks_are_listed_with_those_of_their_part(folder, tmp_path):
    cases = st.find_cases(folder / "maps")
    masks = tmp_path / "masks"
    masks.mkdir()
    (masks / f"{cases.cases[0].id}.npy").mkdir()  # where the mask would go
    options = {"num_parts": 20, "part_id": 0, "progress": False}
    table = st.score_cases(cases, ["sdc"], output=tmp_path / "part-0.csv", write_masks_to=masks, **options)
    assert len(table.failures) == 1
    assert not (tmp_path / "failures.csv").exists()
    assert st.ScoreTable.load(tmp_path / "part-0.csv").failures == table.failures


@pytest.mark.needs("matplotlib", "pyarrow")
def test_a_report_of_a_table_in_memory_has_the_table(table, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    st.evaluate(table, resamples=100).report(tmp_path)
    assert (tmp_path / "scores.parquet").exists()


def test_masks_of_pickles_that_were_allowed(tmp_path):
    maps = [np.full((1, 6, 6), 0.75), np.full((1, 6, 6), 0.25)]
    with (tmp_path / "p_hat.pkl").open("wb") as file:
        pickle.dump({"p_hat": maps}, file)
    cases = st.find_cases(tmp_path / "p_hat.pkl", allow_pickle=True)
    table = st.score_cases(cases, ["sdc"], progress=False, write_masks_to=tmp_path / "masks")
    assert (table.cases, table.failures) == (2, ())
    assert len(list((tmp_path / "masks").iterdir())) == 2


@pytest.mark.needs("matplotlib", "pyarrow")
def test_a_policy_of_an_evaluation_or_of_its_folder(data, table, tmp_path):
    evaluation = st.evaluate(data, estimators=["sdc"], resamples=100, output=tmp_path / "run", progress=False)
    expected = st.calibrate(replace(table, looks={}), target_risk=0.3, model="m").threshold
    for given in (evaluation, tmp_path / "run", str(tmp_path / "run")):
        assert st.calibrate(given, target_risk=0.3, model="m").threshold == expected


def test_single_values_of_options_that_take_several(tmp_path):
    (tmp_path / "labels").mkdir()
    np.save(tmp_path / "a.npy", np.full((8, 8), 0.75))
    np.save(tmp_path / "labels/a.npy", np.full((8, 8), 2, np.uint8))
    data = st.find_cases(tmp_path / "a.npy", truth=tmp_path / "labels")
    assert st.score_cases(data, ["sdc"], label=2, progress=False).rows[0]["dice"] == 1.0
    failed = st.score_cases(data, ["sdc"], label=2, region="organ", progress=False).failures
    assert "the regions organ" in failed[0].reason
    with pytest.raises(st.errors.ParameterError, match="digest: expected quick or sha256, got 'md5'"):
        st.score_cases(data, ["sdc"], digest="md5", progress=False)
    with pytest.raises(TypeError, match="pass it to find_cases"):
        st.evaluate(tmp_path, truth=tmp_path / "labels")
    with pytest.raises(TypeError, match=r"predictor: no such option\. Use model="):
        st.score_cases(data, predictor="m")


def test_a_policy_keeps_its_reference_in_a_file_beside_it(table, tmp_path):
    policy = st.calibrate(table, target_risk=0.3, model="fold 0", output=tmp_path / "policy.json")
    loaded = st.load(tmp_path / "policy.json")
    assert (loaded, loaded.reference) == (policy, policy.reference)
    reference_path(tmp_path / "policy.json").unlink()
    bare = st.Policy.load(tmp_path / "policy.json")
    assert (bare, bare.reference) == (policy, None)
    result = st.triage(table, bare, model="fold 0")
    assert result.no_drift_test == "the calibration confidences are not beside the policy"
    assert str(result.table.policies["foreground"].status) == "estimated"


def test_questions_are_remembered_by_the_table(table):
    own = replace(table, looks={})
    assert st.calibrate(own, target_risk=0.3).evidence.earlier_looks == 0
    assert st.calibrate(own, target_risk=0.3).evidence.earlier_looks == 0, "the same question"
    assert st.calibrate(own, target_risk=0.35).evidence.earlier_looks == 1


def test_questions_are_remembered_beside_a_file(table, tmp_path):
    path = tmp_path / "scores.csv"
    table.save(path)
    assert st.calibrate(path, target_risk=0.3).evidence.earlier_looks == 0
    assert st.calibrate(st.ScoreTable.load(path), target_risk=0.35).evidence.earlier_looks == 1


def test_what_cannot_be_certified_is_an_error_that_says_what_is_missing(table):
    with pytest.raises(st.errors.NotCertifiableError, match="Not certifiable with these 60 cases"):
        st.calibrate(replace(table, looks={}), target_risk=0.001)


def test_maps_at_the_size_of_the_ground_truth_certify_nothing_for_cases_without(table, tonight):
    about = {**table.about, "read": {**table.about["read"], "resample": "map"}}
    policy = st.calibrate(replace(table, about=about, looks={}), target_risk=0.3, model="fold 0")
    result = st.triage(tonight, policy, model="fold 0", progress=False)
    (used,) = result.table.policies.values()
    assert used.reason == "made with maps resampled to the ground truth, used with cases without ground truth"
    with_truth = st.triage(replace(table, about=about), policy, model="fold 0")
    assert not with_truth.table.policies["foreground"].reason


def test_a_report_of_a_table(table, tmp_path):
    table.save(tmp_path / "scores.csv")
    page = st.write_report(tmp_path / "scores.csv", output=tmp_path / "page.html")
    assert page == tmp_path / "page.html"
    assert "<html" in page.read_text()


def test_tables_from_elsewhere_can_be_calibrated():
    rows = [{"case": str(i), "sdc": i / 200, "dice": 0.6 + i / 500} for i in range(200)]
    assert st.calibrate(Table.of(rows), target_risk=0.3).threshold < 0.5


PROGRAM = """
import sys
import segtrust as st
table = st.score_cases(sys.argv[1], ["sdc"], workers=2)
print(table)
"""


def test_a_bar_is_drawn_in_a_terminal_and_a_script_needs_no_guard(folder, tmp_path):
    (tmp_path / "program.py").write_text(PROGRAM)
    leader, follower = pty.openpty()
    drawn = b""
    command = [sys.executable, tmp_path / "program.py", folder / "maps"]
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "100"}
    with (
        (tmp_path / "printed.txt").open("w") as printed,
        subprocess.Popen(command, stdout=printed, stderr=follower, env=environment) as process,
    ):
        os.close(follower)
        with suppress(OSError):  # which is how a terminal ends
            while some := os.read(leader, 4096):
                drawn += some
    os.close(leader)
    assert process.returncode == 0
    assert (tmp_path / "printed.txt").read_text() == "60 cases scored.\n"
    assert b"60/60" in drawn


@pytest.mark.needs("nbclient", "ipykernel")
def test_a_bar_is_drawn_in_a_notebook(folder):
    import nbclient
    import nbformat

    cells = [
        f"import segtrust as st\ntable = st.score_cases({str(folder / 'maps')!r}, ['sdc'])",
        "print(table)",
        "table",
    ]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    nbclient.NotebookClient(notebook, timeout=120, kernel_name="python3").execute()
    (bar,) = notebook.cells[0].outputs
    assert "60 of 60 cases" in bar.data["text/html"]
    assert notebook.cells[1].outputs[0].text == "60 cases scored.\n"
    assert "<table" in notebook.cells[2].outputs[0].data["text/html"]


def test_calibration_cases_and_their_copies_are_named_and_left_out_of_the_drift_test(tmp_path):
    old = write_cases(tmp_path / "old", 60)
    table = st.score_cases(
        st.find_cases(old / "maps", truth=old / "labels"), output=tmp_path / "scores.csv", progress=False
    )
    policy = st.calibrate(table, target_risk=0.4, model="m")
    new = write_cases(tmp_path / "new", 30, first=100)
    for number in range(5):
        shutil.copy(old / f"maps/c{number}.npy", new / f"maps/renamed{number}.npy")
    with_copies = st.triage(new / "maps", policy, model="m", progress=False)
    assert "5 of 35 cases are calibration cases of the policy, or copies of them" in str(with_copies)
    assert with_copies.calibration_cases == tuple(f"renamed{number}" for number in range(5))
    for path in new.glob("maps/renamed*.npy"):
        path.unlink()
    without = st.triage(new / "maps", policy, model="m", progress=False)
    assert "calibration cases of the policy" not in str(without)
    assert [test.p_value for test in with_copies.drift.values()] == [
        test.p_value for test in without.drift.values()
    ]


def test_a_changed_dataset_json_gives_other_labels_in_the_same_process(tmp_path):
    p = np.random.default_rng(0).random((3, 8, 8), np.float32)
    (tmp_path / "maps").mkdir()
    np.savez(tmp_path / "maps/a.npz", probabilities=p / p.sum(0))
    path, scores = tmp_path / "names.json", []
    for labels in ({"background": 0, "liver": 1, "organ": 2}, {"background": 0, "organ": 1, "liver": 2}):
        path.write_text(json.dumps({"labels": labels}))
        table = st.score_cases(
            tmp_path / "maps", ["sdc"], region="liver", names=path, mask="threshold", progress=False
        )
        scores += table.column("sdc")
    assert scores[0] != scores[1]


def test_options_that_contradict_each_other_or_are_of_another_type(tmp_path):
    maps = write_cases(tmp_path, 3) / "maps"
    for message, options in {
        "threshold: expected in reading=": {"reading": ReadOptions(), "threshold": 0.3},
        "label: expected whole numbers, got '1'": {"label": "1"},
        "part-id: expected with --num-parts only": {"part_id": 0},
        "num-parts: expected at least 1, got 0": {"part_id": 0, "num_parts": 0},
        "resample: no case has a mask": {"resample": "truth"},
    }.items():
        with pytest.raises(st.errors.ParameterError, match=message):
            st.score_cases(maps, ["sdc"], progress=False, **options)


def test_a_map_that_is_passed_by_its_file_and_with_its_folder_is_one_case(tmp_path):
    folder = write_cases(tmp_path, 3)
    (folder / "maps").rename(folder / "predictions")
    found = st.find_cases([folder / "predictions/c1.npy", folder])
    assert len(found.cases) == 3
    assert not found.failures
    assert all(case.truth for case in found.cases)


def test_copies_in_a_score_table_are_reported(tmp_path):
    folder = write_cases(tmp_path, 20)
    for name in ("maps/{}.npy", "labels/{}.png"):
        shutil.copy(folder / name.format("c0"), folder / name.format("copy"))
    table = st.score_cases(
        st.find_cases(folder / "maps", truth=folder / "labels"), output=tmp_path / "s.csv", progress=False
    )
    for data in (table, tmp_path / "s.csv"):
        evaluation = st.evaluate(data, resamples=100)
        assert any("1 of 21 cases is a copy of another" in each for each in evaluation.scores.questions)
