"""The studies past ten pixels and past independence, part by part, and the tidy tables that come of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from segtrust.evaluation import Part, compute_parts, store_of
from segtrust.paper.synthetic.settings import Beyond
from segtrust.paper.synthetic.studies import STUDIES, run_part

__all__ = ["BeyondResults", "parts_of", "run_beyond"]

Row = dict[str, Any]


@dataclass(frozen=True, eq=False)
class BeyondResults:
    """All that the studies gave; made by `run_beyond`.

    Attributes
    ----------
    settings
        The parameters.
    parts
        Arrays of each part by its name.
    """

    settings: Beyond
    parts: dict[str, dict[str, Any]]

    def repeats(self, name: str, n: int, point: tuple[float, ...]) -> list[dict[str, Any]]:
        """Arrays of the repeats of one point of a study, in order."""
        return [self.parts[_part_name(name, n, point, each)] for each in range(self.settings.repeats)]

    def _places(self, name: str) -> Iterator[tuple[Row, range, dict[str, Any]]]:
        """Give the first columns of a row, the seeds, and the arrays, of each part of a study."""
        study = STUDIES[name]
        for n, point in product(study.sizes(self.settings), study.points(self.settings)):
            values = dict(zip(study.columns, point, strict=True))
            for repeat, arrays in enumerate(self.repeats(name, n, point)):
                yield {"n": n, **values, "repeat": repeat}, self.settings.seeds(n, repeat), arrays

    def rows(self, name: str) -> list[Row]:
        """Table of a study: a row for each number of pixels, point, repeat and estimator."""
        return [
            {
                **place,
                "estimator": estimator,
                "aurc": float(area),
                "risk": float(1.0 - arrays["idc(x)"].mean()),
                "alpha": float(arrays["alpha"].mean()),
            }
            for place, _, arrays in self._places(name)
            for estimator, area in zip(STUDIES[name].estimators, arrays["aurc"], strict=True)
            if estimator != "idc(p_hat)" or place["rho_eta"]
        ]

    def image_rows(self, name: str) -> list[Row]:
        """Give a row for each image; epsilon is NaN where the mask is empty, an exact IDC(x) has no error."""
        named = {"k": "k", "idc_x": "idc(x)", "idc_p": "idc(p)", "sdc": "sdc", "epsilon": "epsilon"}
        rows = []
        for place, seeds, arrays in self._places(name):
            errors = arrays.get("standard_error", np.zeros(len(seeds)))
            columns = {**{key: arrays[own] for key, own in named.items()}, "standard_error": errors}
            columns |= {"swing": arrays["swing"]} if "swing" in arrays else {}
            values = zip(*(each.tolist() for each in columns.values()), strict=True)
            rows += [
                {**place, "image": image, **dict(zip(columns, each, strict=True))}
                for image, each in zip(seeds, values, strict=True)
            ]
        return rows

    def seconds(self) -> dict[str, float]:
        """Time that each study took, over all its parts."""
        return {
            name: float(sum(arrays["seconds"] for _, _, arrays in self._places(name))) for name in STUDIES
        }


def _part_name(name: str, n: int, point: tuple[float, ...], repeat: int) -> str:
    return "-".join([name, str(n), *(f"{value:g}" for value in point), f"{repeat:02d}"])


def parts_of(beyond: Beyond) -> list[Part]:
    """Parts of all studies; each weighs about what it takes, its images with their pixels."""
    images = dict(zip(beyond.sizes, beyond.images, strict=True))
    return [
        Part(
            _part_name(name, n, point, repeat),
            partial(run_part, beyond, name, n, point, repeat),
            weight=max(1, images[n] * n // 10_000),
        )
        for name, study in STUDIES.items()
        for n in study.sizes(beyond)
        for point in study.points(beyond)
        for repeat in range(beyond.repeats)
    ]


def run_beyond(
    settings: Beyond | None = None,
    *,
    folder: str | Path | None = None,
    workers: int = 1,
    advance: Callable[[int], object] = lambda done: None,
) -> BeyondResults:
    """Run the studies; parameters as for `segtrust.paper.synthetic.paper.run_synthetic`.

    Examples
    --------
    >>> few = Beyond(sizes=(10, 100), images=(20, 20), draws=(10, 10), repeats=1)
    >>> results = run_beyond(few)
    >>> len(results.image_rows("copula"))  # 2 sizes, 2 degrees of sharpness, 4 correlations, 20 images
    320
    """
    settings = settings or Beyond()
    store = store_of(folder, settings.parameters())
    return BeyondResults(settings, compute_parts(parts_of(settings), store, workers=workers, advance=advance))
