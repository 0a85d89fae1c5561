"""The soft Dice confidence inside torch: a module to put behind a network, and a metric that gathers it.

Both work on a whole batch at once, on its own device. The metrics and `CaseConfidences` are those of
`segtrust.integrations.torch_metric`, loaded when first asked for.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from operator import add
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Required, TypedDict, get_args

from segtrust._arguments import check_threshold, describe
from segtrust._optional import require
from segtrust.errors import EmptyArrayError, ParameterError, ProbabilityTypeError
from segtrust.kernels import (
    FULL_SCALE,
    as_binary_on_device,
    block_size,
    check_array,
    check_labels,
    check_normalised,
    dtype_name,
    fold,
    open_map,
    raise_shape_mismatch,
)
from segtrust.maps import EmptyPolicy

require("torch", extra="models")

import torch  # noqa: E402 - only after a missing torch has been explained
from torch import Tensor, nn  # noqa: E402

if TYPE_CHECKING:
    from segtrust.integrations.torch_metric import (
        CaseConfidences,
        MeanSoftDiceConfidence,
        SoftDiceConfidenceAURC,
        SoftDiceConfidenceMetric,
    )

__all__ = [
    "CaseConfidences",
    "MeanSoftDiceConfidence",
    "SoftDiceConfidence",
    "SoftDiceConfidenceAURC",
    "SoftDiceConfidenceMetric",
    "Task",
]

Task = Literal["binary", "multiclass", "multilabel"]
"""Which axis holds classes, and whether they exclude each other."""

_FLOATS = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
_FEWEST_AXES = {"binary": 2, "multiclass": 3, "multilabel": 3}


def __getattr__(name: str) -> Any:
    """Load the metric when it is first used; importing torchmetrics, where it is installed, takes seconds."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from segtrust.integrations import torch_metric

    return getattr(torch_metric, name)


class Settings(TypedDict, total=False):
    """The settings of `SoftDiceConfidence`, for what passes them on."""

    from_logits: Required[bool]
    task: Required[Task]
    threshold: float
    empty: EmptyPolicy | str


class MaskedMaps(NamedTuple):
    """A batch of probabilities and the masks made of them, both (images, classes, pixels)."""

    p: Tensor
    mask: Tensor


