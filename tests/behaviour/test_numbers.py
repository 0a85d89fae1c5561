"""Numbers of the library: what the public functions return for fixed maps and fixed cases.

`golden/files/numbers.json` was recorded before the code was rebuilt. Functions are also tested against slow
references elsewhere; here nothing may move.
"""

import warnings
from functools import partial

import numpy as np
import pytest

import segtrust as st
from tests.behaviour.helpers import assert_golden
from tests.behaviour.maps import CONTENTS, FLAT, VOLUME, blob, softmax_like, truth_of

CANCELLED = 1e-15
"""Absolute tolerance for numbers that are small differences of numbers around 1."""


def check(key, value, **tolerance):
    assert_golden("files/numbers", value, key=key, **tolerance)


def outcome(call):
    """Return what a call returns, or the name of the error that it raises."""
    try:
        return call()
    except st.errors.SegtrustError as error:
        return f"raises {type(error).__name__}"


def fields(value, *names):
    """Return attributes by name."""
    return {name: getattr(value, name) for name in names}


# Maps.

ONE_PIXEL = np.zeros(FLAT)
ONE_PIXEL[4, 11] = 0.9
MAPS = {
    "blob": blob(FLAT),
    "volume": blob(VOLUME),
    "float32": CONTENTS["volume f4"],
    "float16": CONTENTS["flat f2"],
    "uint8": CONTENTS["flat u1"],
    "uint16": CONTENTS["flat u2"],
    "zeros": np.zeros(FLAT),
    "ones": np.ones(FLAT),
    "half": np.full(FLAT, 0.5),
    "just below half": np.full(FLAT, np.nextafter(0.5, 0)),
    "one pixel": ONE_PIXEL,
    "nearly zero": np.full(FLAT, 1e-300),
    "certain": np.float64(blob(FLAT) > 0.6),
    "single value": np.array([[0.7]]),
    "line": blob((1, 40)),
    "transposed": blob(VOLUME).transpose(2, 0, 1),
    "every other": blob((22, 17))[::2],
    "not a number": np.where(blob(FLAT) > 0.9, np.nan, 0.2),
    "beyond one": blob(FLAT) + 0.2,
    "no pixel": np.zeros((0, 4)),
}
FUNCTIONS = {
    "sdc": st.soft_dice_confidence,
    "sdc agree": partial(st.soft_dice_confidence, empty="agree"),
    "sdc at 0.3": partial(st.soft_dice_confidence, threshold=0.3),
    "idc": st.ideal_dice_confidence,
    "idc agree": partial(st.ideal_dice_confidence, empty="agree"),
    "amsp": st.average_max_probability,
    "apc": st.average_class_probability,
    "apc at 0.3": partial(st.average_class_probability, threshold=0.3),
    "ane": st.average_negative_entropy,
    "mmmc": st.median_min_max_confidence,
    "pla": st.patch_level_confidence,
    "pla 3": partial(st.patch_level_confidence, size=3),
    "tla": partial(st.threshold_level_confidence, tau=0.6),
    "iou": st.expected_iou,
    "f2": partial(st.expected_f_beta, beta=2.0),
    "tversky": partial(st.expected_tversky, alpha=0.3, beta=0.8),
}


@pytest.mark.parametrize("name", MAPS)
def test_confidences(name):
    p = MAPS[name]
    check(f"confidences {name}", {key: outcome(lambda f=f: f(p)) for key, f in FUNCTIONS.items()})


@pytest.mark.parametrize("name", MAPS)
def test_bounds_and_decoding(name):
    p = MAPS[name]
    bounds = outcome(lambda: st.dice_bounds(p))
    best = outcome(lambda: st.dice_optimal_mask(p))
    found = {"bounds": bounds, "optimal": best}
    if not isinstance(best, str):
        found["optimal"] = {
            **fields(best, "threshold", "k", "confidence", "usual_confidence"),
            "mask": int(np.count_nonzero(best.mask)),
        }
        assert best.gain == pytest.approx(best.confidence - best.usual_confidence, abs=CANCELLED)
    check(f"bounds {name}", found, abs_tol=CANCELLED)


