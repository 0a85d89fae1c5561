"""Data sets in the raw layout of nnU-Net, small enough for a CPU and asymmetric enough to show swapped axes.

In each image a nest of ellipsoids lies off the centre, brighter from shell to shell; the rim is zero, so that
nnU-Net crops. Cases differ in shape and spacing, so that it resamples; every second one has an axis flipped.
"""

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np

TRAINING_CASES = tuple(f"train_{i}" for i in range(5))
VALIDATION_CASES = TRAINING_CASES[:2]
TEST_CASES = ("test_0", "test_1")
FLIPPED_DIRECTION = (-1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0)
STRAIGHT_DIRECTION = (1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0)
SHELLS = (1.0, 0.7, 0.45)  # radii as shares of the outermost


@dataclass(frozen=True)
class Variant:
    """One data set: its labels, and its geometry in the order (z, y, x)."""

    number: int
    title: str
    channels: tuple[str, ...]
    labels: dict[str, int | list[int]]
    region_order: tuple[int, ...]
    shape: tuple[int, int, int]
    spacing_mm: tuple[float, float, float]

    @property
    def name(self) -> str:
        """As nnU-Net wants its data sets called."""
        return f"Dataset{self.number:03}_{self.title}"

    @property
    def shells(self) -> int:
        """Number of nested structures."""
        return len(self.labels) - 1


# Where x is coarsest nnU-Net turns the axes round inside, and has to turn them back.
VARIANTS = {
    "plain": Variant(
        number=1,
        title="Plain",
        channels=("T2",),
        labels={"background": 0, "organ": 1, "lesion": 2},
        region_order=(),
        shape=(16, 22, 26),
        spacing_mm=(3.0, 1.2, 0.8),
    ),
    "regions": Variant(
        number=2,
        title="Regions",
        channels=("T1", "FLAIR"),
        labels={"background": 0, "whole_tumor": [1, 2, 3], "tumor_core": [2, 3], "enhancing_tumor": 3},
        region_order=(1, 2, 3),
        shape=(26, 22, 16),
        spacing_mm=(0.8, 1.2, 3.0),
    ),
}


@dataclass(frozen=True)
class Geometry:
    """Where the voxels of one case lie; ``shape`` in the order (z, y, x), all else in that of SimpleITK."""

    shape: tuple[int, int, int]
    spacing_mm: tuple[float, float, float]
    origin_mm: tuple[float, float, float]
    direction: tuple[float, ...]


def write_dataset(raw: Path, variant: Variant, *, seed: int = 0) -> Path:
    """Write images, labels and ``dataset.json``; the folder of the data set."""
    folder = raw / variant.name
    rng = np.random.default_rng(seed)
    for part, cases in (("Tr", TRAINING_CASES), ("Ts", TEST_CASES)):
        for name in (f"images{part}", f"labels{part}"):
            (folder / name).mkdir(parents=True)
        for number, case in enumerate(cases):
            write_case(folder, f"{part}/{case}", variant, draw_geometry(rng, variant, number), rng)
    (folder / "dataset.json").write_text(json.dumps(describe(variant), indent=4))
    return folder


def describe(variant: Variant) -> dict[str, object]:
    """The content of ``dataset.json``."""
    regions = {"regions_class_order": list(variant.region_order)} if variant.region_order else {}
    return {
        "channel_names": {str(i): name for i, name in enumerate(variant.channels)},
        "labels": variant.labels,
        **regions,
        "numTraining": len(TRAINING_CASES),
        "file_ending": ".nii.gz",
    }


def draw_geometry(rng: np.random.Generator, variant: Variant, number: int) -> Geometry:
    """Shape and spacing near those of the variant, an origin anywhere, a flipped axis in odd cases."""
    shape = np.array(variant.shape) + rng.integers(-1, 2, size=3)
    spacing_mm = np.array(variant.spacing_mm) * rng.uniform(0.9, 1.1, size=3)
    return Geometry(
        shape=tuple(shape.tolist()),
        spacing_mm=tuple(spacing_mm[::-1].round(3).tolist()),
        origin_mm=tuple(rng.uniform(-80, 80, size=3).round(1).tolist()),
        direction=FLIPPED_DIRECTION if number % 2 else STRAIGHT_DIRECTION,
    )


def write_case(
    folder: Path, case: str, variant: Variant, geometry: Geometry, rng: np.random.Generator
) -> None:
    """Write the channels and the labels of one case, given as ``Tr/name`` or ``Ts/name``."""
    labels = draw_labels(rng, geometry.shape, variant.shells)
    inside = inner_box(geometry.shape)
    for channel in range(len(variant.channels)):
        brightness = 100.0 + 80.0 * (channel + 1) * labels + rng.normal(0, 15, labels.shape)
        save(folder / f"images{case}_{channel:04}.nii.gz", (brightness * inside).astype(np.float32), geometry)
    save(folder / f"labels{case}.nii.gz", labels, geometry)


def draw_labels(rng: np.random.Generator, shape: tuple[int, int, int], shells: int) -> np.ndarray:
    """A nest of ellipsoids off the centre, numbered from 1 at the outermost; uint8."""
    lengths = np.array(shape)
    centre = lengths * rng.uniform(0.4, 0.6, size=3)
    radii = lengths * rng.uniform(0.26, 0.32, size=3)
    offsets = (np.indices(shape).T - centre) / radii
    distance = np.sqrt((offsets**2).sum(axis=-1)).T
    return sum((distance < share).astype(np.uint8) for share in SHELLS[:shells])


def inner_box(shape: tuple[int, int, int]) -> np.ndarray:
    """False in the rim, which is as wide on no two sides of the first axes."""
    box = np.zeros(shape, dtype=bool)
    box[1:-2, 2:-1, 1:-3] = True
    return box


def save(path: Path, values: np.ndarray, geometry: Geometry) -> None:
    """Write an array with the axes (z, y, x) as NIfTI."""
    import SimpleITK

    image = SimpleITK.GetImageFromArray(values)
    image.SetSpacing(geometry.spacing_mm)
    image.SetOrigin(geometry.origin_mm)
    image.SetDirection(geometry.direction)
    SimpleITK.WriteImage(image, path)
