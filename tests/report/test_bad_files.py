"""A file that ends its reader is a note in place of a picture; the report is written."""

import csv
import re
from pathlib import Path

import numpy as np
import pytest

from tests import plugged
from tests.report.runs import QUICK, run, section, words, write_manifest

pytestmark = [
    pytest.mark.needs("matplotlib", "pyarrow"),
    pytest.mark.skipif(not Path("/proc/self").is_dir(), reason="signals of Linux"),
]


COUNT = 24


@pytest.fixture
def manifest(tmp_path, monkeypatch):
    """Cases with images whose reader can be told what to do; some are ranked wrong by the aMSP."""
    path = write_manifest(tmp_path / "data", "id", COUNT, noise=3.0)
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    for row in rows:
        row["image"] = f"{row['case']}.trap"
        plugged.write_trap(
            tmp_path / "data" / row["image"], np.load(tmp_path / "data" / row["probabilities"])
        )
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    with plugged.installed(monkeypatch, plugged.trap_package(tmp_path / "packages")):
        yield path


def test_images_that_kill_their_reader(manifest, tmp_path):
    run("evaluate", manifest, "-o", tmp_path / "run", *QUICK)
    whole = section((tmp_path / "run/report.html").read_text(), "cases")
    assert "No picture:" not in whole
    assert list((tmp_path / "run/figures").glob("examples*.png"))
    case = re.search(r'class="case">(id-\d+)<', whole)[1]
    (tmp_path / f"data/{case}.does").write_text("kill")
    run("report", tmp_path / "run")
    cases = section((tmp_path / "run/report.html").read_text(), "cases")
    assert cases.count("No picture:") == cases.count("exited with code -9") == whole.count(f">{case}<")
    assert f"data/{case}.trap: expected files that can be read" in words(cases)
    assert "Image of" in cases


def test_evaluate_goes_on_without_pictures(manifest, tmp_path, caplog):
    for number in range(COUNT):
        (tmp_path / f"data/id-{number:02}.does").write_text("kill")
    run("evaluate", manifest, "-o", tmp_path / "run", *QUICK)
    cases = section((tmp_path / "run/report.html").read_text(), "cases")
    assert cases.count("No picture:") == cases.count('class="card"') > 0
    assert not list((tmp_path / "run/figures").glob("examples*"))
    assert "No example picture of" in caplog.text
