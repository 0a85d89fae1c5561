"""Segmentation tasks, from the files of a data set to maps of probabilities; torch is loaded at first use.

What a declaration of a task needs is here.
"""

from __future__ import annotations

from segtrust.tasks.augmenting import flipped_and_turned, patch_changed, volume_changed
from segtrust.tasks.cutting import box_about, cut_to_box
from segtrust.tasks.intensities import imagenet, imagenet_twice_scaled, unchanged, zscored, zscored_image
from segtrust.tasks.labels import BINARY, Labels, disc_cup_target, foreground_target
from segtrust.tasks.layouts import PICTURES, VOLUMES, files_in, paired, stem_of
from segtrust.tasks.reading import read_picture
from segtrust.tasks.recipes import SHIFTS_CODE, SHIFTS_PAPER, UNEXT_CODE, UNEXT_PAPER
from segtrust.tasks.registry import NAMES, get_task
from segtrust.tasks.task import ID, Recipe, Sample, Source, Task

__all__ = [
    "BINARY",
    "ID",
    "NAMES",
    "PICTURES",
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
    "box_about",
    "cut_to_box",
    "disc_cup_target",
    "files_in",
    "flipped_and_turned",
    "foreground_target",
    "get_task",
    "imagenet",
    "imagenet_twice_scaled",
    "paired",
    "patch_changed",
    "read_picture",
    "stem_of",
    "unchanged",
    "volume_changed",
    "zscored",
    "zscored_image",
]