def test_delivered_masks():
    mask = truth_of(FLAT)
    with_mask = {
        key: FUNCTIONS[key](MAPS["blob"], mask) for key in ("sdc", "idc", "apc", "iou", "f2", "tversky")
    }
    empty = {key: FUNCTIONS[key](MAPS["blob"], np.zeros_like(mask)) for key in with_mask}
    full = {key: FUNCTIONS[key](MAPS["blob"], np.ones_like(mask)) for key in with_mask}
    wrong = outcome(lambda: st.soft_dice_confidence(MAPS["blob"], mask.T))
    check("masks", {"mask": with_mask, "empty": empty, "full": full, "wrong shape": wrong})


def test_worst_relative_errors():
    check("worst errors", [st.worst_relative_error(s) for s in (0.1, 0.5, 1.0, 3.0, 50.0, 1e6)])


ALL = ("sdc", "idc", "amsp", "apc", "ane", "mmmc", "pla")


def test_several_at_once():
    p, mask = MAPS["blob"], truth_of(FLAT)
    batch = np.stack([blob(FLAT, at=at) for at in (0.3, 0.45, 0.6)])
    assessed = st.assess(p, mask, ALL)
    check(
        "several",
        {
            "score": st.score(p, estimators=ALL),
            "score with a mask": st.score(p, mask, ALL),
            "score at 0.2": st.score(p, estimators=ALL, threshold=0.2),
            "settings": st.score(p, estimators=[st.PatchLevel(size=4), st.SoftDice(empty="agree")]),
            "assess": {**dict(assessed.scores), "ratio": assessed.foreground_ratio},
            "bounds": assessed.bounds,
            "batch": st.score_batch(batch, estimators=ALL),
            "batch with masks": st.score_batch(batch, np.stack([mask] * 3), ALL),
        },
        abs_tol=CANCELLED,
    )


def test_classes():
    p = softmax_like(VOLUME)
    names = ("background", "liver", "spleen")
    labels = p.argmax(axis=0)
    exclusive = outcome(lambda: st.score_classes(p, names))
    with_mask = outcome(lambda: st.score_classes(p, names, labels, ("sdc", "idc", "ane")))
    regions = st.score_classes(p[1:], names[1:], independent=True, threshold=0.3)
    absent = st.score_classes(np.stack([p[1], np.zeros_like(p[1])]), names[1:], independent=True)
    check("classes", {"exclusive": exclusive, "mask": with_mask, "regions": regions, "absent": absent})


def test_threads_change_nothing():
    p = blob((130, 170, 3))
    one = []
    for count in (1, 2):
        with st.use_threads(count):
            one.append(st.score(p, estimators=ALL))
    assert one[0] == pytest.approx(one[1], rel=1e-12)
    check("threads", one[0])


def test_fusion_and_agreement():
    maps = [blob(FLAT, at=at) for at in (0.4, 0.5, 0.55)]
    check(
        "fusion",
        {
            **{
                how: st.score(st.fuse(maps, how), estimators=ALL)
                for how in ("mean-probability", "mean-logit")
            },
            "pixels": st.fuse(maps, "mean-logit")[3, 5:9],
            "pairwise": st.pairwise_dice(maps),
            "pairwise at 0.8": st.pairwise_dice(maps, threshold=0.8),
            "pairwise of empty masks": st.pairwise_dice([np.zeros(FLAT)] * 2),
            "pairwise of empty masks that agree": st.pairwise_dice([np.zeros(FLAT)] * 2, empty="agree"),
            "one map": outcome(lambda: st.pairwise_dice(maps[:1])),
        },
    )


def test_overlaps():
    truth, mask = truth_of(VOLUME), MAPS["volume"] >= 0.5
    nothing = np.zeros(VOLUME, bool)
    pairs = {
        "some": (truth, mask),
        "none": (truth, nothing),
        "both empty": (nothing, nothing),
        "same": (truth, truth),
    }
    risks = {name: risk.of(truth, mask) for name, risk in st.RISKS.items()}
    found = {
        name: [
            st.dice(*pair),
            st.iou(*pair),
            st.f_beta(*pair, beta=2.0),
            st.dice(*pair, empty="agree"),
            st.iou(*pair, empty="agree"),
        ]
        for name, pair in pairs.items()
    }
    check("overlaps", {**found, "risks": risks})


