"""How nnU-Net's predictor takes many images: prepared, predicted, finished and scored side by side."""

from __future__ import annotations

import sys
from collections.abc import Generator, Mapping, Sequence
from contextlib import closing, redirect_stdout
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from segtrust._files import write_json
from segtrust._optional import require
from segtrust.engine import (
    CASE_SECONDS,
    Limits,
    Outcome,
    ProcessDiedError,
    ProcessExecutor,
    WorkerGroup,
    failure_of,
    log_beside,
    read_log,
)
from segtrust.errors import ParameterError
from segtrust.io import ArrayRef, CaseFiles, OpenedCase, Volume, open_truth, volume_in_memory, write_predictor

__all__ = ["PredictingEngine"]


@dataclass(frozen=True)
class PredictingEngine:
    """An executor that predicts cases first; what it is to do with each must be a `ScoreJob`.

    Attributes
    ----------
    workers
        Processes that prepare images, and as many that finish and score them.
    dask
        Must be empty: the network is on this machine.
    predictor
        Of nnU-Net.
    channels
        Files of the images by case.
    output
        Folder of the masks.
    previous
        Folder of the masks of the stage before, for a cascade.
    limits
        Memory and time of the processes that prepare and finish cases; the network itself has none.
    """

    workers: int = 1
    dask: str = ""
    predictor: Any = None
    channels: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    output: Path = Path()
    previous: Path | None = None
    limits: Limits = field(default_factory=lambda: Limits(seconds=CASE_SECONDS))
    is_remote: bool = field(default=False, init=False)

    def __post_init__(self) -> None:
        """Reject a cascade without its first stage, and a cluster."""
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

    def check_masks(self, table: Path) -> None:
        """Check that a run that is resumed still has its masks: rows without them would be of no use."""
        if not log_beside(table).exists():
            return
        outcomes = read_log(log_beside(table)).outcomes
        done = [each.case for each in outcomes if each.rows and each.case in self.channels]
        lost = [case for case in done if not self._finisher(None).mask_of(case).exists()]
        if lost:
            raise ParameterError(
                f"{self.output}: expected the masks of the run that is resumed, got none of {lost[0]} "
                f"({len(lost)} in all). Predict all of them again: --no-resume."
            )

    def run(self, work: Any, cases: Sequence[CaseFiles]) -> Generator[tuple[CaseFiles, Outcome], None, None]:
        """Yield each case with its outcome; images are prepared, predicted and finished side by side."""
        prepare: Any = _Prepare(*self._managers(), self.channels, self.previous)
        preparing = ProcessExecutor(self.workers, self.limits, cost=lambda case: 0)
        finishing = WorkerGroup(self._finisher(work), self.workers, self.limits)
        prepared: Generator[tuple[CaseFiles, Any], None, None] = preparing.run(prepare, cases)
        with closing(preparing), closing(prepared), finishing:
            for case, found in prepared:
                made = found if isinstance(found, Outcome) else self._predict(found)
                if isinstance(made, Outcome):
                    yield case, made
                    continue
                yield from _finished(finishing, timeout=0.0)
                while finishing.running >= self.workers:
                    yield from _finished(finishing)
                finishing.submit(made)
            while finishing.running:
                yield from _finished(finishing)

    def close(self) -> None:
        """Do nothing: processes end with each run."""

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


def _finished(
    group: WorkerGroup[_Predicted, Outcome], timeout: float | None = None
) -> Generator[tuple[CaseFiles, Outcome], None, None]:
    """Yield the cases that have been finished; one whose process died is a failure."""
    for made, result in group.finished(timeout):
        if isinstance(result, ProcessDiedError):
            yield made.case, Outcome(made.case.id, failure=failure_of(made.case, result))
        else:
            yield made.case, result
