"""The risk-coverage curve: compared with a slow one, on degenerate tables, its areas, errors and drawing."""

import sys
from dataclasses import FrozenInstanceError

import numpy as np
import pytest
from hypothesis import given, strategies as some

import segtrust as st
from segtrust.errors import (
    CaseLengthError,
    CaseValueError,
    ParameterError,
    TooFewCasesError,
    UnknownNameError,
)
from segtrust.selective import CONVENTIONS, risk_coverage_curve
from tests.selective import brute

pytestmark = pytest.mark.filterwarnings(
    "ignore:.*more confident cases have:segtrust.errors.SegtrustWarning"  # random confidences, by chance
)


def check(curve, confidence, loss, weights=None):
    coverages, risks, thresholds = brute.points(confidence, loss, weights)
    np.testing.assert_allclose(curve.coverages, coverages, rtol=0, atol=1e-14)
    np.testing.assert_allclose(curve.risks, risks, rtol=0, atol=1e-14)
    np.testing.assert_array_equal(curve.thresholds, thresholds)
    areas = {
        "paper": brute.area(coverages, risks),
        "plugin": brute.plugin(confidence, loss, weights),
        "trapezoid-from-first": brute.area(coverages[1:], risks[1:]),
    }
    for convention, area in areas.items():
        assert curve.area(convention) == pytest.approx(area, abs=1e-14)
    assert curve.aurc == curve.area("paper")
    assert curve.augrc == pytest.approx(brute.generalised(coverages, risks), abs=1e-14)


@pytest.mark.parametrize("weighted", [False, True])
def test_many_small_inputs(weighted):
    rng = np.random.default_rng(weighted)
    for n in rng.integers(2, 10, 800):
        confidence, loss, weights = brute.cases(rng, n, levels=rng.choice([None, 1, 3, 8]), weighted=weighted)
        check(risk_coverage_curve(confidence, loss, weights=weights), confidence, loss, weights)


@given(some.lists(some.tuples(some.floats(-1e300, 1e300), some.floats(0, 1)), min_size=2, max_size=30))
def test_any_numbers(cases):
    confidence, loss = np.array(cases).T
    check(risk_coverage_curve(confidence, loss), confidence, loss)


def test_coverages_are_the_nearest_numbers_to_the_shares():
    for n in range(2, 200):
        curve = risk_coverage_curve(np.arange(n), np.ones(n))
        assert curve.coverages.tolist() == [k / n for k in range(n + 1)]


def test_whole_weights_are_repetitions():
    confidence, loss, times = np.array([3, 1, 2, 1.0]), np.array([0.1, 0.9, 0.3, 0]), np.array([1, 2, 0, 3])
    weighted = risk_coverage_curve(confidence, loss, weights=times)
    repeated = risk_coverage_curve(np.repeat(confidence, times), np.repeat(loss, times))
    np.testing.assert_allclose(weighted.coverages, repeated.coverages)
    np.testing.assert_allclose(weighted.risks, repeated.risks)
    for convention in ("paper", "plugin"):
        assert weighted.area(convention) == pytest.approx(repeated.area(convention))


@given(some.permutations(range(12)))
def test_the_order_of_the_cases_does_not_matter(order):
    confidence, loss, _ = brute.cases(np.random.default_rng(3), 12, levels=4)
    first, second = (risk_coverage_curve(confidence[o], loss[o]) for o in (np.arange(12), np.array(order)))
    np.testing.assert_allclose(first.risks, second.risks, atol=1e-15)
    assert first.aurc == pytest.approx(second.aurc, abs=1e-15)


def test_a_long_vector_is_summed_accurately():
    rng = np.random.default_rng(2)
    confidence, loss = rng.random(200_000), rng.random(200_000)
    curve = risk_coverage_curve(confidence, loss)
    order = np.argsort(-confidence)
    exact = np.cumsum(loss[order].astype(np.longdouble)) / np.arange(1, loss.size + 1)
    np.testing.assert_allclose(curve.risks[1:], exact.astype(float), rtol=1e-14)
    assert np.ptp([curve.area(convention) for convention in CONVENTIONS]) < 1e-4  # they agree for many cases


def test_partial_sums_keep_small_losses():
    """Added one by one to a sum of 2⁵³, the last 1024 losses of 1 would be lost."""
    loss = np.ones(2048)
    loss[0] = 2.0**53
    curve = risk_coverage_curve(-np.arange(2048), loss)
    assert curve.coverages.tolist() == [k / 2048 for k in range(2049)]
    assert curve.full_risk * 2048 - 2.0**53 >= 1024