def test_full_posterior():
    q = np.array([[0.1, 0.4, 0.3], [0.2, 0.05, 0.6]])
    masks = {"some": q > 0.25, "all": q > 0, "none": q > 1}
    found = {name: st.full_posterior_dice(q, mask) for name, mask in masks.items()}
    found["nothing can be there"] = st.full_posterior_dice(0 * q, q > 0.25)
    found["all is there"] = st.full_posterior_dice(0 * q + 1, q > 0.25)
    check("posterior", found)


# Calibration of maps.


def case(number):
    p = blob(FLAT, at=0.3 + 0.05 * number, width=0.25 + 0.02 * number)
    truth = truth_of(FLAT, at=0.4 + 0.03 * number, radius=0.25 + 0.02 * number)
    return st.Case(st.Prediction(p, id=f"case {number}"), truth)


CASES = [case(number) for number in range(6)]


def test_scalings_of_given_parameters():
    p = np.array([0.0, 1e-9, 0.1, 0.5, 0.9, 1.0])
    check(
        "scalings",
        {
            "temperature": st.TemperatureScaling(1.7).apply(p),
            "platt": st.PlattScaling(0.6, -0.8).apply(p),
            "clip": outcome(lambda: st.PlattScaling(0.6, -0.8, ends="clip").apply(p)),
        },
    )


def test_scalings_that_are_fitted():
    """An optimiser stops when it is near enough: 1e-7."""
    temperature, platt = st.TemperatureScaling().fit(CASES), st.PlattScaling(weigh="cases").fit(CASES)
    found = {
        "temperature": temperature.temperature,
        "platt": [platt.slope, platt.intercept],
        "band": st.TemperatureScaling(band_px=3.0).fit(CASES).temperature,
        "cases": temperature.n_cases,
        "ids": sorted(temperature.used_ids),
    }
    check("fitted scalings", found, rel=1e-7)


def test_reliability():
    found = st.reliability(CASES, bins=8)
    names = ("edges", "counts", "mean_probability", "frequency", "nll", "brier", "ece", "n")
    check("reliability", fields(found, *names), rel=1e-11)
    check(
        "reliability in a band", fields(st.reliability(CASES, bins=4, band_px=2.0), "counts", "brier", "ece")
    )


# Estimators that learn.


@pytest.mark.parametrize("name", ["tla", "pla-tuned", "sdc-tuned"])
def test_estimators_that_learn(name):
    estimator = st.get_estimator(name)
    assert outcome(lambda: estimator.score(CASES[0].prediction)) == "raises NotFittedError"
    fitted = estimator.fit(CASES)
    found = {
        "parameters": dict(fitted.parameters),
        "scores": [fitted.score(each.prediction) for each in CASES],
        "ids": sorted(fitted.used_ids),
    }
    check(f"learned {name}", found, rel=1e-11)


def test_entropy_quantiles():
    check("entropy quantiles", [st.entropy_quantile(CASES, share) for share in (0.1, 0.5, 0.9)])


# Cases.


def sample(n, *, offset=0, spread=0.5):
    """Return confidences with ties, and losses that fall with them, without any random number."""
    numbers = np.arange(offset, offset + n)
    confidence = np.round((numbers * 37 % 101) / 101, 2)
    noise = (numbers * 53 % 97) / 97 - 0.5
    return confidence, np.clip(0.9 - 0.8 * confidence + spread * noise, 0, 1)


CONFIDENCE, LOSS = sample(60)
PATIENTS = [f"patient {number // 3}" for number in range(60)]
WEIGHTS = 1 + (np.arange(60) % 4) / 2
QUICK = st.Bootstrap(resamples=300, seed=3)
DRAWN = {"rel": 1e-11, "abs_tol": 1e-14}
"""Ends of intervals are sums over resamples; differences near zero keep the last digits of their terms."""
VECTORS = {
    "usual": (CONFIDENCE, LOSS),
    "all tied": (np.full(60, 0.3), LOSS),
    "no loss": (CONFIDENCE, np.zeros(60)),
    "all lost": (CONFIDENCE, np.ones(60)),
    "perfect": (1 - LOSS, LOSS),
    "worst": (LOSS, LOSS),
    "one case": (np.array([0.4]), np.array([0.25])),
    "infinite": (np.where(CONFIDENCE > 0.9, np.inf, CONFIDENCE), LOSS),
    "not a number": (np.where(CONFIDENCE > 0.9, np.nan, CONFIDENCE), LOSS),
    "different lengths": (CONFIDENCE[:-1], LOSS),
}


