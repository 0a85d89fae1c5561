"""Every risk of `RISKS` on the command line, from ground truth to decisions; and tables of release 0.1.0."""

import json
from pathlib import Path

import numpy as np
import pytest

import segtrust as st
from segtrust.engine import loss_of_row
from segtrust.io import read_table
from segtrust.policy import Policy
from segtrust.risks import RISKS
from tests.commands import segtrust
from tests.engine.files import write_maps

pytestmark = pytest.mark.needs("matplotlib", "pyarrow")
RELEASE = Path(__file__).parents[1] / "fixtures/release-0.1.0"
MODEL = ("--predictor", "fold 0")
OTHERS = [risk for risk in RISKS.values() if risk.column != "dice"]
COUNT = 120


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Maps with ground truth, their score table, new maps, and the losses computed from the arrays."""
    folder = tmp_path_factory.mktemp("losses")
    write_maps(folder / "maps", COUNT, truths=folder / "truth")
    write_maps(folder / "new", 30, first=7000)
    done = segtrust("score", folder / "maps", "--truth", folder / "truth", "-o", folder / "scores.csv")
    assert done.returncode == 0, done.stderr
    return folder


def losses_from_arrays(folder, risk, names):
    pairs = [[np.load(folder / kind / f"{name}.npy") for kind in ("truth", "maps")] for name in names]
    return [float(risk.of(truth > 0, p >= 0.5)) for truth, p in pairs]


@pytest.mark.parametrize("risk", OTHERS, ids=lambda risk: risk.column)
def test_from_ground_truth_to_decisions(folder, tmp_path, risk):
    run, policy_path = tmp_path / "run", tmp_path / "policy.json"
    done = segtrust(
        *("evaluate", folder / "maps", "--truth", folder / "truth", "--loss", risk.column, "-o", run),
        *("--resamples", 100),
    )
    assert done.returncode == 0, done.stderr
    table = read_table(run / "scores.parquet")
    assert table.about["loss"] == risk.column
    expected = losses_from_arrays(folder, risk, table.column("case"))
    np.testing.assert_allclose(table.column("loss"), expected, rtol=1e-12, atol=1e-15)
    page = (run / "report.html").read_text("utf-8")
    assert f"Mean loss ({risk.loss_label})" in page
    assert f"{risk.loss_label}; {risk.empty_rule}".replace("'", "&#x27;") in page.replace("&#39;", "&#x27;")
    assert f"mean {risk.label}" in page

    limit = 0.1 + float(np.mean(expected))
    calibrated = segtrust(
        "calibrate", run / "scores.parquet", "-o", policy_path, "--target-risk", limit, *MODEL
    )
    assert calibrated.returncode == 0, calibrated.stderr
    assert f"the mean loss ({risk.loss_label}) of accepted cases is at most" in " ".join(
        calibrated.stdout.split()
    )
    policy = Policy.load(policy_path)
    assert [target.loss for target in policy.targets] == [risk.column]
    assert policy.status == "certified"

    again = segtrust("report", run, "--policy", policy_path, *MODEL, "-o", tmp_path / "report.html")
    assert again.returncode == 0, again.stderr
    assert f"their mean loss ({risk.loss_label}) is" in (tmp_path / "report.html").read_text("utf-8")

    triaged = segtrust("triage", folder / "new", "--policy", policy_path, *MODEL, "-o", tmp_path / "new")
    assert triaged.returncode in (0, 1), triaged.stderr
    assert risk.loss_label in triaged.stdout + triaged.stderr
    decided = read_table(tmp_path / "new/scores.csv").rows
    assert {row["decision"] for row in decided} <= {"accept", "defer"}
    assert all(
        (row["sdc"] >= policy.threshold) == (row["decision"] == "accept") for row in decided if row["k"]
    )


@pytest.mark.parametrize("risk", RISKS.values(), ids=lambda risk: risk.column)
def test_calibrate_takes_any_risk_of_a_score_table(folder, tmp_path, risk):
    """A table of `segtrust score` has no column of losses; `--loss` says which one is limited."""
    expected = losses_from_arrays(folder, risk, read_table(folder / "scores.csv").column("case"))
    options = ("--target-risk", 0.1 + float(np.mean(expected)), "--json")
    done = segtrust(
        "calibrate", folder / "scores.csv", "-o", tmp_path / "a.json", "--loss", risk.column, *options
    )
    assert done.returncode == 0, done.stderr
    same = segtrust(
        "calibrate", folder / "scores.csv", "-o", tmp_path / "b.json", "--loss-column", risk.name, *options
    )
    assert json.loads(done.stdout) == json.loads(same.stdout)
    (target,) = Policy.load(tmp_path / "a.json").targets
    assert target.loss == ("" if risk.column == "dice" else risk.column)


def test_a_limit_is_checked_with_losses_of_its_own_kind(folder, tmp_path):
    """A policy on the Hamming loss, and a run that is judged by the Dice."""
    table = read_table(folder / "scores.csv")
    mean = float(np.mean([loss_of_row(row, "hamming") for row in table.rows]))
    made = segtrust(
        *("calibrate", folder / "scores.csv", "-o", tmp_path / "policy.json", "--loss", "hamming"),
        *("--target-risk", 0.1 + mean, *MODEL),
    )
    assert made.returncode == 0, made.stderr
    done = segtrust(
        *("report", folder / "scores.csv", "--policy", tmp_path / "policy.json", *MODEL),
        *("-o", tmp_path / "report.html"),
    )
    assert done.returncode == 0, done.stderr
    threshold = Policy.load(tmp_path / "policy.json").threshold
    accepted = [loss_of_row(row, "hamming") for row in table.rows if row["sdc"] >= threshold and row["k"]]
    page = (tmp_path / "report.html").read_text("utf-8")
    assert f"their mean loss (Hamming loss) is {np.mean(accepted):.3f}" in page


@pytest.mark.parametrize("risk", OTHERS, ids=lambda risk: risk.column)
def test_tables_of_release_0_1_0(tmp_path, risk):
    done = segtrust(
        "evaluate", RELEASE / "scores.csv", "--loss", risk.column, "-o", tmp_path / "run", "--json"
    )
    assert done.returncode in (0, 1), done.stderr
    rows = read_table(tmp_path / "run/scores.parquet").rows
    for row in rows:
        if row["loss"] is not None and risk.column == "hamming":
            in_mask, in_truth = row["foreground_ratio"], row["truth_ratio"]
            assert row["loss"] == pytest.approx((1 - row["dice"]) * (in_mask + in_truth))
    assert any(row["loss"] is not None for row in rows)


def test_a_limit_on_losses_of_a_file(folder, tmp_path):
    """The table states the file after the name of the loss; the limit is checked all the same."""
    cases = read_table(folder / "scores.csv").column("case")
    lines = ["case,share of misses", *(f"{case},{0.05 + i / 4000}" for i, case in enumerate(cases))]
    (tmp_path / "losses.csv").write_text("\n".join(lines))
    judged = (
        *("evaluate", folder / "scores.csv", "--losses", tmp_path / "losses.csv"),
        "--loss-column",
        "share of misses",
        "--resamples",
        100,
    )
    assert segtrust(*judged, "-o", tmp_path / "run").returncode == 0
    made = segtrust(
        *("calibrate", tmp_path / "run/scores.parquet", "-o", tmp_path / "policy.json"),
        *("--target-risk", 0.2, *MODEL),
    )
    assert made.returncode == 0, made.stderr
    assert [target.loss for target in Policy.load(tmp_path / "policy.json").targets] == ["share of misses"]
    policy = ("--policy", tmp_path / "policy.json", *MODEL)
    assert segtrust("report", tmp_path / "run", *policy, "-o", tmp_path / "a.html").returncode == 0
    assert "their mean loss (share of misses) is 0.0" in (tmp_path / "a.html").read_text("utf-8")
    assert segtrust("report", folder / "scores.csv", *policy, "-o", tmp_path / "b.html").returncode == 0
    assert "on share of misses and cannot be checked" in (tmp_path / "b.html").read_text("utf-8")


def test_a_limit_without_the_name_of_a_loss_is_not_checked_with_another(folder, tmp_path):
    """As in a policy of release 0.1, or one that was made in Python."""
    table = read_table(folder / "scores.csv")
    cases = st.CalibrationCases(table.column("sdc"), dice=table.column("dice"), ids=table.column("case"))
    certificate = st.certify(cases, st.Target(0.6))
    st.Policy.from_certificate(certificate, st.Scoring("sdc")).save(tmp_path / "policy.json")
    judged = ("evaluate", folder / "scores.csv", "--loss", "iou", "--resamples", 100, "-o", tmp_path / "run")
    assert segtrust(*judged).returncode == 0
    done = segtrust(
        *("report", tmp_path / "run", "--policy", tmp_path / "policy.json", "-o", tmp_path / "report.html")
    )
    assert done.returncode == 0, done.stderr
    page = (tmp_path / "report.html").read_text("utf-8")
    assert "the limit of 0.6 is on a loss that the policy does not name and cannot be checked" in page


def test_the_help_lists_all_risks():
    for command in ("evaluate", "calibrate"):
        told = " ".join(segtrust(command, "--help").stdout.replace("│", " ").split())
        *others, last = (risk.column for risk in RISKS.values())
        assert f"{', '.join(others)} or {last}" in told.replace(" (the default)", "")


class TestWhatIsRejected:
    def test_unknown_losses(self, folder, tmp_path):
        for command in ("evaluate", "calibrate"):
            done = segtrust(
                *(command, folder / "scores.csv", "-o", tmp_path / "out.json", "--loss", "volume"),
                *(("--target-risk", 0.1) if command == "calibrate" else ()),
            )
            assert done.returncode == 2
            assert "expected one of dice, iou, f2, hamming, got 'volume'" in " ".join(done.stderr.split())

    def test_estimators_that_learn_from_the_dice(self, folder, tmp_path):
        done = segtrust(
            *("evaluate", folder / "maps", "--truth", folder / "truth", "-o", tmp_path / "run"),
            *("--loss", "hamming", "--tune", "sdc-tuned"),
        )
        assert done.returncode == 2
        assert "estimators learn from the Dice" in " ".join(done.stderr.split())

    def test_both_options(self, folder, tmp_path):
        done = segtrust(
            *("calibrate", folder / "scores.csv", "-o", tmp_path / "p.json", "--target-risk", 0.1),
            *("--loss", "iou", "--loss-column", "dice"),
        )
        assert done.returncode == 2
        assert "got both" in done.stderr

    @pytest.mark.parametrize("command", ["evaluate", "calibrate"])
    def test_tables_without_the_counts(self, tmp_path, command):
        lines = ["case,structure,k,sdc,dice", *(f"c{i},organ,5,{i / 100},{i / 100}" for i in range(100))]
        (tmp_path / "table.csv").write_text("\n".join(lines))
        limit = ("--target-risk", 0.5) if command == "calibrate" else ()
        done = segtrust(command, tmp_path / "table.csv", "-o", tmp_path / "out", "--loss", "f2", *limit)
        assert done.returncode == 2
        told = " ".join(done.stderr.split())
        assert "expected what 1 − F2 takes" in told
        assert "Score the cases again with --truth" in told

    def test_a_limit_on_the_dice_of_other_losses(self, folder, tmp_path):
        done = segtrust(
            *("calibrate", folder / "scores.csv", "-o", tmp_path / "p.json", "--target-risk", 0.1),
            *("--loss", "hamming", "--below-dice", 0.8),
        )
        assert done.returncode == 2
        assert "below-dice" in done.stderr
