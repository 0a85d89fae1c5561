"""Largest difference between the compiled features and PyRadiomics, by class: the table of the documentation.

    SEGTRUST_TEST_DATA=DATA python -m docs.results.scripts.feature_differences

Compares on random masks and on the polyp maps and hippocampus labels below DATA. Differences are relative to
the value, or to 1e-6 where the value is smaller; a 0 that PyRadiomics computes as less than 1e-6 is listed by
itself.
"""

from __future__ import annotations

import os
from collections import defaultdict
from pathlib import Path

import numpy as np

from segtrust.features import extract_features, feature_names

SMALL = 1e-6


def random_pairs():
    """Images and masks of every density, in 2-D and 3-D, somewhere in a larger array."""
    rng = np.random.default_rng(0)
    for i in range(400):
        shape = (40, 50) if i % 2 else (14, 18, 16)
        margins = rng.integers(0, 6, (len(shape), 2))
        mask = np.pad(rng.random(shape) < rng.random() ** 2, margins)
        yield rng.random(mask.shape) ** rng.integers(1, 5), mask


def polyps(folder):
    """Entropy maps of all polyp maps, and where they exceed one half."""
    from PIL import Image

    for path in sorted(folder.glob("*/predictions/*.png")):
        p = np.asarray(Image.open(path).convert("L")) / 255
        q = np.clip([p, 1 - p], 1e-300, 1)
        u = -(q * np.log2(q)).sum(axis=0)
        yield u, u > 0.5


def hippocampi(folder):
    """Labels of all hippocampi, with a random image."""
    import nibabel

    rng = np.random.default_rng(0)
    for path in sorted((folder / "labels").glob("*.nii.gz")):
        mask = np.asarray(nibabel.load(path).dataobj) > 0
        yield rng.random(mask.shape), mask


def compare(pairs, largest, noise):
    """Enter the differences of all pairs; give the number of pairs."""
    seen = 0
    for image, mask in pairs:
        seen += 1
        ours, theirs = (
            extract_features(image, mask, backend=backend) for backend in ("compiled", "pyradiomics")
        )
        for name, one, other in zip(feature_names(image.ndim), ours, theirs, strict=True):
            difference = abs(one - other)
            if one == 0 < difference < SMALL:
                noise[name] = max(noise[name], difference)
            else:
                group = name.partition("_")[0]
                largest[group] = max(largest[group], (difference / max(abs(other), SMALL), name))
    return seen


def main():
    """Print a line for each set and class."""
    data = Path(os.environ["SEGTRUST_TEST_DATA"])
    sets = {
        "random masks": random_pairs(),
        "polyp maps": polyps(data / "polyp"),
        "hippocampi": hippocampi(data / "hippocampus"),
    }
    for title, pairs in sets.items():
        largest, noise = defaultdict(lambda: (0.0, "")), defaultdict(float)
        print(f"{title}: {compare(pairs, largest, noise)} pairs")  # noqa: T201
        for group, (difference, name) in sorted(largest.items()):
            print(f"  {group:12} {difference:.1e} ({name})")  # noqa: T201
        for name, width in sorted(noise.items()):
            print(f"  {name}: 0 instead of up to {width:.1e}")  # noqa: T201


if __name__ == "__main__":
    main()
