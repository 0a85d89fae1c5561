"""The channels of a case that are in memory, scored as `segtrust score` scores those of a file.

What is behind the integrations that sit inside of somebody else's loop: each hands over a tensor, channels
first, and gets the rows that a score table has, so that the commands that read such tables go on from there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, Required, TypedDict

from segtrust._arguments import describe
from segtrust.confidence import ConfidenceEstimator, Estimators, get_estimator, get_estimators, learns
from segtrust.engine.decisions import estimator_of
from segtrust.engine.outcomes import Row
from segtrust.engine.score_table import FORMAT, settings_of
from segtrust.engine.scoring import IN_MEMORY, ScoreJob
from segtrust.errors import NotFittedError, ParameterError
from segtrust.integrations.torch import SoftDiceConfidence, Task, check_tensor
from segtrust.io.cases import CaseFiles
from segtrust.io.loading import LoadedCase, ReadOptions
from segtrust.io.places import Place
from segtrust.io.structures import FOREGROUND
from segtrust.kernels import as_binary_on_device, check_labels, raise_shape_mismatch
from segtrust.maps import EmptyPolicy, Prediction
from segtrust.policy import Scoring

__all__ = ["ChannelScorer", "ChannelSettings", "named"]

_BACKGROUND = "background"
_Masks = Callable[[int], Any]


class ChannelSettings(TypedDict, total=False):
    """The settings of `ChannelScorer`, for what passes them on."""

    from_logits: Required[bool]
    task: Required[Task]
    names: Sequence[str] | None
    estimators: Estimators
    threshold: float
    empty: EmptyPolicy | str


class ChannelScorer:
    """Gives the rows of a case: one for each structure, with confidences, bounds, counts and overlaps.

    Parameters
    ----------
    from_logits, task, threshold, empty
        As for `segtrust.integrations.torch.SoftDiceConfidence`.
    names
        Of all channels, in order; one called ``"background"`` is not scored. The only channel of a
        ``"binary"`` task is called ``"foreground"`` where nothing is said.
    estimators
        Names, or estimators with settings of their own.

    Examples
    --------
    >>> import torch
    >>> scorer = ChannelScorer(from_logits=False, task="multilabel", names=["whole", "core"])
    >>> rows = scorer.rows(torch.tensor([[0.9, 0.8, 0.1], [0.2, 0.7, 0.0]]), truth=torch.eye(3)[:2])
    >>> [(row["structure"], round(row["sdc"], 3), row["k"], round(row["dice"], 3)) for row in rows]
    [('whole', 0.895, 2, 0.667), ('core', 0.737, 1, 1.0)]
    """

    def __init__(
        self,
        *,
        from_logits: bool,
        task: Task,
        names: Sequence[str] | None = None,
        estimators: Estimators = ("sdc",),
        threshold: float = 0.5,
        empty: EmptyPolicy | str = EmptyPolicy.PAPER,
    ) -> None:
        self._module = SoftDiceConfidence(
            from_logits=from_logits, task=task, threshold=threshold, empty=empty
        )
        self.names = _checked_names(names, task)
        self._job = ScoreJob(
            tuple(_ready(each, EmptyPolicy(empty)) for each in _listed(estimators)),
            ReadOptions(threshold=threshold),
            empty=EmptyPolicy(empty),
        )

    @property
    def structures(self) -> tuple[str, ...]:
        """Names of the channels that are scored."""
        return tuple(name for name in self.names if name != _BACKGROUND)

    @property
    def estimators(self) -> tuple[str, ...]:
        """Names of the estimators."""
        return tuple(each.name for each in self._job.estimators)

    @property
    def about(self) -> dict[str, Any]:
        """What a table of such rows says of itself; there is no file that could have a fingerprint."""
        channels = {"from_logits": self._module.from_logits, "task": self._module.task, "names": self.names}
        return {"format": FORMAT, **settings_of(self._job), "digest": None, "in memory": channels}

    def rows(self, values: Any, mask: Any = None, truth: Any = None) -> tuple[Row, ...]:
        """Score the channels of one case; the rows have no name of the case yet, see `named`.

        Parameters
        ----------
        values
            Logits or probabilities, a torch tensor with the channels first.
        mask
            The masks that are delivered: one a channel, or for ``"multiclass"`` labels in one channel. Where
            there are none: the likeliest class, or ``p >= threshold``.
        truth
            In the same form.
        """
        p = self._probabilities(values)
        masks, truths = self._masks(mask, p, "mask"), self._masks(truth, p, "truth")
        if mask is None and self._module.task == "multiclass":
            labels = p.argmax(0)
            masks = lambda number: labels == number  # noqa: E731 - the same for labels that are given
        return tuple(
            self._row(name, _on_host(p[i]), _on_host(masks(i)), _on_host(truths(i)))
            for i, name in enumerate(self.names)
            if name != _BACKGROUND
        )

    def _probabilities(self, values: Any) -> Any:
        check_tensor(values, "values")
        if values.ndim < 2 or values.shape[0] != len(self.names):
            raise ParameterError(
                f"values: expected {len(self.names)} channels first ({', '.join(self.names)}), one case at a "
                f"time, got shape {tuple(values.shape)}. Name all channels, in order, and give no batch."
            )
        return self._module.probabilities(values[None])[0].detach()

    def _masks(self, values: Any, p: Any, name: str) -> _Masks:
        """Give what gives the mask of a channel: one at a time, as all of many classes take much memory."""
        if values is None:
            return lambda number: None
        check_tensor(values, name)
        one = (1, *p.shape[1:])
        if self._module.task == "multiclass" and tuple(values.shape) == one:
            check_labels(values, len(self.names), name)
            return lambda number: values[0] == number
        if values.shape != p.shape:
            raise_shape_mismatch(
                tuple(values.shape), f"shape {tuple(p.shape)}{_or_labels(one, self._module)}", name
            )
        return lambda number: as_binary_on_device(values[number], name)

    def _row(self, structure: str, p: Any, mask: Any, truth: Any) -> Row:
        prediction = Prediction(p, mask, self._module.threshold, structure)
        files = CaseFiles("", Place(Path(structure)))  # names the map in errors
        row = self._job.row(LoadedCase(structure, prediction, mask, truth), files)
        return row | {"file": "", **IN_MEMORY}


def named(rows: Iterable[Row], case: str, image: str = "") -> tuple[Row, ...]:
    """Give the rows of a case its name, and the file of its image.

    Examples
    --------
    >>> named([{"case": "", "sdc": 0.5, "image_file": ""}], "a", "ct/a.nii.gz")
    ({'case': 'a', 'sdc': 0.5, 'image_file': 'ct/a.nii.gz'},)
    """
    return tuple({**row, "case": case, "image_file": image} for row in rows)


def _or_labels(one: tuple[int, ...], module: SoftDiceConfidence) -> str:
    return f", or labels of shape {one}" if module.task == "multiclass" else ""


def _on_host(values: Any) -> Any:
    """Give an array to the compiled loops; half precision of the kind that NumPy lacks is widened."""
    if values is None:
        return None
    here = values.cpu()
    return (here.float() if str(here.dtype) == "torch.bfloat16" else here).numpy()


def _listed(estimators: Estimators) -> list[str | ConfidenceEstimator]:
    get_estimators(estimators)  # refuses what is no estimator, and what is there twice
    return list(estimators)


def _ready(item: str | ConfidenceEstimator, empty: EmptyPolicy) -> ConfidenceEstimator:
    """Make an estimator of a name, with the policy for empty masks; one that must learn first is none yet."""
    if not isinstance(item, str):
        return item
    if learns(item):
        made = type(get_estimator(item)).__name__
        raise NotFittedError(
            f"estimators: {item} learns from cases and has learned nothing here. "
            f"Fit it first and give it itself: {made}().fit(cases)."
        )
    return estimator_of(Scoring(item, empty=str(empty)))


def _checked_names(names: Sequence[str] | None, task: Task) -> tuple[str, ...]:
    """Refuse names that cannot be those of the channels."""
    if names is None and task == "binary":
        return (FOREGROUND,)
    if names is None or isinstance(names, str) or not isinstance(names, Iterable):
        raise ParameterError(
            f"names: expected the name of every channel of a {task} task, in order, got {describe(names)}."
        )
    listed = tuple(map(str, names))
    if len(set(listed)) < len(listed) or not set(listed) - {_BACKGROUND}:
        raise ParameterError(f"names: expected different names beside the background, got {listed}.")
    if task == "binary" and len(listed) > 1:
        raise ParameterError(f"names: expected one name for a binary task, got {listed}.")
    return listed
