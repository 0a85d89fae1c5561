"""An array of jobs with truths, merged, and judged as one run would be."""

import csv
import json

import pytest

from tests.engine.files import segtrust
from tests.nnunet.fixtures import kept_run

pytestmark = pytest.mark.needs("nibabel", "matplotlib", "pyarrow")


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
