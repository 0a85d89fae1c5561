"""The confidence inside MONAI: transforms for the post-processing, and a handler that writes the table.

`SegmentationConfidenced` stands in the post-processing of an evaluator where the probabilities, or the
logits, still are what the network gave; `ConfidenceSaver` gathers what it found. Both are thin: rows are
those of `segtrust score`, and the commands that read its tables read these.
"""

from __future__ import annotations

import warnings
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Unpack

from segtrust._optional import require
from segtrust.errors import ParameterError
from segtrust.integrations.channels import ChannelScorer, ChannelSettings
from segtrust.io import ScoreRow

require("monai", extra="monai")

import torch  # noqa: E402 - only after a missing MONAI has been explained
from monai.config.type_definitions import KeysCollection  # noqa: E402
from monai.transforms.transform import MapTransform, Transform  # noqa: E402
from monai.utils.enums import TransformBackends  # noqa: E402
from monai.utils.misc import ensure_tuple_rep  # noqa: E402
from monai.utils.type_conversion import convert_to_tensor  # noqa: E402

if TYPE_CHECKING:
    from segtrust.integrations.monai_handler import ConfidenceSaver

__all__ = [
    "CaseScores",
    "ConfidenceSaver",
    "SegmentationConfidence",
    "SegmentationConfidenceD",
    "SegmentationConfidenceDict",
    "SegmentationConfidenced",
]


def __getattr__(name: str) -> Any:
    """Load the handler, and with it Ignite, when it is first used."""
    if name != "ConfidenceSaver":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from segtrust.integrations.monai_handler import ConfidenceSaver

    return ConfidenceSaver


@dataclass(frozen=True)
class CaseScores:
    """What was found of one case.

    Attributes
    ----------
    rows
        Of a score table, one a structure; the name of the case is still to come.
    about
        What they were made with.
    """

    rows: tuple[ScoreRow, ...]
    about: Mapping[str, Any]

    def confidences(self, estimator: str) -> torch.Tensor:
        """Confidence of each structure, float64."""
        return torch.tensor([row[estimator] for row in self.rows], dtype=torch.float64)


class SegmentationConfidence(Transform):
    """Confidences of one case, whose channels come first, as everywhere in MONAI.

    Parameters
    ----------
    settings
        ``from_logits``, whether the values still have to go through a sigmoid or softmax, and ``task`` must
        be said: ``"binary"`` for one channel, ``"multilabel"`` for sigmoids that may overlap,
        ``"multiclass"`` for a softmax. ``names`` are those of all channels, in order; that of the
        ``"background"`` is not scored. ``estimators``, ``threshold`` and ``empty`` are as in
        `segtrust.integrations.channels.ChannelScorer`.

    Examples
    --------
    >>> confidence = SegmentationConfidence(from_logits=False, task="binary", estimators=["sdc", "idc"])
    >>> confidence(torch.tensor([[[0.9, 0.8], [0.1, 0.0]]]))
    {'sdc': tensor([0.8947], dtype=torch.float64), 'idc': tensor([0.8746], dtype=torch.float64)}
    """

    backend = [TransformBackends.TORCH, TransformBackends.NUMPY]  # noqa: RUF012 - MONAI's own form

    def __init__(self, **settings: Unpack[ChannelSettings]) -> None:
        self.scorer = ChannelScorer(**settings)

    def __call__(self, img: Any, mask: Any = None) -> dict[str, torch.Tensor]:
        """Give one confidence a structure, by the name of the estimator.

        Parameters
        ----------
        img
            Probabilities or logits, channels first; NumPy, torch or MONAI's tensor with meta data.
        mask
            The masks that are delivered where they are others than the likeliest class or
            ``p >= threshold``: one a channel, or for a softmax labels in one channel.
        """
        found = self.scores(img, mask)
        return {name: found.confidences(name) for name in self.scorer.estimators}

    def scores(self, img: Any, mask: Any = None, label: Any = None) -> CaseScores:
        """Give all that a score table holds of a case; with a label also its Dice."""
        rows = self.scorer.rows(*map(_plain, (img, mask, label)))
        return CaseScores(rows, self.scorer.about)


class SegmentationConfidenced(MapTransform):
    """Adds the confidences of a case to its dictionary: ``pred_sdc`` for the key ``pred`` and the SDC.

    Each is a float64 tensor of one number a structure. What a table holds of the case comes along as
    ``pred_confidence``, for `ConfidenceSaver`.

    Parameters
    ----------
    keys
        Of the probabilities or logits; one of them, or several.
    mask_keys
        Of the masks that are delivered, one for each of ``keys``; see `SegmentationConfidence`.
    label_keys
        Ground truth, for the Dice; an item without it is scored without a Dice.
    allow_missing_keys
        Whether an item may lack one of ``keys``.
    settings
        As for `SegmentationConfidence`.

    Examples
    --------
    >>> confidence = SegmentationConfidenced("pred", label_keys="label", from_logits=True, task="binary")
    >>> item = {"pred": torch.tensor([[4.0, 2.0, -3.0]]), "label": torch.tensor([[1, 1, 0]])}
    >>> found = confidence(item)
    >>> sorted(found), found["pred_sdc"], found["pred_confidence"].rows[0]["dice"]
    (['label', 'pred', 'pred_confidence', 'pred_sdc'], tensor([0.9528], dtype=torch.float64), 1.0)
    """

    backend = SegmentationConfidence.backend

    def __init__(
        self,
        keys: KeysCollection,
        *,
        mask_keys: KeysCollection | None = None,
        label_keys: KeysCollection | None = None,
        allow_missing_keys: bool = False,
        **settings: Unpack[ChannelSettings],
    ) -> None:
        super().__init__(keys, allow_missing_keys)
        self.mask_keys = ensure_tuple_rep(mask_keys, len(self.keys))
        self.label_keys = ensure_tuple_rep(label_keys, len(self.keys))
        self.confidence = SegmentationConfidence(**settings)
        self._missed: set[Hashable] = set()

    def __call__(self, data: Mapping[Hashable, Any]) -> dict[Hashable, Any]:
        """Give the dictionary with what was added."""
        found = dict(data)
        for key, mask, label in self.key_iterator(found, self.mask_keys, self.label_keys):
            self._tell_missing(label, found)
            scores = self.confidence.scores(found[key], _mask_of(found, mask), found.get(label))
            found[f"{key}_confidence"] = scores
            for name in self.confidence.scorer.estimators:
                found[f"{key}_{name}"] = scores.confidences(name)
        return found

    def _tell_missing(self, label: Hashable, data: Mapping[Hashable, Any]) -> None:
        """Warn once of a truth that is not there: a case may have none, and a key may be misspelt."""
        if label is None or label in data or label in self._missed:
            return
        self._missed.add(label)
        there = ", ".join(map(str, data))
        warnings.warn(
            f"label_keys: expected {label!r}, got an item with {there}. It is scored without a Dice.",
            stacklevel=3,
        )


SegmentationConfidenceD = SegmentationConfidenceDict = SegmentationConfidenced


def _plain(values: Any) -> Any:
    """Give a torch tensor without meta data."""
    return None if values is None else convert_to_tensor(values, track_meta=False)


def _mask_of(data: Mapping[Hashable, Any], key: Any) -> Any:
    if key is None or key in data:
        return data.get(key)
    raise ParameterError(f"mask_keys: expected {key!r} in each item, got {', '.join(map(str, data))}.")
