"""``segtrust report``: the structure and the numbers of the page, never its wording; and it loads nothing."""

import base64
import hashlib
import json
import re
from html.parser import HTMLParser

import pytest

from tests.behaviour.decision_data import MODEL, SETTINGS, rows_of_maps, score_rows, write_cases, write_rows
from tests.behaviour.helpers import assert_golden, assert_same, read_csv
from tests.commands import segtrust

pytestmark = pytest.mark.needs("matplotlib", "pyarrow")
VOID = {"meta", "br", "img", "link", "input", "hr"}
NUMBER = re.compile(r"[-−]?\d+(?:\.\d+)?(?:e[-+]?\d+)?")
TEN_DIGITS = 1e-8  # charts hold numbers of ten digits


def numbers_in(text):
    return [float(each.replace("−", "-")) for each in NUMBER.findall(text)]


class Page(HTMLParser):
    """The parts of a page that people rely on: sections, tables, charts, pictured cases, addresses."""

    def __init__(self, text):
        super().__init__()
        self.open, self.parts, self.links, self.policy = [], [], [], ""
        self.tables, self.charts, self.codes, self.cases = [], [], [], []
        self.counts, self.places = {}, []
        self.feed(text)
        self.close()
        assert not self.open

    def handle_starttag(self, tag, attributes):
        values = dict(attributes)
        self.links += [values[name] for name in ("href", "src", "action", "xlink:href") if values.get(name)]
        self.policy = values["content"] if values.get("http-equiv") else self.policy
        if tag == "section" and values.get("id"):
            self.parts.append(values["id"])
        if self.parts and tag in ("figure", "table"):
            key = f"{self.parts[-1]} {tag}"
            self.counts[key] = self.counts.get(key, 0) + 1
        if tag == "table":
            self.tables.append([])
            self.places.append(self.parts[-1])
        elif tag == "tr":
            self.tables[-1].append([])
        elif tag in ("td", "th") and self.tables and self.tables[-1]:
            self.tables[-1][-1].append("")
        if tag in ("script", "style"):
            self.codes.append((values.get("type", tag), ""))
        if tag not in VOID:
            self.open.append((tag, values.get("class", "")))

    def handle_endtag(self, tag):
        assert self.open.pop()[0] == tag

    def handle_data(self, data):
        inside = [tag for tag, _ in self.open]
        if inside and inside[-1] in ("script", "style"):
            kind, text = self.codes.pop()
            self.codes.append((kind, text + data))
        elif "table" in inside and ("td" in inside or "th" in inside):
            self.tables[-1][-1][-1] += data
        if self.open and self.open[-1] == ("span", "case"):
            self.cases.append(data)

    def chart_values(self):
        """Return the curves and dots that the page's script draws."""
        charts = [json.loads(text) for kind, text in self.codes if kind == "application/json"]
        kept = ("name", "x", "y", "low", "high")
        return [
            {
                "kind": chart["kind"],
                "series": [
                    {key: line[key] for key in kept if key in line} for line in chart.get("series", [])
                ],
                **{key: chart[key] for key in ("cases", "x", "y") if key in chart},
            }
            for chart in charts
        ]

    def numbers(self):
        """Return the numbers of each table of results, row by row."""
        places = zip(self.places, self.tables, strict=True)
        tables = [table for place, table in places if place == "tables"]
        return [[numbers_in(" ".join(row)) for row in table] for table in tables]


def run(*arguments):
    done = segtrust(*arguments)
    assert done.returncode == 0, done.stderr
    return done


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """An evaluation of two sets, and a policy."""
    folder = tmp_path_factory.mktemp("report")
    write_cases(folder / "near/predictions", 16, truth_folder=folder / "near/masks")
    write_cases(folder / "far", 10, first=500, truth_folder=folder / "far_truth")
    run(
        *("evaluate", folder / "near", "--ood", f"far={folder / 'far'}", "-o", folder / "run"),
        *("--ood-truth", f"far={folder / 'far_truth'}", "--estimators", "sdc,ane", "--resamples", 100),
    )
    known = write_rows(folder / "known.csv", rows_of_maps(160), SETTINGS)
    run("calibrate", known, "-o", folder / "policy.json", "--target-risk", 0.33, "--predictor", MODEL)
    return folder


