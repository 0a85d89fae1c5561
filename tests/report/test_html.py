"""The report of a run: what it says is what the tables say, and nothing in it can do harm."""

import base64
import csv
import hashlib
import re
import shutil
from html.parser import HTMLParser

import numpy as np
import pytest

from segtrust.errors import ParameterError
from segtrust.io import Table, read_table, write_table
from segtrust.report.html.page import write_report
from segtrust.report.html.run import open_run_folder
from tests.engine.files import NNUNET
from tests.report.runs import (
    HOSTILE,
    QUICK,
    charts_of,
    rename_cases,
    run,
    section,
    words,
    write_evaluation,
    write_manifest,
    write_volumes,
)

pytestmark = pytest.mark.needs("matplotlib", "pyarrow")


@pytest.fixture(scope="module")
def evaluated(tmp_path_factory):
    return write_evaluation(tmp_path_factory.mktemp("flat"), "--drop-empty-truth", n=70, empty=1)


@pytest.fixture(scope="module")
def page(evaluated):
    return (evaluated / "report.html").read_text()


class Tags(HTMLParser):
    """Elements of a page, and whether each that is opened is closed."""

    void = frozenset(["meta", "br", "img", "link", "input"])

    def __init__(self):
        super().__init__()
        self.open, self.seen, self.attributes = [], [], []

    def handle_starttag(self, tag, attrs):
        self.seen.append(tag)
        self.attributes += attrs
        if tag not in self.void:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def tags_of(page):
    parser = Tags()
    parser.feed(page)
    parser.close()
    assert not parser.open
    return parser


def test_the_page_is_well_formed_and_has_all_parts(page):
    found = tags_of(page)
    ids = {value for key, value in found.attributes if key == "id"}
    assert {"summary", "curves", "confidence", "cases", "tables", "settings", "reproduce"} <= ids
    assert found.seen.count("h1") == 1
    assert found.seen.count("caption") == found.seen.count("table")


def test_the_page_may_load_nothing(page):
    assert not re.findall(r'(?:src|href|xlink:href|action)="(?!#|data:image/png;base64,)', page)
    assert "@import" not in page
    assert "url(" not in page
    assert set(re.findall(r"https?://[^\"'\s<]*", page)) <= {"http://www.w3.org/2000/svg"}
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', page).group(1)
    assert policy.startswith("default-src &#x27;none&#x27;")
    assert "unsafe" not in policy
    assert not re.search(r"<[^>]* style=|<[^>]* on[a-z]+=", page), "the policy forbids them"


