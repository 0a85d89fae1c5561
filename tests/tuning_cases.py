"""Small labelled cases for estimators that learn: blobs that a model sees more or less well."""

import numpy as np

from segtrust.maps import Case, Prediction


def blob(seed, shape=(24, 30), kind=np.float32):
    """A disc as truth, and a map that is shifted, blurred and noisy by chance."""
    rng = np.random.default_rng(seed)
    axes = np.ogrid[tuple(slice(length) for length in shape)]
    centre = [length / 2 for length in shape]
    radius, blur, shift = rng.uniform(3, 7), rng.uniform(0.3, 3), rng.uniform(0, 5)
    truth = sum((axis - middle) ** 2 for axis, middle in zip(axes, centre, strict=True)) <= radius**2
    centre[0] += shift
    distance = np.sqrt(sum((axis - middle) ** 2 for axis, middle in zip(axes, centre, strict=True)))
    logits = (radius - distance) / blur + 0.3 * rng.standard_normal(shape)
    p = 1 / (1 + np.exp(-logits))
    stored = np.round(255 * p).astype(np.uint8) if kind is np.uint8 else p.astype(kind)
    return Case(Prediction(stored, id=f"blob {seed}"), truth)


def blobs(count, shape=(24, 30), kind=np.float32, first=0):
    return [blob(first + seed, shape, kind) for seed in range(count)]


def losses_of(cases):
    """One minus the Dice of each case, from its definition."""
    found = []
    for case in cases:
        p = case.prediction.probabilities
        mask = p >= (128 if p.dtype == np.uint8 else 0.5)
        found.append(1 - 2 * (mask & case.truth).sum() / (mask.sum() + case.truth.sum()))
    return np.array(found)