@pytest.mark.parametrize("name", VECTORS)
def test_curves(name):
    def values():
        curve = st.risk_coverage_curve(*VECTORS[name])
        return {
            **fields(curve, "aurc", "augrc", "e_aurc", "normalised_aurc", "full_risk"),
            "oracle": curve.oracle.aurc,
            "random": curve.random.aurc,
            "points": len(curve.coverages),
            "coverages": curve.coverages[:6],
            "risks": curve.risks[:6],
            "thresholds": curve.thresholds[1:6],
            "coverage at risk": [curve.coverage_at_risk(target) for target in (0.1, 0.31, 0.77)],
            "risk at coverage": [curve.risk_at_coverage(coverage) for coverage in (0.05, 0.5, 1.0)],
            "at threshold": list(curve.at_threshold(0.413)),
        }

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check(f"curve {name}", outcome(values), abs_tol=CANCELLED)


def test_weighted_curves_and_conventions():
    curve = st.risk_coverage_curve(CONFIDENCE, LOSS, weights=WEIGHTS)
    found = fields(curve, "aurc", "augrc", "e_aurc", "normalised_aurc", "full_risk")
    usual = st.risk_coverage_curve(CONFIDENCE, LOSS)
    areas = {
        name: [usual.area(name), usual.random_area(name), usual.excess(name), usual.normalised(name)]
        for name in ("paper", "plugin", "trapezoid-from-first")
    }
    unknown = outcome(lambda: usual.area("other"))
    check("areas", {"weighted": found, "conventions": areas, "unknown": unknown}, abs_tol=CANCELLED)


def test_bootstrap():
    found = {}
    for statistic in ("aurc", "augrc", "e_aurc", st.coverage_at_risk(0.3)):
        for name, options in {
            "cases": {},
            "patients": {"patients": PATIENTS},
            "weights": {"weights": WEIGHTS},
        }.items():
            interval = outcome(
                lambda s=statistic, o=options: fields(
                    st.bootstrap_interval(CONFIDENCE, LOSS, s, bootstrap=QUICK, **o),
                    *("statistic", "estimate", "low", "high", "units"),
                )
            )
            found[f"{len(found)} {name}"] = interval
    for method in ("percentile", "bca"):
        bootstrap = st.Bootstrap(resamples=200, level=0.9, method=method, seed=1)
        found[method] = outcome(
            lambda b=bootstrap: fields(
                st.bootstrap_interval(CONFIDENCE, LOSS, bootstrap=b), "estimate", "low", "high"
            )
        )
    check("bootstrap", found, **DRAWN)


def test_comparisons():
    other = np.round(CONFIDENCE**2 + 0.3 * (np.arange(60) * 29 % 83) / 83, 3)
    found = {
        name: fields(
            st.compare_estimators(CONFIDENCE, other, LOSS, bootstrap=QUICK, **options),
            *("statistic", "a", "b", "difference", "low", "high", "p_value", "units"),
        )
        for name, options in {
            "cases": {},
            "patients": {"patients": PATIENTS},
            "augrc": {"statistic": "augrc"},
        }.items()
    }
    found["itself"] = fields(
        st.compare_estimators(CONFIDENCE, CONFIDENCE, LOSS, bootstrap=QUICK),
        "difference",
        "low",
        "high",
        "p_value",
    )
    check("comparisons", found, **DRAWN)


def test_failure_detection():
    names = ("n", "failures", "auroc", "aupr", "fpr_at_95_tpr", "spearman", "pearson")
    found = {
        str(cutoff): outcome(
            lambda c=cutoff: fields(st.failure_detection(CONFIDENCE, LOSS, cutoff=c), *names)
        )
        for cutoff in (0.2, 0.5, 0.9, 2.0)
    }
    check("failure detection", found, rel=1e-11)


