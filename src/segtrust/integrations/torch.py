"""Soft Dice confidence for torch: a module to place behind a network, and metrics that collect confidences.

Both score a whole batch at once, on its device. The metrics and `CaseConfidences` are defined in
`segtrust.integrations.torch_metric` and imported when they are first used.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Required, TypedDict, get_args

from segtrust._arguments import check_threshold, describe, suggestion
from segtrust._optional import require
from segtrust.errors import EmptyArrayError, NotBinaryError, ParameterError, ProbabilityTypeError
from segtrust.kernels import (
    FULL_SCALE,
    as_binary_on_device,
    check_array,
    check_labels,
    check_levels,
    check_map_type,
    check_normalised,
    dtype_name,
    is_normalised,
    open_map,
    raise_shape_mismatch,
)
from segtrust.maps import EmptyPolicy

require("torch", extra="torch")

import torch  # noqa: E402 - only after the message for a missing torch
from torch import Tensor, nn  # noqa: E402

if TYPE_CHECKING:
    from segtrust.integrations.torch_metric import (
        CaseConfidences,
        ConfidenceAURC,
        ConfidenceMetric,
        MeanConfidence,
        MeanSoftDiceConfidence,
        SoftDiceConfidenceAURC,
        SoftDiceConfidenceMetric,
    )

__all__ = [
    "CaseConfidences",
    "ConfidenceAURC",
    "ConfidenceMetric",
    "MeanConfidence",
    "MeanSoftDiceConfidence",
    "SoftDiceConfidence",
    "SoftDiceConfidenceAURC",
    "SoftDiceConfidenceMetric",
    "Task",
]

Task = Literal["binary", "multiclass", "multilabel"]
"""Which axis holds the classes, and whether they exclude each other."""

_FLOATS = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
_UNCOMPARABLE = (torch.uint16, torch.uint32, torch.uint64)
"""Integers that torch stores but does not compare with other types."""
_FEWEST_AXES = {"binary": 2, "multiclass": 3, "multilabel": 3}
_SHORTEST_SIGNAL = 8
"""Pixels from which on (N, 2, L) may be two channels of signals; shorter ones are images of two rows."""
_SUMMED_AT_ONCE = 1 << 20
"""Pixels that are converted to float64 at a time on the CPU."""


def __getattr__(name: str) -> Any:
    """Import a metric when it is first used, because importing torchmetrics takes seconds."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}.{suggestion(name, __all__)}")
    from segtrust.integrations import torch_metric

    return getattr(torch_metric, name)


class Settings(TypedDict, total=False):
    """Keyword arguments of `SoftDiceConfidence`, for functions that pass them on."""

    from_logits: Required[bool]
    task: Required[Task]
    threshold: float
    empty: EmptyPolicy | str
    ignore_index: int | None


class MaskedMaps(NamedTuple):
    """Probabilities of a batch and their masks, each of shape (images, classes, pixels).

    Attributes
    ----------
    p
        Probabilities.
    mask
        Masks, as bool or as 0 and 1 in the type of ``p``.
    where
        The pixels that count, as bool, with one class if they are the same for all; ``None`` for all pixels.
    """

    p: Tensor
    mask: Tensor
    where: Tensor | None = None


