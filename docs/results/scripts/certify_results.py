"""Print how often a threshold can be certified on real maps, and the coverage that comes with it.

Run it with ``python -m docs.results.scripts.certify_results DATA``, where DATA holds
``polyp/<set>/{masks,predictions}``.
"""

# ruff: noqa: T201

import sys
from pathlib import Path

import numpy as np

import segtrust as st
from docs.results.scripts.watch_results import OUTSIDE, polyps
from segtrust.selective import walk_candidates

TARGET, DELTA, CASES, DRAWS = 0.10, 0.05, 300, 1000


def certify(confidence, loss, *, aside, p_value):
    """Give the share of draws with a threshold, its mean coverage, and how often the risk was too high."""
    coverages, broken = [], 0
    for seed in range(DRAWS):
        order = np.random.default_rng(seed).permutation(confidence.size)
        chosen, others = order[:CASES], order[CASES:]
        reference = None if aside else confidence[others]
        cases = st.CalibrationCases(confidence[chosen], loss[chosen], reference=reference)
        _, steps = walk_candidates(cases, [st.Target(TARGET)], DELTA, st.Procedure(p_value=p_value))
        passed = [step.threshold for step in steps if step.passed]
        if passed:
            accepted = confidence >= min(passed)
            coverages.append(accepted.mean())
            broken += loss[accepted].mean() > TARGET
    return len(coverages) / DRAWS, np.mean(coverages) if coverages else 0.0, broken / DRAWS


def main():
    """Print one line for each way."""
    confidence, dice = polyps(Path(sys.argv[1]) / "polyp", OUTSIDE)
    for p_value in ("betting", "hoeffding-bentkus"):
        for aside in (False, True):
            share, coverage, broken = certify(confidence, 1 - dice, aside=aside, p_value=p_value)
            kind = "a fifth set aside" if aside else "336 reference cases"
            print(
                f"{p_value}, {kind}: certified {share:.1%}, coverage {coverage:.3f}, risk above {broken:.1%}"
            )


if __name__ == "__main__":
    main()
