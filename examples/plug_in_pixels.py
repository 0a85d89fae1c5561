"""An estimator that sees pixels: minus the mean entropy in a band around the boundary of the mask."""

import math
from dataclasses import dataclass

import numpy as np
from scipy.ndimage import distance_transform_edt
from scipy.special import entr

import segtrust as st
from segtrust.confidence import ConfidenceEstimator, Needs


@dataclass(frozen=True)
class BoundaryEntropy(ConfidenceEstimator):
    """Minus the mean entropy in bits of the pixels within ``band_mm`` of the boundary of the mask."""

    band_mm: float = 3.0

    name = "boundary-entropy"
    label = "boundary entropy"

    @property
    def needs(self):
        return Needs(pixels=True)

    def read(self, summary):
        pixels = summary.pixels
        spacing = pixels.spacing_mm or (1.0,) * len(pixels.shape)  # if unknown, a pixel counts as 1 mm
        total, count = 0.0, 0
        for tile in pixels.tiles(margin=math.ceil(self.band_mm / min(spacing))):
            if tile.mask.all() or not tile.mask.any():
                continue  # no boundary within reach
            inside, outside = (distance_transform_edt(side, spacing) for side in (tile.mask, ~tile.mask))
            band = (np.maximum(inside, outside) <= self.band_mm) & tile.where
            p = tile.p[tile.core][band[tile.core]].astype(float)
            total += float((entr(p) + entr(1.0 - p)).sum()) / math.log(2.0)
            count += p.size
        return 0.0 - total / count if count else -1.0  # an empty mask is rated lowest


if __name__ == "__main__":
    # One disc with a sharp, a soft and a very soft boundary. An estimator that is passed as an object works
    # without a package; the keys are labels of your own.
    y, x = np.mgrid[:64, :64]
    distance = np.hypot(y - 32, x - 32) - 15
    estimators = {"SDC": "sdc", "boundary entropy": BoundaryEntropy(band_mm=3.0)}
    for softness in (0.5, 2.0, 8.0):
        scores = st.score(1 / (1 + np.exp(distance / softness)), estimators=estimators)
        print(f"softness {softness}:", ", ".join(f"{label} {value:.3f}" for label, value in scores.items()))

    # A Prediction also has the spacing: the smaller the pixels, the more of them are within 3 mm.
    p = 1 / (1 + np.exp(distance / 2.0))
    for spacing in (0.5, 1.0, 2.0):
        score = BoundaryEntropy(band_mm=3.0).score(st.Prediction(p, spacing_mm=(spacing, spacing)))
        print(f"pixels of {spacing} mm: {score:.3f}")