def test_all_tied_is_the_mean():
    curve = risk_coverage_curve([0.5] * 4, [0.1, 0.2, 0.3, 0.4])
    assert curve.coverages.tolist() == [0, 1]
    assert curve.aurc == curve.area("plugin") == curve.full_risk == pytest.approx(0.25)
    assert curve.area("trapezoid-from-first") == 0
    assert curve.augrc == pytest.approx(0.125)
    assert curve.normalised_aurc == pytest.approx(1)


def test_zeros_of_both_signs_are_one_block():
    assert risk_coverage_curve([0.0, -0.0, 0.0], [0, 1, 0.5]).thresholds.size == 2


@pytest.mark.parametrize("loss", [[0.3] * 7, [0.0] * 7, [1 / 3] * 7])
def test_equal_losses_leave_nothing_to_rank(loss):
    curve = risk_coverage_curve(np.arange(7), loss)
    assert curve.e_aurc == pytest.approx(0, abs=1e-15)
    assert [curve.normalised(convention) for convention in ("paper", "plugin")] == [0, 0]


def test_infinities_are_rejected_and_huge_confidences_are_not():
    assert risk_coverage_curve([1e308, -1e308], [0, 1]).risks.tolist() == [0, 0, 0.5]
    with pytest.raises(CaseValueError, match="got inf for case 1"):
        risk_coverage_curve([0.5, np.inf], [0, 1])


def test_vectors_with_gaps_and_other_types():
    table = np.arange(24.0).reshape(12, 2)[:, ::-1] * [-1.0, 1.0] + [100.0, 0.0]
    curve = risk_coverage_curve(table[:, 0], table[:, 1])
    same = risk_coverage_curve(table[:, 0].astype(np.float32), table[:, 1].tolist())
    np.testing.assert_array_equal(curve.risks, same.risks)


class TestAreas:
    confidence, loss, _ = brute.cases(np.random.default_rng(5), 40, levels=20)
    curve = risk_coverage_curve(confidence, loss)

    def test_generalised_area_of_failures_follows_from_the_auroc(self):
        """AUGRC = (1 − AUROC)·acc·(1 − acc) + ½(1 − acc)² for losses of 0 and 1, ties or not."""
        rng = np.random.default_rng(1)
        for n in rng.integers(4, 60, 300):
            confidence = rng.integers(0, rng.integers(1, 30), n).astype(float)
            failed = rng.random(n) < 0.4
            failed[:2] = True, False
            accuracy = 1 - failed.mean()
            auroc = brute.auroc(confidence, failed)
            expected = (1 - auroc) * accuracy * (1 - accuracy) + (1 - accuracy) ** 2 / 2
            assert risk_coverage_curve(confidence, failed).augrc == pytest.approx(expected, abs=1e-12)

    def test_oracle_is_the_curve_of_the_losses(self):
        check(self.curve.oracle, -self.loss, self.loss)
        assert self.curve.oracle.normalised_aurc == 0
        assert self.curve.oracle.e_aurc == 0

    def test_random_is_the_mean_over_all_orders(self):
        loss = np.array([0.1, 0.7, 0.2, 0.9, 0.4])
        rng = np.random.default_rng(0)
        curves = [risk_coverage_curve(rng.permutation(5), loss) for _ in range(8000)]
        for convention in CONVENTIONS:
            mean = np.mean([curve.area(convention) for curve in curves])
            assert curves[0].random_area(convention) == pytest.approx(mean, abs=0.005)
        assert np.mean([curve.augrc for curve in curves]) == pytest.approx(loss.mean() / 2, abs=0.005)

    def test_random_is_flat(self):
        assert self.curve.random.risks.tolist() == [self.curve.full_risk] * 2
        assert self.curve.random.aurc == pytest.approx(self.loss.mean())
        assert self.curve.random.normalised_aurc == pytest.approx(1)

    def test_random_area_from_the_first_block_ignores_cases_of_weight_zero(self):
        curve = risk_coverage_curve([4, 3, 2, 1], [0.5] * 4, weights=[1, 0, 1, 0])
        assert curve.random_area("trapezoid-from-first") == 0.25

    @pytest.mark.parametrize("convention", CONVENTIONS)
    def test_scale_of_the_normalised_area(self, convention):
        loss = np.array([0.1, 0.5, 0.2, 0.9, 0.0])
        best, worst = risk_coverage_curve(-loss, loss), risk_coverage_curve(loss, loss)
        assert best.normalised(convention) == pytest.approx(0, abs=1e-15)
        oracle, random = best.area(convention), best.random_area(convention)
        expected = (worst.area(convention) - oracle) / (random - oracle)
        assert worst.normalised(convention) == pytest.approx(expected)
        assert expected > 1

    def test_oracle_has_the_smallest_augrc_of_all(self):
        rng = np.random.default_rng(1)
        for _ in range(200):
            confidence = rng.integers(0, rng.integers(1, 40), self.loss.size)
            assert risk_coverage_curve(confidence, self.loss).augrc >= self.curve.oracle.augrc - 1e-15

    def test_ties_can_beat_the_oracle_in_the_trapezoid(self):
        """The reason why `excess` may be negative under ties."""
        curve = risk_coverage_curve([2, 1, 1], [0, 0.999, 1])
        assert curve.e_aurc < 0
        assert curve.augrc == pytest.approx(curve.oracle.augrc, abs=1e-3)

    def test_unknown_convention(self):
        for method in (self.curve.area, self.curve.random_area, self.curve.excess, self.curve.normalised):
            for convention in ("geifman", "generalised"):
                with pytest.raises(UnknownNameError, match="available: paper, plugin, trapezoid-from-first"):
                    method(convention)


