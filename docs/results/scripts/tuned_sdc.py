"""How the weight of the tuned SDC is best chosen from few cases, for docs/results/tunable.md.

Run ``python -m docs.results.scripts.tuned_sdc DATA``; about ten minutes. DATA holds the folders ``polyp`` and
``busi-predictions``. Each set is split at random into tuning and test cases, SPLITS times at each tuning
size; a rule chooses a weight on the ones and is judged on the others. A gain is the part of the gap between
SDC and oracle, in mean AURC of the test cases, that the rule closes; losses are negative.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from segtrust.confidence import rank_correlations, ranking_areas
from segtrust.evaluation import split_cases, tuning_sizes
from segtrust.paper.pairs import labelled_pairs

SPLITS = 500
WEIGHTS = (0.0, 0.125, 0.25, 0.5, 1.0, 2.0, 4.0)
FINER = (0.0, *(2.0 ** (step / 2) for step in range(-8, 7)))
PLAIN = [(weight, 1) for weight in WEIGHTS]
SHARPENED = [*PLAIN, *((weight, 2) for weight in WEIGHTS if weight)]

CANDIDATES = {"plain": PLAIN, "finer": [(weight, 1) for weight in FINER], "sharper": SHARPENED}

# Candidates, criterion, and the margin as a function of the number of cases. By both criteria means that the
# best by ranks is taken where its AURC on the tuning cases is no larger than the SDC's, too.
RULES = {
    "AURC, 5 %": ("plain", "area", lambda n: 0.05),
    "AURC, 0.4/√n": ("plain", "area", lambda n: 0.4 / n**0.5),
    "ranks, none": ("plain", "ranks", lambda n: 0.0),
    "ranks, 0.3/√n": ("plain", "ranks", lambda n: 0.3 / n**0.5),
    "ranks, 0.4/√n": ("plain", "ranks", lambda n: 0.4 / n**0.5),
    "ranks, 0.5/√n": ("plain", "ranks", lambda n: 0.5 / n**0.5),
    "both, 0.3/√n": ("plain", "both", lambda n: 0.3 / n**0.5),
    "both, 0.4/√n": ("plain", "both", lambda n: 0.4 / n**0.5),
    "finer, 0.4/√n": ("finer", "ranks", lambda n: 0.4 / n**0.5),
    "sharper, 0.4/√n": ("sharper", "ranks", lambda n: 0.4 / n**0.5),
    "sharper, 0.5/√n": ("sharper", "ranks", lambda n: 0.5 / n**0.5),
}


def statistics(pairs):
    """Give k, s, Σp, Σp² outside the mask, and the Dice, of each case."""
    rows = []
    for pair in pairs:
        case = pair()
        p = case.prediction.probabilities / 255.0
        mask, truth = p >= 0.5, case.truth
        dice = 2.0 * np.count_nonzero(mask & truth) / (np.count_nonzero(mask) + np.count_nonzero(truth))
        outside = p[~mask]
        rows.append((np.count_nonzero(mask), p[mask].sum(), outside.sum(), (outside**2).sum(), dice))
    return np.array(rows)


def sets(data):
    """Give the statistics of each set by its name."""
    polyp = {name: statistics(labelled_pairs([data / "polyp" / name])) for name in POLYP}
    inside, outside = (np.concatenate([polyp[name] for name in names]) for names in (POLYP[:2], POLYP[2:]))
    yield from {"polyp, in distribution": inside, "polyp, out of distribution": outside, **polyp}.items()
    for model in ("BCE_plain", "dice_plain"):
        yield f"BUSI, {model}", statistics(labelled_pairs([data / "busi-predictions"], model))


POLYP = ("Kvasir", "CVC-ClinicDB", "CVC-300", "CVC-ColonDB", "ETIS-LaribPolypDB")


def confidences(rows, candidates):
    """Give SDC_w with the background's probability to the power γ, for each candidate (w, γ)."""
    k, s = rows[:, 0], rows[:, 1]
    some = k > 0
    below = [np.where(some, k + s + weight * rows[:, 1 + power], 1.0) for weight, power in candidates]
    return np.array([np.where(some, 2.0 * s / each, 0.0) for each in below])


