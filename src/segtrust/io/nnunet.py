"""Moved to `segtrust.io.structures` and `segtrust.io.formats.nnunet`."""

from segtrust.io.formats.nnunet import AXES, KEYS, open_nnunet, recognises_nnunet, volume_in_memory
from segtrust.io.structures import (
    check_channels,
    find_dataset_json as dataset_json_of,
    find_scheme as scheme_beside,
    read_scheme,
)

__all__ = [
    "AXES",
    "KEYS",
    "check_channels",
    "dataset_json_of",
    "open_nnunet",
    "read_scheme",
    "recognises_nnunet",
    "scheme_beside",
    "volume_in_memory",
]
