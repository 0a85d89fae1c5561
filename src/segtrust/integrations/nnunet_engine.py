"""How nnU-Net's predictor takes many images: prepared, predicted, finished and scored side by side."""

from __future__ import annotations

import sys
from collections.abc import Generator, Mapping, Sequence
from contextlib import closing, redirect_stdout
from dataclasses import dataclass, field, replace
from multiprocessing.connection import wait
from pathlib import Path
from typing import Any

import numpy as np

from segtrust._files import write_json
from segtrust._optional import require
from segtrust.engine.journal import read_journal
from segtrust.engine.outcomes import Outcome
from segtrust.engine.pool import run_in_processes
from segtrust.engine.run import Engine
from segtrust.engine.score_table import ScoreRun, journal_beside
from segtrust.engine.scoring import failure_of
from segtrust.engine.team import Worker
from segtrust.errors import ParameterError, WorkerError
from segtrust.io import ArrayRef, CaseFiles, OpenedCase, Volume, open_truth, volume_in_memory, write_predictor

__all__ = ["PredictingEngine"]


@dataclass(frozen=True)
class PredictingEngine(Engine):
    """Runs cases by predicting them first; what it is to do with each must be a `ScoreJob`.

    Attributes
    ----------
    predictor
        Of nnU-Net.
    channels
        Files of the images by case.
    output
        Folder of the masks.
    previous
        Folder of the masks of the stage before, for a cascade.
    """

    predictor: Any = None
    channels: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    output: Path = Path()
    previous: Path | None = None

    def __post_init__(self) -> None:
        """Refuse a cascade without its first stage, and a cluster."""
        super().__post_init__()
        stage = self.predictor.configuration_manager.previous_stage_name
        if stage is not None and self.previous is None:
            raise ParameterError(
                f"previous: expected the folder of the masks of {stage}, which this configuration refines."
            )
        if self.dask:
            raise ParameterError(
                "dask: expected processes of this machine, where the network is. Use --workers."
            )

    def open_output(self, name: str) -> None:
        """Make the folder of the masks, with what nnU-Net and segtrust want to find in it."""
        self.output.mkdir(parents=True, exist_ok=True)
        write_json(self.output / "dataset.json", self.predictor.dataset_json)
        write_json(self.output / "plans.json", self.predictor.plans_manager.plans)
        write_predictor(self.output, name)

    def refuse_lost_masks(self, run: ScoreRun) -> None:
        """Refuse to go on with a run whose masks have been removed: their rows would tell of nothing."""
        journal = journal_beside(run.out)
        if not (run.resume and journal.exists()):
            return
        done = [
            each.case for each in read_journal(journal).outcomes if each.rows and each.case in self.channels
        ]
        lost = [case for case in done if not self._finisher(None).mask_of(case).exists()]
        if lost:
            raise ParameterError(
                f"{self.output}: expected the masks of the run to go on with, got none of {lost[0]} "
                f"({len(lost)} in all). Predict all anew: --no-resume."
            )

    def run(self, work: Any, cases: Sequence[CaseFiles]) -> Generator[tuple[CaseFiles, Outcome], None, None]:
        """Give the outcome of each case as soon as it is there."""
        prepare = _Prepare(*self._managers(), self.channels, self.previous)
        crew = _Crew(self._finisher(work), self.workers)
        prepared = run_in_processes(prepare, cases, workers=self.workers, budget=1, cost=lambda case: 0)
        try:
            with closing(prepared):
                for case, found in prepared:
                    made = found if isinstance(found, Outcome) else self._predict(found)
                    if isinstance(made, Outcome):
                        yield case, made
                        continue
                    yield from crew.begin(made)
            yield from crew.rest()
        finally:
            crew.end()

    def _managers(self) -> tuple[Any, Any, Any]:
        of = self.predictor
        return of.plans_manager, of.configuration_manager, of.dataset_json

    def _finisher(self, work: Any) -> _Finish:
        return _Finish(*self._managers(), self.output.absolute(), work)

    def _predict(self, prepared: _Prepared) -> _Predicted | Outcome:
        """Run the network; what goes wrong, as a lack of memory, is laid to the case."""
        torch = require("torch", extra="nnunet")
        try:
            data = torch.from_numpy(prepared.data).to(dtype=torch.float32)
            with redirect_stdout(sys.stderr):
                logits = self.predictor.predict_logits_from_preprocessed_data(data).cpu().numpy()
        except Exception as error:  # noqa: BLE001 - one bad case must not stop the others
            return Outcome(prepared.case.id, failure=failure_of(prepared.case, error))
        return _Predicted(prepared.case, logits, prepared.properties)


@dataclass(frozen=True, eq=False)
class _Prepared:
    """An image as the network wants it."""

    case: CaseFiles
    data: Any
    properties: Mapping[str, Any]


