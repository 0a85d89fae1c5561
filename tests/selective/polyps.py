"""Confidence, Dice and id of every polyp image, in and out of distribution."""

from functools import cache

import numpy as np

from segtrust import dice, soft_dice_confidence

INSIDE, OUTSIDE = ("Kvasir", "CVC-ClinicDB"), ("CVC-300", "CVC-ColonDB", "ETIS-LaribPolypDB")


def read_png(path):
    from PIL import Image

    return np.array(Image.open(path).convert("L"))


@cache
def vectors(folder, sets):
    """(confidence, dice, ids) of the images of some sets."""
    paths = [path for each in sets for path in sorted((folder / each / "predictions").glob("*.png"))]
    confidence, score = np.empty(len(paths)), np.empty(len(paths))
    for i, path in enumerate(paths):
        p, truth = read_png(path), read_png(path.parents[1] / "masks" / path.name) > 127
        confidence[i], score[i] = soft_dice_confidence(p), dice(truth, p >= 127.5)
    return confidence, score, [f"{path.parents[1].name}/{path.stem}" for path in paths]