class TestPoints:
    curve = risk_coverage_curve([0.9, 0.8, 0.8, 0.4, 0.1], [0.2, 0.0, 0.1, 0.2, 1.0])

    @pytest.mark.parametrize(
        ("coverage", "risk"), [(0, 0.2), (0.2, 0.2), (0.21, 0.1), (0.6, 0.1), (0.7, 0.125), (1, 0.3)]
    )
    def test_risk_at_coverage(self, coverage, risk):
        assert self.curve.risk_at_coverage(coverage) == pytest.approx(risk)

    def test_rounding_of_a_coverage_costs_no_block(self):
        curve = risk_coverage_curve(-np.arange(10), np.arange(10) / 10)
        for coverage in np.linspace(0, 1, 11)[1:]:
            assert curve.risk_at_coverage(coverage) == curve.risks[round(10 * coverage)]

    @pytest.mark.parametrize(
        ("target", "coverage"), [(0.05, None), (0.1, 0.6), (0.15, 0.8), (0.2, 0.8), (0.3, 1), (7, 1)]
    )
    def test_coverage_at_risk(self, target, coverage):
        assert self.curve.coverage_at_risk(target) == coverage

    def test_the_mean_loss_is_reached_by_all_cases(self):
        rng = np.random.default_rng(0)
        for _ in range(300):
            loss = rng.random(50)
            assert risk_coverage_curve(rng.random(50), loss).coverage_at_risk(loss.mean()) == 1

    def test_coverage_at_risk_compared_with_a_slow_one(self):
        rng = np.random.default_rng(7)
        for n in rng.integers(2, 10, 500):
            confidence, loss, _ = brute.cases(rng, n, levels=4)
            target = rng.random()
            coverages, risks, _ = brute.points(confidence, loss)
            reached = [c for c, r in zip(coverages[1:], risks[1:], strict=True) if r <= target]
            coverage = risk_coverage_curve(confidence, loss).coverage_at_risk(target)
            assert coverage == (pytest.approx(max(reached)) if reached else None)

    @pytest.mark.parametrize(
        ("threshold", "coverage", "risk"),
        [
            (0.95, 0, np.nan),
            (np.inf, 0, np.nan),
            (0.9, 0.2, 0.2),
            (0.8, 0.6, 0.1),
            (0.5, 0.6, 0.1),
            (-1, 1, 0.3),
        ],
    )
    def test_at_threshold(self, threshold, coverage, risk):
        point = self.curve.at_threshold(threshold)
        assert point.threshold == threshold
        assert (point.coverage, point.risk) == pytest.approx((coverage, risk), nan_ok=True)

    def test_rejected_arguments(self):
        for bad in (-0.1, np.nan, np.inf, "0.1", None, True, [0.1]):
            with pytest.raises(ParameterError, match="target: expected a finite number of at least 0"):
                self.curve.coverage_at_risk(bad)
        for bad in (float("nan"), "x", None, [0.5], np.array([0.1, 0.2]), True):
            with pytest.raises(ParameterError, match="threshold: expected a number, got"):
                self.curve.at_threshold(bad)
        with pytest.raises(ParameterError, match=r"coverage: expected a number in \[0, 1\]"):
            self.curve.risk_at_coverage(1.1)

    @pytest.mark.needs("pandas")
    def test_to_dataframe(self):
        table = self.curve.to_dataframe()
        assert table.columns.tolist() == ["coverage", "risk", "threshold"]
        assert table.shape == (5, 3)


