"""Past ten pixels and past independence: what of the paper's findings depends on either.

Three studies, each for several numbers of pixels:

- ``size``: the paper's posterior and models. Images of many independent pixels are all alike, so beside the
  paper's images there are others that differ: the mean logit of each is shifted by a normal of its own.
- ``copula``: the pixels of an image share a hidden factor, see `segtrust.paper.synthetic.factor`; the
  ideal confidence is an integral that is right to 1e-12.
- ``smooth``: maps and errors are smooth fields, see `segtrust.paper.synthetic.fields`; the ideal
  confidence is a mean over drawn truths.

In the last two the truth may be empty, and then scores 0, so that the marginals are q itself and all that
parts IDC(p) from IDC(x) is the dependence of the pixels. The model is ideal.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from scipy.special import expit

from segtrust.kernels import relative_errors_from
from segtrust.paper.synthetic.draws import standard_normals
from segtrust.paper.synthetic.factor import factor_dices
from segtrust.paper.synthetic.fields import SmoothField, sampled_dices
from segtrust.paper.synthetic.images import Images, Models, draw_noise, perturb
from segtrust.paper.synthetic.ranking import (
    ESTIMATORS,
    IDEAL_ESTIMATORS,
    confidences_of,
    true_risks,
    whole_area_of,
)
from segtrust.paper.synthetic.settings import Beyond

__all__ = ["HALVES", "STUDIES", "Study", "run_part", "studies_of"]

SHIFT_SEED = 2**31
"""The shift of image x is drawn from the seed x + 2³¹."""

HALVES = "idc(x), halves"
"""The sampled ideal confidence, computed from half of the truths and judged by the other half."""

_PIXELS_AT_ONCE = 2**20


@dataclass(frozen=True)
class Study:
    """One of the studies.

    Attributes
    ----------
    name
        Of its tables, figure and parts.
    columns
        The parameters that vary.
    facts
        Gives what is kept of some images, an array each: the confidences by estimator, ``k``, ``epsilon``
        and ``alpha``; with correlated errors also ``swing``, the standard deviation of the Dice.
    estimators
        Those that are compared.
    """

    name: str
    columns: tuple[str, ...]
    facts: Callable[..., dict[str, Any]]
    estimators: tuple[str, ...] = IDEAL_ESTIMATORS

    def sizes(self, beyond: Beyond) -> list[int]:
        """Numbers of pixels that the study can have; smooth images are square, and not tiny."""
        square = [n for n in beyond.sizes if n >= 16 and math.isqrt(n) ** 2 == n]
        return square if self.name == "smooth" else list(beyond.sizes)

    def points(self, beyond: Beyond) -> list[tuple[float, ...]]:
        """Values of the parameters, in the order of the columns."""
        grids = {"correlation": beyond.correlations, "length": beyond.lengths}
        grids |= {
            "sharpness": beyond.sharpness,
            "spread": (0.0, beyond.spread),
            "rho_eta": (0.0, beyond.rho_eta),
        }
        return list(product(*(dict.fromkeys(grids[column]) for column in self.columns)))


def _logits(beyond: Beyond, seeds: range, n: int, spread: float) -> Any:
    """Draw logits of independent pixels around the mean of each image."""
    z = standard_normals(seeds.start, len(seeds), n)
    shift = spread * standard_normals(seeds.start + SHIFT_SEED, len(seeds), 1)
    return beyond.mu_z + shift + beyond.rho_z * z


def _smooth_logits(beyond: Beyond, seeds: range, n: int) -> Any:
    """Draw logits that are smooth fields, of the same mean and standard deviation."""
    field = SmoothField(math.isqrt(n), beyond.map_length)
    drawn = [field.draw(np.random.default_rng([seed, n]), 1) for seed in seeds]
    return beyond.mu_z + beyond.rho_z * np.concatenate(drawn).reshape(len(seeds), n).astype(np.float64)


def _facts(images: Images, models: Models, confidences: dict[str, Any]) -> dict[str, Any]:
    epsilon = relative_errors_from(models.k, models.s, models.lam)
    return {**confidences, "k": models.k, "epsilon": epsilon, "alpha": images.p.mean(1)}


def _size_facts(beyond: Beyond, seeds: range, n: int, *, spread: float, rho_eta: float) -> dict[str, Any]:
    images = Images(expit(_logits(beyond, seeds, n, spread)))
    models = perturb(images, draw_noise(seeds, n=n) if rho_eta else None, rho_eta)
    return _facts(images, models, confidences_of(images, models))


def _copula_facts(
    beyond: Beyond, seeds: range, n: int, *, sharpness: float, correlation: float
) -> dict[str, Any]:
    logits = sharpness * _logits(beyond, seeds, n, beyond.spread)
    images = Images(expit(logits), may_be_empty=True)
    models = Models(images.p)
    expected, swing = factor_dices(images.q, models.masks, correlation)
    confidences = confidences_of(images, models) | ({"idc(x)": expected} if correlation else {})
    return _facts(images, models, confidences) | {"swing": swing}


def _smooth_facts(beyond: Beyond, seeds: range, n: int, *, sharpness: float, length: float) -> dict[str, Any]:
    images = Images(expit(sharpness * _smooth_logits(beyond, seeds, n)), may_be_empty=True)
    models = Models(images.p)
    errors = SmoothField(math.isqrt(n), length)
    truths = [_dices(beyond, errors, *image) for image in zip(seeds, images.q, models.masks, strict=True)]
    sampled = _of_samples(np.array(truths))
    found = _facts(images, models, confidences_of(images, models))
    return found | (sampled if length else {"swing": sampled["swing"]})


def _dices(beyond: Beyond, errors: SmoothField, seed: int, q: Any, mask: Any) -> Any:
    """Give the Dice of one image against its truths."""
    shape = (errors.side, errors.side)
    rng = np.random.default_rng([seed, q.size, round(1e6 * errors.length)])
    return sampled_dices(q.reshape(shape), mask.reshape(shape), errors, rng, beyond.truths(q.size))


def _of_samples(dices: Any) -> dict[str, Any]:
    """Give the mean over all truths of an image, its standard error, and the means over either half."""
    swing = dices.std(1, ddof=1)
    return {
        "idc(x)": dices.mean(1),
        "swing": swing,
        "standard_error": swing / math.sqrt(dices.shape[1]),
        "first_half": dices[:, ::2].mean(1),
        "second_half": dices[:, 1::2].mean(1),
    }


STUDIES = {
    study.name: study
    for study in (
        Study("size", ("spread", "rho_eta"), _size_facts, ESTIMATORS),
        Study("copula", ("sharpness", "correlation"), _copula_facts),
        Study("smooth", ("sharpness", "length"), _smooth_facts, (*IDEAL_ESTIMATORS, HALVES)),
    )
}


def studies_of(beyond: Beyond) -> list[str]:
    """Names of the studies that have a size: without square images there is no smooth one."""
    return [name for name, study in STUDIES.items() if study.sizes(beyond)]


def run_part(beyond: Beyond, name: str, n: int, point: tuple[float, ...], repeat: int) -> dict[str, Any]:
    """Run one repeat of a point of a study; see `Study` for what comes out, and ``aurc`` by estimator."""
    study, seeds = STUDIES[name], beyond.seeds(n, repeat)
    values = dict(zip(study.columns, point, strict=True))
    pieces = [study.facts(beyond, piece, n, **values) for piece in _in_pieces(seeds, n)]
    found = {key: np.concatenate([piece[key] for piece in pieces]) for key in pieces[0]}
    return found | {"aurc": np.array([_area(found, each) for each in study.estimators])}


def _in_pieces(seeds: range, n: int) -> Iterator[range]:
    """Cut the images so that their pixels fit into memory."""
    step = max(1, _PIXELS_AT_ONCE // n)
    return (seeds[first : first + step] for first in range(0, len(seeds), step))


def _area(found: dict[str, Any], estimator: str) -> float:
    """AURC of an estimator, from coverage 0 on, since there may be few images.

    A sampled IDC(x) that is judged by its own truths looks too good, and one that ranks by half of the truths
    and is judged by the other half, both ways, is not quite ideal: the ideal lies between the two.
    """
    loss = 1.0 - found["idc(x)"]
    if estimator == "random":
        return float(loss.mean())
    if estimator != HALVES:
        return whole_area_of(true_risks(found[estimator], loss))
    halves = found.get("first_half", found["idc(x)"]), found.get("second_half", found["idc(x)"])
    return sum(whole_area_of(true_risks(a, 1.0 - b)) for a, b in (halves, halves[::-1])) / 2.0
