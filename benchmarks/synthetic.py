"""``synthetic``: the ideal-model experiment against enumerating all masks of each image."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import product
from typing import Any

import numpy as np

from benchmarks.timing import Ratio, shortest_times
from segtrust.paper.synthetic import Synthetic
from segtrust.paper.synthetic.images import Images, Models, draw_images
from segtrust.paper.synthetic.ranking import area_of, confidences_of, true_risks

__all__ = ["compare_experiment", "enumerated_areas", "quick_areas", "synthetic_sections"]

SETTINGS = Synthetic()
SHARE = 50
"""The enumeration runs on the first of this many parts of the images, and its time counts as often."""


def synthetic_sections(*, rounds: int) -> Iterator[tuple[str, Iterable[Any]]]:
    """Measure section by section; a title and its lines each."""
    title = (
        f"Ideal-model experiment, gain over enumerating 2^10 masks image by image (first 1/{SHARE}, scaled)"
    )
    yield title, compare_experiment(rounds=rounds)


def _areas(confidences: dict[str, Any]) -> dict[str, float]:
    loss = 1.0 - confidences["idc(x)"]
    return {name: area_of(true_risks(each, loss)) for name, each in confidences.items()}


def quick_areas(images: Images) -> dict[str, float]:
    """Score images and give the AURC of each estimator, as the experiment does."""
    return _areas(confidences_of(images, Models(images.p)))


def enumerated_areas(q: Any) -> dict[str, float]:
    """Give the same from the sums over all masks, image by image, written as in the paper."""
    truths = np.array(list(product((0.0, 1.0), repeat=q.shape[1])))
    sizes = truths.sum(1)
    rows = [_enumerate_image(each, truths, sizes) for each in q]
    return _areas({name: np.array([row[name] for row in rows]) for name in rows[0]})


def _enumerate_image(q: Any, truths: Any, sizes: Any) -> dict[str, float]:
    posterior = np.where(truths == 1.0, q, 1.0 - q).prod(1)
    posterior[0] = 0.0
    posterior /= posterior.sum()
    p = posterior @ truths
    mask = p >= 0.5
    k = np.count_nonzero(mask)
    dices = 2.0 * (truths @ mask) / np.maximum(sizes + k, 1.0)
    independent = np.where(truths == 1.0, p, 1.0 - p).prod(1)
    of_marginals = float(independent @ dices)
    return {
        "idc(x)": float(posterior @ dices),
        "idc(p)": of_marginals,
        "idc(p_hat)": of_marginals,
        "sdc": float(2.0 * p[mask].sum() / (k + p.sum())) if k else 0.0,
        "amsp": float(np.maximum(p, 1.0 - p).mean()),
    }


def _drawn(images: int) -> Images:
    return draw_images(range(images), n=SETTINGS.n, mu_z=SETTINGS.mu_z, rho_z=SETTINGS.rho_z)


def _drawn_one_by_one(images: int) -> Any:
    """Draw each image from its own seed with NumPy alone."""
    logits = [
        np.random.RandomState(seed).normal(SETTINGS.mu_z, SETTINGS.rho_z, SETTINGS.n)
        for seed in range(images)
    ]
    return 1.0 / (1.0 + np.exp(-np.array(logits)))


def compare_experiment(images: int = SETTINGS.images, *, rounds: int = 9) -> Iterator[Ratio]:
    """Time one repeat of the experiment against enumeration, with the drawing of the images and without."""
    q = _drawn(images).q
    few = max(2, images // SHARE)
    runs: dict[str, Callable[[], object]] = {
        "drawn": lambda: quick_areas(_drawn(images)),
        "given": lambda: quick_areas(Images(q)),
        "enumerated, drawn": lambda: enumerated_areas(_drawn_one_by_one(few)),
        "enumerated, given": partial(enumerated_areas, q[:few]),
    }
    times = shortest_times(runs, rounds=rounds)
    for what, words in (("drawn", "images drawn and scored"), ("given", "images scored")):
        gain = times[f"enumerated, {what}"] * images / few / times[what]
        yield Ratio(words, "enumeration", f"{images:,} images", times[what], gain, ">= 100")