@pytest.fixture(scope="module")
def page(folder):
    return Page((folder / "run/report.html").read_text("utf-8"))


@pytest.fixture(scope="module")
def decided(folder):
    """The page of the same run with a policy."""
    out = folder / "decided.html"
    told = run(
        *("report", folder / "run", "--policy", folder / "policy.json", "--predictor", MODEL),
        *("-o", out, "--json"),
    )
    assert json.loads(told.stdout) == {"report": str(out), "finished": True}
    return Page(out.read_text("utf-8"))


def structure(page):
    return {
        "sections": page.parts,
        "counts": page.counts,
        "rows": [[len(row) for row in table] for table in page.tables],
        "cases": page.cases,
    }


@pytest.mark.parametrize("name", ["page", "decided"])
def test_structure_and_numbers(request, name):
    page = request.getfixturevalue(name)
    assert {"summary", "curves", "tables"} <= set(page.parts)
    assert_golden(f"decisions/report_{name}", {**structure(page), "numbers": page.numbers()})


def test_curves(page, decided):
    assert len(page.chart_values()) >= 2
    assert_golden("decisions/report_curves", page.chart_values(), rel=TEN_DIGITS, abs_tol=TEN_DIGITS)
    curves = [
        [chart["series"] for chart in each.chart_values() if chart["kind"] == "curve"]
        for each in (page, decided)
    ]
    assert_same(*curves)


def test_curves_end_at_the_risk_of_all_cases(folder, page):
    areas = read_csv(folder / "run/tables/sets.csv")
    curves = [chart for chart in page.chart_values() if chart["kind"] == "curve"]
    assert len(curves) == len(areas) == 2
    for chart, row in zip(curves, areas, strict=True):
        for line in chart["series"]:
            assert_same(line["x"][-1], 1.0)
            assert_same(line["y"][-1], row["mean_loss"], rel=TEN_DIGITS)


@pytest.mark.parametrize("name", ["page", "decided"])
def test_the_page_loads_nothing(request, name):
    page = request.getfixturevalue(name)
    assert all(link.startswith(("#", "data:image/png;base64,")) for link in page.links)
    rules = dict(rule.split(" ", 1) for rule in page.policy.split("; "))
    assert rules["default-src"] == "'none'"
    assert "unsafe" not in page.policy
    for kind, text in page.codes:
        assert "@import" not in text
        assert "http" not in text.replace("http://www.w3.org/2000/svg", "")
        if kind != "application/json":
            checksum = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
            assert f"'sha256-{checksum}'" in rules[f"{kind}-src"]


def test_a_table_alone(folder, tmp_path):
    """Tables without ground truth have a page too, and names in them can do no harm."""
    rows = score_rows(12)
    for row in rows:
        del row["dice"]
    rows[3]["case"] = "<script>alert(1)</script>"
    table = write_rows(tmp_path / "scores.csv", rows)
    run("report", table, "-o", tmp_path / "page.html")
    page = Page((tmp_path / "page.html").read_text("utf-8"))
    assert not [text for _, text in page.codes if text.startswith("alert(1)")]
    assert_golden(
        "decisions/report_alone", {**structure(page), "charts": page.chart_values()}, rel=TEN_DIGITS
    )
    figures = {path.name for path in (tmp_path / "page_figures").iterdir()}
    assert figures == {"confidences.pdf", "confidences.png", "confidences.svg"}


def test_what_is_no_run(folder, tmp_path):
    for source in (tmp_path / "absent", tmp_path, folder / "policy.json"):
        done = segtrust("report", source)
        assert done.returncode == 2
        assert done.stderr
        assert not done.stdout
