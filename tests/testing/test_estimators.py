"""Every estimator keeps the contract, and the contract notices one that does not."""

import math
import sys
from dataclasses import dataclass
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import numpy as np
import pytest

import segtrust as st
from segtrust.confidence import ESTIMATORS, ConfidenceEstimator, Needs
from segtrust.errors import GeometryError, ParameterError
from segtrust.testing import EstimatorContract

EXAMPLES = Path(__file__).parents[2] / "examples"


def load_example(name):
    spec = spec_from_file_location(name, EXAMPLES / f"{name}.py")
    module = module_from_spec(spec)
    sys.modules[name] = module  # dataclasses look for it
    spec.loader.exec_module(module)
    return module


LEARNED = {
    "tla": st.ThresholdLevel(tau=0.3),
    "pla-tuned": st.TunedPatchLevel(size=7),
    "sdc-tuned": st.TunedSoftDice(weight=0.25),
}
FORESTS = ("aef", "aef-sdc")  # they know images or volumes only, and what axes are: see their own tests
ELSEWHERE = (*FORESTS, "pairwise-dice")  # which scores members, not maps
READY = [LEARNED.get(name, st.get_estimator(name)) for name in ESTIMATORS if name not in ELSEWHERE]


@pytest.mark.parametrize("estimator", READY, ids=lambda each: each.name)
class TestContract(EstimatorContract):
    @pytest.fixture(autouse=True)
    def _subscribe(self, estimator):
        self.estimator = estimator


@dataclass(frozen=True)
class Forgetful(st.SoftDice):
    """Says nothing about an empty mask."""

    def read(self, summary):
        counts = summary.counts
        return 2.0 * counts.s / counts.k if counts.k else float("nan")


class TestThatSeesPixels(EstimatorContract):
    """The example of the how-to page."""

    estimator = load_example("plug_in_pixels").BoundaryEntropy(band_mm=2.0)


@dataclass(frozen=True)
class Tiled(st.SoftDice):
    """Counts tiles as well as pixels, and looks at pixels that do not count."""

    @property
    def needs(self):
        return Needs(pixels=True)

    def read(self, summary):
        return float(sum(1.0 + tile.p.mean() for tile in summary.pixels.tiles()))


def test_the_contract_notices_an_estimator_that_depends_on_tiles():
    contract = EstimatorContract()
    contract.estimator = Tiled()
    with pytest.raises(AssertionError):
        contract.test_gives_the_same_number_tile_by_tile()


@dataclass(frozen=True)
class Undeclared(st.SoftDice):
    """Reads pixels without saying so."""

    def read(self, summary):
        return summary.pixels.whole.p.mean()


def test_pixels_have_to_be_declared():
    with pytest.raises(ParameterError, match=r"Return Needs\(pixels=True\)"):
        Undeclared().score(st.Prediction(np.full((2, 2), 0.5)))


@dataclass(frozen=True)
class Meddling(st.SoftDice):
    """Writes into the map."""

    @property
    def needs(self):
        return Needs(pixels=True)

    def read(self, summary):
        summary.pixels.whole.p[:] = 0.0
        return 0.0


def test_pixels_cannot_be_written_to():
    with pytest.raises(ValueError, match="read-only"):
        Meddling().score(st.Prediction(np.full((2, 2), 0.5)))


@dataclass(frozen=True)
class Spaced(ConfidenceEstimator):
    """Area of the mask in mm², which takes a spacing."""

    name = "area"
    label = "area"

    @property
    def needs(self):
        return Needs(pixels=True)

    def read(self, summary):
        pixels = summary.pixels
        if pixels.spacing_mm is None:
            raise GeometryError("area: expected a map with a spacing in mm, got none.")
        return math.prod(pixels.spacing_mm) * sum(int(t.mask[t.core].sum()) for t in pixels.tiles(margin=1))


class TestThatNeedsASpacing(EstimatorContract):
    estimator = Spaced()

    def prediction(self, p):
        return st.Prediction(p, spacing_mm=(2.0,) * len(p.shape))


def test_the_contract_notices_a_missing_number():
    contract = EstimatorContract()
    contract.estimator = Forgetful()
    with pytest.raises(AssertionError, match="all zero"):
        contract.test_is_a_finite_number_on_degenerate_maps()


def test_the_page_shows_the_example_as_it_is():
    source = (EXAMPLES / "plug_in_pixels.py").read_text(encoding="utf-8").partition("\n\nif __name__")[0]
    page = (EXAMPLES.parent / "docs/how-to/write-a-plug-in.md").read_text(encoding="utf-8")
    assert source.strip() in page
    assert len(source.partition("@dataclass")[2].splitlines()) <= 30
