"""An array of jobs with truths, merged, and judged as one run would be."""

import csv
import json

import pytest

from tests.commands import segtrust
from tests.nnunet.fixtures import kept_run

pytestmark = [pytest.mark.slow, pytest.mark.needs("nibabel", "matplotlib", "pyarrow")]


def test_merged_scores_are_judged_as_those_of_one_run(tmp_path):
    run = kept_run("plain")
    common = (str(run.predictions), "--truth", str(run.labels), "--region", "each")
    for part in ("0", "1"):
        out = str(tmp_path / f"part-{part}.csv")
        done = segtrust("score", *common, "-o", out, "--num-parts", "2", "--part-id", part)
        assert done.returncode == 0, done.stderr
    parts = [str(tmp_path / f"part-{part}.csv") for part in (1, 0)]  # in any order
    assert segtrust("merge", *parts, "-o", str(tmp_path / "all.csv")).returncode == 0
    with (tmp_path / "all.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [(row["case"], row["structure"]) for row in rows] == [
        (case, structure) for case in ("test_0", "test_1") for structure in ("organ", "lesion")
    ]
    assert all(0 < float(row["dice"]) <= 1 for row in rows)
    sources = {"merged": (str(tmp_path / "all.csv"),), "at once": common}
    judged = {}
    for name, source in sources.items():
        done = segtrust("evaluate", *source, "-o", str(tmp_path / name), "--json")
        assert done.returncode == 0, done.stderr
        judged[name] = json.loads(done.stdout)
    assert judged["merged"]["areas"] == judged["at once"]["areas"]
    assert judged["merged"]["coverages"] == judged["at once"]["coverages"]


def test_scores_without_losses_cannot_be_judged(tmp_path):
    run = kept_run("plain")
    assert segtrust("score", str(run.predictions), "-o", str(tmp_path / "scores.csv")).returncode == 0
    done = segtrust("evaluate", str(tmp_path / "scores.csv"), "-o", str(tmp_path / "out"))
    assert done.returncode == 2
    assert "expected a table with losses" in done.stderr


@pytest.fixture(scope="module")
def scores(tmp_path_factory):
    """A table with Dice and IoU of two cases."""
    run, out = kept_run("plain"), tmp_path_factory.mktemp("scores") / "scores.csv"
    done = segtrust("score", str(run.predictions), "--truth", str(run.labels), "-o", str(out))
    assert done.returncode == 0, done.stderr
    return out


def test_a_table_is_judged_by_the_loss_that_is_asked_for(scores, tmp_path):
    losses = {}
    for loss in ("dice", "iou"):
        done = segtrust("evaluate", str(scores), "--loss", loss, "-o", str(tmp_path / loss), "--json")
        assert done.returncode == 0, done.stderr
        losses[loss] = json.loads(done.stdout)["sets"][0]["mean_loss"]
    with scores.open(newline="") as file:
        rows = list(csv.DictReader(file))
    for loss, found in losses.items():
        assert found == pytest.approx(sum(1 - float(row[loss]) for row in rows) / len(rows))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--truth", "labels"), "--truth applies to maps"),
        (("--ood", "far=maps"), "--ood applies to maps"),
        (("--estimators", "sdc,pla"), "estimators: expected some that were scored, got pla"),
        (("--loss", "mse"), "loss: expected one of dice, iou, f2, hamming"),
    ],
)
def test_what_means_nothing_for_a_table_is_refused(scores, tmp_path, options, message):
    done = segtrust("evaluate", str(scores), "-o", str(tmp_path / "out"), *options)
    assert done.returncode == 2
    assert message in done.stderr


@pytest.mark.parametrize("name", ["failures.csv", "cases.csv"])
def test_an_output_that_would_be_lost_is_refused(tmp_path, name):
    (tmp_path / "cases.csv").write_text("case,probabilities\na,a.npy\n")
    done = segtrust("score", str(tmp_path / "cases.csv"), "-o", str(tmp_path / name))
    assert done.returncode == 2
    assert "expected another" in done.stderr
    assert (tmp_path / "cases.csv").read_text().startswith("case,probabilities")
