"""The tuning protocol: its sizes, its splits, and that each step is what it says."""

import math
from functools import partial

import numpy as np
import pytest

import segtrust as st
from segtrust.errors import ParameterError, TooFewCasesError
from segtrust.evaluation import (
    TuningOptions,
    split_cases,
    summarise_tuning,
    tuning_curve,
    tuning_sizes,
)
from segtrust.evaluation.tuning import _fingerprint
from segtrust.maps import Case, Prediction
from tests.tuning_cases import blob, blobs, losses_of

# Up to 16 sizes of the authors' data sets.
SIZES = {
    25: [*range(2, 13)],
    33: [*range(2, 17)],
    73: [2, 3, 4, 5, 6, 7, 8, 9, 11, 13, 16, 18, 22, 26, 31, 36],
    98: [2, 3, 4, 5, 6, 7, 9, 11, 13, 16, 19, 23, 28, 34, 41, 49],
    162: [2, 3, 4, 5, 6, 8, 10, 13, 16, 20, 25, 32, 40, 51, 64, 81],
    240: [2, 3, 4, 6, 7, 9, 12, 15, 20, 26, 33, 43, 56, 72, 93, 120],
    636: [2, 3, 4, 6, 8, 11, 15, 21, 30, 42, 59, 82, 115, 162, 227, 318],
    1000: [2, 3, 4, 6, 9, 13, 18, 26, 38, 55, 79, 115, 166, 239, 346, 500],
    1430: [2, 3, 4, 6, 10, 14, 21, 31, 46, 68, 101, 149, 221, 326, 483, 715],
}


