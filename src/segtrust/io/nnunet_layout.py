"""Moved to `segtrust.io.nnunet_folders`."""

from segtrust.io.nnunet_folders import (
    ALL,
    DataSetFolders,
    Fold,
    Model,
    ModelChoice,
    Roots,
    choose_model as chosen_model,
    find_folders,
    is_data_set,
    model_at,
)

__all__ = [
    "ALL",
    "DataSetFolders",
    "Fold",
    "Model",
    "ModelChoice",
    "Roots",
    "chosen_model",
    "find_folders",
    "is_data_set",
    "model_at",
]
