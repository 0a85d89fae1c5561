"""Networks by name. torch and MONAI are loaded when the first one is made."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from segtrust._optional import require
from segtrust.errors import ParameterError, UnknownNameError

if TYPE_CHECKING:
    from torch import Tensor

    from segtrust.paper.networks.network import Ensemble, Network

__all__ = ["NAMES", "create", "create_ensemble", "owner_of", "training_loss"]


@dataclass(frozen=True)
class _Entry:
    module: str
    kind: str
    """The class."""
    landmark: str
    """A tensor that no other network has."""
    needs: tuple[str, ...]
    """Packages of the extra."""


_NETWORKS = {
    "unext": _Entry("unext", "UNeXt", "ebn1.weight", ("torch",)),
    "polyp-pvt": _Entry("polyp_pvt", "PolypPVT", "SAM.conv_state.weight", ("torch", "monai")),
    "segtran": _Entry("segtran", "Segtran", "out_fpn_bridgeconv.weight", ("torch", "monai")),
    "shifts-unet": _Entry("shifts_unet", "ShiftsUNet", "model.0.conv.weight", ("torch", "monai")),
}

NAMES = tuple(_NETWORKS)
"""The names that `create` knows."""


def create(
    name: str, *, weights: str | Path | None = None, backbone: str | Path | None = None, **options: Any
) -> Network:
    """Make a network of the paper, with random weights or with those of a file.

    Nothing is downloaded.

    Parameters
    ----------
    name
        One of `NAMES`.
    weights
        A checkpoint of the whole network, see `load_weights`.
    backbone
        A checkpoint of its backbone alone, from which training starts, see `load_backbone`.
    **options
        Those of the network's class.

    Examples
    --------
    >>> import torch
    >>> model = create("unext")
    >>> model.probabilities(torch.zeros(2, 3, 64, 64)).shape
    torch.Size([2, 64, 64])
    >>> create("unxt")
    Traceback (most recent call last):
    ...
    segtrust.errors.UnknownNameError: Unknown network 'unxt'; available: ...
    """
    entry = _entry(name)
    if weights is not None and backbone is not None:
        raise ParameterError(
            "weights, backbone: expected one of them. The weights of a network hold its backbone's."
        )
    kind = _class(entry)
    _check_options(name, kind, options)
    model: Network = kind(**options)
    from segtrust.paper.networks.checkpoints import load_backbone, load_weights

    if weights is not None:
        load_weights(model, weights)
    if backbone is not None:
        load_backbone(model, backbone)
    return model


def create_ensemble(name: str, weights: Sequence[str | Path], **options: Any) -> Ensemble:
    """Make a network from each of several checkpoints; their probabilities are averaged into one map.

    Parameters
    ----------
    name, **options
        As in `create`.
    weights
        Checkpoints, such as those of several seeds.
    """
    members = [create(name, weights=each, **options) for each in weights]
    from segtrust.paper.networks.network import Ensemble

    return Ensemble(members)


def training_loss(name: str) -> Callable[[Any, Tensor], Tensor]:
    """Give the loss that a network of this name is trained with: ``loss(model(images), target)``.

    Examples
    --------
    >>> training_loss("unext").__name__
    'bce_dice_loss'
    """
    _entry(name)
    require("torch", extra="torch")
    from segtrust.paper.networks.losses import LOSSES

    return LOSSES[name]


def owner_of(names: Iterable[str]) -> str | None:
    """Tell which network has tensors of these names, or None."""
    found = set(names)
    return next((name for name, entry in _NETWORKS.items() if entry.landmark in found), None)


def _entry(name: str) -> _Entry:
    try:
        return _NETWORKS[name]
    except (KeyError, TypeError):
        raise UnknownNameError(f"Unknown network {name!r}; available: {', '.join(NAMES)}.") from None


def _class(entry: _Entry) -> Any:
    for package in entry.needs:
        require(package, extra="torch" if package == "torch" else "monai")
    return getattr(import_module(f"segtrust.paper.networks.{entry.module}"), entry.kind)


def _check_options(name: str, kind: Any, options: dict[str, Any]) -> None:
    known = [*inspect.signature(kind).parameters, "weights", "backbone"]
    unknown = [option for option in options if option not in known]
    if unknown:
        raise ParameterError(
            f"{unknown[0]}: unknown option of the network {name!r}; available: {', '.join(known)}."
        )
