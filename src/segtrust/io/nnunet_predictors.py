"""Moved to `segtrust.io.nnunet_folders`."""

from segtrust.io.nnunet_folders import (
    NOTE,
    PredictionFolder,
    cross_validation_name,
    parse_folds,
    predictor_name,
    write_predictor as keep_predictor,
)

__all__ = [
    "NOTE",
    "PredictionFolder",
    "cross_validation_name",
    "keep_predictor",
    "parse_folds",
    "predictor_name",
]