class SoftDiceConfidence(nn.Module):
    """Soft Dice confidence of each image of a batch, as a module to place behind a segmentation network.

    Parameters
    ----------
    from_logits
        Whether the input consists of logits, which are passed through a sigmoid (for ``"multiclass"`` a
        softmax) first.
    task
        ``"binary"``: input (N, ...); all axes after the first are pixels, so (N, 1, H, W), (N, H, W) and
        (N, D, H, W) all work. ``"multiclass"``: (N, C, ...) with a softmax over C; the mask is the most
        probable class. ``"multilabel"``: (N, C, ...) with one sigmoid per class; the masks are
        ``p >= threshold``.
    threshold
        Decision threshold in [0, 1]. For ``"multiclass"`` it only decides whether a class is absent.
    empty
        Confidence of an empty mask, see `segtrust.EmptyPolicy`; absent classes have none.
    ignore_index
        Label of pixels that do not count, such as 255; ``None`` if all pixels count. They are the pixels
        whose label in ``mask`` (in the metrics: in ``target``) equals it, whatever the network predicts.

    Notes
    -----
    A class that is neither predicted nor probable in any pixel of an image is absent and gets NaN, where
    `segtrust.score_classes` returns ``None``; ``confidence.nanmean(1)`` averages over the other classes. An
    image without any pixel that counts gets NaN as well. Logits in half precision are converted to float32
    before the sigmoid, and sums are computed in float64. Values are not checked while a model is traced,
    exported or compiled, or mapped by ``torch.func.vmap``.

    A binary batch of shape (N, 2, H, W), or with more axes, is rejected because its second axis is almost
    always two channels; the same holds for (N, C, H, W) and (N, 2, L) probabilities whose channels add up
    to 1. Pass a volume of two slices as (N, 1, 2, H, W).

    Examples
    --------
    >>> confidence = SoftDiceConfidence(from_logits=False, task="binary")
    >>> confidence(torch.tensor([[[0.9, 0.8], [0.1, 0.0]], [[0.6, 0.4], [0.5, 0.5]]]))
    tensor([0.8947, 0.6400], dtype=torch.float64)
    >>> per_class = SoftDiceConfidence(from_logits=True, task="multiclass")
    >>> torch.nn.Sequential(torch.nn.Conv2d(3, 5, 1), per_class)(torch.zeros(2, 3, 8, 8)).shape
    torch.Size([2, 5])
    """

    def __init__(
        self,
        *,
        from_logits: bool,
        task: Task,
        threshold: float = 0.5,
        empty: EmptyPolicy | str = EmptyPolicy.PAPER,
        ignore_index: int | None = None,
    ) -> None:
        super().__init__()
        check_threshold(threshold, "threshold")
        if task not in get_args(Task):
            raise ParameterError(f"task: expected one of {', '.join(get_args(Task))}, got {task!r}.")
        if ignore_index is not None and (not isinstance(ignore_index, int) or isinstance(ignore_index, bool)):
            raise ParameterError(
                f"ignore_index: expected a whole number such as 255, or None, got {describe(ignore_index)}."
            )
        self.from_logits = from_logits
        self.task = task
        self.threshold = threshold
        self.empty = EmptyPolicy(empty)
        self.ignore_index = ignore_index

    def extra_repr(self) -> str:
        """Return the settings shown when a model is printed."""
        shown = f"from_logits={self.from_logits}, task={self.task!r}, threshold={self.threshold}"
        return shown if self.ignore_index is None else f"{shown}, ignore_index={self.ignore_index}"

    def forward(self, values: Tensor, mask: Tensor | None = None, where: Tensor | None = None) -> Tensor:
        """Return the confidence of each image, (N,), or of each image and class, (N, C), in float64.

        Parameters
        ----------
        values
            Logits or probabilities of a batch.
        mask
            The delivered masks, if they are not those that ``task`` describes: 0 and 1 in the shape of
            ``values``, or for ``"multiclass"`` labels, (N, ...) or (N, 1, ...), or one-hot masks (N, C, ...).
        where
            The pixels that count, true or 1, in the shape of ``values`` or without their class axis;
            ``None`` for all pixels.
        """
        return self.per_case(self.confidences(self.maps(values, mask, where)))

    def maps(
        self,
        values: Tensor,
        mask: Tensor | None = None,
        where: Tensor | None = None,
        counted: Tensor | None = None,
    ) -> MaskedMaps:
        """Return the probabilities, the masks and the pixels that count.

        Parameters
        ----------
        values
            Logits or probabilities of a batch.
        mask
            The delivered masks, see `forward`; ``None`` for those that ``task`` describes.
        where
            The pixels that count, in the shape of ``values`` or without their class axis.
        counted
            The pixels that count as `masks` returns them.
        """
        self.check_layout(values)
        if where is not None:
            counted = both(counted, self._binary(where, values.shape, "where"))
        chosen = None
        if mask is not None:
            chosen, labelled = self.masks(mask, values.shape, "mask")
            counted = both(counted, labelled)
        p = self.probabilities(values, counted)
        return MaskedMaps(self._flat(p), self._predicted(p) if chosen is None else chosen, counted)

    def check_layout(self, values: Tensor) -> None:
        """Check that the values are a batch of the task's layout."""
        check_tensor(values, "values")
        if values.ndim < _FEWEST_AXES[self.task] or values.numel() == 0:
            layout = "a batch (N, ...)" if self.task == "binary" else "a batch with classes (N, C, ...)"
            raise EmptyArrayError(
                f"values: expected {layout}, got shape {tuple(values.shape)}. "
                "A single image needs a batch axis: values[None]."
            )
        signals = values.ndim == 3 and values.shape[1] == 2 and values.shape[2] >= _SHORTEST_SIGNAL
        if self.task == "binary" and values.shape[1] > 1 and (values.ndim > 3 or signals):
            self._check_one_channel(values)

    def probabilities(self, values: Tensor, counted: Tensor | None = None) -> Tensor:
        """Return the probabilities of logits, or check that the values are probabilities.

        Parameters
        ----------
        values
            Logits or probabilities of a batch, see `check_layout`.
        counted
            The pixels that count, (images, classes, pixels); the others may hold anything, such as NaN.
        """
        if counted is not None and values.is_floating_point():
            values = self._filled(values, counted)
        if self.from_logits:
            return self._from_logits(values)
        if _is_recorded():
            return values
        check_map_type(values.dtype, "values")
        levels = FULL_SCALE.get(dtype_name(values.dtype))
        p = values if levels is None else values.to(_wide(values)) / levels
        check_levels([values], values.dtype, source="values")
        if not _is_in_unit_interval(p):
            open_map(values, source="values").count()  # raises the error that names the value and its place
        if self.task == "multiclass":
            remedy = "Move the class axis there, or use task='multilabel' if these are sigmoids."
            check_normalised(values, axis=1, source="values", remedy=remedy)
        return p

    def _filled(self, values: Tensor, counted: Tensor) -> Tensor:
        """Return the values with a number that passes all checks in the pixels that do not count."""
        if self.task != "multiclass":
            return self._flat(values).where(counted, 0.0).reshape(values.shape)
        share = 0.0 if self.from_logits else 1.0 / values.shape[1]
        of_any_class = counted.any(1, keepdim=True)
        return self._flat(values).where(of_any_class, share).reshape(values.shape)

    def _from_logits(self, values: Tensor) -> Tensor:
        kind = values.dtype
        is_narrow = kind.is_floating_point and kind not in _FLOATS  # eight bits or fewer
        if is_narrow or kind.is_complex or values.is_quantized:
            raise ProbabilityTypeError(
                f"values: expected logits as float16, bfloat16, float32 or float64, got {kind}. "
                "Convert them to float32 first."
            )
        wide = values.float() if kind in (torch.float16, torch.bfloat16) else values
        p = wide.softmax(1) if self.task == "multiclass" else wide.sigmoid()
        if not (_is_recorded() or _is_in_unit_interval(p)):
            open_map(p, source="probabilities of the logits").count()
        return p

    def _check_one_channel(self, values: Tensor) -> None:
        """Raise if the second axis of a binary batch is one of channels and not the slices of a volume."""
        channels = values.shape[1]
        looks_normalised = not (self.from_logits or _is_recorded()) and is_normalised(values.movedim(1, 0))
        if not looks_normalised and (channels > 2 or values.ndim == 3):
            return
        foreground = "values[:, 1] - values[:, 0]" if self.from_logits else "values[:, 1]"
        instead = f"pass the foreground channel {foreground}, or " if channels == 2 else ""
        raise ParameterError(
            f"values: expected one channel for task='binary', got {channels} in shape {tuple(values.shape)}. "
            f"For a softmax {instead}use task='multiclass'; for sigmoids use task='multilabel'. "
            "A volume needs a channel axis, (N, 1, D, H, W): values[:, None]."
        )

    def masks(self, mask: Tensor, shape: torch.Size, name: str) -> tuple[Tensor, Tensor | None]:
        """Return masks or labels as bool (images, classes, pixels), and the pixels that count.

        Parameters
        ----------
        mask
            Masks of 0 and 1, labels or one-hot masks, see `forward`; with the ignore index, if there is one.
        shape
            Shape of the values that they belong to.
        name
            Name of the mask in errors.

        Returns
        -------
        tuple
            Masks, and where the label is not the ignore index (``None``: everywhere).
        """
        check_tensor(mask, name)
        if mask.dtype in _UNCOMPARABLE:
            mask = mask.long()
        if self.task != "multiclass":
            kept = None if self.ignore_index is None else mask != self.ignore_index
            binary = self._binary(mask if kept is None else mask * kept, shape, name)
            return binary, None if kept is None else self._flat(kept)
        labels = self._labels(mask, shape, name)
        kept = None if self.ignore_index is None else labels != self.ignore_index
        if not _is_recorded():
            check_labels(labels if kept is None else labels * kept, shape[1], name)
        if kept is not None:
            kept = kept.reshape(shape[0], 1, -1)
        return _masks_of_labels(labels, shape[1]), kept

    def _binary(self, mask: Tensor, shape: torch.Size, name: str) -> Tensor:
        """Return a mask of 0 and 1 for values of this shape as bool (images, classes, pixels)."""
        check_tensor(mask, name)
        without_channel = shape[:1] + shape[2:]
        shapes: list[tuple[int, ...]] = [shape]
        if self.task == "binary":
            shapes.append(without_channel if shape[1] == 1 else (shape[0], 1, *shape[1:]))
        elif name == "where":  # the same pixels for all classes
            shapes += [without_channel, (shape[0], 1, *shape[2:])]
        if mask.shape not in shapes:
            expected = " or ".join(str(tuple(each)) for each in shapes)
            raise_shape_mismatch(tuple(mask.shape), f"shape {expected}", name)
        binary = as_binary_on_device(mask, name)
        if self.task != "binary" and mask.shape == without_channel:
            binary = binary[:, None]
        return self._flat(binary)

    def _labels(self, mask: Tensor, shape: torch.Size, name: str) -> Tensor:
        """Return the label of each pixel, (N, ...), from labels or one-hot masks."""
        without_classes = shape[:1] + shape[2:]
        if mask.shape == without_classes:
            return mask
        if mask.shape == (shape[0], 1, *shape[2:]):
            return mask[:, 0]
        if mask.shape != shape:
            raise_shape_mismatch(
                tuple(mask.shape),
                f"labels of shape {tuple(without_classes)}, with or without a channel axis, or one-hot masks "
                f"of shape {tuple(shape)}",
                name,
            )
        if self.ignore_index not in (None, 0, 1):
            mask = mask * (mask != self.ignore_index)
        one_hot: Tensor = as_binary_on_device(mask, name)
        labels, classes = one_hot.byte().argmax(1), one_hot.sum(1)
        fewest = 1 if self.ignore_index is None else 0
        if not _is_recorded() and not bool(((classes <= 1) & (classes >= fewest)).all()):
            raise NotBinaryError(
                f"{name}: expected one-hot masks, one class per pixel, got {int(classes.min())} to "
                f"{int(classes.max())} classes per pixel. Pass labels {tuple(without_classes)}, or use "
                "task='multilabel' if classes overlap."
            )
        return labels if self.ignore_index is None else labels.where(classes > 0, self.ignore_index)

    def _predicted(self, p: Tensor) -> Tensor:
        """Return the masks that follow from the probabilities: the most probable class, or p >= threshold."""
        values = p.detach()
        if self.task == "multiclass":
            return _masks_of_labels(values.argmax(1), p.shape[1])
        if _is_recorded():
            return self._flat(values >= self.threshold)
        # Writing the comparison in the type of p costs a quarter of converting bool.
        return self._flat(torch.ge(values, self.threshold, out=torch.empty_like(values)))

    def _flat(self, values: Tensor) -> Tensor:
        return values.reshape(values.shape[0], 1, -1) if self.task == "binary" else values.flatten(2)

    def confidences(self, maps: MaskedMaps) -> Tensor:
        """Return the confidence of each map, (images, classes)."""
        p, inside = maps.p, maps.mask.to(maps.p.dtype)
        if maps.where is not None:
            p, inside = p.where(maps.where, 0.0), inside.where(maps.where, 0.0)
        k = _sum(inside)
        if _is_recorded():
            s, total = _sum(p * inside), _sum(p)
        else:
            s, total = _MaskedSums.apply(p, inside)  # type: ignore[no-untyped-call]
        confidence = 2.0 * s / torch.where(k > 0, k + total, 1.0)
        if self.empty is EmptyPolicy.AGREE:
            confidence = torch.where(k > 0, confidence, _probability_of_empty(p, k == 0))
        if self.task != "binary":
            absent = (k == 0) & (p.detach().amax(2) < self.threshold)
            confidence = confidence.masked_fill(absent, math.nan)
        if maps.where is None:
            return confidence
        return confidence.masked_fill(~maps.where.any(2), math.nan)

    def per_case(self, values: Tensor) -> Tensor:
        """Return values without the class axis if the task has no classes."""
        return values[:, 0] if self.task == "binary" else values


