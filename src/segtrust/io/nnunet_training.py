"""Moved to `segtrust.io.nnunet_cases`."""

from segtrust.io.nnunet_cases import training_overlap as doubt_of

__all__ = ["doubt_of"]
