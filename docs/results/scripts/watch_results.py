"""Print what the pages about intervals, drift and calibration report of real maps.

Run it with ``python -m docs.results.scripts.watch_results DATA``, where DATA holds
``polyp/<set>/{masks,predictions}`` and ``busi-predictions/{masks,BCE_plain,dice_plain}``, 8-bit PNG files.
"""

# ruff: noqa: T201

import sys
from pathlib import Path

import numpy as np
from PIL import Image

import segtrust as st

INSIDE, OUTSIDE = ("Kvasir", "CVC-ClinicDB"), ("CVC-300", "CVC-ColonDB", "ETIS-LaribPolypDB")


def read(path):
    """Give the levels of an image."""
    return np.array(Image.open(path).convert("L"))


def cases_of(maps, masks):
    """Read the cases whose truth is not empty."""
    for path in sorted(maps.glob("*.png")):
        truth = read(masks / path.name) > 127
        if truth.any():
            yield st.Case(st.Prediction(read(path), id=path.stem), truth)


def polyps(folder, sets):
    """Give confidence and Dice of each image of some sets."""
    found = [scores(folder / each / "predictions", folder / each / "masks") for each in sets]
    return tuple(np.concatenate(column) for column in zip(*found, strict=True))


def scores(maps, masks):
    """Return confidence and Dice of the cases whose ground truth is not empty."""
    cases = list(cases_of(maps, masks))
    confidence = [st.SoftDice().score(case) for case in cases]
    dice = [st.dice(case.truth, case.prediction.probabilities >= 127.5) for case in cases]
    return np.array(confidence), np.array(dice)


def intervals(confidence, dice, deferred, draws=200):
    """Give how often 90 % lower bounds hold for all, accepted and deferred cases, and their mean."""
    rows = []
    for seed in range(draws):
        order = np.random.default_rng(seed).permutation(confidence.size)
        threshold = np.quantile(confidence[order[:36]], deferred)
        learn, check = order[36:336], order[336:]
        accepted = confidence[check] >= threshold
        for limit in (None, threshold):
            bounds = st.ConformalDice(0.9, threshold=limit, seed=seed).fit(confidence[learn], dice[learn])
            lower = bounds.lower_bound(confidence[check]).lower
            right = dice[check] >= lower
            shares = [right.mean(), right[accepted].mean(), right[~accepted].mean()]
            rows.append([*shares, lower[accepted].mean(), lower[~accepted].mean()])
    return np.array(rows).reshape(draws, 2, 5).mean(0).round(3)


def alarms(reference, new, draws=200, length=81):
    """Give the share of streams in which the martingale alarms, and after how many cases half of these do."""
    at = []
    for seed in range(draws):
        rng = np.random.default_rng(seed)
        if new is None:
            order = rng.permutation(reference)
            watch, stream = st.ExchangeabilityMartingale(order[length:], seed=seed), order[:length]
        else:
            watch, stream = st.ExchangeabilityMartingale(reference, seed=seed), rng.permutation(new)[:length]
        at.append(watch.extend(stream).alarmed_at)
    rung = [each for each in at if each is not None]
    return (
        f"{len(rung) / draws:.1%} of {draws} streams of {length}, half of them by case {np.median(rung):.0f}"
    )


def halves(confidence, dice, draws=200):
    """Give how often the mean Dice of one half is withheld, right, and how far it is off, from the other."""
    inside, errors = [], []
    for seed in range(draws):
        one, other = np.array_split(np.random.default_rng(seed).permutation(confidence.size), 2)
        estimator = st.MeanDiceEstimator(resamples=300, seed=seed).fit(confidence[one], dice[one])
        found, truth = estimator.estimate(confidence[other]), dice[other].mean()
        if not found.withheld:
            inside.append(found.lower <= truth <= found.upper)
            errors.append(found.value - truth)
    off = f"off by {np.abs(errors).mean():.3f} in the mean"
    return f"withheld {1 - len(inside) / draws:.1%}, in the interval {np.mean(inside):.1%}, {off}"


