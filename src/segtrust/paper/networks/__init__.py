"""The networks of the paper, with the numbers of the originals; torch is loaded at first use."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from segtrust._optional import require
from segtrust.paper.networks.registry import NAMES, create, create_ensemble, training_loss

if TYPE_CHECKING:
    from segtrust.paper.networks.checkpoints import load_backbone, load_weights
    from segtrust.paper.networks.network import Ensemble, Network, Segmenter, stretched

__all__ = [
    "NAMES",
    "Ensemble",
    "Network",
    "Segmenter",
    "create",
    "create_ensemble",
    "load_backbone",
    "load_weights",
    "stretched",
    "training_loss",
]

_HOMES = {
    "Ensemble": "network",
    "Network": "network",
    "Segmenter": "network",
    "load_backbone": "checkpoints",
    "load_weights": "checkpoints",
    "stretched": "network",
}


def __getattr__(name: str) -> Any:
    """Load what is made of torch when it is first used."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    require("torch", extra="torch")
    return getattr(import_module(f"segtrust.paper.networks.{_HOMES[name]}"), name)
