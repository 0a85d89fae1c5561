"""Results show themselves: short in a terminal, as a table in a notebook, with rows for pandas."""

import numpy as np
import pytest

import segtrust as st
from segtrust.calibration import reliability
from segtrust.io import Table
from tests.policy.certified import CASES, CERTIFICATE, GRID, policy
from tests.test_storage import audit, structures, watch

LOSS = (1 - GRID) / 2
FITTED = st.ConformalDice(threshold=0.5).fit(GRID, (1 + GRID) / 2, ids=range(400))

RESULTS = {
    "curve": st.risk_coverage_curve(GRID, LOSS),
    "certificate": CERTIFICATE,
    "not certifiable": st.certify_threshold(GRID, 1 - GRID, target_risk=0.01),
    "cases": CASES,
    "policy": policy(),
    "estimated": policy(predictor="<b>fold 0</b>").estimated("another scanner"),
    "structures": structures(),
    "drift": st.drift_test(reference=GRID, new=GRID**2),
    "martingale": watch(),
    "audit": audit(),
    "audit plan": st.audit_plan(0.1, 0.04),
    "interval": st.bootstrap_interval(GRID, LOSS, bootstrap=st.Bootstrap(resamples=100)),
    "comparison": st.compare_estimators(GRID, GRID**2, LOSS, bootstrap=st.Bootstrap(resamples=100)),
    "failures": st.failure_detection(GRID, LOSS, cutoff=0.7),
    "conformal": FITTED,
    "not fitted": st.ConformalDice(),
    "intervals": FITTED.interval(np.linspace(0, 1, 1000)),
    "recalibration": st.Recalibration.fit(GRID, GRID**2),
    "estimator of the mean": st.MeanDiceEstimator(),
    "mean": st.MeanDiceEstimator(resamples=100).fit(GRID, GRID).estimate(np.sqrt(GRID)),
    "plan": st.plan_calibration(0.1, 0.04),
    "coverage": st.threshold_for_coverage(GRID, target_coverage=0.8),
}


@pytest.mark.parametrize("name", RESULTS)
def test_a_result_is_one_short_line(name):
    text = repr(RESULTS[name])
    assert text.startswith(type(RESULTS[name]).__name__ + "(")
    assert len(text) < 260
    assert "\n" not in text
    assert "array(" not in text
    assert " object at 0x" not in text


@pytest.mark.parametrize("name", RESULTS)
def test_a_result_is_a_table_in_a_notebook(name):
    html = RESULTS[name]._repr_html_()
    assert html.startswith("<div>")
    assert html.count("<tr>") == html.count("</tr>") >= 1
    assert "<b>" not in html
    assert len(html) < 5000


def test_the_figures_are_those_of_the_result():
    curve = RESULTS["curve"]
    assert repr(curve) == (
        f"RiskCoverageCurve(cases=400, points=401, aurc={curve.aurc:.4g}, augrc={curve.augrc:.4g}, "
        f"normalised_aurc={curve.normalised_aurc:.4g}, full_risk=0.25)"
    )
    assert repr(RESULTS["policy"]).startswith("Policy(status='certified', estimator='sdc', threshold=")
    assert str(RESULTS["interval"]).startswith("aurc 0.12")
    assert "Mean Dice not estimated. Drift detected" in str(RESULTS["mean"])
    assert "another scanner" in RESULTS["estimated"]._repr_html_()


ROWS = {
    "curve": lambda curve: curve.coverages.size,
    "certificate": lambda certificate: len(certificate.steps),
    "conformal": lambda bounds: len(bounds.cells),
    "not fitted": lambda bounds: 0,
    "intervals": lambda intervals: intervals.lower.size,
    "recalibration": lambda curve: len(curve.dice),
    "martingale": lambda check: len(check.history),
    "audit": lambda audit: len(audit.history),
}


@pytest.mark.needs("pandas")
@pytest.mark.parametrize("name", ROWS)
def test_rows_become_a_table_of_pandas(name):
    frame = RESULTS[name].to_dataframe()
    assert len(frame) == ROWS[name](RESULTS[name])
    assert frame.shape[1] > 1


@pytest.mark.needs("pandas")
def test_the_tests_of_a_certificate_in_their_order():
    frame = CERTIFICATE.to_dataframe()
    assert list(frame) == ["threshold", "accepted", "p_value", "level", "passed"]
    assert frame["threshold"].tolist() == [step.threshold for step in CERTIFICATE.steps]
    assert frame["passed"].sum() == sum(step.passed for step in CERTIFICATE.steps)


def test_a_table_of_scores_is_one_short_line():
    rows = [{"case": f"case {i}", "sdc": i / 151, "dice": 0.5} for i in range(151)]
    assert repr(Table.of(rows)) == "Table(rows=151, columns=[case, sdc, dice], source='table')"


def test_the_ids_of_a_scaling_are_not_shown():
    scaling = st.TemperatureScaling(2.0, used_ids=frozenset(["patient 7"]), n_cases=1)
    assert "patient 7" not in repr(scaling)
    assert scaling != st.TemperatureScaling(2.0, n_cases=1)


@pytest.mark.needs("pandas")
def test_structures_and_cases_become_tables():
    made = structures()
    frame = made.to_dataframe()
    assert frame["structure"].tolist() == list(made.policies)
    assert frame["threshold"].tolist() == [policy.threshold for policy in made.policies.values()]
    cases = CASES.to_dataframe()
    assert (list(cases), len(cases)) == (["id", "confidence", "loss"], 400)
    grouped = st.CalibrationCases([0.9, 0.4], [0.1, 0.5], patients=["a", "b"]).to_dataframe()
    assert list(grouped) == ["patient", "confidence", "loss"]


@pytest.mark.needs("pandas")
def test_reliability_shows_itself_and_becomes_a_table():
    p, truth = GRID.reshape(20, 20), GRID.reshape(20, 20) > 0.4
    found = reliability([st.Case(st.Prediction(p), truth)])
    assert repr(found).startswith("Reliability(pixels=400, bins=")
    assert len(repr(found)) < 160
    assert found._repr_html_().startswith("<div>")
    frame = found.to_dataframe()
    assert frame["pixels"].sum() == 400
    assert np.array_equal(frame["lower_edge"], found.edges[:-1])
