"""What an estimator guarantees: a finite number, the same each time, computed from the map alone."""

from __future__ import annotations

import dataclasses
import json
import math
import re
from collections.abc import Iterator
from typing import Any

import numpy as np

from segtrust.confidence import ConfidenceEstimator, Pixels, summarise
from segtrust.errors import CaseValueError, ProbabilityRangeError, SegtrustError
from segtrust.kernels import open_map
from segtrust.maps import Case, Prediction

__all__ = ["EstimatorContract", "degenerate_maps"]


def degenerate_maps() -> Iterator[tuple[str, Any]]:
    """Return maps by name at which formulas divide by zero, take logarithms of zero, or run out of pixels.

    Examples
    --------
    >>> [name for name, _ in degenerate_maps()][:2]
    ['all zero', 'all one']
    """
    shape = (6, 7)
    yield "all zero", np.zeros(shape)
    yield "all one", np.ones(shape)
    yield "all one half", np.full(shape, 0.5)
    yield "one pixel", np.array([[0.7]])
    yield "one foreground pixel", np.pad([[0.9]], 3)
    yield "tiny", np.full(shape, 1e-300)
    yield "next to one", np.full(shape, np.nextafter(1.0, 0.0))
    yield "8-bit", np.arange(42, dtype=np.uint8).reshape(shape) * 6
    yield "one dimension", np.linspace(0.0, 1.0, 11)
    yield "four dimensions", np.linspace(0.0, 1.0, 120).reshape(2, 3, 4, 5)


def _ordinary_map() -> Any:
    return np.random.default_rng(0).random((15, 16, 17)) ** 3


class _Chunked:
    """An array that is read tile by tile, as Dask, Zarr and HDF5 arrays are."""

    def __init__(self, values: Any, chunks: tuple[int, ...]) -> None:
        self.values, self.chunks = values, chunks
        self.shape, self.dtype = values.shape, values.dtype

    def __getitem__(self, tile: Any) -> Any:
        return self.values[tile]


class EstimatorContract:
    """Tests that every confidence estimator must pass. Set ``estimator`` to one that is ready to score.

    Override `prediction` for an estimator that cannot score a map alone, such as one that needs a spacing.
    """

    estimator: ConfidenceEstimator

    def prediction(self, p: Any) -> Prediction:
        """Return the prediction of a map that the tests score."""
        return Prediction(p)

    def _score(self, p: Any) -> float:
        return float(self.estimator.score(self.prediction(p)))

    def _score_selected(self, p: Any, where: Any) -> float:
        needs, pixels = self.estimator.needs, Pixels(self.prediction(p), where)
        return float(self.estimator.read(summarise(open_map(p, where=where), [needs], pixels=pixels)))

    def test_has_a_name_for_files_and_a_label_for_tables(self) -> None:
        """Names are lower-case; a colour is a hex string, or empty."""
        assert self.estimator.name == self.estimator.name.lower()
        assert self.estimator.label
        assert re.fullmatch("(#[0-9a-f]{6})?", self.estimator.colour)

    def test_its_parameters_make_it_again(self) -> None:
        """A policy stores name and parameters as plain values, and they are complete."""
        plain = json.loads(json.dumps(self.estimator.parameters))
        again = type(self.estimator)(**plain)
        assert again.score(self.prediction(_ordinary_map())) == self._score(_ordinary_map())

    def test_is_a_finite_number_on_degenerate_maps(self) -> None:
        """No map may end in NaN or infinity, which have no rank."""
        for name, p in degenerate_maps():
            try:
                score = self._score(p)
            except CaseValueError as error:  # NaN and infinity are rejected when a map is scored
                raise AssertionError(f"{name}: {error}") from error
            assert math.isfinite(score), name

    def test_gives_the_same_number_again(self) -> None:
        """No hidden state, no randomness."""
        assert self._score(_ordinary_map()) == self._score(_ordinary_map())

    def test_does_not_depend_on_the_direction_of_axes(self) -> None:
        """Data sets differ in the order of their axes."""
        p = _ordinary_map()
        for turned in (p[::-1], p[:, ::-1], p[..., ::-1], p.T):
            assert math.isclose(self._score(turned), self._score(p), rel_tol=1e-12)

    def test_does_not_look_at_the_truth(self) -> None:
        """A confidence must not use the ground truth."""
        prediction = self.prediction(_ordinary_map())
        scores = {self.estimator.score(Case(prediction, np.full(prediction.shape, bit))) for bit in (0, 1)}
        assert len(scores) == 1

    def test_leaves_the_map_as_it_was(self) -> None:
        """The map belongs to the caller."""
        p = _ordinary_map()
        p.flags.writeable = False
        self._score(p)
        assert np.array_equal(p, _ordinary_map())

    def test_refuses_what_is_no_probability(self) -> None:
        """A bad value is an error, never a score."""
        for bad in (math.nan, math.inf, -0.1, 1.1):
            p = _ordinary_map()
            p[7, 8, 9] = bad
            try:
                score = self._score(p)
            except ProbabilityRangeError:
                continue
            raise AssertionError(f"scored {score} for a map with the value {bad}")

    def test_gives_the_same_number_tile_by_tile(self) -> None:
        """A map that is larger than memory is read in tiles, whose borders must not matter."""
        p = _ordinary_map()
        for chunks in ((4, 16, 5), (15, 16, 17)):
            assert math.isclose(self._score(_Chunked(p, chunks)), self._score(p), rel_tol=1e-9), chunks

    def test_counts_selected_pixels_only(self) -> None:
        """Pixels that ``where`` leaves out may hold anything and change nothing."""
        p = _ordinary_map()
        where = np.random.default_rng(1).random(p.shape) < 0.7
        score = self._score_selected(p, where)
        assert math.isfinite(score)
        for other in (0.0, 1.0, math.nan):
            assert self._score_selected(np.where(where, p, other), where) == score, other
        everything = np.ones(p.shape, bool)
        assert math.isclose(self._score_selected(p, everything), self._score(p), rel_tol=1e-9)

    def test_an_estimator_that_sees_pixels_does_without_spacing_and_image(self) -> None:
        """Not every file has them: score without them, or raise an error that says what is missing."""
        if not self.estimator.needs.pixels:
            return
        p = _ordinary_map()
        image = np.random.default_rng(2).normal(size=p.shape)
        for spacing_mm in (None, (3.0, 0.7, 0.7)):
            for values in (None, image):
                try:
                    score = float(self.estimator.score(Prediction(p, spacing_mm=spacing_mm, image=values)))
                except SegtrustError:
                    if spacing_mm is not None and values is not None:  # nothing is missing
                        raise
                    continue
                assert math.isfinite(score)
        assert np.array_equal(image, np.random.default_rng(2).normal(size=p.shape))

    def test_an_estimator_that_sees_pixels_uses_the_delivered_mask(self) -> None:
        """The mask that is passed is scored, not the thresholded map; it stays as it was."""
        if not self.estimator.needs.pixels:
            return
        p = _ordinary_map()
        mask = p >= 0.5
        mask.flags.writeable = False
        delivered = dataclasses.replace(self.prediction(p), mask=mask)
        assert float(self.estimator.score(delivered)) == self._score(p)