@dataclass(frozen=True, eq=False)
class _Predicted:
    """What the network gave, on a grid of its own."""

    case: CaseFiles
    logits: Any
    properties: Mapping[str, Any]

    @property
    def name(self) -> str:
        """Of the case, for errors."""
        return self.case.id


@dataclass(frozen=True)
class _Prepare:
    """Reads, crops, resamples and normalises an image, in a process of its own."""

    plans: Any
    configuration: Any
    described: Any
    channels: Mapping[str, tuple[str, ...]]
    previous: Path | None

    def __call__(self, case: CaseFiles) -> _Prepared | Outcome:
        try:
            with redirect_stdout(sys.stderr):
                return self._prepare(case)
        except Exception as error:  # noqa: BLE001 - one bad case must not stop the others
            return Outcome(case.id, failure=failure_of(case, error))

    def _prepare(self, case: CaseFiles) -> _Prepared:
        preprocessor = self.configuration.preprocessor_class(verbose=False)
        before = (
            None
            if self.previous is None
            else str(self.previous / f"{case.id}{self.described['file_ending']}")
        )
        data, labels, properties = preprocessor.run_case(
            list(self.channels[case.id]), before, self.plans, self.configuration, self.described
        )
        return _Prepared(case, data if before is None else self._stacked(data, labels), properties)

    def _stacked(self, data: Any, labels: Any) -> Any:
        """Add the masks of the stage before as channels, as the networks of a cascade were trained."""
        handling = require("nnunetv2.utilities.label_handling.label_handling", extra="nnunet")
        known = self.plans.get_label_manager(self.described).foreground_labels
        return np.vstack((data, handling.convert_labelmap_to_one_hot(labels[0], known, data.dtype)))


@dataclass(frozen=True)
class _Finish:
    """Brings probabilities to the grid of the image, writes the mask and scores, in a process of its own."""

    plans: Any
    configuration: Any
    described: Any
    output: Path
    job: Any

    def mask_of(self, case: str) -> Path:
        """Where the mask of a case is written."""
        return self.output / f"{case}{self.described['file_ending']}"

    def __call__(self, made: _Predicted) -> Outcome:
        files = replace(made.case, mask=ArrayRef(self.mask_of(made.case.id)))
        with redirect_stdout(sys.stderr):
            return self.job.score_opened(files, lambda: self._opened(made, files))  # type: ignore[no-any-return]

    def _opened(self, made: _Predicted, files: CaseFiles) -> OpenedCase:
        export = require("nnunetv2.inference.export_prediction", extra="nnunet")
        labels, p = export.convert_predicted_logits_to_segmentation_with_correct_shape(
            made.logits,
            self.plans,
            self.configuration,
            self.plans.get_label_manager(self.described),
            made.properties,
            return_probabilities=True,
        )
        path = self.mask_of(made.case.id)
        self.plans.image_reader_writer_class().write_seg(labels, str(path), made.properties)
        absent = self.output / f"{made.case.id}.npz"
        volume = volume_in_memory(absent, p, made.properties)
        mask = Volume(
            path, labels.shape, labels.dtype, lambda _: labels, has_channels=False, grid=volume.grid
        )
        truth = open_truth(files.truth if self.job.with_truth else None)
        return OpenedCase(files.id, absent, volume, mask, truth)


class _Crew:
    """Processes that finish cases while the network works on the next ones."""

    def __init__(self, finish: _Finish, workers: int) -> None:
        self.finish, self.workers = finish, workers
        self.idle: list[Worker[_Predicted, Outcome]] = []
        self.busy: dict[Any, tuple[Worker[_Predicted, Outcome], CaseFiles]] = {}

    def begin(self, made: _Predicted) -> Generator[tuple[CaseFiles, Outcome], None, None]:
        """Hand a case to somebody; first give what has been finished, and wait where all are busy."""
        yield from self._finished(timeout=0.0)
        while len(self.busy) >= self.workers:
            yield from self._finished(timeout=None)
        worker = self.idle.pop() if self.idle else Worker(self.finish)
        worker.begin(made)
        self.busy[worker.connection] = worker, made.case

    def rest(self) -> Generator[tuple[CaseFiles, Outcome], None, None]:
        """Wait for all that is still being done."""
        while self.busy:
            yield from self._finished(timeout=None)

    def end(self) -> None:
        """Stop all of them, whatever they do."""
        for worker in (*self.idle, *(worker for worker, _ in self.busy.values())):
            worker.end()

    def _finished(self, timeout: float | None) -> Generator[tuple[CaseFiles, Outcome], None, None]:
        for connection in wait(list(self.busy), timeout) if self.busy else ():
            worker, case = self.busy.pop(connection)
            try:
                _, outcome = worker.finish()
                self.idle.append(worker)
            except WorkerError as error:
                worker.end()
                outcome = Outcome(case.id, failure=failure_of(case, error))
            yield case, outcome
