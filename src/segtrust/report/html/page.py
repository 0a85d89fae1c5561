"""The page: its parts in order, its style and its script, and a rule that it may load nothing."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from hashlib import sha256
from importlib.resources import files
from itertools import count
from pathlib import Path

from segtrust._files import make_writable_folder
from segtrust.errors import ParameterError
from segtrust.evaluation import EvaluatedSet
from segtrust.policy import Policy, StructurePolicies
from segtrust.report.html.cautions import cautions_of
from segtrust.report.html.charts import Chart, chart_figure
from segtrust.report.html.colours import colour_rules
from segtrust.report.html.curves import curve_chart
from segtrust.report.html.markup import Html, joined, tag
from segtrust.report.html.origin import data_and_settings, how_to_reproduce
from segtrust.report.html.pictures import pictures_of
from segtrust.report.html.run import ReportedRun, open_run_folder
from segtrust.report.html.scatter import confidence_chart, scatter_chart
from segtrust.report.html.shown_tables import tables_of
from segtrust.report.html.summary import summary_of
from segtrust.report.runs import more_results
from segtrust.report.tables import write_text

__all__ = ["page_of", "write_page", "write_report"]


@dataclass(frozen=True)
class _Section:
    """A part of the page.

    Attributes
    ----------
    name, title
        In addresses, and for people.
    content
        What it shows.
    """

    name: str
    title: str
    content: Html

    def shown(self) -> Html:
        heading = tag("h2", self.title, id=f"{self.name}-title")
        return tag(
            "section",
            heading,
            self.content,
            id=self.name,
            class_="part",
            aria_labelledby=f"{self.name}-title",
        )


def write_report(
    path: Path,
    *,
    out: Path | None = None,
    policy: str | Path | Policy | StructurePolicies | None = None,
    predictor: str = "",
) -> Path:
    """Write the report of a run, and of a folder the figures that go with it; give the page's path.

    Parameters
    ----------
    path
        Folder of ``segtrust evaluate`` or ``triage``, or a score table.
    out
        The page; ``report.html`` beside the score table where none is given.
    policy, predictor
        What decides, and which model made the maps.
    """
    return write_page(open_run_folder(path, policy, predictor), out, with_figures=path.is_dir())


def write_page(run: ReportedRun, out: Path | None = None, *, with_figures: bool = False) -> Path:
    """Write the report of a run that is opened, see `write_report`; figures only where it is finished."""
    page = out or run.folder / "report.html"
    if page.is_dir():
        raise ParameterError(f"{page}: expected the name of a page, such as report.html, got a folder.")
    make_writable_folder(page.parent)
    write_text(page, page_of(run))
    if with_figures and run.is_finished:
        _write_figures(run, page)
    return page


def _write_figures(run: ReportedRun, page: Path) -> None:
    """Write the figures into the folder of a run; those of a table alone beside the page, by its name."""
    if run.given is None or not run.given.is_dir():
        _write_figures_into(page.with_name(f"{page.stem}_figures"), run)
    elif run.sets:
        with more_results(run.folder):
            _write_figures_into(run.folder / "figures", run)
    else:
        _write_figures_into(run.folder / "figures", run)


def _write_figures_into(folder: Path, run: ReportedRun) -> None:
    """Write what the page shows: curves and qualities where truths are known, else confidences alone."""
    from segtrust.report.confidence_figures import save_confidence_figures, save_histograms

    if run.sets:
        save_confidence_figures(run.sets, run.main, run.threshold_of, folder, run.risk)
        return
    confidences = {
        (run.title_of(name, structure), structure): [row[run.main] for row in rows]
        for (name, structure), rows in run.groups.items()
    }
    save_histograms(confidences, run.main, run.threshold_of, folder)


def page_of(run: ReportedRun) -> str:
    """Give the whole page."""
    sections = [each for each in _sections(run) if each.content]
    style = _static("report.css") + colour_rules([*run.estimators, "oracle", "random"])
    script = _static("report.js")
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=_allowed(style, script)),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="referrer", content="no-referrer"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("title", f"segtrust: {run.folder.resolve().name}"),
        tag("style", Html(style)),
    )
    body = tag(
        "body",
        tag("a", "To the content", href="#content", class_="skip"),
        _header(run, sections),
        tag("main", *(each.shown() for each in sections), id="content"),
        tag("footer", "Made by segtrust. This file holds everything that it shows, and loads nothing."),
        tag("script", Html(script)),
    )
    return f"<!DOCTYPE html>\n{tag('html', head, body, lang='en')}"


def _static(name: str) -> str:
    return files("segtrust.report.html").joinpath(name).read_text(encoding="utf-8")


def _allowed(style: str, script: str) -> str:
    """Allow this very style and script and the pictures within the page, and nothing else."""
    of_style, of_script = (
        b64encode(sha256(text.encode("utf-8")).digest()).decode("ascii") for text in (style, script)
    )
    return (
        f"default-src 'none'; style-src 'sha256-{of_style}'; script-src 'sha256-{of_script}'; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )


def _header(run: ReportedRun, sections: Sequence[_Section]) -> Html:
    command = str(run.settings.get("command") or "score table")
    made = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
    state = "" if run.is_finished else " · not finished"
    links = [tag("a", each.title, href=f"#{each.name}") for each in sections]
    return tag(
        "header",
        tag(
            "div",
            tag("p", "segtrust report", class_="brand"),
            tag("h1", run.folder.resolve().name),
            tag("p", f"{command} · {run.source.name}{state} · report of {made}", class_="made"),
            class_="title",
        ),
        tag("nav", tag("div", *links), aria_label="Parts of this report"),
    )


def _sections(run: ReportedRun) -> Iterator[_Section]:
    numbers = (f"chart-{number}" for number in count(1))
    warnings = cautions_of(run)
    yield _Section("summary", "Summary", summary_of(run))
    listed = tag("ul", *(tag("li", each) for each in warnings), class_="warnings") if warnings else Html("")
    yield _Section("warnings", f"Warnings ({len(warnings)})", listed)
    yield _Section("curves", "Risk-coverage curves", _curves(run, numbers))
    title = "Confidence against quality" if run.sets else "Confidences"
    yield _Section("confidence", title, _confidences(run, numbers))
    yield _Section("cases", "Best and worst cases", _cases(run))
    yield _Section("tables", "Tables", joined(*tables_of(run.tables, are_files=run.has_files)))
    yield _Section("settings", "Data and settings", data_and_settings(run))
    yield _Section("reproduce", "To reproduce", how_to_reproduce(run))


def _charts(charts: Sequence[Chart], numbers: Iterator[str]) -> Html:
    return tag("div", *(chart_figure(chart, next(numbers)) for chart in charts), class_="charts")


def _of_sets(run: ReportedRun, draw: Callable[[EvaluatedSet], Chart], numbers: Iterator[str]) -> Html:
    """Draw a chart for each set, below the name of its structure where there are several of both."""
    by_structure: dict[str, list[Chart]] = {}
    for each in run.sets:
        by_structure.setdefault(each.structure, []).append(draw(each))
    if len(by_structure) == 1:
        return _charts(next(iter(by_structure.values())), numbers)
    if all(len(charts) == 1 for charts in by_structure.values()):
        titled = [replace(chart, title=f"{name}: {chart.title}") for name, (chart,) in by_structure.items()]
        return _charts(titled, numbers)
    return joined(
        *(joined(tag("h3", name), _charts(charts, numbers)) for name, charts in by_structure.items())
    )


_READING = (
    "A threshold on the confidence accepts the surer cases. Each curve gives the mean loss of those for "
    "every share that can be accepted: the lower the better, from the oracle, which knows the losses, to a "
    "random order."
)
_POINTING = (
    " Point at a curve, or focus a chart and use the arrow keys: left and right along a curve, up and down "
    "to another."
)


def _curves(run: ReportedRun, numbers: Iterator[str]) -> Html:
    if not run.sets:
        return Html("")
    targets = {each.structure: each.full_risk for each in reversed(run.sets)}  # of the first set
    charts = _of_sets(run, lambda each: curve_chart(each, run, targets[each.structure]), numbers)
    return joined(tag("p", _READING, tag("span", _POINTING, class_="live")), charts)


def _confidences(run: ReportedRun, numbers: Iterator[str]) -> Html:
    if run.sets:
        return _of_sets(run, lambda each: scatter_chart(each, run), numbers)
    charts = [
        confidence_chart(run.title_of(name, structure) if run.several_structures else name, rows, run)
        for (name, structure), rows in run.groups.items()
    ]
    return _charts(charts, numbers)


_DECIDED = (
    "By the decisions of the policy, of each set: the best and the worst of those accepted and deferred."
)
_HALVES = (
    "No policy decides on these cases. So the surer half, by confidence, is set against the other: of each "
    "the best and the worst."
)


def _cases(run: ReportedRun) -> Html:
    text = _DECIDED if any(row.get("decision") for row in run.rows) else _HALVES
    key = tag(
        "p",
        tag("span", "mask", class_="swatch mask"),
        tag("span", "truth", class_="swatch truth") if _has_truths(run) else None,
        "outlines; maps from dark (0) to bright (1)",
        class_="outlines",
    )
    return joined(tag("p", text), key, *pictures_of(run))


def _has_truths(run: ReportedRun) -> bool:
    """Tell whether outlines of truths can be drawn: triage looks at none."""
    return bool(run.about.get("with_truth", True)) and any(row.get("truth_file") for row in run.rows)