class TestRejectedCases:
    def test_too_few(self):
        for n in (0, 1):
            with pytest.raises(TooFewCasesError, match=f"at least 2 cases, got {n}"):
                risk_coverage_curve([0.5] * n, [0.5] * n)

    def test_lengths(self):
        with pytest.raises(CaseLengthError, match="loss: expected 2 values"):
            risk_coverage_curve([0.1, 0.2], [0.1, 0.2, 0.3])

    def test_values(self):
        for bad in (np.nan, -0.1, np.inf):
            with pytest.raises(CaseValueError, match=r"loss: .* for case 1"):
                risk_coverage_curve([0.1, 0.2], [0.1, bad])
        with pytest.raises(CaseValueError, match=r"confidence: .* got nan for case 0"):
            risk_coverage_curve([np.nan, 0.2], [0.1, 0])
        with pytest.raises(CaseValueError, match="only zeros"):
            risk_coverage_curve([0.1, 0.2], [0.1, 0], weights=[0, 0])

    def test_sums_that_overflow(self):
        large = [1e200, 1e200]
        assert risk_coverage_curve([0.1, 0.2], large).full_risk == pytest.approx(1e200)
        with pytest.raises(CaseValueError, match="loss times weights: expected a finite sum"):
            risk_coverage_curve([0.1, 0.2], large, weights=large)
        with pytest.raises(CaseValueError, match="loss: expected a finite sum"):
            risk_coverage_curve([0.1, 0.2], [1e308, 1e308])


class TestReadOnly:
    def test_nothing_can_be_changed(self):
        curve = risk_coverage_curve([0.1, 0.2], [0.1, 0], weights=[1, 2])
        for values in (curve.coverages, curve.risks, curve.thresholds, curve.loss, curve.weights):
            with pytest.raises(ValueError, match="read-only"):
                values[0] = 1
        with pytest.raises(FrozenInstanceError):
            curve.risks = None

    def test_the_input_stays_writeable_and_does_not_change_the_curve(self):
        confidence, loss = np.array([0.1, 0.2, 0.3]), np.array([0.3, 0.2, 0.1])
        curve = risk_coverage_curve(confidence, loss)
        loss[:] = 9
        confidence[:] = 0
        assert curve.oracle.risks.tolist() == pytest.approx([0.1, 0.1, 0.15, 0.2])

    def test_a_curve_is_equal_to_itself_only(self):
        """Comparing arrays has no single answer; so curves can be compared, and be keys."""
        curve, other = (risk_coverage_curve([0.1, 0.2], [0.1, 0]) for _ in range(2))
        assert curve != other
        assert {curve: "a", other: "b"}[curve] == "a"


@pytest.fixture
def axes():
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib.figure import Figure

    return Figure().subplots()


class TestPlot:
    curve = risk_coverage_curve([0.9, 0.8, 0.3, 0.1], [0.1, 0.0, 0.5, 0.9])

    @pytest.mark.needs("matplotlib")
    def test_three_lines_with_their_areas(self, axes):
        assert self.curve.plot(axes, label="SDC") is axes
        own, oracle, random = axes.get_lines()
        np.testing.assert_array_equal(own.get_xdata(), self.curve.coverages)
        np.testing.assert_array_equal(own.get_ydata(), self.curve.risks)
        np.testing.assert_array_equal(oracle.get_ydata(), self.curve.oracle.risks)
        np.testing.assert_array_equal(random.get_ydata(), self.curve.random.risks)
        names = [text.get_text() for text in axes.get_legend().get_texts()]
        assert names[0] == f"SDC (AURC {self.curve.aurc:.3f})"
        assert [name.split()[0] for name in names[1:]] == ["oracle", "random"]
        assert axes.get_xlabel() == "coverage"
        assert min(line.get_linewidth() for line in axes.get_lines()) > 0

    @pytest.mark.needs("matplotlib")
    def test_a_second_estimator_on_the_same_axes(self, axes):
        loss = np.linspace(0.0, 0.6, 50)
        risk_coverage_curve(-loss, loss).plot(axes)
        worse = risk_coverage_curve(np.zeros(50), loss)
        worse.plot(axes, references=False, color="tab:red", linewidth=3)
        assert len(axes.get_lines()) == 4
        assert axes.get_lines()[-1].get_color() == "tab:red"
        assert axes.get_lines()[-1].get_linewidth() == 3
        assert axes.get_ylim()[0] == 0.0
        assert axes.get_ylim()[1] >= worse.risks.max()

    @pytest.mark.needs("matplotlib")
    def test_new_axes(self):
        import matplotlib as mpl

        mpl.use("Agg")
        from matplotlib import pyplot

        drawn = self.curve.plot()
        assert len(drawn.get_lines()) == 3
        assert drawn.get_legend().get_texts()[0].get_text().startswith("confidence (AURC")
        pyplot.close(drawn.figure)

    def test_without_matplotlib_the_extra_is_named(self, monkeypatch):
        monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
        with pytest.raises(ImportError, match=r"segtrust\[plots\]"):
            self.curve.plot()


def test_public_name():
    assert st.risk_coverage_curve is risk_coverage_curve
