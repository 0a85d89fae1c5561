"""Where the numbers come from: data, settings, and all that is needed to make them again."""

from __future__ import annotations

import hashlib
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from segtrust.engine import COMMANDS, log_beside
from segtrust.policy import Policy
from segtrust.report.html.markup import Html, joined, tag
from segtrust.report.html.run import ReportedRun
from segtrust.report.html.words import counted
from segtrust.selective import describe_limits

__all__ = ["data_and_settings", "how_to_reproduce"]

_BLOCK = 1 << 20


def _listing(pairs: Mapping[str, Any]) -> Html:
    rows = [
        tag("div", tag("dt", name), tag("dd", value))
        for name, value in pairs.items()
        if value not in (None, "")
    ]
    return tag("dl", *rows, class_="listing")


def in_words(value: Any) -> str:
    """Give plain values without brackets and quotes; what is not set is left out.

    Examples
    --------
    >>> in_words({"pla": {"size": 10}, "sdc": {}, "key": None, "regions": []}), in_words([1, 2])
    ('pla (size 10), sdc', '1, 2')
    """
    if isinstance(value, Mapping):
        given = {name: each for name, each in value.items() if each not in (None, False, [])}
        return ", ".join(_named(str(name), each) for name, each in given.items())
    if isinstance(value, list):
        return (
            "; ".join(map(in_words, value))
            if any(isinstance(each, Mapping) for each in value)
            else _row(value)
        )
    return str(value)


def _row(values: list[Any]) -> str:
    return ", ".join(map(in_words, values))


def _named(name: str, value: Any) -> str:
    if isinstance(value, Mapping | list):
        inner = in_words(value)
        return f"{name} ({inner})" if inner else name
    return name if value is True else f"{name} {value}"


def data_and_settings(run: ReportedRun) -> Html:
    """Say what the cases are and how they were read, scored and judged."""
    about, how = run.about, run.how
    shapes = sorted({str(row["shape"]) for row in run.rows if row.get("shape")})
    spacings = sorted({str(row["spacing_mm"]) for row in run.rows if row.get("spacing_mm")})
    data = {
        "Rows": f"{len(run.rows):,}, one a case and structure",
        "Sets": ", ".join(dict.fromkeys(str(row["set"]) for row in run.rows)),
        "Structures": ", ".join(dict.fromkeys(str(row["structure"]) for row in run.rows)),
        "Shapes": _some(shapes),
        "Spacing, mm": _some(spacings),
        "Masks": ", ".join(sorted({str(row["mask"]) for row in run.rows if row.get("mask")})),
        "Truths": counted(sum(row.get("truth_ratio") is not None for row in run.rows), "row") + " with one",
        "Images": counted(sum(bool(row.get("image_file")) for row in run.rows), "row") + " with one",
    }
    settings = {
        "Judged by": "" if not run.sets else _judged_by(run),
        "Empty truths": "" if not run.sets else "left out" if how.drop_empty else "kept",
        "Units": "" if not run.sets else "patients" if how.by_patient else "cases",
        "Intervals": ""
        if not run.sets
        else f"{how.bootstrap.level:.0%}, {how.bootstrap.resamples} resamples, seed {how.bootstrap.seed}",
        **{title: in_words(about[name]) for name, title in _SETTINGS.items() if about.get(name)},
    }
    return joined(tag("h3", "Data"), _listing(data), tag("h3", "Settings"), _listing(settings))


def _judged_by(run: ReportedRun) -> str:
    """Return the loss in words, with what two empty masks are worth."""
    return f"{run.loss_label}; {run.risk.empty_rule}" if run.risk else run.loss_label


_SETTINGS = {
    "estimators": "Confidences",
    "of sets": "Learned from each set",
    "read": "Read with",
    "scaling": "Recalibration",
    "empty": "Empty masks",
    "checksum": "Checksums of maps",
}
"""What a score table says of itself, with how it is called here."""


def _some(values: list[str]) -> str:
    return ", ".join(values) if len(values) <= 4 else f"{len(values)} different, from {values[0]}"


def how_to_reproduce(run: ReportedRun) -> Html:
    """Give the command, the versions, and the fingerprints of what was read."""
    versions = run.settings.get("versions") or {"segtrust": run.about.get("segtrust")}
    facts = {
        "Commands": joined(*(tag("div", tag("code", each)) for each in _commands(run))),
        "Started in": run.about.get("folder"),
        "Finished": run.settings.get("finished"),
        "Seconds": run.settings.get("seconds"),
        "Versions": ", ".join(f"{name} {each}" for name, each in versions.items() if each),
        "Seeds": f"bootstrap {run.how.bootstrap.seed}; dots and bands of this page {run.how.bootstrap.seed}",
        "Format of the table": run.about.get("format"),
        **{_title("Policy", name): _calibration(policy) for name, policy in run.policies.items()},
    }
    return joined(_listing(facts), _files(run))


def _commands(run: ReportedRun) -> Iterator[str]:
    """Give the commands that made the table, then the one that made this page of it."""
    arguments = (run.settings.get("parameters") or {}).get("arguments")
    made = [arguments] if arguments else run.about.get(COMMANDS) or []
    if not made:
        named = run.settings.get("command")
        yield f"segtrust {named}" if named else "not known how the table was made"
    for each in made:
        yield shlex.join(["segtrust", *map(str, each)])
    if run.policy_path is not None and "--policy" not in (arguments or ()):
        named = ["--predictor", run.predictor] if run.predictor else []
        yield shlex.join(
            ["segtrust", "report", str(run.given or run.source), "--policy", str(run.policy_path), *named]
        )


def _title(what: str, name: str) -> str:
    return f"{what}, {name}" if name else what


def _calibration(policy: Policy) -> str:
    """Say how a policy was calibrated."""
    limits = describe_limits(policy.targets, patients=policy.evidence.patients)
    how = in_words({**asdict(policy.procedure), "start_coverages": list(policy.procedure.start_coverages)})
    return f"{policy.scoring.estimator}; {limits}; δ {policy.total_delta:g}; {how}; made {policy.made}"


def _files(run: ReportedRun) -> Html:
    rows = [
        tag("tr", tag("th", name, scope="row"), tag("td", tag("code", digest)))
        for name, digest in _digests(run)
    ]
    head = tag("tr", tag("th", "file", scope="col"), tag("th", "SHA-256", scope="col"))
    caption = tag("caption", "Files that this report was made of")
    return tag("div", tag("table", caption, tag("thead", head), tag("tbody", *rows)), class_="wide")


def _digests(run: ReportedRun) -> Iterator[tuple[str, str]]:
    tables = sorted((run.folder / "tables").glob("*.csv")) if run.has_files else []
    settings = [run.folder / "run.json"] if run.settings else []
    logs = [] if run.is_finished else [log_beside(run.source)]
    failures = [run.folder / "failures.csv"] if run.failures else []
    policies = [run.policy_path] if run.policy_path else []
    for path in [run.source, *logs, *tables, *settings, *failures, *policies]:
        if path.is_file():
            is_below = path.is_relative_to(run.folder)
            yield (path.relative_to(run.folder).as_posix() if is_below else path.name), _digest(path)
    for structure, policy in run.policies.items():
        yield f"calibration table of the policy {structure}".strip(), policy.digest


def _digest(path: Path) -> str:
    found = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(_BLOCK):
            found.update(block)
    return found.hexdigest()