class _MaskedSums(torch.autograd.Function):
    """Sums of p inside the mask and of all p in float64, (images, classes, pixels) to (images, classes).

    Their derivative is the mask, so the backward pass needs neither float64 nor one tensor per operation.
    """

    generate_vmap_rule = True

    @staticmethod
    def forward(p: Tensor, inside: Tensor) -> tuple[Tensor, Tensor]:
        return _sum(p * inside), _sum(p)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, Tensor], output: Any) -> None:
        ctx.save_for_backward(inputs[1])
        ctx.save_for_forward(inputs[1])

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        (inside,) = ctx.saved_tensors
        of_s, of_total = (gradient.to(inside.dtype).unsqueeze(2) for gradient in gradients)
        return inside * of_s + of_total, None

    @staticmethod
    def jvp(ctx: Any, *tangents: Any) -> tuple[Tensor, Tensor]:
        p = tangents[0]
        return _sum(p * ctx.saved_tensors[0]), _sum(p)


def _sum(values: Tensor) -> Tensor:
    """Sum over the pixels in float64; on the CPU in parts, of which only one at a time is converted."""
    wide = _wide(values)
    parts = math.ceil(values.numel() / _SUMMED_AT_ONCE) if values.device.type == "cpu" else 1
    if parts == 1 or _is_recorded():
        return values.sum(2, dtype=wide)
    total = values.new_zeros(values.shape[:2], dtype=wide)
    for part in values.chunk(parts, 2):
        total = total + part.sum(2, dtype=wide)
    return total


