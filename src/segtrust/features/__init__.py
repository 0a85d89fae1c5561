"""Features of an image inside a mask: those of PyRadiomics, compiled where there is one grey level."""

from __future__ import annotations

from segtrust.features.extraction import BACKENDS, Backend, extract_features
from segtrust.features.names import feature_names

__all__ = ["BACKENDS", "Backend", "extract_features", "feature_names"]
