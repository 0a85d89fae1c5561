"""Moved to `segtrust.engine.scoring`."""

from segtrust.engine.scoring import is_decoded, prepare_for_scoring as as_scored

__all__ = ["as_scored", "is_decoded"]