def check_tensor(values: Any, name: str) -> None:
    """Check that a value is a torch tensor whose elements can all be read."""
    if not isinstance(values, Tensor):
        raise ParameterError(
            f"{name}: expected a torch tensor, got {describe(values)}. "
            "Convert an array or a list first: torch.as_tensor(values)."
        )
    if not _is_recorded():
        check_array(values, name)


def _is_recorded() -> bool:
    """Return whether a model is traced, exported, compiled or mapped by vmap: no value can be read then."""
    if torch.compiler.is_compiling() or torch.jit.is_tracing():  # type: ignore[attr-defined, no-untyped-call]
        return True
    functorch: Any = getattr(torch._C, "_functorch")  # noqa: B009 - a private module without types
    transformations = functorch.get_interpreter_stack() or ()
    return any(each.key() == functorch.TransformType.Vmap for each in transformations)


def _is_in_unit_interval(p: Tensor) -> bool:
    low, high = torch.aminmax(p.detach())  # NaN if any value is
    return bool(low >= 0.0) and bool(high <= 1.0)


def _wide(values: Tensor) -> torch.dtype:
    return torch.float32 if values.device.type == "mps" else torch.float64  # Apple's has no doubles


def both(one: Tensor | None, other: Tensor | None) -> Tensor | None:
    """Return the pixels that count in both."""
    if one is None or other is None:
        return other if one is None else one
    return one & other


def _masks_of_labels(labels: Tensor, classes: int) -> Tensor:
    """Return labels (N, ...) as bool masks (N, classes, pixels)."""
    return labels.reshape(labels.shape[0], 1, -1) == torch.arange(classes, device=labels.device)[:, None]


def _probability_of_empty(p: Tensor, empty: Tensor) -> Tensor:
    """Return Π(1 - p) where the mask is empty and 1 elsewhere, where p = 1 would make derivatives NaN."""
    chosen = torch.where(empty.unsqueeze(2), p.to(_wide(p)), 0.0)
    return torch.log1p(-chosen).sum(2).exp()
