"""Moved to `segtrust.engine.scoring`."""

from segtrust.engine.scoring import UNLABELLED, SetReader, fit_to_sets

__all__ = ["UNLABELLED", "SetReader", "fit_to_sets"]
