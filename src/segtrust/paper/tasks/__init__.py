"""Segmentation tasks, from the files of a data set to maps of probabilities; torch is loaded at first use.

What a declaration of a task needs is here.
"""

from __future__ import annotations

from segtrust.paper.tasks.augmenting import flipped_and_turned, fundus_changed, patch_changed, volume_changed
from segtrust.paper.tasks.contract import TaskContract
from segtrust.paper.tasks.cutting import box_about, cut_to_box
from segtrust.paper.tasks.fundus_layout import cut_to_disc, find_fundus
from segtrust.paper.tasks.intensities import (
    half_grey_refuge,
    imagenet,
    imagenet_twice_scaled,
    unchanged,
    zscored,
    zscored_image,
)
from segtrust.paper.tasks.labels import BINARY, Labels, disc_cup_target, foreground_target
from segtrust.paper.tasks.layouts import PICTURES, VOLUMES, files_in, paired, stem_of
from segtrust.paper.tasks.reading import read_picture
from segtrust.paper.tasks.recipes import (
    POLYP_PVT_CODE,
    SEGTRAN_CODE,
    SEGTRAN_PAPER,
    SHIFTS_CODE,
    SHIFTS_PAPER,
    UNEXT_CODE,
    UNEXT_PAPER,
)
from segtrust.paper.tasks.registry import NAMES, get_task, task_names
from segtrust.paper.tasks.task import ID, OOD, Recipe, Sample, Source, Task

__all__ = [
    "BINARY",
    "ID",
    "NAMES",
    "OOD",
    "PICTURES",
    "POLYP_PVT_CODE",
    "SEGTRAN_CODE",
    "SEGTRAN_PAPER",
    "SHIFTS_CODE",
    "SHIFTS_PAPER",
    "UNEXT_CODE",
    "UNEXT_PAPER",
    "VOLUMES",
    "Labels",
    "Recipe",
    "Sample",
    "Source",
    "Task",
    "TaskContract",
    "box_about",
    "cut_to_box",
    "cut_to_disc",
    "disc_cup_target",
    "files_in",
    "find_fundus",
    "flipped_and_turned",
    "foreground_target",
    "fundus_changed",
    "get_task",
    "half_grey_refuge",
    "imagenet",
    "imagenet_twice_scaled",
    "paired",
    "patch_changed",
    "read_picture",
    "stem_of",
    "task_names",
    "unchanged",
    "volume_changed",
    "zscored",
    "zscored_image",
]