# Guarantees.

MANY_CONFIDENCE, MANY_LOSS = sample(400, spread=0.3)
REFERENCE = sample(150, offset=1000)[0]


def certificate(found):
    """Return what a certificate says; without words."""
    operation, need = found.operation, found.need
    return {
        "certified": found.certified,
        "threshold": found.threshold,
        "coverage": found.coverage,
        "operation": None if operation is None else fields(operation, "coverage_interval", "risks"),
        "need": None if need is None else fields(need, "cases", "without_reference", "power", "unit"),
        "n": found.n,
        "digest": found.digest,
        "evidence": fields(found.evidence, "n", "units", "patients", "references", "set_aside"),
        "steps": len(found.steps),
        "first and last": [
            fields(step, "threshold", "accepted", "p_value", "level", "passed")
            for step in (*found.steps[:2], *found.steps[-2:])
        ],
    }


def test_thresholds_are_certified():
    """With reference confidences; without them, every rank is tested."""
    found = {}
    for name, options in {
        "easy": {"risk": 0.45},
        "less easy": {"risk": 0.4},
        "strict": {"risk": 0.35, "delta": 0.01},
        "patients": {"risk": 0.45, "patients": [f"p{number // 4}" for number in range(400)]},
        "impossible": {"risk": 0.01},
        "every rank": {"risk": 0.45, "reference": None},
    }.items():
        columns = {"reference": REFERENCE, **options}
        target, delta = st.Target(columns.pop("risk")), columns.pop("delta", 0.05)
        cases = st.CalibrationCases(MANY_CONFIDENCE, MANY_LOSS, **columns)
        # Many confidences are equal, so that other random numbers would be drawn each time.
        found[name] = certificate(st.certify(cases, target, delta=delta, procedure=st.Procedure(seed=3)))
    found["few cases"] = outcome(
        lambda: certificate(st.certify_threshold(MANY_CONFIDENCE[:8], MANY_LOSS[:8], target_risk=0.3))
    )
    check("certified thresholds", found, rel=1e-10)


def test_no_cases_are_set_aside():
    """Cases are set aside on request only."""
    made = st.certify_threshold(MANY_CONFIDENCE, MANY_LOSS, target_risk=0.45)
    assert made.certified
    assert (made.evidence.references, made.evidence.set_aside, made.evidence.n) == (0, 0, 400)
    cases = st.CalibrationCases(MANY_CONFIDENCE, MANY_LOSS)
    made = st.certify(cases, st.Target(0.45), procedure=st.Procedure(search="candidates"))
    assert (made.evidence.references, made.evidence.set_aside, made.evidence.n) == (80, 80, 320)


def test_several_targets_and_structures():
    cases = st.CalibrationCases(MANY_CONFIDENCE, MANY_LOSS, ids=[f"case {number}" for number in range(400)])
    targets = [st.Target(0.45), st.Target(0.4, below_dice=0.5)]
    procedure = st.Procedure(start_coverages=(0.9, 0.6), seed=5)
    found = {
        "all": certificate(st.certify(cases, targets, procedure=procedure)),
        "each": [certificate(each) for each in st.certify_each(cases, targets, procedure=procedure)],
        "structures": {
            name: certificate(each)
            for name, each in st.certify_structures(
                {"cup": cases, "disc": cases}, targets[:1], procedure=procedure
            ).items()
        },
        "seen": outcome(lambda: st.certify(cases, targets, used_ids=["case 3"])),
    }
    check("targets", found, rel=1e-10)


def test_plans():
    names = ("cases", "without_reference", "power", "unit")
    found = {
        "mean": fields(st.plan_calibration(0.2, 0.12, spread=0.1), *names),
        "share": fields(st.plan_calibration(st.Target(0.1, below_dice=0.7), 0.05), *names),
        "hopeless": outcome(lambda: fields(st.plan_calibration(0.1, 0.2, spread=0.1), *names)),
    }
    check("plans", found)


