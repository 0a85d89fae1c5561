"""What a task is: data, network and training, as values."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from segtrust._arguments import check_whole
from segtrust.errors import ParameterError
from segtrust.paper.tasks.augmenting import Augmentation, flipped_and_turned
from segtrust.paper.tasks.intensities import imagenet
from segtrust.paper.tasks.labels import BINARY, Labels, foreground_target

__all__ = ["ID", "OOD", "SPLITS", "Recipe", "Sample", "Source", "Task", "file_name"]

ID = "ID"
"""The set in distribution: what is trained on, and the first that is tested."""
OOD = "OOD"
"""The usual name of the set out of distribution."""
SPLITS = ("train", "val", "test")
OPTIMISERS = ("adam", "adamw", "bert-adam")
SCHEDULES = ("constant", "cosine", "polynomial", "warmup-linear")
LOSSES = ("", "cross-entropy-dice")
RESIZINGS = ("bilinear", "antialiased", "none")


@dataclass(frozen=True)
class Sample:
    """The files of one case, as a data set has them.

    Attributes
    ----------
    case
        Its name, different for each case of a set.
    images
        Of the image, one for each channel where there are several; none where only a mask was found.
    masks
        All that are united into the truth; none where there is none.
    group
        Patient or site, of which no two splits share one; nothing where each case stands for itself.
    set
        `ID`, or the name of a set out of distribution.
    split
        Where the data set itself says it; nothing where it is drawn.
    box
        Where the picture is cut: top, left, bottom, right in pixels; ``None`` where that is not known.
    labels
        What the values in its masks mean, where that is not the same for all cases.
    lacks
        What else stands in the way, and what to do; nothing where all is there.
    """

    case: str
    images: tuple[Path, ...] = ()
    masks: tuple[Path, ...] = ()
    group: str = ""
    set: str = ID
    split: str = ""
    box: tuple[int, int, int, int] | None = None
    labels: Labels | None = None
    lacks: str = ""

    @property
    def id(self) -> str:
        """Its name in tables, different for each case of a task.

        Examples
        --------
        >>> Sample("a", set="bright").id, Sample("a").id
        ('bright/a', 'a')
        """
        return self.case if self.set == ID else f"{self.set}/{self.case}"

    @property
    def file_name(self) -> str:
        """Its name in those of files, without an ending."""
        return file_name(self.id)


def file_name(case: str) -> str:
    """Give the name of a case as one that a file can have.

    Examples
    --------
    >>> file_name("bright/a")
    'bright__a'
    """
    return case.replace("/", "__")


@dataclass(frozen=True)
class Source:
    """Where data come from.

    Attributes
    ----------
    url, licence, citation
        Of the data set.
    layout
        The folder that is expected, in words.
    """

    url: str
    licence: str
    citation: str
    layout: str


@dataclass(frozen=True)
class Recipe:
    """How a network is trained.

    Attributes
    ----------
    optimiser, learning_rate, weight_decay
        One of `OPTIMISERS`; the decay is in the gradient for ``"adam"`` and apart from it for the others.
    backbone_decay
        Weight decay of the backbone, where it has one of its own.
    schedule, final_rate
        One of `SCHEDULES`: ``"cosine"`` goes down to ``final_rate`` epoch by epoch, ``"polynomial"`` (to the
        power 0.9) and ``"warmup-linear"`` (over 500 steps) to 0 step by step.
    epochs, iterations
        How long; iterations, where they are given, are turned into whole epochs.
    batch
        Cases, or patches of them, that are seen together.
    patches
        How many are cut out of each case in an epoch.
    augment
        Changes an image and its labels at random, see `segtrust.paper.tasks.augmenting`.
    scales
        Sizes at which each batch is seen, one step each, as shares of the task's size.
    clip_value, clip_norm, clip_tensor_norm
        Limits of gradients: of each number, of all together, of each tensor; 0: none.
    loss
        ``""`` for that of the network, or ``"cross-entropy-dice"``.
    """

    optimiser: str = "adam"
    learning_rate: float = 1e-4
    weight_decay: float = 0.0
    backbone_decay: float | None = None
    schedule: str = "cosine"
    final_rate: float = 1e-5
    epochs: int = 100
    iterations: int = 0
    batch: int = 8
    patches: int = 1
    augment: Augmentation = flipped_and_turned
    scales: tuple[float, ...] = (1.0,)
    clip_value: float = 0.0
    clip_norm: float = 0.0
    clip_tensor_norm: float = 0.0
    loss: str = ""

    def __post_init__(self) -> None:
        """Refuse names that are not known, and numbers that mean nothing."""
        for name, known in (("optimiser", OPTIMISERS), ("schedule", SCHEDULES)):
            if getattr(self, name) not in known:
                raise ParameterError(
                    f"{name}: expected one of {', '.join(known)}, got {getattr(self, name)!r}."
                )
        if self.loss not in LOSSES:
            raise ParameterError(f"loss: expected one of {', '.join(map(repr, LOSSES))}, got {self.loss!r}.")
        for name in ("epochs", "batch", "patches"):
            check_whole(getattr(self, name), name, least=1)
        check_whole(self.iterations, "iterations")
        if not self.learning_rate > 0.0:
            raise ParameterError(f"learning_rate: expected more than 0, got {self.learning_rate!r}.")
        if not self.weight_decay >= 0.0:
            raise ParameterError(f"weight_decay: expected 0 or more, got {self.weight_decay!r}.")
        if not self.scales or not min(self.scales) > 0.0:
            raise ParameterError(f"scales: expected shares of the size, above 0, got {self.scales!r}.")

    def described(self) -> dict[str, Any]:
        """Give plain values, by which a training that goes on is told from another."""
        values = {name: getattr(self, name) for name in self.__dataclass_fields__}
        return values | {"augment": self.augment.__name__, "scales": list(self.scales)}

    def shown(self) -> dict[str, Any]:
        """Give what people want to know: nothing of what it leaves out, or of what has no say in it."""
        void = {"epochs"} if self.iterations else set()
        void |= set() if self.schedule == "cosine" else {"final_rate"}
        return {
            name: value
            for name, value in self.described().items()
            if name not in void and value not in (None, 0, 0.0, "")
        }


Preprocessing = Callable[[Any, Any, Sample], tuple[Any, Any]]


def as_it_is(image: Any, labels: Any, sample: Sample) -> tuple[Any, Any]:
    """Leave image and labels as they were read."""
    return image, labels


@dataclass(frozen=True)
class Task:
    """A segmentation task: from files as their owners distribute them to maps of probabilities.

    Attributes
    ----------
    name, title
        On the command line, and for people.
    network, options
        Name and options for `segtrust.paper.networks.create`; ``"nnunet"`` for nnU-Net's own commands.
    size
        Of the images that are trained on and predicted: (H, W); or of the patches of volumes, (D, H, W),
        which are predicted as large as they are.
    find
        Gives the cases of a folder; a case that lacks its mask or its image is given without.
    source
        Where the data come from.
    recipes
        By name; the first is used unless another is asked for.
    split
        Cases of train, val and test; shares, where the number of cases is another.
    sets
        Number of cases of each set, as published; 0 where it is open. The first is in distribution.
    threshold
        At which maps are cut.
    labels
        What the values in the files of masks mean.
    foreground
        The lowest label that is foreground; labels are nested, as a cup in a disc.
    target
        What the loss compares with, made of labels (N, *spatial).
    preprocess
        Changes image and labels once, before they are resized.
    normalise
        Gives a batch of images as the network wants it, as float32.
    resize
        ``"bilinear"``, ``"antialiased"`` (pixels that vanish count as well), or ``"none"``.
    input_size
        At which the network sees images, where that is not ``size``.
    """

    name: str
    title: str
    network: str
    size: tuple[int, ...]
    find: Callable[[Path], Iterable[Sample]]
    source: Source
    recipes: Mapping[str, Recipe]
    split: Mapping[str, int] = field(default_factory=lambda: {"train": 70, "val": 15, "test": 15})
    sets: Mapping[str, int] = field(default_factory=lambda: {ID: 0})
    options: Mapping[str, Any] = field(default_factory=dict)
    threshold: float = 0.5
    labels: Labels = BINARY
    foreground: int = 1
    target: Callable[[Any], Any] = foreground_target
    preprocess: Preprocessing = as_it_is
    normalise: Callable[[Any], Any] = imagenet
    resize: str = "bilinear"
    input_size: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        """Refuse what could not be trained."""
        if len(self.size) not in (2, 3) or min(self.size) < 1:
            raise ParameterError(f"size: expected (H, W) or (D, H, W), got {self.size!r}.")
        if self.resize not in RESIZINGS:
            raise ParameterError(f"resize: expected one of {', '.join(RESIZINGS)}, got {self.resize!r}.")
        if not self.recipes:
            raise ParameterError("recipes: expected at least one, got none.")
        unknown = [name for name in self.split if name not in SPLITS]
        if unknown or not self.split.get("train"):
            raise ParameterError(f"split: expected numbers of {', '.join(SPLITS)}, got {dict(self.split)}.")

    @property
    def dimensions(self) -> int:
        """2 for pictures, 3 for volumes."""
        return len(self.size)

    def recipe(self, name: str = "") -> Recipe:
        """Give a recipe by its name; the first without one."""
        name = name or next(iter(self.recipes))
        if name not in self.recipes:
            raise ParameterError(
                f"recipe: expected one of {', '.join(self.recipes)} for {self.name}, got {name!r}."
            )
        return self.recipes[name]

    def truth(self, labels: Any) -> Any:
        """Give the mask of the foreground, as 0 and 1."""
        return (labels >= self.foreground).astype(np.uint8)
