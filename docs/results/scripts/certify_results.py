"""Print how often a threshold can be certified on real maps, and the coverage that comes with it.

Run it with ``python -m docs.results.scripts.certify_results DATA``, where DATA holds
``polyp/<set>/{masks,predictions}`` and ``busi-predictions/{masks,BCE_plain,dice_plain}``.
"""

# ruff: noqa: T201

import sys
import warnings
from pathlib import Path

import numpy as np

import segtrust as st
from docs.results.scripts.watch_results import INSIDE, OUTSIDE, polyps, scores
from segtrust.selective import find_threshold

DELTA, DRAWS, SIZES = 0.05, 500, (40, 60, 100, 150, 200, 300, 400)
OLD, FIXED, NEW = "0.1.0: a fifth set aside", "every rank, fixed stakes", "every rank, adaptive stakes"
OLD_COUNTS, NEW_COUNTS = "0.1.0: a fifth set aside, binomial", "every rank, binomial"
PROCEDURES = {
    OLD: ("betting", "candidates"),
    FIXED: ("betting", "ranks"),
    NEW: ("adaptive-betting", "ranks"),
    OLD_COUNTS: ("binomial", "candidates"),
    NEW_COUNTS: ("binomial", "ranks"),
}


def certify(confidence, dice, target, n, name, *, draws=DRAWS, replace=True, reference=False):
    """Return the share of draws with a threshold, its mean coverage (0 without one), and the share broken."""
    p_value, search = PROCEDURES[name]
    losses = target.losses(1 - dice)
    coverages, broken = np.zeros(draws), 0
    for draw in range(draws):
        rng = np.random.default_rng([draw, n])
        order = rng.integers(0, dice.size, n) if replace else rng.permutation(dice.size)
        chosen, others = order[:n], order[n:]
        if search == "candidates" and not reference and n < 50:
            continue  # too few to set some aside
        cases = st.CalibrationCases(
            confidence[chosen], dice=dice[chosen], reference=confidence[others] if reference else None
        )
        procedure = st.Procedure(p_value, search="suited" if reference else search, seed=draw)
        threshold = find_threshold(cases, target, DELTA, procedure).threshold
        if threshold is not None:
            accepted = confidence >= threshold
            coverages[draw] = accepted.mean()
            broken += losses[accepted].mean() > target.risk
    return np.mean(coverages > 0), coverages.mean(), broken / draws


def main():
    """Print the table of one setting in detail, then power by the number of cases."""
    warnings.simplefilter("ignore", st.errors.SegtrustWarning)  # some draws of few cases rank badly by chance
    data = Path(sys.argv[1])
    outside = polyps(data / "polyp", OUTSIDE)
    print("Polyps out of distribution, mean loss at most 0.10, 300 of 636 cases, 500 draws")
    for name, reference in ((OLD, True), (OLD, False), (FIXED, False), (NEW, False), (NEW, True)):
        share, coverage, broken = certify(
            *outside, st.Target(0.10), 300, name, replace=False, reference=reference
        )
        words = f"{name}{', 336 reference cases' if reference else ''}"
        mean = coverage / share if share else 0.0
        print(f"{words}: certified {share:.1%}, coverage {mean:.3f} ({coverage:.3f}), broken {broken:.1%}")
    ultrasound = data / "busi-predictions"
    sets = {
        "polyps, in distribution": (polyps(data / "polyp", INSIDE), (0.06, 0.08), (0.10, 0.8)),
        "polyps, out of distribution": (outside, (0.10, 0.15), (0.10, 0.8)),
    }
    for model, risks in (("BCE_plain", (0.30, 0.35)), ("dice_plain", (0.22, 0.28))):
        vectors = scores(ultrasound / model, ultrasound / "masks")
        sets[f"breast ultrasound, {model}"] = (vectors, risks, (0.20, 0.5))
    for title, (vectors, risks, (rate, cutoff)) in sets.items():
        targets = {st.Target(risk): (OLD, FIXED, NEW) for risk in risks}
        targets[st.Target(rate, below_dice=cutoff)] = (OLD_COUNTS, NEW_COUNTS)
        for target, names in targets.items():
            print(f"\n{title}: {target} ({DRAWS} draws with replacement; certified / mean coverage)")
            print("| procedure | " + " | ".join(f"n = {n}" for n in SIZES) + " |")
            print("|---" * (len(SIZES) + 1) + "|")
            most = 0.0
            for name in names:
                found = [certify(*vectors, target, n, name) for n in SIZES]
                most = max(most, *(broken for _, _, broken in found))
                cells = (f"{share:.0%} / {coverage:.3f}" for share, coverage, _ in found)
                print(f"| {name} | " + " | ".join(cells) + " |", flush=True)
            print(f"Guarantees broken in at most {most:.1%} of the draws of a cell.")


if __name__ == "__main__":
    main()