def calibration(cases, draws=10):
    """Print reliability and AURC of the second half of the cases before and after scaling, over splits."""
    options = [None] + [
        (kind, ends) for kind in (st.TemperatureScaling, st.PlattScaling) for ends in ("keep", "clip")
    ]
    for option in options:
        rows = []
        for seed in range(draws):
            order = np.random.default_rng(seed).permutation(len(cases))
            learn, check = ([cases[i] for i in part] for part in np.array_split(order, 2))
            scaling = option and option[0](ends=option[1]).fit(learn)
            rows.append(row_of(scaling, check))
        name = f"{option[0].name}, {option[1]}" if option else "as saved"
        print(f"{name:20}", *(f"{value:8.3f}" for value in np.mean(rows, axis=0)))


def row_of(scaling, cases):
    """Give ECE and NLL of all pixels and of those near the boundary, AURC, mean SDC and mean Dice."""
    scaled = [st.Case(scaling.calibrate(case.prediction), case.truth) if scaling else case for case in cases]
    every = st.reliability(scaled, epsilon=1 / 1020)
    near = st.reliability(scaled, band_px=5, epsilon=1 / 1020)
    confidence = np.array([st.SoftDice().score(case) for case in scaled])
    dice = np.array([st.dice(case.truth, case.prediction.probabilities >= 127.5) for case in cases])
    area = area_of(confidence, 1 - dice)
    return every.ece, every.nll, near.ece, near.nll, area, confidence.mean(), dice.mean()


def area_of(confidence, errors):
    """Give the AURC: one point a tie block, and the first risk again at coverage 0."""
    order = np.argsort(-confidence, kind="stable")
    last = np.append(np.diff(confidence[order]) != 0, True)
    coverage = np.flatnonzero(last) + 1
    risks = np.cumsum(errors[order])[last] / coverage
    return np.trapezoid(np.append(risks[0], risks), np.append(0, coverage) / errors.size)


def main():
    """Print all tables."""
    root = Path(sys.argv[1])
    inside, outside = (polyps(root / "polyp", sets) for sets in (INSIDE, OUTSIDE))
    print("90 % lower bounds, out of distribution: holds for all, accepted, deferred; mean bound of both")
    for deferred in (0.25, 0.5):
        for name, row in zip(("marginal", "by decision"), intervals(*outside, deferred), strict=True):
            print(f"  {deferred:.0%} deferred, {name}:", *row)
    print("two-sample tests, in against out of distribution")
    for statistic in ("ks", "energy", "mann-whitney"):
        print(" ", st.drift_test(reference=inside[0], new=outside[0], statistic=statistic).explain())
    print("martingale, out of distribution:", alarms(inside[0], outside[0]))
    print("martingale, in distribution, half against half:", alarms(inside[0], None))
    would_say = st.Recalibration.fit(*inside).predict(outside[0]).mean()
    print(f"mean Dice out of distribution: would say {would_say:.3f}, true {outside[1].mean():.3f}")
    print("mean Dice in distribution, half from half:", halves(*inside))
    for model in ("BCE_plain", "dice_plain"):
        folder = root / "busi-predictions"
        print(f"{model}: ECE and NLL, all pixels; ECE and NLL, 5 px; AURC; mean SDC; mean Dice")
        cases = list(cases_of(folder / model, folder / "masks"))
        levels = np.concatenate([case.prediction.probabilities.ravel() for case in cases])
        truth = np.concatenate([case.truth.ravel() for case in cases])
        for end in (0, 255):
            at = levels == end
            share = f"{truth[at].mean():.1%} of them foreground"
            print(f"{at.mean():.1%} of the pixels are at {end / 255:g}, {share}")
        calibration(cases)


if __name__ == "__main__":
    main()