def test_the_policy_names_the_very_style_and_script(page):
    for pattern in (r"<style>(.*?)</style>", r"<script>(.*?)</script>"):
        (text,) = re.findall(pattern, page, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"sha256-{digest}" in page


def test_areas_are_those_of_the_table(evaluated, page):
    shown = words(section(page, "tables"))
    summary = words(section(page, "summary"))
    with (evaluated / "tables/areas.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    for row in rows:
        assert f"{float(row['aurc']):.3f}" in shown
    for row in (row for row in rows if row["estimator"] == "sdc"):
        low, high = float(row["low"]), float(row["high"])
        assert f"AURC of {float(row['aurc']):.3f} (95% interval {low:.3f} to {high:.3f})" in summary


def test_curves_are_those_of_the_run(evaluated, page):
    sets = open_run_folder(evaluated).sets
    charts = [chart for chart in charts_of(page) if chart["kind"] == "curve"]
    assert len(charts) == len(sets) == 2
    for chart, found in zip(charts, sets, strict=True):
        for line in chart["series"]:
            curve = found.curves[line["name"]]
            np.testing.assert_allclose(line["x"], curve.coverages, rtol=1e-8)
            np.testing.assert_allclose(line["y"], curve.risks, rtol=1e-8)
            assert all(low <= high for low, high in zip(line["low"], line["high"], strict=True))
            cases = {row["case"]: row[line["name"]] for row in found.rows}
            last = [cases[chart["cases"][at]] for at in line["case"][1:]]
            np.testing.assert_allclose(line["threshold"][1:], last, rtol=1e-8)


def test_curves_are_seen_without_the_script(page):
    assert page.count('class="line main e-sdc"') == 2
    assert page.count('class="band main e-sdc"') == 2


def test_empty_truths_are_left_out_as_in_the_evaluation(page):
    assert "ID has 70 cases; 2 empty truths are left out." in words(section(page, "summary"))
    assert "ID: 2 of 70 truths are empty; they are left out" in words(section(page, "warnings"))


def test_all_that_reproduces_it_is_told(evaluated, page):
    told = words(section(page, "reproduce"))
    assert "segtrust evaluate" in told
    assert "--drop-empty-truth" in told
    assert hashlib.sha256((evaluated / "scores.parquet").read_bytes()).hexdigest() in told
    assert hashlib.sha256((evaluated / "tables/areas.csv").read_bytes()).hexdigest() in told
    assert "numpy" in told


def test_the_table_of_an_evaluation_is_judged_as_that_was(evaluated, tmp_path):
    alone = write_report(evaluated / "scores.parquet", out=tmp_path / "report.html").read_text()
    told = words(section(alone, "summary"))
    assert "ID has 70 cases; 2 empty truths are left out." in told
    whole = write_report(evaluated, out=tmp_path / "whole.html").read_text()
    assert told == words(section(whole, "summary"))


def test_a_merged_table_tells_the_commands_of_its_parts(tmp_path):
    data = write_manifest(tmp_path / "data", "many", 6)
    parts = [tmp_path / f"part-{at}.csv" for at in range(2)]
    for at, path in enumerate(parts):
        run("score", data, "-o", path, "--num-parts", 2, "--part-id", at)
    run("merge", *parts, "-o", tmp_path / "scores.csv")
    told = words(section(write_report(tmp_path / "scores.csv").read_text(), "reproduce"))
    for command in (*(f"--num-parts 2 --part-id {at}" for at in range(2)), f"segtrust merge {parts[0]}"):
        assert command in told


def test_the_policy_that_decides_is_told_with_how_it_was_made(evaluated, tmp_path):
    policy = tmp_path / "policy.json"
    run("calibrate", evaluated / "scores.parquet", "-o", policy, "--target-risk", 0.6, "--predictor", "mine")
    page = write_report(evaluated, out=tmp_path / "report.html", policy=policy, predictor="mine").read_text()
    told = words(section(page, "reproduce"))
    assert f"segtrust report {evaluated} --policy {policy} --predictor mine" in told
    assert "sdc; the mean loss of accepted cases is at most 0.6; δ 0.05" in told
    assert "start_coverages (0.5)" in told


def test_figures_are_written_in_all_formats(evaluated):
    for name in ("confidence_dice", "risk_band", "risk_coverage"):
        assert all((evaluated / f"figures/{name}.{kind}").stat().st_size for kind in ("png", "pdf", "svg"))


def test_cases_are_pictures_with_outlines(page):
    cases = section(page, "cases")
    assert cases.count('class="card"') == 16, "two of the best and worst, of two halves, of two sets"
    assert cases.count("data:image/png;base64,") == 16
    assert 'class="truth"' in cases
    assert 'class="mask"' in cases
    assert "No policy decides on these cases" in cases
    assert "ranked too high" in cases
    assert "slips through" not in cases, "nothing is let through"


def test_a_policy_decides_and_its_promise_is_told(evaluated, tmp_path):
    folder = shutil.copytree(evaluated, tmp_path / "run")
    policy = tmp_path / "policy.json"
    run("calibrate", folder / "scores.parquet", "-o", policy, "--target-risk", 0.6, "--predictor", "a")
    certified = write_report(folder, policy=policy, predictor="a").read_text()
    assert 'class="promise certified"' in certified
    assert "The policy was calibrated with these very cases" in certified
    assert "Worst accepted" in certified
    assert 'class="threshold"' in section(certified, "confidence")
    assert 'class="policy"' in section(certified, "curves")
    other = write_report(folder, policy=policy, predictor="b", out=tmp_path / "other.html").read_text()
    assert 'class="promise estimated"' in other
    assert "made with a, used with b" in other


def test_several_structures_have_charts_each(tmp_path):
    nnunet, folder = NNUNET / "plain", tmp_path / "run"
    truths = ("--truth", nnunet / "labels", "--region", "each")
    run("evaluate", nnunet / "predictions", *truths, "-o", folder, *QUICK)
    page = (folder / "report.html").read_text()
    titles = re.findall(r"<h4>(.*?)</h4>", section(page, "curves"))
    assert [title.partition(":")[0] for title in titles] == ["organ", "lesion", "all structures"]
    assert len([chart for chart in charts_of(page) if chart["kind"] == "curve"]) == 3


def test_volumes_show_two_slices(tmp_path):
    out = tmp_path / "run"
    run("evaluate", write_volumes(tmp_path / "data"), "-o", out, *QUICK)
    cases = words(section((out / "report.html").read_text(), "cases"))
    assert re.search(r"slice \d of 9, middle", cases)
    assert "most uncertain" in cases


def test_triage_without_truths(evaluated, tmp_path):
    policy = tmp_path / "policy.json"
    run("calibrate", evaluated / "scores.parquet", "-o", policy, "--target-risk", 0.6)
    new = write_manifest(tmp_path / "data", "new", 12, seed=3)
    run("triage", new, "--policy", policy, "-o", tmp_path / "triage")
    bare = write_report(tmp_path / "triage").read_text()
    assert "No truths are known" in bare
    assert "what the policy promises is told with --policy" in bare
    assert 'class="threshold"' in bare, "the threshold is known from the margins"
    assert 'id="curves"' not in bare
    told = write_report(tmp_path / "triage", policy=policy).read_text()
    assert "What the threshold promises: estimated" in told
    assert "There are 12 cases." in told
    assert f"Commands segtrust triage {new}" in words(section(told, "reproduce"))
    assert 'class="truth"' not in told, "triage looks at no truth, and so does its report"
    assert tags_of(told)


def test_hostile_names_stay_text(tmp_path):
    manifest = write_manifest(tmp_path / "data", "id", 6)
    names = [HOSTILE, "../x", 'a" onload="x', "</script><img src=x>", "&amp;", "naïve ✓"]
    run("evaluate", rename_cases(manifest, names), "-o", tmp_path / "run", *QUICK)
    page = (tmp_path / "run/report.html").read_text()
    found = tags_of(page)
    assert found.seen.count("script") == 1 + len(charts_of(page)), "the page's own, and the data"
    assert "img" not in found.seen
    assert not [key for key, _ in found.attributes if key.startswith("on")]
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page
    assert set(names) <= {name for chart in charts_of(page) for name in chart["cases"]}


def test_missing_and_damaged_files_are_notes(tmp_path):
    out = write_evaluation(tmp_path, n=6, ood=4)
    for path in (tmp_path / "data/maps").glob("*.npy"):
        path.write_bytes(b"damaged")
    (out / "run.json").write_text("{")
    (out / "failures.csv").write_bytes(b"\xff\xfe,")
    assert section(write_report(out).read_text(), "cases").count("No picture:") == 10
    shutil.rmtree(tmp_path / "data/maps")
    cases = words(section(write_report(out).read_text(), "cases"))
    assert cases.count("No picture:") == 10
    assert "expected the map of the case" in cases


def test_images_that_are_not_shown_are_told_of(tmp_path):
    data, images = write_volumes(tmp_path / "data"), tmp_path / "<b>images"
    images.mkdir()
    for at in range(6):
        np.save(images / f"volume_{at}.npy", np.zeros((9, 14, 12 + at % 2)))
    run("evaluate", data, "-o", tmp_path / "run", "--image-dir", images, *QUICK)
    page = (tmp_path / "run/report.html").read_text()
    cases = section(page, "cases")
    assert cases.count("The image is not shown.") == len(re.findall("volume_[135]</span>", cases)) > 0
    assert "expected an image of the map&#x27;s shape, 9 × 14 × 12, got 9 × 14 × 13" in cases
    assert "&lt;b&gt;images" in cases
    assert "<b>images" not in page
    assert cases.count("Probability map of") >= cases.count('class="card"'), "what there is is shown"


def test_failures_and_odd_maps_are_warned_of(tmp_path):
    manifest = write_manifest(tmp_path / "data", "id", 8)
    for path in sorted((tmp_path / "data/maps").glob("*.npy"))[1:]:
        np.save(path, (np.load(path) > 0.5).astype(np.float32))
    (tmp_path / "data/maps/id-00.npy").write_bytes(b"damaged")
    run("evaluate", manifest, "-o", tmp_path / "run", *QUICK, code=1)
    told = words(section((tmp_path / "run/report.html").read_text(), "warnings"))
    assert "1 case gave no result and is in no number of this report" in told
    assert "Failed: id-00" in told
    assert "7 of 7 maps are polarised" in told
    assert "SDC, IDC and aMSP are each the same for all cases and rank nothing" in told
    assert "only 7 cases" in told


def test_twenty_thousand_cases_stay_small(tmp_path):
    rng = np.random.default_rng(0)
    rows = [
        {"case": f"patient-{at:05d}", "structure": "foreground", "set": "ID", "k": 10, "file": "gone.npy"}
        | {"sdc": confidence, "idc": confidence, "amsp": rng.random(), "dice": min(1.0, confidence + 0.1)}
        for at, confidence in enumerate(rng.random(20_000))
    ]
    write_table(tmp_path / "scores.csv", Table.of(rows, {"format": "segtrust-scores-2"}))
    written = write_report(tmp_path / "scores.csv")
    assert written.stat().st_size < 3e6
    page = written.read_text()
    assert "of up to 20001 points a curve are drawn" in page
    assert "of 20000 cases are shown" in page
    assert len(read_table(tmp_path / "scores.csv").rows) == 20_000


def test_what_is_no_run_is_refused(tmp_path):
    with pytest.raises(ParameterError, match="expected a table of scores"):
        write_report(tmp_path)
    (tmp_path / "scores.csv").write_text("case,structure,k\n")
    with pytest.raises(ParameterError, match="no rows"):
        write_report(tmp_path)
