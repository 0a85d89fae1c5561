"""Radiomic features of an image inside a mask, equal to those of PyRadiomics.

`extract_features` computes them with compiled loops where the image has one grey level, which is the setting
of the paper, and calls PyRadiomics otherwise.
"""

from __future__ import annotations

from segtrust.features.extraction import BACKENDS, Backend, extract_features, feature_names

__all__ = ["BACKENDS", "Backend", "extract_features", "feature_names"]
