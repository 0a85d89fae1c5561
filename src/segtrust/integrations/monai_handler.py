"""The handler that gathers confidences over a run of a MONAI evaluator, and writes the score table."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from os.path import commonpath
from pathlib import Path
from typing import Any

from segtrust._optional import require
from segtrust.engine import FOLDER, ScoreTable, check_output, loss_of_row
from segtrust.errors import ParameterError
from segtrust.integrations.channels import named
from segtrust.integrations.monai import CaseScores
from segtrust.io import ScoreRow, stem_of
from segtrust.selective import trace_curve

require("ignite", extra="monai")

from ignite.engine import Engine, Events  # noqa: E402 - only after a missing Ignite has been explained
from torch import distributed  # noqa: E402

__all__ = ["ConfidenceSaver"]

_FILE = "filename_or_obj"
_ROUNDING = 1e-6
"""By which numbers of one map may differ on one processor, whatever batch it is in."""
_ELSEWHERE, _PIXELS = 0.05, 3.0
"""By which they may on another: shares of a confidence or of a mask, and pixels of a small one."""


class ConfidenceSaver:
    """Gathers the confidences of all cases of a run, and writes the table that `segtrust score` writes.

    A handler of Ignite: give it to an evaluator among its ``handlers``, or `attach` it. The post-processing
    must hold a `SegmentationConfidenced`. When the run ends, ``engine.state.confidences`` is the score table,
    which `segtrust.evaluate`, `calibrate` and `triage` take, and ``engine.state.metrics`` has the mean
    confidence (``"sdc_mean"``) and, if labels were given, the mean Dice (``"dice_mean"``) and the area under
    the risk-coverage curve (``"sdc_aurc"``); of several structures the mean over them, and each
    (``"sdc_aurc_liver"``).

    On several processes all of them get the cases of all, each case once, although samplers repeat some so
    that all processes have as many; the first process writes.

    Parameters
    ----------
    output
        The table: ``.csv``, ``.json`` or ``.parquet``; ``None`` for none.
    key
        Of the predictions, as `SegmentationConfidenced` was given it.
    image_key
        Of the image whose meta data name the file, and so the case. Cases of one name in different folders
        are told apart by these.
    name_of
        Gives the name of a case from its item instead, as where images do not come from files.

    Examples
    --------
    >>> saver = ConfidenceSaver(None, name_of=lambda item: item["id"])
    >>> saver.attach(Engine(lambda engine, batch: None))
    """

    def __init__(
        self,
        output: Path | str | None,
        *,
        key: str = "pred",
        image_key: str = "image",
        name_of: Callable[[Mapping[Any, Any]], str] | None = None,
    ) -> None:
        self.output = None if output is None else Path(output)
        if self.output is not None:
            check_output(self.output)
        self.key = key
        self.image_key = image_key
        self.name_of = name_of
        self._found: dict[str, CaseScores] = {}

    def attach(self, engine: Engine) -> None:
        """Let an evaluator tell of its batches."""
        engine.add_event_handler(Events.EPOCH_STARTED, self._start)
        engine.add_event_handler(Events.ITERATION_COMPLETED, self._collect)
        engine.add_event_handler(Events.EPOCH_COMPLETED, self._finish)

    def _start(self, engine: Engine) -> None:
        self._found = {}

    def _collect(self, engine: Engine) -> None:
        for item in _items(engine.state.batch, engine.state.output):
            name = str(self.name_of(item)) if self.name_of else self._file_of(item)
            _add(self._found, name, self._scores_of(item), _are_same)

    def _scores_of(self, item: Mapping[Any, Any]) -> CaseScores:
        found = item.get(f"{self.key}_confidence")
        if isinstance(found, CaseScores):
            return found
        raise ParameterError(
            f"key: expected {self.key}_confidence in each output, got {', '.join(map(str, item))}. Put "
            f"SegmentationConfidenced({self.key!r}, ...) into the post-processing of the evaluator."
        )

    def _file_of(self, item: Mapping[Any, Any]) -> str:
        """Give the file that an image was read from, by its meta data."""
        image = item.get(self.image_key)
        meta = getattr(image, "meta", None) or item.get(f"{self.image_key}_meta_dict") or {}
        file = meta.get(_FILE)
        if not file or not isinstance(file, str | Path):
            raise ParameterError(
                f"image_key: expected meta data of {self.image_key!r} with {_FILE}, which name the case, got "
                f"{file!r}. Load images by LoadImaged, or name cases by name_of."
            )
        return str(file)

    def _finish(self, engine: Engine) -> None:
        cases = _over_all_processes(self._found)
        table = _table(cases, are_files=self.name_of is None)
        engine.state.confidences = table  # type: ignore[attr-defined]
        engine.state.metrics.update(_metrics(table))
        is_first = not _is_distributed() or distributed.get_rank() == 0
        if self.output is not None and is_first:
            table.save(self.output)


def _items(batch: Any, output: Any) -> Iterator[dict[Any, Any]]:
    """Give the items of a batch, what came in together with what came out."""
    if not (isinstance(batch, Sequence) and isinstance(output, Sequence) and len(batch) == len(output)):
        raise ParameterError(
            "engine: expected a list of items as batch and as output, got "
            f"{type(batch).__name__} and {type(output).__name__}. Let the evaluator decollate its batches."
        )
    for given, made in zip(batch, output, strict=True):
        yield {**given, **made}


def _is_distributed() -> bool:
    return distributed.is_available() and distributed.is_initialized()


def _over_all_processes(own: dict[str, CaseScores]) -> dict[str, CaseScores]:
    """Give the cases of all processes in the order of their names, each once."""
    parts: list[Any] = [own]
    if _is_distributed():
        parts = [None] * distributed.get_world_size()
        distributed.all_gather_object(parts, own)
    together: dict[str, CaseScores] = {}
    for part in parts:
        for name, scores in part.items():
            _add(together, name, scores, _are_alike)
    return dict(sorted(together.items()))


def _add(
    found: dict[str, CaseScores],
    name: str,
    scores: CaseScores,
    are_one: Callable[[CaseScores, CaseScores], bool],
) -> None:
    """Take in a case; one that a sampler repeats is the same again, and another of its name is none."""
    known = found.setdefault(name, scores)
    if known is not scores and not are_one(known, scores):
        raise ParameterError(
            f"{name}: expected one prediction a case, got two that differ. Slices and patches of one file, "
            "or cases of one name, need names of their own: name_of=lambda item: ..."
        )


def _are_same(first: CaseScores, second: CaseScores) -> bool:
    """Tell whether rows are those of one map, on one processor."""
    return _fit(first, second, lambda name, one, other: _is_near(one, other, _ROUNDING))


def _are_alike(first: CaseScores, second: CaseScores) -> bool:
    """Tell whether rows may be those of one map: another processor rounds otherwise, pixels change sides."""
    told = {"k", *first.about.get("estimators", ())}

    def fits(name: str, one: Any, other: Any) -> bool:
        return name not in told or _is_near(one, other, _ELSEWHERE, _PIXELS if name == "k" else _ELSEWHERE)

    return _fit(first, second, fits)


def _fit(first: CaseScores, second: CaseScores, fits: Callable[[str, Any, Any], bool]) -> bool:
    return len(first.rows) == len(second.rows) and all(
        one.keys() == other.keys() and all(fits(name, one[name], other[name]) for name in one)
        for one, other in zip(first.rows, second.rows, strict=True)
    )


def _is_near(one: Any, other: Any, share: float, least: float = 0.0) -> bool:
    if isinstance(one, float | int) and isinstance(other, float | int):
        are_missing = math.isnan(one) and math.isnan(other)
        return are_missing or math.isclose(one, other, rel_tol=share, abs_tol=max(share, least))
    return bool(one == other)


def _table(cases: Mapping[str, CaseScores], *, are_files: bool) -> ScoreTable:
    names = _case_names(list(cases)) if are_files else dict.fromkeys(cases, "")
    rows = [
        row
        for file, scores in cases.items()
        for row in named(scores.rows, names[file] or file, file if are_files else "")
    ]
    about = dict(next(iter(cases.values())).about) if cases else {}
    return ScoreTable.of(rows, {**about, FOLDER: str(Path.cwd())})


def _case_names(files: Sequence[str]) -> dict[str, str]:
    """Name cases by their files; with the folders that differ, where names alone do not tell them apart.

    Examples
    --------
    >>> _case_names(["ct/a.nii.gz", "ct/b.nii.gz"])
    {'ct/a.nii.gz': 'a', 'ct/b.nii.gz': 'b'}
    >>> _case_names(["data/one/ct.nii.gz", "data/two/ct.nii.gz"])
    {'data/one/ct.nii.gz': 'one/ct', 'data/two/ct.nii.gz': 'two/ct'}
    """
    stems = {file: stem_of(Path(file)) for file in files}
    if len(set(stems.values())) == len(files):
        return stems
    shared = Path(commonpath([Path(file).absolute() for file in files]))
    folders = {file: Path(file).absolute().parent.relative_to(shared) for file in files}
    return {file: (folders[file] / stem).as_posix() for file, stem in stems.items()}


def _metrics(table: ScoreTable) -> dict[str, float]:
    """Give means and areas of each structure, and their means over the structures."""
    structures = list(dict.fromkeys(row["structure"] for row in table.rows))
    estimators = list(table.about.get("estimators", ()))
    found = {
        each: _of_structure([row for row in table.rows if row["structure"] == each], estimators)
        for each in structures
    }
    names = list(dict.fromkeys(name for values in found.values() for name in values))
    means = {name: _mean([values[name] for values in found.values() if name in values]) for name in names}
    if len(structures) < 2:
        return means
    return means | {f"{name}_{each}": value for each in structures for name, value in found[each].items()}


def _of_structure(rows: Sequence[ScoreRow], estimators: Sequence[str]) -> dict[str, float]:
    judged = [row for row in rows if row.get("dice") is not None]
    found = {f"{name}_mean": _mean([row[name] for row in rows]) for name in estimators}
    if judged:
        found["dice_mean"] = _mean([row["dice"] for row in judged])
    if len(judged) > 1:
        losses: Any = [loss_of_row(row, "dice") for row in judged]
        for name in estimators:
            found[f"{name}_aurc"] = trace_curve([row[name] for row in judged], losses).aurc
    return found


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)