def lacks_of(criterion, scores, dices):
    """Give what each candidate lacks by a criterion; 0 is perfect."""
    areas = criterion == "area"
    return ranking_areas(scores, 1.0 - dices) if areas else 1.0 - rank_correlations(scores, dices)


def chosen(scores, dices):
    """Give the place of the candidate that each rule chooses."""
    kinds = {rule[:2] for rule in RULES.values() if rule[1] != "both"}
    lacks = {kind: lacks_of(kind[1], scores[kind[0]], dices) for kind in kinds}
    found = {}
    for name, (candidates, criterion, margin) in RULES.items():
        each = lacks[candidates, "area" if criterion == "area" else "ranks"]
        usual, best = CANDIDATES[candidates].index((1.0, 1)), int(np.argmin(each))
        passes = each[best] < each[usual] * (1.0 - margin(dices.size))
        if criterion == "both":
            areas = lacks[candidates, "area"]
            passes = passes and areas[best] <= areas[usual]
        found[name] = best if passes else usual
    return found


def gains(rows, other=None):
    """Give the gain of each rule by tuning size; ``other`` are test cases from elsewhere."""
    scores = {name: confidences(rows, each) for name, each in CANDIDATES.items()}
    there = None if other is None else {name: confidences(other, each) for name, each in CANDIDATES.items()}
    found = {}
    for size in tuning_sizes(len(rows)):
        total, gap = dict.fromkeys(RULES, 0.0), 0.0
        for seed in range(SPLITS):
            tuning, test = split_cases(len(rows), size, seed)
            losses = 1.0 - (rows[test, 4] if other is None else other[:, 4])
            tested = there or {name: each[:, test] for name, each in scores.items()}
            picked = chosen({name: each[:, tuning] for name, each in scores.items()}, rows[tuning, 4])
            gap += add_gains(total, picked, tested, losses)
        found[size] = {name: each / gap for name, each in total.items()}
    return found


def add_gains(total, picked, tested, losses):
    """Add to ``total`` by how much each rule lowers the AURC of one split; give what the oracle would."""
    usual = tested["plain"][WEIGHTS.index(1.0)]
    sdc, oracle = ranking_areas(np.array([usual, -losses]), losses)
    areas = {}
    for name, at in picked.items():
        candidate = RULES[name][0], at
        if CANDIDATES[candidate[0]][at] != (1.0, 1):
            if candidate not in areas:
                areas[candidate] = ranking_areas(tested[candidate[0]][at : at + 1], losses)[0]
            total[name] += sdc - areas[candidate]
    return sdc - oracle


def main():
    """Print a table for each set, and the worst of all sizes."""
    found = dict(sets(Path(sys.argv[1])))
    here, there = found["polyp, in distribution"], found["polyp, out of distribution"]
    pairs = {name: (rows, None) for name, rows in found.items()} | {"polyp, in → out": (here, there)}
    worst = {rule: [] for rule in RULES}
    for name, (rows, other) in pairs.items():
        table = gains(rows, other)
        shown = list(table)[::3]
        say(f"\n{name}, {len(rows)} cases\n\n| rule | worst | {' | '.join(map(str, shown))} |")
        say("|---" * (len(shown) + 2) + "|")
        for rule, lowest in worst.items():
            lowest.append(min(row[rule] for row in table.values()))
            cells = [lowest[-1], *(table[size][rule] for size in shown)]
            say(f"| {rule} | {' | '.join(f'{100.0 * each:+.1f}' for each in cells)} |")
    say("\n| rule | worst of all sets and sizes |\n|---|---|")
    for rule, each in worst.items():
        say(f"| {rule} | {100.0 * min(each):+.2f} % |")


def say(text):
    """Print a line as soon as it is known."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
