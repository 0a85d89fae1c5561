"""The stop-watch itself, and the plain formulas that serve as a yardstick."""

import numpy as np
import pytest

import segtrust as st
from benchmarks.kernels import logit_normal_volume, scaling
from benchmarks.plain import plain_scores
from benchmarks.timing import Ratio, shortest_times


def test_candidates_take_turns_and_warm_up_once():
    calls: list[str] = []
    shortest_times({"a": lambda: calls.append("a"), "b": lambda: calls.append("b")}, rounds=2)
    assert "".join(calls) == "ab" + "aaabbb" + "aaabbb"


@pytest.mark.parametrize(
    ("target", "ratio", "met"),
    [("<= 1.5", 1.4, True), ("<= 1.5", 1.6, False), (">= 20", 21.0, True), ("", 3.0, None)],
)
def test_targets(target, ratio, met):
    assert Ratio("x", "y", "map", 1.0, ratio, target).met is met


def test_plain_formulas_agree_with_the_library():
    p = logit_normal_volume((12, 14, 16))
    found = st.assess(p, estimators=["sdc", "amsp", "apc", "ane", "mmmc", "pla", st.ThresholdLevel(tau=0.3)])
    plain = plain_scores(p)
    for name, value in found.scores.items():
        assert value == pytest.approx(plain[name], rel=1e-9), name
    assert found.bounds.lower == pytest.approx(plain["lower"], rel=1e-12)


def test_logit_normal_field_has_its_moments():
    p = logit_normal_volume((200, 200)).astype(np.float64)
    logits = np.log(p) - np.log1p(-p)
    logits = logits[np.isfinite(logits)]
    assert logits.mean() == pytest.approx(-3.698, abs=0.2)
    assert logits.std() == pytest.approx(5.0, abs=0.2)


def test_scaling_gives_a_line_for_each_size_and_kernel():
    lines = list(scaling((100, 1000), lambda n: np.full(n, 0.3, np.float32)))
    assert [(line.what, line.map) for line in lines] == [
        ("SDC", "n = 1e+02"),
        ("IDC", "n = 1e+02"),
        ("SDC", "n = 1e+03"),
        ("IDC", "n = 1e+03"),
    ]