class SoftDiceConfidence(nn.Module):
    """Soft Dice confidence of each image of a batch; put it behind a segmentation network.

    Nothing is guessed: whether the network gives logits is said by ``from_logits``, what its channels mean by
    ``task``. Values that contradict it raise an error.

    Parameters
    ----------
    from_logits
        Whether the input is to be put through a sigmoid (or, for ``"multiclass"``, a softmax) first.
    task
        ``"binary"``: (N, ...), all axes after the first are pixels, so that (N, 1, H, W) works as well.
        ``"multiclass"``: (N, C, ...), a softmax over C; the mask is the likeliest class.
        ``"multilabel"``: (N, C, ...), a sigmoid each; the masks are ``p >= threshold``.
    threshold
        Decision threshold in [0, 1]. For ``"multiclass"`` it only says from where on a class is probable.
    empty
        Confidence of an empty mask of a ``"binary"`` task, see `segtrust.EmptyPolicy`.

    Notes
    -----
    A class that is neither predicted nor probable anywhere in an image is absent from it and gets NaN, as it
    gets ``None`` from `segtrust.score_classes`; ``confidence.nanmean(1)`` averages over the others. Half
    precision logits are widened before the sigmoid, and sums are taken in float64. While a model is traced,
    exported or compiled the values are not checked.

    Examples
    --------
    >>> confidence = SoftDiceConfidence(from_logits=False, task="binary")
    >>> confidence(torch.tensor([[[0.9, 0.8], [0.1, 0.0]], [[0.6, 0.4], [0.5, 0.5]]]))
    tensor([0.8947, 0.6400], dtype=torch.float64)
    >>> of_classes = SoftDiceConfidence(from_logits=True, task="multiclass")
    >>> torch.nn.Sequential(torch.nn.Conv2d(3, 5, 1), of_classes)(torch.zeros(2, 3, 8, 8)).shape
    torch.Size([2, 5])
    """

    def __init__(
        self,
        *,
        from_logits: bool,
        task: Task,
        threshold: float = 0.5,
        empty: EmptyPolicy | str = EmptyPolicy.PAPER,
    ) -> None:
        super().__init__()
        check_threshold(threshold, "threshold")
        if task not in get_args(Task):
            raise ParameterError(f"task: expected one of {', '.join(get_args(Task))}, got {task!r}.")
        self.from_logits = from_logits
        self.task = task
        self.threshold = threshold
        self.empty = EmptyPolicy(empty)

    def extra_repr(self) -> str:
        """Show the settings when a model is printed."""
        return f"from_logits={self.from_logits}, task={self.task!r}, threshold={self.threshold}"

    def forward(self, values: Tensor, mask: Tensor | None = None) -> Tensor:
        """Confidence of each image: (N,), or with classes (N, C); float64.

        Parameters
        ----------
        values
            Logits or probabilities of a batch.
        mask
            The masks that are delivered, where they are not those of the class's description: 0 and 1 in the
            shape of ``values``, or for ``"multiclass"`` the label of each pixel, (N, ...).
        """
        return self.per_case(self.confidences(self.maps(values, mask)))

    def maps(self, values: Tensor, mask: Tensor | None = None) -> MaskedMaps:
        """Turn a batch into probabilities and masks."""
        p = self.probabilities(values)
        chosen = self._likely(p) if mask is None else self.masks(mask, p.shape, "mask")
        return MaskedMaps(self._flat(p), chosen)

    def probabilities(self, values: Tensor) -> Tensor:
        """Turn logits into probabilities, or check that the values are some."""
        check_tensor(values, "values")
        if values.ndim < _FEWEST_AXES[self.task] or values.numel() == 0:
            raise EmptyArrayError(
                f"values: expected {_layout(self.task)}, got shape {tuple(values.shape)}. "
                "A single image needs a batch axis: values[None]."
            )
        if not self.from_logits:
            return values if _is_recorded() else self._checked(values)
        _check_logits(values)
        wide = values.float() if values.dtype in (torch.float16, torch.bfloat16) else values
        p = wide.softmax(1) if self.task == "multiclass" else wide.sigmoid()
        if not (_is_recorded() or _lies_in_unit_interval(p)):
            open_map(p, source="probabilities of the logits").count()
        return p

    def _checked(self, values: Tensor) -> Tensor:
        """Refuse what are no probabilities; scale integers by their type."""
        source = open_map(values, source="values")
        levels = FULL_SCALE.get(dtype_name(values.dtype))
        p = values if levels is None else values.to(_wide(values)) / levels
        if not _lies_in_unit_interval(p):
            source.count()  # says which value, where, and what to do
        if self.task == "multiclass":
            remedy = "Move the class axis there, or say task='multilabel' if these are sigmoids."
            check_normalised(values, axis=1, source="values", remedy=remedy)
        return p

    def masks(self, mask: Tensor, shape: torch.Size, name: str) -> Tensor:
        """Turn binary masks, or labels, of values of this shape into bool (images, classes, pixels)."""
        check_tensor(mask, name)
        labels, without_classes = self.task == "multiclass", shape[:1] + shape[2:]
        shapes = [without_classes] if labels else [shape]
        if self.task == "binary" and shape[1] == 1:
            shapes.append(without_classes)
        if mask.shape not in shapes:
            expected = " or ".join(str(tuple(each)) for each in shapes)
            raise_shape_mismatch(tuple(mask.shape), f"shape {expected}", name)
        if not labels:
            return self._flat(as_binary_on_device(mask, name))
        if not _is_recorded():
            check_labels(mask, shape[1], name)
        return _one_mask_a_class(mask, shape[1])

    def _likely(self, p: Tensor) -> Tensor:
        values = p.detach()
        if self.task == "multiclass":
            return _one_mask_a_class(values.argmax(1), p.shape[1])
        return self._flat(values >= self.threshold)

    def _flat(self, values: Tensor) -> Tensor:
        return values.reshape(values.shape[0], 1, -1) if self.task == "binary" else values.flatten(2)

    def confidences(self, maps: MaskedMaps) -> Tensor:
        """Confidence of each map, (images, classes)."""
        sums: list[Tensor] = fold(_sums(maps), add, add, add)
        k, s, lam = sums
        confidence = 2.0 * s / torch.where(k > 0, k + s + lam, 1.0)
        if self.task != "binary":
            absent = (k == 0) & (maps.p.detach().amax(2) < self.threshold)
            return confidence.masked_fill(absent, math.nan)
        if self.empty is EmptyPolicy.PAPER:
            return confidence
        return torch.where(k > 0, confidence, _probability_of_empty(maps.p, k == 0))

    def per_case(self, values: Tensor) -> Tensor:
        """Drop the class axis of what has no classes."""
        return values[:, 0] if self.task == "binary" else values


