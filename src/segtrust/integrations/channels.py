"""Scores of the channels of one case in memory, as `segtrust score` computes them from a file.

Integrations that run inside another library's loop pass a tensor with the channels first and receive the rows
of a score table, which `segtrust calibrate`, `evaluate` and `report` read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Required, TypedDict

from segtrust._arguments import describe
from segtrust.confidence import ConfidenceEstimator, Estimators, get_estimators, is_background
from segtrust.engine import NO_CHECKSUMS, ScoreJob, settings_of
from segtrust.errors import ParameterError
from segtrust.integrations.torch import SoftDiceConfidence, Task, check_tensor
from segtrust.integrations.torch_metric import ready_estimator
from segtrust.io import FOREGROUND, SCORES_FORMAT, ArrayRef, CaseFiles, LoadedCase, ReadOptions, ScoreRow
from segtrust.kernels import as_binary_on_device, check_labels, raise_shape_mismatch
from segtrust.maps import EmptyPolicy, Prediction

__all__ = ["ChannelScorer", "ChannelSettings", "named"]

_Masks = Callable[[int], Any]


class ChannelSettings(TypedDict, total=False):
    """Keyword arguments of `ChannelScorer`, for functions that pass them on."""

    from_logits: Required[bool]
    task: Required[Task]
    names: Sequence[str] | None
    estimators: Estimators
    threshold: float
    empty: EmptyPolicy | str


class ChannelScorer:
    """Scorer of cases in memory: one row per structure, with confidences, bounds, counts and overlaps.

    Parameters
    ----------
    from_logits
        Whether the values are logits, which are passed through a sigmoid (for ``"multiclass"`` a softmax).
    task
        ``"binary"`` for one channel, ``"multiclass"`` for a softmax over the channels, ``"multilabel"`` for
        one sigmoid per channel.
    names
        Names of all channels, in order; a channel called ``"background"``, in any capitalisation, is not
        scored. The only channel of a ``"binary"`` task is called ``"foreground"`` if there are no names.
    estimators
        Names, or estimators with their own settings.
    threshold
        Decision threshold in [0, 1]; the masks are ``p >= threshold``, except for ``"multiclass"``.
    empty
        Confidence and Dice of empty masks, see `segtrust.EmptyPolicy`.

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
        self.names = _check_names(names, task)
        listed: Any = [estimators] if isinstance(estimators, str | ConfidenceEstimator) else estimators
        if isinstance(listed, Iterator):
            listed = list(listed)
        get_estimators(listed)  # rejects anything but different estimators
        listed = listed.values() if isinstance(listed, Mapping) else listed
        policy = EmptyPolicy(empty)
        ready = tuple(ready_estimator(item, policy, "estimators") for item in listed)
        self._job = ScoreJob(ready, ReadOptions(threshold=threshold), empty=policy)

    @property
    def structures(self) -> tuple[str, ...]:
        """Names of the channels that are scored."""
        return tuple(name for name in self.names if not is_background(name))

    @property
    def estimators(self) -> tuple[str, ...]:
        """Names of the estimators."""
        return tuple(estimator.name for estimator in self._job.estimators)

    @property
    def about(self) -> dict[str, Any]:
        """Settings that a table of these rows records; maps in memory have no checksum."""
        channels = {"from_logits": self._module.from_logits, "task": self._module.task, "names": self.names}
        return {"format": SCORES_FORMAT, **settings_of(self._job), "checksum": None, "in memory": channels}

    def rows(self, values: Any, mask: Any = None, truth: Any = None) -> tuple[ScoreRow, ...]:
        """Return one row per structure of one case, without the name of the case, which `named` adds.

        Parameters
        ----------
        values
            Logits or probabilities, a torch tensor with the channels first.
        mask
            The delivered masks: one per channel, or for ``"multiclass"`` labels in one channel. ``None``
            means the most probable class, or ``p >= threshold``.
        truth
            The ground truth: one mask per channel, or for ``"multiclass"`` labels in one channel.
        """
        p = self._probabilities(values)
        masks, truths = self._masks(mask, p, "mask"), self._masks(truth, p, "truth")
        if mask is None and self._module.task == "multiclass":
            labels = p.argmax(0)
            masks = lambda number: labels == number  # noqa: E731 - as for labels that are passed
        return tuple(
            self._row(name, _on_host(p[i]), _on_host(masks(i)), _on_host(truths(i)))
            for i, name in enumerate(self.names)
            if not is_background(name)
        )

    def _probabilities(self, values: Any) -> Any:
        check_tensor(values, "values")
        if values.ndim < 2 or values.shape[0] != len(self.names):
            raise ParameterError(
                f"values: expected one case with {len(self.names)} channels first ({', '.join(self.names)}), "
                f"got shape {tuple(values.shape)}. Name all channels, in order, and pass no batch axis."
            )
        self._module.check_layout(values[None])
        return self._module.probabilities(values[None])[0].detach()

    def _masks(self, values: Any, p: Any, name: str) -> _Masks:
        """Return a function from the number of a channel to its mask; all masks at once take much memory."""
        if values is None:
            return lambda number: None
        check_tensor(values, name)
        one = (1, *p.shape[1:])
        if self._module.task == "multiclass" and tuple(values.shape) == one:
            check_labels(values, len(self.names), name)
            return lambda number: values[0] == number
        if values.shape != p.shape:
            labels = f", or labels of shape {one}" if self._module.task == "multiclass" else ""
            raise_shape_mismatch(tuple(values.shape), f"shape {tuple(p.shape)}{labels}", name)
        return lambda number: as_binary_on_device(values[number], name)

    def _row(self, structure: str, p: Any, mask: Any, truth: Any) -> ScoreRow:
        prediction = Prediction(p, mask, self._module.threshold, structure)
        files = CaseFiles("", ArrayRef(Path(structure)))  # names the map in errors
        row = self._job.row(LoadedCase(structure, prediction, mask, truth), files)
        return row | {"file": "", **NO_CHECKSUMS}


def named(rows: Iterable[ScoreRow], case: str, image: str = "") -> tuple[ScoreRow, ...]:
    """Return the rows of a case with its name and the file of its image.

    Examples
    --------
    >>> named([{"case": "", "sdc": 0.5, "image_file": ""}], "a", "ct/a.nii.gz")
    ({'case': 'a', 'sdc': 0.5, 'image_file': 'ct/a.nii.gz'},)
    """
    return tuple({**row, "case": case, "image_file": image} for row in rows)


def _on_host(values: Any) -> Any:
    """Return a tensor as a NumPy array for the compiled loops; bfloat16, unknown to NumPy, as float32."""
    if values is None:
        return None
    values = values.cpu()
    return (values.float() if str(values.dtype) == "torch.bfloat16" else values).numpy()


def _check_names(names: Sequence[str] | None, task: Task) -> tuple[str, ...]:
    """Return the names of the channels; raise if they do not fit the task."""
    if names is None and task == "binary":
        return (FOREGROUND,)
    if names is None or isinstance(names, str) or not isinstance(names, Iterable):
        raise ParameterError(
            f"names: expected the name of every channel of a {task} task, in order, got {describe(names)}."
        )
    listed = tuple(map(str, names))
    if len(set(listed)) < len(listed) or all(map(is_background, listed)):
        raise ParameterError(f"names: expected different names, and not only the background, got {listed}.")
    if task == "binary" and len(listed) > 1:
        raise ParameterError(f"names: expected one name for a binary task, got {listed}.")
    return listed
