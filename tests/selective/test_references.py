"""Reference confidences: enough of them, and not those of the cases they are to be candidates for."""

import numpy as np
import pytest

from segtrust.errors import CaseValueError, ParameterError, TooFewCasesError
from segtrust.selective.cases import CalibrationCases
from segtrust.selective.certify import certify_threshold
from segtrust.selective.references import references_of

RNG = np.random.default_rng(0)
CONFIDENCE = RNG.random(300)
OTHERS = RNG.random(200)
MIXED = np.where(np.arange(300) % 2, CONFIDENCE, 0.0)  # as where half of the masks are empty

BORROWED = {
    "themselves": (CONFIDENCE, CONFIDENCE),
    "a copy": (CONFIDENCE.copy(), CONFIDENCE),
    "in another order": (CONFIDENCE[::-1], CONFIDENCE),
    "a part": (CONFIDENCE[::8], CONFIDENCE),
    "ten of them": (CONFIDENCE[:10], CONFIDENCE),
    "them and others": (np.concatenate([CONFIDENCE, OTHERS]), CONFIDENCE),
    "a part, many of which are tied": (MIXED[:60], MIXED),
    "coarse, case by case": (np.round(CONFIDENCE, 1), np.round(CONFIDENCE, 1)),
    "six levels, case by case": (np.round(5 * CONFIDENCE) / 5, np.round(5 * CONFIDENCE) / 5),
    "coarse, in another order": (np.sort(np.round(CONFIDENCE, 1)), np.round(CONFIDENCE, 1)),
}


@pytest.mark.parametrize("name", BORROWED)
def test_of_the_calibration_cases(name):
    reference, confidence = BORROWED[name]
    with pytest.raises(ParameterError, match="reference: expected confidences of other cases"):
        references_of(reference, confidence)


OWN = {
    "of others": (OTHERS, CONFIDENCE),
    "all but one shared": (np.append(CONFIDENCE[:30], 2.0), CONFIDENCE),
    "all tied": (np.ones(50), np.ones(50)),
    "two levels": (np.repeat([0.0, 1.0], 10), np.tile([0.0, 1.0], 10)),
    "nine that occur once": (np.append(CONFIDENCE[:9], [2.0, 2.0]), np.append(CONFIDENCE, [2.0, 2.0])),
    "nine shared values": (np.arange(10) % 9 / 9, np.concatenate([np.arange(9) / 9, [0.0], OTHERS])),
}


@pytest.mark.parametrize("name", OWN)
def test_of_others(name):
    reference, confidence = OWN[name]
    assert references_of(reference, confidence).tolist() == list(reference)


@pytest.mark.parametrize("decimals", [1, 2, 3])
@pytest.mark.parametrize(("n", "references"), [(30, 10), (300, 10), (300, 300), (1000, 20)])
def test_coarse_confidences_are_hardly_ever_taken_for_copies(decimals, n, references):
    rng = np.random.default_rng(1)
    for _ in range(300):
        confidence, reference = (np.round(rng.beta(8, 1, size), decimals) for size in (n, references))
        references_of(reference, confidence)


def test_too_few():
    with pytest.raises(TooFewCasesError, match=r"at least 10 unlabelled cases, got 9. Give more, or none"):
        references_of(OTHERS[:9], CONFIDENCE)
    with pytest.raises(CaseValueError, match="reference: expected a finite number, got inf"):
        references_of([np.inf] * 10, CONFIDENCE)


def test_at_the_doors():
    loss = (1 - CONFIDENCE) / 2
    with pytest.raises(ParameterError, match="other cases"):
        CalibrationCases(CONFIDENCE, loss, reference=CONFIDENCE[::8])
    with pytest.raises(ParameterError, match="other cases"):
        certify_threshold(CONFIDENCE, loss, target_risk=0.2, reference=CONFIDENCE)
    assert certify_threshold(CONFIDENCE, loss, target_risk=0.3, reference=OTHERS).certified


def test_parts_are_not_judged_again():
    """A part of coarse cases may look like a copy of the reference though the whole does not."""
    confidence = np.concatenate([np.linspace(0.1, 0.2, 12), OTHERS[:12]])
    cases = CalibrationCases(confidence, np.zeros(24), reference=np.append(OTHERS[:12], 0.5))
    assert cases.part(np.arange(12, 24)).reference is cases.reference


@pytest.mark.parametrize("copied", [np.float32, lambda values: 0.3 + values.round(6) - 0.3])
def test_copies_that_have_lost_digits_are_refused(copied):
    confidence = np.random.default_rng(0).random(50)
    with pytest.raises(ParameterError, match="expected confidences of other cases"):
        references_of(copied(confidence), confidence)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(("n", "m", "width"), [(300, 10, 1e-4), (2000, 30, 1e-3), (300, 300, 1e-4)])
def test_other_cases_in_a_narrow_range_are_no_copies(n, m, width, seed):
    rng = np.random.default_rng(seed)
    assert references_of(1 - width * rng.random(m), 1 - width * rng.random(n)).size == m