def test_coverages():
    names = ("threshold", "n", "rank", "guarantee", "coverage", "cases_needed", "possible")
    found = {
        f"{coverage} {delta}": fields(
            st.threshold_for_coverage(CONFIDENCE, target_coverage=coverage, delta=delta), *names
        )
        for coverage in (0.5, 0.9, 0.99)
        for delta in (0.05, None)
    }
    check("coverage thresholds", found)


@pytest.mark.parametrize(
    ("predictor", "scale"), [("isotonic", "none"), ("identity", "none"), ("corrected", "confidence")]
)
def test_intervals(predictor, scale):
    def values():
        unfit = st.ConformalDice(level=0.8, predictor=predictor, scale=scale, seed=2)
        fitted = unfit.fit(MANY_CONFIDENCE, 1 - MANY_LOSS)
        new = np.array([0.0, 0.2, 0.55, 0.99])
        intervals = fitted.interval(new)
        return {
            **fields(intervals, "lower", "upper", "predicted", "trivial", "n", "cases_needed"),
            "bound": fields(fitted.lower_bound(new), "lower", "upper"),
        }

    check(f"intervals {predictor}", outcome(values), abs_tol=CANCELLED)


def test_drift():
    new = sample(80, offset=500)[0]
    names = ("statistic", "value", "p_value", "rank_shift", "n_reference", "n_new", "alarm", "direction")
    found = {
        f"{name} {statistic}": outcome(
            lambda v=values, s=statistic: fields(
                st.drift_test(reference=REFERENCE, new=v, statistic=s, permutations=499, seed=4), *names
            )
        )
        for name, values in {"same": new, "lower": new * 0.6, "higher": np.sqrt(new)}.items()
        for statistic in ("ks", "mann-whitney", "energy", "other")
    }
    check("drift", found, rel=1e-11)


def test_martingales():
    watch = st.ExchangeabilityMartingale(REFERENCE, alpha=0.05, seed=6)
    names = ("n", "p_value", "log10_capital", "log10_peak", "alarm", "alarmed_at")
    found = [fields(watch.update(confidence), *names) for confidence in sample(12, offset=300)[0]]
    watch.extend([0.01] * 60)
    check("martingale", {"steps": found, "after": fields(watch.state, *names)}, **DRAWN)


def test_mean_dice():
    estimator = st.MeanDiceEstimator(resamples=200, seed=7).fit(MANY_CONFIDENCE, 1 - MANY_LOSS)
    new = sample(80, offset=500)[0]
    names = ("value", "lower", "upper", "withheld", "n_reference", "n_new")
    found = {
        "same": fields(estimator.estimate(new), *names),
        "drifted": fields(estimator.estimate(new * 0.3), *names),
    }
    check("mean dice", found, **DRAWN)


def test_policies_decide():
    cases = st.CalibrationCases(MANY_CONFIDENCE, MANY_LOSS, reference=REFERENCE)
    made = st.certify(cases, st.Target(0.45), procedure=st.Procedure(seed=3))
    policy = st.Policy.from_certificate(made, st.Scoring("sdc"))
    confidences = [0.0, policy.threshold - 1e-9, policy.threshold, 1.0]
    found = {
        "decisions": [str(policy.decide(confidence)) for confidence in confidences],
        "not finite": [outcome(lambda v=v: str(policy.decide(v))) for v in (np.nan, np.inf, -np.inf)],
        "threshold": policy.threshold,
        "standing": str(policy.status),
        "n": policy.n,
        "again": st.Policy.from_dict(policy.to_dict()).threshold,
    }
    check("policy", found)


def test_recalibrated_confidences():
    fitted = st.Recalibration.fit(CONFIDENCE, 1 - LOSS)
    check(
        "recalibration",
        {"predicted": fitted.predict(np.array([0.0, 0.31, 0.8, 1.0])), "saved": fitted.to_dict()},
    )


def test_seen_cases_are_rejected():
    with pytest.deprecated_call():  # it left the top level
        hashed = st.HashedIds.of(["a", "b"], "salt")
    assert st.reject_seen(["c", "d"], hashed, 2) == ("c", "d")
    with pytest.raises(st.errors.SeenCasesError):
        st.reject_seen(["b", "c"], hashed, 2)
