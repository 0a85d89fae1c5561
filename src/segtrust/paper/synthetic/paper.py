"""The paper's simulated experiments, repeat by repeat, and the tidy tables that come of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from segtrust.evaluation import Part, compute_parts, store_of
from segtrust.kernels import relative_errors_from
from segtrust.paper.synthetic.images import Images, Models, draw_images, draw_noise, perturb
from segtrust.paper.synthetic.ranking import (
    ESTIMATORS,
    IDEAL_ESTIMATORS,
    area_of,
    confidences_of,
    true_risks,
)
from segtrust.paper.synthetic.settings import Synthetic

__all__ = ["EXPERIMENTS", "Experiment", "SyntheticResults", "run_repeat", "run_synthetic"]

Row = dict[str, Any]


@dataclass(frozen=True)
class Experiment:
    """One of the paper's experiments.

    Attributes
    ----------
    name
        Of its table, figure and parts.
    estimators
        Those that are compared.
    along
        The parameter that varies, ``"mu_z"`` or ``"rho_eta"``; empty where none does, and then the whole
        curves are kept.
    ideal
        Whether the model knows the true marginals.
    """

    name: str
    estimators: tuple[str, ...]
    along: str = ""
    ideal: bool = True

    def values(self, settings: Synthetic) -> list[tuple[float, float]]:
        """Give mu_z and rho_eta of each point."""
        along = {name: getattr(settings, f"{name}_grid") for name in (self.along,) if name}
        rho_eta = (0.0,) if self.ideal else (settings.rho_eta,)
        return list(product(along.get("mu_z", (settings.mu_z,)), along.get("rho_eta", rho_eta)))


EXPERIMENTS = {
    each.name: each
    for each in (
        Experiment("ideal_model", IDEAL_ESTIMATORS),
        Experiment("perturbed_model", ESTIMATORS, ideal=False),
        Experiment("prevalence", IDEAL_ESTIMATORS, along="mu_z"),
        Experiment("perturbation", ESTIMATORS, along="rho_eta", ideal=False),
    )
}


def run_repeat(settings: Synthetic, name: str, repeat: int) -> dict[str, Any]:
    """Run one repeat of an experiment.

    Returns
    -------
    dict
        ``aurc`` (points, estimators), ``risk`` and ``alpha`` (points); where nothing varies also ``risks``
        (estimators, images), the curves without that of ``random``; for the ideal model also ``k``,
        ``idc_x``, ``idc_p``, ``sdc`` and ``epsilon`` of each image.

    Examples
    --------
    >>> found = run_repeat(Synthetic(images=200), "ideal_model", 0)
    >>> found["aurc"].shape, found["risks"].shape
    ((1, 5), (4, 200))
    """
    experiment = EXPERIMENTS[name]
    seeds, n = settings.seeds(repeat), settings.n
    noise = None if experiment.ideal else draw_noise(seeds, n=n)
    points = []
    for mu_z, rho_eta in experiment.values(settings):
        images = draw_images(seeds, n=n, mu_z=mu_z, rho_z=settings.rho_z)
        points.append(_run_point(experiment, images, perturb(images, noise, rho_eta)))
    arrays = {each: np.array([point[each] for point in points]) for each in ("aurc", "risk", "alpha")}
    return arrays | ({} if experiment.along else points[0]["kept"])


def _run_point(experiment: Experiment, images: Images, models: Models) -> dict[str, Any]:
    confidences = confidences_of(images, models)
    loss = 1.0 - confidences["idc(x)"]
    ranked = [name for name in experiment.estimators if name != "random"]
    curves = np.array([true_risks(confidences[name], loss) for name in ranked])
    risk = float(loss.mean())
    areas = dict(zip(ranked, map(area_of, curves), strict=True)) | {"random": risk}
    point = {"aurc": [areas[name] for name in experiment.estimators], "risk": risk, "alpha": images.alpha}
    if not experiment.along:
        point["kept"] = {"risks": curves} | (_of_images(confidences, models) if experiment.ideal else {})
    return point


def _of_images(confidences: dict[str, Any], models: Models) -> dict[str, Any]:
    return {
        "k": models.k,
        "idc_x": confidences["idc(x)"],
        "idc_p": confidences["idc(p)"],
        "sdc": confidences["sdc"],
        "epsilon": relative_errors_from(models.k, models.s, models.lam),
    }


@dataclass(frozen=True, eq=False)
class SyntheticResults:
    """All that the experiments gave; made by `run_synthetic`.

    Attributes
    ----------
    settings
        The parameters.
    parts
        Arrays of each repeat, see `run_repeat`, by ``"<experiment>-<repeat>"``.
    """

    settings: Synthetic
    parts: dict[str, dict[str, Any]]

    def repeats(self, name: str) -> list[dict[str, Any]]:
        """Arrays of the repeats of an experiment, in order."""
        return [self.parts[_part_name(name, repeat)] for repeat in range(self.settings.repeats)]

    def rows(self, name: str) -> list[Row]:
        """Table of an experiment: a row for each repeat, point and estimator."""
        experiment = EXPERIMENTS[name]
        points = experiment.values(self.settings)
        return [
            {
                "repeat": repeat,
                "mu_z": points[at][0],
                "rho_eta": points[at][1],
                "estimator": estimator,
                "aurc": float(arrays["aurc"][at, column]),
                "risk": float(arrays["risk"][at]),
                "alpha": float(arrays["alpha"][at]),
            }
            for repeat, arrays in enumerate(self.repeats(name))
            for at in range(len(points))
            for column, estimator in enumerate(experiment.estimators)
        ]

    def relative_error_rows(self) -> list[Row]:
        """Give a row for each image of the ideal model; epsilon is NaN where the mask is empty."""
        columns = ("k", "idc_x", "idc_p", "sdc", "epsilon")
        return [
            {"repeat": repeat, "image": image, **dict(zip(columns, values, strict=True))}
            for repeat, arrays in enumerate(self.repeats("ideal_model"))
            for image, *values in zip(
                self.settings.seeds(repeat), *(arrays[name].tolist() for name in columns), strict=True
            )
        ]

    def seconds(self) -> dict[str, float]:
        """Time that each experiment took, over all its parts."""
        return {name: float(sum(arrays["seconds"] for arrays in self.repeats(name))) for name in EXPERIMENTS}


def _part_name(name: str, repeat: int) -> str:
    return f"{name}-{repeat:02d}"


def parts_of(settings: Synthetic) -> Sequence[Part]:
    """Parts of all experiments; each weighs as many as it has points."""
    return [
        Part(
            _part_name(name, repeat),
            partial(run_repeat, settings, name, repeat),
            weight=len(experiment.values(settings)),
        )
        for name, experiment in EXPERIMENTS.items()
        for repeat in range(settings.repeats)
    ]


def run_synthetic(
    settings: Synthetic | None = None,
    *,
    folder: str | Path | None = None,
    workers: int = 1,
    advance: Callable[[int], object] = lambda done: None,
) -> SyntheticResults:
    """Run the experiments of section 6 of the paper.

    Parameters
    ----------
    settings
        Parameters, the paper's where there are none.
    folder
        Where finished parts are kept, and looked for; ``None`` keeps nothing.
    workers, advance
        As for `segtrust.evaluation.compute_parts`. Results do not depend on the number of processes.

    Examples
    --------
    >>> results = run_synthetic(Synthetic(images=200, repeats=2))
    >>> [row["estimator"] for row in results.rows("ideal_model")[:5]]
    ['idc(x)', 'idc(p)', 'sdc', 'amsp', 'random']
    """
    settings = settings or Synthetic()
    store = store_of(folder, settings.parameters())
    return SyntheticResults(
        settings, compute_parts(parts_of(settings), store, workers=workers, advance=advance)
    )
