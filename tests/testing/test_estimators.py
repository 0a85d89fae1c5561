"""Every estimator keeps the contract, and the contract notices one that does not."""

from dataclasses import dataclass

import pytest

import segtrust as st
from segtrust.confidence import ESTIMATORS
from segtrust.testing import EstimatorContract

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


def test_the_contract_notices_a_missing_number():
    contract = EstimatorContract()
    contract.estimator = Forgetful()
    with pytest.raises(AssertionError, match="all zero"):
        contract.test_is_a_finite_number_on_degenerate_maps()
