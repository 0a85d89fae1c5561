"""Bootstrap intervals: repeatable, of the right size, and correct for degenerate tables."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, strategies as hypothesis_st
from hypothesis.extra.numpy import arrays
from scipy import stats

import segtrust as st
from segtrust.errors import (
    CaseLengthError,
    CaseValueError,
    ParameterError,
    TooFewCasesError,
    UnknownNameError,
)
from segtrust.selective import (
    Bootstrap,
    bootstrap_interval,
    coverage_at_risk,
    resampled_interval,
    risk_band,
    risk_coverage_curve,
)
from segtrust.selective.bootstrap import (
    STATISTICS,
    Sample,
    acceleration,
    bca_levels,
    compute_interval,
    conservative_interval,
    get_statistic,
    median_bias,
)
from segtrust.selective.curve import trace_curve

FEW = Bootstrap(resamples=500)
ALL = ("aurc", "augrc", "e_aurc", coverage_at_risk(0.2))


def cases(seed=0, n=60):
    rng = np.random.default_rng(seed)
    loss = rng.beta(2, 8, n)
    return -loss + 0.1 * rng.standard_normal(n), loss


def ends(interval):
    return interval.low, interval.high


@pytest.mark.parametrize("statistic", ALL, ids=str)
@pytest.mark.parametrize("method", ["bca", "percentile"])
def test_estimate_is_that_of_the_curve_and_lies_inside(statistic, method):
    confidence, loss = cases()
    options = Bootstrap(resamples=1000, method=method)
    interval = bootstrap_interval(confidence, loss, statistic, bootstrap=options)
    curve = risk_coverage_curve(confidence, loss)
    expected = getattr(curve, statistic) if isinstance(statistic, str) else curve.coverage_at_risk(0.2)
    assert interval.estimate == pytest.approx(expected, abs=1e-15)
    assert interval.low <= interval.estimate <= interval.high
    assert interval.low < interval.high
    assert interval.units == 60


@pytest.mark.parametrize("statistic", ALL, ids=str)
def test_few_cases_and_resamples(statistic):
    few = Bootstrap(resamples=100, level=0.8, method="percentile")
    confidence, loss = cases(n=8)
    interval = bootstrap_interval(confidence, loss, statistic, bootstrap=few)
    assert interval.low <= interval.estimate <= interval.high
    assert interval.low < interval.high
    reverse = bootstrap_interval(confidence[::-1], loss[::-1], statistic, bootstrap=few)
    assert reverse.estimate == pytest.approx(interval.estimate, abs=1e-15)
    wider = bootstrap_interval(confidence, loss, statistic, bootstrap=replace(few, level=0.99))
    assert wider.low <= interval.low <= interval.high <= wider.high


def test_the_same_seed_gives_the_same_ends_whatever_the_threads():
    alone = bootstrap_interval(*cases())
    for threads in (1, 2, 3):
        with st.use_threads(threads):
            assert bootstrap_interval(*cases()) == alone
    assert ends(bootstrap_interval(*cases(), bootstrap=Bootstrap(seed=1))) != ends(alone)


@pytest.mark.parametrize(("method", "other"), [("bca", "BCa"), ("percentile", "percentile")])
def test_ends_are_those_of_scipy(method, other):
    """SciPy resamples the same statistic in a Python loop, with another generator."""
    confidence, loss = cases(n=40)

    def aurc(*drawn):
        return risk_coverage_curve(*drawn).aurc

    options = {"paired": True, "vectorized": False, "n_resamples": 4000, "rng": 0, "method": other}
    expected = stats.bootstrap((confidence, loss), aurc, **options)
    interval = bootstrap_interval(confidence, loss, bootstrap=Bootstrap(method=method))
    tolerance = 0.12 * expected.standard_error
    assert ends(interval) == pytest.approx(tuple(expected.confidence_interval), abs=tolerance)


def test_whole_patients_make_longer_intervals():
    confidence, loss = cases(n=40)
    repeated = [np.repeat(values, 5) for values in (confidence, loss)]
    patients = np.repeat(np.arange(40), 5)
    alone = bootstrap_interval(confidence, loss)
    together = bootstrap_interval(*repeated, patients=patients)
    apart = bootstrap_interval(*repeated)
    assert ends(together) == pytest.approx(ends(alone), abs=1e-12)  # the same evidence, five times over
    assert together.units == 40
    assert apart.high - apart.low < 0.6 * (together.high - together.low)


def test_names_of_patients_may_be_anything():
    confidence, loss = cases(n=6)
    intervals = [
        bootstrap_interval(confidence, loss, patients=patients, bootstrap=FEW)
        for patients in (["b", "b", "a", "a", "c", "c"], [7, 7, 3, 3, 9, 9], [7.0, 7.0, 3.0, 3.0, 9.0, 9.0])
    ]
    assert intervals[0] == intervals[1] == intervals[2]


def test_cases_without_weight_are_ignored():
    confidence, loss = cases(n=30)
    weights = np.tile([1.0, 0.0, 2.0], 10)
    counted = weights > 0
    interval = bootstrap_interval(confidence, loss, weights=weights)
    assert interval.units == 20
    assert interval == bootstrap_interval(confidence[counted], loss[counted], weights=weights[counted])
    scaled = bootstrap_interval(confidence, loss, weights=1e200 * weights)
    assert ends(scaled) == pytest.approx(ends(interval))


@pytest.mark.parametrize("method", ["bca", "percentile"])
def test_equal_losses_make_an_interval_of_length_zero(method):
    interval = bootstrap_interval(np.arange(20), np.full(20, 0.3), bootstrap=Bootstrap(method=method))
    assert ends(interval) == (interval.estimate, interval.estimate)
    assert interval.estimate == pytest.approx(0.3)


def test_a_risk_that_is_never_reached_is_coverage_zero():
    interval = bootstrap_interval([0.1, 0.2, 0.3], [0.9, 0.8, 0.7], coverage_at_risk(0.1))
    assert (interval.estimate, interval.low, interval.high) == (0, 0, 0)


def test_all_tied():
    interval = bootstrap_interval(np.zeros(50), np.random.default_rng(0).random(50))
    assert interval.low < interval.estimate < interval.high


def test_large_losses_do_not_overflow():
    rng = np.random.default_rng(0)
    confidence, loss = rng.random(40), rng.random(40)
    usual, large = (bootstrap_interval(confidence, loss * scale) for scale in (1.0, 1e200))
    assert large.low == pytest.approx(usual.low * 1e200)


def test_many_units_are_left_out_in_groups():
    options = Bootstrap(resamples=1000)
    assert options.groups(1000).tolist() == list(range(1000))
    sizes = np.bincount(options.groups(2500))
    assert sizes.size == 1000
    assert set(sizes) == {2, 3}
    interval = bootstrap_interval(*cases(n=2500), bootstrap=options)
    assert interval.low < interval.estimate < interval.high


def test_rejected_cases():
    with pytest.raises(TooFewCasesError, match="at least 2 cases"):
        bootstrap_interval([0.1], [0.2])
    with pytest.raises(TooFewCasesError, match="patients: expected at least 2 to resample, got 1"):
        bootstrap_interval([0.1, 0.2], [0.2, 0.1], patients=["a", "a"])
    with pytest.raises(TooFewCasesError, match="cases: expected at least 2 to resample, got 1"):
        bootstrap_interval([0.1, 0.2], [0.2, 0.1], weights=[0, 1])
    with pytest.raises(CaseLengthError, match="patients"):
        bootstrap_interval([0.1, 0.2], [0.2, 0.1], patients=["a"])
    with pytest.raises(CaseValueError, match="patients: expected text or a number"):
        bootstrap_interval([0.1, 0.2], [0.2, 0.1], patients=["a", None])
    with pytest.raises(CaseValueError, match="loss"):
        bootstrap_interval([0.1, 0.2], [0.2, np.nan])


@pytest.mark.parametrize(
    "bad",
    [{"level": 1.0}, {"level": 0}, {"method": "basic"}, {"resamples": 99}, {"seed": -1}, {"seed": None}],
)
def test_rejected_options(bad):
    with pytest.raises(ParameterError, match=next(iter(bad))):
        Bootstrap(**bad)


def test_what_is_not_a_bootstrap():
    with pytest.raises(ParameterError, match=r"bootstrap: expected Bootstrap\(...\), got 500"):
        bootstrap_interval([0.1, 0.2], [0.1, 0.2], bootstrap=500)


def test_the_suited_method():
    confidence, loss = cases()
    assert bootstrap_interval(confidence, loss).bootstrap == Bootstrap(method="bca")
    options = Bootstrap(resamples=100, seed=1)
    coverage = bootstrap_interval(confidence, loss, coverage_at_risk(0.3), bootstrap=options)
    assert coverage.bootstrap == replace(options, method="percentile")
    assert st.compare_estimators(confidence, -loss, loss, bootstrap=options).bootstrap.method == "percentile"
    chosen = Bootstrap(resamples=100, method="bca")
    assert st.compare_estimators(confidence, -loss, loss, bootstrap=chosen).bootstrap.method == "bca"


class TestStatistic:
    def test_by_name_and_as_they_are(self):
        assert get_statistic("aurc") is STATISTICS["aurc"]
        assert all(statistic.name == name for name, statistic in STATISTICS.items())
        assert get_statistic(coverage_at_risk(0.1)) == coverage_at_risk(0.1)
        assert coverage_at_risk(0.1).target == 0.1

    def test_an_unknown_name_lists_the_known_ones(self):
        for bad in ("auroc", [], None, 3):
            with pytest.raises(
                UnknownNameError, match=r"Unknown statistic .*aurc, augrc, e_aurc, or coverage_at_risk\("
            ):
                bootstrap_interval([0.1, 0.2], [0.1, 0.2], bad)

    def test_rejected_targets(self):
        for bad in (-0.1, float("nan"), "0.1", None, True):
            with pytest.raises(ParameterError, match="target"):
                coverage_at_risk(bad)


class TestInterval:
    @pytest.mark.parametrize("level", [0.5, 0.9])
    def test_percentiles_leave_equal_tails(self, level):
        values = np.random.default_rng(0).permutation(101) / 100
        options = Bootstrap(level=level, method="percentile")
        expected = (1 - level) / 2, (1 + level) / 2
        assert compute_interval(values, 0.5, None, options) == pytest.approx(expected)

    def test_bca_moves_the_ends(self):
        """Three quarters of the resamples lie below the estimate, so both ends move up."""

        class Resamples:
            units = 20

            def left_out(self, groups):
                return np.sqrt(groups)

        values, levels = np.linspace(0, 1, 101), np.array([0.1, 0.9])
        low, high = compute_interval(values, 0.75, Resamples(), Bootstrap(level=0.8, method="bca"))
        assert (low, high) == pytest.approx(bca_levels(values, 0.75, np.sqrt(np.arange(20)), levels))
        assert low > 0.3
        assert high > 0.95

    def test_values_that_differ_only_by_rounding_are_equal(self):
        values = 0.3 + np.array([0.0, 1e-16, -1e-16])
        assert compute_interval(values, 0.3, None, Bootstrap(method="percentile")) == (0.3, 0.3)


class TestBca:
    levels = np.array([0.025, 0.975])

    def test_bias_counts_equal_values_half(self):
        assert median_bias(np.array([0.0, 1, 1, 1]), 1.0) == pytest.approx(stats.norm.ppf(2.5 / 4))
        assert median_bias(np.array([0.1 + 0.2, 0.1, 0.5]), 0.3) == 0

    def test_bias_stays_finite_if_all_lie_on_one_side(self):
        assert median_bias(np.zeros(1000), 1.0) == pytest.approx(stats.norm.ppf(0.9995))

    def test_without_bias_and_acceleration_the_levels_stay(self):
        values = np.linspace(-1, 1, 1001)
        np.testing.assert_allclose(bca_levels(values, 0.0, np.ones(9), self.levels), self.levels)

    def test_acceleration_of_a_mean_is_a_sixth_of_its_skewness(self):
        x = np.random.default_rng(0).exponential(size=50)
        without = (x.sum() - x) / 49
        assert acceleration(without) == pytest.approx(stats.skew(x) / (6 * np.sqrt(50)))

    def test_acceleration_does_not_depend_on_the_scale(self):
        x = np.random.default_rng(0).exponential(size=50)
        for scale in (1e-200, 1e200):
            assert acceleration(x * scale) == pytest.approx(acceleration(x))

    def test_levels_are_those_of_scipy(self):
        """The interval of a mean, from the very resamples that SciPy drew."""
        x = np.random.default_rng(1).exponential(size=40)
        result = stats.bootstrap((x,), np.mean, n_resamples=5000, rng=2, method="BCa")
        levels = bca_levels(result.bootstrap_distribution, x.mean(), (x.sum() - x) / 39, self.levels)
        low, high = np.quantile(result.bootstrap_distribution, levels)
        assert (low, high) == pytest.approx(tuple(result.confidence_interval), abs=2e-3)

    def test_a_correction_beyond_its_range_ends_at_the_extremes(self):
        extreme = np.array([1e-9, 1 - 1e-9])
        levels = bca_levels(np.array([0.0, 1, 1, 1]), 1.0, np.array([0.0, 0, 0, 9]), extreme)
        assert np.all((levels >= 0) & (levels <= 1))
        assert levels[0] < levels[1]


class TestNotableLosses:
    def test_a_loss_of_one_counts_as_one(self):
        interval = bootstrap_interval([0.1, 0.2, 0.3, 0.4], [1.0, 1.0, 0.1, 0.0], bootstrap=FEW)
        assert interval.notable_losses == pytest.approx(2.01)

    def test_beyond_one_the_largest_counts_as_one(self):
        interval = bootstrap_interval([0.1, 0.2, 0.3], [5.0, 2.5, 0.0], bootstrap=FEW)
        assert interval.notable_losses == pytest.approx(1.25)

    def test_those_of_patients(self):
        confidence, loss = np.arange(6.0), np.array([1.0, 0.0, 0.5, 0.5, 0.0, 0.0])
        interval = bootstrap_interval(
            confidence[::-1], loss[::-1], patients=[0, 0, 1, 1, 2, 2], bootstrap=FEW
        )
        assert interval.notable_losses == pytest.approx(0.5**2 + 0.5**2)

    def test_weights_on_any_scale(self):
        confidence, loss = cases(n=30)
        plain = bootstrap_interval(confidence, loss, bootstrap=FEW)
        heavy = bootstrap_interval(confidence, loss, weights=np.full(30, 7.0), bootstrap=FEW)
        assert heavy.notable_losses == pytest.approx(plain.notable_losses) == pytest.approx(np.sum(loss**2))

    def test_few_are_marked(self):
        confidence, loss = np.arange(100.0), np.repeat([1.0, 0.0], [19, 81])
        few = bootstrap_interval(confidence, loss, bootstrap=FEW)
        assert few.few_losses
        assert 'few notable losses (19.0); use Bootstrap(method="conservative")' in str(few)
        assert few._shown()["few_losses"]
        loss[19] = 1.0
        enough = bootstrap_interval(confidence, loss, bootstrap=FEW)
        assert not enough.few_losses
        assert "notable" not in str(enough)

    def test_neither_conservative_intervals_nor_coverages_are_marked(self):
        options = replace(FEW, method="conservative")
        assert not bootstrap_interval(*cases(), bootstrap=options).few_losses
        assert not bootstrap_interval(*cases(), coverage_at_risk(0.2), bootstrap=FEW).few_losses


CAREFUL = Bootstrap(resamples=300, method="conservative")
eighths = hypothesis_st.integers(0, 8).map(lambda i: i / 8)
tables = hypothesis_st.integers(2, 12).flatmap(
    lambda n: hypothesis_st.tuples(*(arrays(np.float64, n, elements=eighths) for _ in range(2)))
)


class TestConservative:
    @pytest.mark.parametrize("statistic", ["aurc", "augrc", "e_aurc"])
    @pytest.mark.parametrize("grouped", [False, True])
    def test_ends_are_those_of_curves_with_one_more_unit(self, statistic, grouped):
        """Weighted curves, one after the other, of all cases and of one that is tied to a ranked case."""
        rng = np.random.default_rng(3)
        confidence, loss, weights = rng.integers(0, 9, 20) / 9, rng.integers(0, 5, 20) / 4, 1 + rng.random(20)
        patients = np.arange(20) // 3 if grouped else np.arange(20)
        units = patients.max() + 1
        statistic = get_statistic(statistic)
        rankings = [(1.0, confidence)] + ([(-1.0, -loss)] if statistic.minus_oracle else [])
        sample = Sample.of(loss, 20, patients, weights)
        found = conservative_interval(sample.resamples(statistic, rankings), 0.3, CAREFUL)

        rng, weights = np.random.default_rng(0), weights / weights.mean()
        ranked = np.argsort(-confidence, kind="stable")
        ranks = np.searchsorted(np.cumsum(weights[ranked]), 20 * rng.random(300), side="right")
        values = {0.0: [], 1.0: []}
        for rank in ranks:
            drawn = rng.standard_exponential(units + 1)
            masses = np.append(drawn[patients] * weights, drawn[-1] * 20 / units)
            for unseen, areas in values.items():
                area = 0.0
                for sign, scores in rankings:
                    place = scores.max() if unseen == 0 else scores.min()
                    if unseen == 1 and sign > 0:
                        place = confidence[ranked[rank]]
                    curve = trace_curve(np.append(scores, place), np.append(loss, unseen), masses)
                    area += sign * (curve.augrc if statistic.kind == "augrc" else curve.aurc)
                areas.append(area)
        expected = min(0.3, np.quantile(values[0.0], 0.025)), max(0.3, np.quantile(values[1.0], 0.975))
        assert found == pytest.approx(expected, abs=1e-12)

    @pytest.mark.parametrize("failures", [0, 3, 40])
    def test_is_that_of_clopper_and_pearson_if_all_are_tied(self, failures):
        loss = (np.arange(40) < failures).astype(float)
        options = Bootstrap(resamples=40_000, method="conservative")
        interval = bootstrap_interval(np.zeros(40), loss, bootstrap=options)
        assert ends(interval) == pytest.approx(stats.binomtest(failures, 40).proportion_ci(), abs=4e-3)

    @given(tables, hypothesis_st.sampled_from(["aurc", "augrc"]), hypothesis_st.floats(0.01, 0.99))
    def test_contains_the_estimate_and_stays_in_the_range_of_losses(self, table, statistic, level):
        sample = Sample.of(table[1], table[0].size)
        estimate = sample.value(get_statistic(statistic), table[0])
        resamples = sample.resamples(get_statistic(statistic), [(1.0, table[0])])
        options = Bootstrap(resamples=100, level=level, method="conservative")
        low, high = conservative_interval(resamples, estimate, options)
        assert 0 <= low <= estimate <= high <= 1
        wider = conservative_interval(resamples, estimate, replace(options, level=0.995))
        assert wider[0] <= low <= high <= wider[1]

    def test_contains_the_true_value_if_failures_are_rare(self):
        """Of 30 cases 2 % fail; more than half of the samples contain no failure at all."""
        rng, contained = np.random.default_rng(0), np.zeros(2)
        for seed in range(200):
            loss, confidence = (rng.random(30) < 0.02).astype(float), rng.random(30)
            for at, method in enumerate(("bca", "conservative")):
                options = Bootstrap(resamples=200, method=method, seed=seed)
                interval = resampled_interval(confidence, loss, bootstrap=options)
                contained[at] += interval.low <= 0.02 <= interval.high
        assert contained[0] < 0.6 * 200
        assert contained[1] >= 0.93 * 200

    def test_the_same_for_the_same_seed_in_any_number_of_parts(self, monkeypatch):
        whole = bootstrap_interval(*cases(), bootstrap=CAREFUL)
        monkeypatch.setattr("segtrust.selective.bootstrap._DRAWS_AT_A_TIME", 500)
        assert bootstrap_interval(*cases(), bootstrap=CAREFUL) == whole
        assert ends(bootstrap_interval(*cases(), bootstrap=replace(CAREFUL, seed=1))) != ends(whole)

    def test_is_wider_where_few_losses_were_seen(self):
        few, plain = (bootstrap_interval(*cases(n=30), bootstrap=options) for options in (CAREFUL, None))
        assert few.low < plain.low
        assert few.high > plain.high + 0.05

    def test_losses_above_one_are_rejected(self):
        with pytest.raises(CaseValueError, match=r"loss: expected a loss in \[0, 1\], got 1.5"):
            bootstrap_interval([0.1, 0.2], [1.5, 0.2], bootstrap=CAREFUL)

    def test_is_for_areas_alone(self):
        confidence, loss = cases()
        rejected = [
            lambda: bootstrap_interval(confidence, loss, coverage_at_risk(0.1), bootstrap=CAREFUL),
            lambda: st.compare_estimators(confidence, -loss, loss, bootstrap=CAREFUL),
            lambda: risk_band(confidence, loss, [0.5], bootstrap=CAREFUL),
        ]
        for call in rejected:
            with pytest.raises(ParameterError, match='"conservative" is for the areas'):
                call()


class TestRiskBand:
    coverages = np.linspace(0.05, 1.0, 20)

    @staticmethod
    def cases(n=200, seed=0):
        rng = np.random.default_rng(seed)
        confidence = rng.random(n)
        return confidence, np.clip(1.0 - confidence + rng.normal(0.0, 0.2, n), 0.0, 1.0)

    def test_a_band_is_that_of_curves_of_resamples(self):
        confidence, loss = self.cases(60)
        band = risk_band(confidence, loss, self.coverages, bootstrap=Bootstrap(resamples=100))
        rng, risks = np.random.default_rng(0), []
        for _ in range(100):
            at = rng.integers(0, 60, 60)
            curve = risk_coverage_curve(confidence[at], loss[at])
            risks.append([curve.risk_at_coverage(coverage) for coverage in self.coverages])
        low, high = np.quantile(risks, [0.025, 0.975], axis=0)
        np.testing.assert_allclose(band.low, low, atol=1e-12)
        np.testing.assert_allclose(band.high, high, atol=1e-12)

    def test_bands_contain_the_true_risk_about_as_often_as_they_say(self):
        truth = risk_coverage_curve(*self.cases(100_000, seed=99)).risk_at_coverage(0.5)
        contained = 0
        for seed in range(100):
            band = risk_band(*self.cases(seed=seed), [0.5], bootstrap=Bootstrap(resamples=200, seed=seed))
            contained += bool(band.low[0] <= truth <= band.high[0])
        assert contained >= 88

    def test_ties_are_accepted_together(self):
        band = risk_band(np.ones(10), np.linspace(0.0, 1.0, 10), [0.0, 0.1, 1.0])
        assert np.ptp(band.low) == 0
        assert np.ptp(band.high) == 0

    def test_patients_are_drawn_as_wholes(self):
        confidence, loss = self.cases(40)
        alone = risk_band(confidence, loss, [1.0])
        patients = np.tile(np.arange(40), 4)
        repeated = risk_band(np.tile(confidence, 4), np.tile(loss, 4), [1.0], patients=patients)
        np.testing.assert_allclose(alone.high - alone.low, repeated.high - repeated.low, rtol=0.2)

    def test_one_case_is_too_few(self):
        with pytest.raises(TooFewCasesError):
            risk_band([0.5], [0.5], [1.0])


@pytest.mark.slow
@pytest.mark.parametrize("statistic", ["aurc", "augrc"])
@pytest.mark.parametrize("method", ["bca", "percentile"])
def test_intervals_contain_the_true_value_as_often_as_they_say(statistic, method):
    """95 % intervals, 100 cases, 1000 draws: between 92.5 and 97 % contain the value of a million cases."""
    truth = getattr(risk_coverage_curve(*cases(99, 10**6)), statistic)
    options = Bootstrap(resamples=999, method=method)
    intervals = [bootstrap_interval(*cases(seed, 100), statistic, bootstrap=options) for seed in range(1000)]
    assert 0.925 < np.mean([interval.low <= truth <= interval.high for interval in intervals]) < 0.97


@pytest.mark.slow
def test_intervals_of_patients_contain_the_true_value():
    """Four similar cases per patient; 60 patients."""

    def clustered(seed, patients):
        rng = np.random.default_rng(seed)
        own = rng.beta(2, 8, patients)
        loss = np.clip(np.repeat(own, 4) + 0.02 * rng.standard_normal(4 * patients), 0, 1)
        shift = np.repeat(0.1 * rng.standard_normal(patients), 4)
        return -loss + shift, loss, np.repeat(np.arange(patients), 4)

    truth = risk_coverage_curve(*clustered(99, 200_000)[:2]).aurc
    options = Bootstrap(resamples=999, method="percentile")
    hits = np.zeros(2)
    for seed in range(500):
        confidence, loss, patients = clustered(seed, 60)
        for at, units in enumerate((patients, None)):
            interval = bootstrap_interval(confidence, loss, patients=units, bootstrap=options)
            hits[at] += interval.low <= truth <= interval.high
    together, apart = hits / 500
    assert together > 0.91
    assert apart < 0.8


@pytest.mark.parametrize("coverages", [[-0.1], [0.5, 1.1]])
def test_a_band_is_for_coverages(coverages):
    with pytest.raises(ParameterError, match="coverages: expected"):
        risk_band([0.9, 0.1], [0.0, 1.0], coverages)


def test_a_band_takes_options_of_a_bootstrap():
    with pytest.raises(ParameterError, match=r"bootstrap: expected Bootstrap\(...\), got 500"):
        risk_band([0.9, 0.1], [0.0, 1.0], [0.5], bootstrap=500)