def check_tensor(values: Any, name: str) -> None:
    """Refuse what is no tensor, and tensors of which not every value can be read."""
    if not isinstance(values, Tensor):
        raise ParameterError(
            f"{name}: expected a torch tensor, got {describe(values)}. "
            "Make one of an array or a list first: torch.as_tensor(values)."
        )
    if not _is_recorded():
        check_array(values, name)


def _check_logits(values: Tensor) -> None:
    kind = values.dtype
    narrow = kind.is_floating_point and kind not in _FLOATS  # of eight bits and less
    if narrow or kind.is_complex or values.is_quantized:
        raise ProbabilityTypeError(
            f"values: expected logits as float16, bfloat16, float32 or float64, got {kind}. "
            "Convert them to float32 first."
        )


def _layout(task: str) -> str:
    return "a batch (N, ...)" if task == "binary" else "a batch with classes (N, C, ...)"


def _is_recorded() -> bool:
    """Tell whether the operations are being recorded, not done: then no value can be looked at."""
    tracing = torch.jit.is_tracing()  # type: ignore[attr-defined, no-untyped-call]
    return bool(tracing) or torch.compiler.is_compiling()


def _lies_in_unit_interval(p: Tensor) -> bool:
    """Look at both ends; they are NaN where any value is."""
    low, high = torch.aminmax(p.detach())
    return bool(low >= 0.0) and bool(high <= 1.0)


def _wide(values: Tensor) -> torch.dtype:
    return torch.float32 if values.device.type == "mps" else torch.float64  # Apple's has no doubles


def _sums(maps: MaskedMaps) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
    """Give the sums of each map, k, s and lam, over some of its pixels after the other."""
    p, wide = maps.p, _wide(maps.p)
    pieces = 1 if _is_recorded() else math.ceil(p.numel() / block_size(p))
    for values, mask in zip(p.chunk(pieces, 2), maps.mask.chunk(pieces, 2), strict=True):
        inside = mask.to(p.dtype)
        foreground = values * inside
        background = values - foreground
        yield inside.sum(2, dtype=wide), foreground.sum(2, dtype=wide), background.sum(2, dtype=wide)


def _one_mask_a_class(labels: Tensor, classes: int) -> Tensor:
    """Turn labels (N, ...) into bool (N, classes, pixels)."""
    if labels.dtype in (torch.uint16, torch.uint32, torch.uint64):  # torch compares them with nothing else
        labels = labels.long()
    return labels.reshape(labels.shape[0], 1, -1) == torch.arange(classes, device=labels.device)[:, None]


def _probability_of_empty(p: Tensor, empty: Tensor) -> Tensor:
    """Give Π(1 - p) where the mask is empty; elsewhere 1, as certain pixels would make derivatives NaN."""
    chosen = torch.where(empty.unsqueeze(2), p.to(_wide(p)), 0.0)
    return torch.log1p(-chosen).sum(2).exp()