class TestSizes:
    @pytest.mark.parametrize("n", SIZES)
    def test_equal_the_published_ones(self, n):
        assert tuning_sizes(n) == SIZES[n]

    @pytest.mark.parametrize("n", range(4, 300))
    def test_rise_from_two_to_half(self, n):
        found = tuning_sizes(n)
        assert found == sorted(set(found))
        assert (found[0], found[-1]) == (2, n // 2)
        assert len(found) == min(16, n // 2 - 1)

    @pytest.mark.parametrize("n", [3, 0, -1, 10.5, "9"])
    def test_too_few_cases(self, n):
        with pytest.raises(TooFewCasesError, match="at least 4 cases"):
            tuning_sizes(n)


class TestSplits:
    @pytest.mark.needs("sklearn")
    @pytest.mark.parametrize(("n", "size"), [(5, 2), (25, 12), (162, 81), (162, 2), (1000, 346)])
    def test_equal_those_of_shuffle_split(self, n, size):
        from sklearn.model_selection import ShuffleSplit

        for seed in range(20):
            ((train, test),) = ShuffleSplit(1, train_size=size, random_state=seed).split(np.zeros(n))
            for ours, theirs in zip(split_cases(n, size, seed), (train, test), strict=True):
                assert ours.tolist() == theirs.tolist()

    def test_no_case_is_in_both(self):
        tuning, test = split_cases(30, 11, seed=3)
        assert sorted([*tuning, *test]) == list(range(30))
        assert len(tuning) == 11


ESTIMATORS = ("sdc", "tla", "pla-tuned", "sdc-tuned")


def by_hand(cases, estimator, size, seed, target=None):
    """One split with fit and score, case by case."""
    order = np.random.RandomState(seed).permutation(len(cases))
    test, tuning = order[: len(cases) - size], order[len(cases) - size :]
    fitted = st.get_estimator(estimator).fit([cases[i] for i in tuning])
    scores = [fitted.score(cases[i]) for i in test]
    curve = st.risk_coverage_curve(scores, losses_of([cases[i] for i in test]))
    return fitted, curve


@pytest.fixture(scope="module")
def cases():
    return blobs(16, kind=np.uint8)


class TestCurve:
    def test_every_row_equals_one_made_by_hand(self, cases):
        target = 0.2
        rows = tuning_curve(
            cases, ESTIMATORS, [3, 8], repeats=3, seed=5, options=TuningOptions(target_risk=target)
        )
        assert len(rows) == (len(ESTIMATORS) + 2) * 2 * 3
        for row in rows:
            if row["estimator"] not in ESTIMATORS:
                continue
            _, curve = by_hand(cases, row["estimator"], row["size"], 5 + row["repeat"])
            assert row["aurc"] == pytest.approx(curve.aurc, rel=1e-10), row
            assert row["coverage"] == pytest.approx(curve.coverage_at_risk(target)), row

    def test_references_are_those_of_the_test_cases(self, cases):
        rows = tuning_curve(cases, ["sdc"], [6], repeats=2)
        for row in rows:
            _, curve = by_hand(cases, "sdc", 6, row["repeat"])
            expected = {"sdc": curve.aurc, "oracle": curve.oracle.aurc, "random": curve.full_risk}
            assert row["aurc"] == pytest.approx(expected[row["estimator"]], rel=1e-12)
            assert row["coverage"] is None

    def test_cases_from_elsewhere_are_judged_by_what_was_learned_here(self, cases):
        elsewhere = blobs(9, kind=np.uint8, first=100)
        options = TuningOptions(elsewhere=elsewhere, target_risk=0.3)
        rows = tuning_curve(cases, ["pla-tuned"], [5], repeats=3, options=options)
        assert [row["set"] for row in rows] == (["test"] * 3 + ["elsewhere"] * 3) * 3
        for row in rows:
            if (row["estimator"], row["set"]) == ("pla-tuned", "elsewhere"):
                fitted, _ = by_hand(cases, "pla-tuned", 5, row["repeat"])
                curve = st.risk_coverage_curve(
                    [fitted.score(case) for case in elsewhere], losses_of(elsewhere)
                )
                assert row["aurc"] == pytest.approx(curve.aurc, rel=1e-10)
                assert row["coverage"] == pytest.approx(curve.coverage_at_risk(0.3))

    def test_losses_follow_the_policy_for_empty_masks(self, cases):
        """A mask that is rightly empty is no error to estimators that say so."""
        right = [Case(Prediction(np.full((5, 5), 0.1), id=str(i)), np.zeros((5, 5))) for i in range(4)]
        full = {
            policy: np.mean(
                [
                    row["aurc"]
                    for row in tuning_curve([*cases, *right], [st.SoftDice(policy)], [3], repeats=5)
                    if row["estimator"] == "random"
                ]
            )
            for policy in ("paper", "agree")
        }
        assert full["paper"] - full["agree"] == pytest.approx(4 / 20, abs=0.05)

    def test_sizes_may_be_shares_and_repeat(self, cases):
        rows = tuning_curve(cases, ["sdc"], [0.25, 4, 0.5, 0.3], repeats=1)
        assert sorted({row["size"] for row in rows}) == [4, 8]

    def test_sizes_not_given_are_those_of_the_paper(self, cases):
        assert sorted({row["size"] for row in tuning_curve(cases, ["sdc"], repeats=1)}) == tuning_sizes(16)

    @pytest.mark.needs("sklearn")
    def test_forests_take_part_and_share_their_observations(self, cases):
        forests = [st.FeatureAggregation(trees=5), st.SoftDiceFeatureAggregation(trees=5)]
        rows = tuning_curve(cases, forests, [6], repeats=2)
        for row in rows[:2]:
            order = np.random.RandomState(0).permutation(16)
            fitted = forests[row["estimator"] == "aef-sdc"].fit([cases[i] for i in order[10:]])
            scores = [fitted.score(cases[i]) for i in order[:10]]
            curve = st.risk_coverage_curve(scores, losses_of([cases[i] for i in order[:10]]))
            assert row["aurc"] == pytest.approx(curve.aurc, rel=1e-10)


class Loader:
    """Loads a case when it is called; tells by a file how often."""

    def __init__(self, seed, log):
        self.seed, self.log, self.fingerprint = seed, log, [seed]

    def __call__(self):
        with self.log.open("a") as file:
            file.write("x")
        return blob(self.seed, kind=np.uint8)


class TestParts:
    @pytest.mark.needs("sklearn")
    def test_one_and_two_processes_give_the_same_numbers(self, cases):
        estimators = [*ESTIMATORS, st.FeatureAggregation(trees=4)]
        one, two = (
            tuning_curve(cases, estimators, [2, 7], repeats=3, options=TuningOptions(workers=workers))
            for workers in (1, 2)
        )
        assert one == two

    def test_maps_are_looked_at_once_and_finished_parts_are_kept(self, tmp_path):
        log = tmp_path / "log"
        loaders = [Loader(seed, log) for seed in range(8)]
        options = TuningOptions(folder=tmp_path / "parts")
        rows = tuning_curve(loaders, ["sdc", "tla"], [3], repeats=4, options=options)
        assert len(log.read_text()) == 8
        more = tuning_curve(loaders, ["sdc", "tla"], [3], repeats=6, options=options)
        assert len(log.read_text()) == 8
        assert more[: len(rows)] == rows
        assert rows == tuning_curve(
            [blob(i, kind=np.uint8) for i in range(8)], ["sdc", "tla"], [3], repeats=4
        )

    def test_steps_are_told(self, cases):
        done = []
        tuning_curve(cases, ["sdc"], [3], repeats=5, options=TuningOptions(advance=done.append))
        assert sum(done) == 16 + 5

    @pytest.mark.parametrize(
        ("change", "named"), [({"sizes": [4]}, "sizes"), ({"seed": 1}, "seed"), ({"cases": 1}, "fingerprint")]
    )
    def test_parts_of_another_run_are_refused(self, cases, tmp_path, change, named):
        options = TuningOptions(folder=tmp_path)
        tuning_curve(cases, ["sdc"], [3], repeats=2, options=options)
        others = blobs(16, kind=np.uint8, first=1) if "cases" in change else cases
        with pytest.raises(ParameterError, match=f"got one with {named}"):
            tuning_curve(
                others,
                ["sdc"],
                change.get("sizes", [3]),
                repeats=2,
                seed=change.get("seed", 0),
                options=options,
            )


class TestRefusals:
    @pytest.mark.parametrize("sizes", [[0], [-2], ["3"], [2.5], [math.nan], [math.inf], [True]])
    def test_sizes_that_are_none(self, cases, sizes):
        with pytest.raises(ParameterError, match="sizes: expected whole numbers, or shares between 0 and 1"):
            tuning_curve(cases, ["sdc"], sizes)

    @pytest.mark.parametrize("sizes", [[15], [16], [0.99], [0.01]])
    def test_sizes_that_leave_nothing(self, cases, sizes):
        with pytest.raises(TooFewCasesError, match="expected at least 1 and 2"):
            tuning_curve(cases, ["sdc"], sizes)

    def test_no_size(self, cases):
        with pytest.raises(ParameterError, match="sizes: expected at least one, got none"):
            tuning_curve(cases, ["sdc"], [])

    @pytest.mark.parametrize(("name", "value"), [("repeats", 0), ("repeats", 1.5), ("seed", -1)])
    def test_repeats_and_seeds(self, cases, name, value):
        with pytest.raises(ParameterError, match=f"{name}: expected a whole number of at least"):
            tuning_curve(cases, ["sdc"], [3], **{name: value})

    def test_seeds_that_run_out(self, cases):
        with pytest.raises(ParameterError, match="seed: expected one from which 2 seeds stay below"):
            tuning_curve(cases, ["sdc"], [3], repeats=2, seed=2**32 - 1)

    def test_one_size_that_is_no_list(self, cases):
        with pytest.raises(ParameterError, match=r"sizes: expected a list, got int 5\."):
            tuning_curve(cases, ["sdc"], 5)

    def test_no_estimator(self, cases):
        with pytest.raises(ParameterError, match="estimators: expected at least one, got none"):
            tuning_curve(cases, [], [3])

    def test_predictions_and_loaders_of_something_else(self, cases):
        with pytest.raises(
            ParameterError, match=r"cases: expected Case\(prediction, truth\), .* got Prediction"
        ):
            tuning_curve([*cases, cases[0].prediction], ["sdc"], [3])
        with pytest.raises(ParameterError, match="cases: expected a list of cases, got None"):
            tuning_curve(None, ["sdc"], [3])
        with pytest.raises(ParameterError, match=r"options: expected TuningOptions\(...\), got dict"):
            tuning_curve(cases, ["sdc"], [3], options={})
        with pytest.raises(TooFewCasesError, match="elsewhere: expected none or at least 2 cases, got 1"):
            tuning_curve(cases, ["sdc"], [3], options=TuningOptions(elsewhere=cases[:1]))
        with pytest.raises(ParameterError, match="cases: expected functions that load a Case, got int 3"):
            tuning_curve([*cases, lambda: 3], ["sdc"], [3])

    def test_estimators_that_differ_over_empty_masks(self, cases):
        both = [st.SoftDice("agree"), st.TunedSoftDice()]
        with pytest.raises(
            ParameterError, match="one policy for empty masks, got sdc agree, sdc-tuned paper"
        ):
            tuning_curve(cases, both, [3])

    def test_a_case_without_truth_is_named(self, cases):
        bare = Case(Prediction(np.full((4, 4), 0.5), id="case 9"), None)
        with pytest.raises(ParameterError, match="case 9: expected a case with a truth"):
            tuning_curve([*cases, bare], ["sdc"], [3])


POINT = {"estimator": "a", "set": "test", "size": 4, "target_risk": 0.1}


class TestSummary:
    def test_means_and_deviations(self):
        rng = np.random.default_rng(0)
        values = rng.random((2, 5))
        rows = [
            {**POINT, "estimator": name, "repeat": i, "aurc": values[j, i], "coverage": 0.5}
            for i in range(5)
            for j, name in enumerate(("a", "b"))
        ]
        for row, each in zip(summarise_tuning(rows), values, strict=True):
            assert row["aurc"] == pytest.approx(each.mean())
            assert row["aurc_std"] == pytest.approx(each.std(ddof=1))
            assert (row["coverage"], row["coverage_std"], row["not_reached"], row["repeats"]) == (
                0.5,
                0,
                0,
                5,
            )

    def test_what_is_not_reached_counts_as_nothing(self):
        rows = [
            {**POINT, "aurc": 0.1, "repeat": i, "coverage": each}
            for i, each in enumerate([0.6, None, None, 0.2])
        ]
        (found,) = summarise_tuning(rows)
        assert found["coverage"] == pytest.approx(0.2)
        assert found["coverage_std"] == pytest.approx(np.std([0.6, 0, 0, 0.2], ddof=1))
        assert found["not_reached"] == 0.5

    def test_one_repeat_has_no_deviation(self):
        (found,) = summarise_tuning([{**POINT, "repeat": 0, "aurc": 0.1, "coverage": None}])
        assert (found["aurc_std"], found["coverage_std"]) == (None, None)

    def test_without_a_target_there_is_no_coverage(self):
        rows = [{**POINT, "target_risk": None, "repeat": i, "aurc": 0.1, "coverage": None} for i in (0, 1)]
        (found,) = summarise_tuning(rows)
        assert [found[name] for name in ("coverage", "coverage_std", "not_reached")] == [None] * 3


def test_parts_of_other_cases_are_refused(tmp_path):
    options = TuningOptions(folder=tmp_path)
    nameless = [Case(Prediction(blob(seed).prediction.probabilities), blob(seed).truth) for seed in range(8)]
    tuning_curve(nameless, ["sdc"], [3], repeats=1, options=options)
    with pytest.raises(ParameterError, match="expected a part made with the parameters of this run"):
        tuning_curve(nameless[::-1], ["sdc"], [3], repeats=1, options=options)


@pytest.mark.parametrize("change", [{"threshold": 0.2}, {"mask": True}, {"shape": (48, 15)}])
def test_parts_of_other_masks_thresholds_and_shapes_are_refused(tmp_path, change):
    def made(seed, mask=False, shape=None, **options):
        case = blob(seed)
        p = case.prediction.probabilities.reshape(shape or (24, 30))
        return Case(Prediction(p, p >= 0.7 if mask else None, **options), case.truth.reshape(p.shape))

    options = TuningOptions(folder=str(tmp_path))
    tuning_curve([made(seed) for seed in range(8)], ["sdc"], [3], repeats=1, options=options)
    with pytest.raises(ParameterError, match="expected a part made with the parameters of this run"):
        tuning_curve([made(seed, **change) for seed in range(8)], ["sdc"], [3], repeats=1, options=options)


def test_loaders_are_told_apart_by_what_they_are_given(tmp_path):
    def prints(first):
        return [_fingerprint(partial(blob, first + seed)) for seed in range(3)]

    assert prints(0) == prints(0) != prints(1)


def test_loaders_without_a_name_are_refused_before_anything_is_kept(tmp_path):
    loaders = [(lambda seed=seed: blob(seed)) for seed in range(8)]
    with pytest.raises(
        ParameterError, match=r"can be told apart in a later run, got <function .* Give functools"
    ):
        tuning_curve(loaders, ["sdc"], [3], options=TuningOptions(folder=tmp_path))
    assert tuning_curve(loaders, ["sdc"], [3], repeats=1)
