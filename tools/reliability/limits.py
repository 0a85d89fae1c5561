"""How far each quantity of the differential run may be off: the rows of its table, also on the page."""

from __future__ import annotations

from dataclasses import dataclass

from segtrust.selective import CONVENTIONS

__all__ = ["LIMITS", "TOLERANCES", "Limit"]


@dataclass(frozen=True)
class Limit:
    """A row of the table.

    Attributes
    ----------
    row
        What it says.
    allowed
        How far each of its quantities may be off: relative, unless the row says otherwise.
    quantities
        Names under which they are compared.
    """

    row: str
    allowed: float
    quantities: tuple[str, ...]


_AREAS = (
    *(f"area: {name}" for name in (*CONVENTIONS, "generalised")),
    *(f"oracle: {name}" for name in CONVENTIONS),
)

LIMITS = (
    Limit("pixels of the mask (k), share of the image", 0.0, ("k", "foreground")),
    Limit("probability of mask and background (s, λ), mean in the mask (μ)", 1e-14, ("s", "lam", "mu")),
    Limit("SDC, SDC*", 1e-14, ("sdc", "sdc-tuned")),
    Limit("aMSP", 1e-14, ("amsp",)),
    Limit("APC (absolute)", 1e-14, ("apc (absolute)",)),
    Limit("IDC", 1e-12, ("idc",)),
    Limit("expected Tversky indices", 1e-12, ("tversky",)),
    Limit(
        "chance of an empty truth; expected Dice if it is not",
        1e-12,
        ("chance of empty", "expected if not empty"),
    ),
    Limit("aNE", 1e-13, ("ane",)),
    Limit("MMMC", 1e-13, ("mmmc",)),
    Limit("TLA", 1e-13, ("tla",)),
    Limit("PLA, PLA*, boxes of all sides", 1e-13, ("pla", "pla-tuned", "boxes")),
    Limit("bounds b_L, b_U", 1e-14, ("lower", "upper")),
    Limit("largest relative error ε", 1e-13, ("relative error",)),
    Limit("Dice-optimal mask", 1e-12, ("best mask",)),
    Limit("pixels of the Dice-optimal mask", 0.0, ("k of the best mask",)),
    Limit("Dice, IoU, F-beta", 0.0, ("dice", "iou", "f-beta")),
    Limit(
        "estimators alone: SDC, IDC, APC, MMMC, PLA",
        0.0,
        tuple(f"alone: {name}" for name in ("sdc", "idc", "apc", "mmmc", "pla")),
    ),
    Limit(
        "estimators alone: aMSP, aNE, TLA", 1e-14, tuple(f"alone: {name}" for name in ("amsp", "ane", "tla"))
    ),
    Limit("curve: thresholds", 0.0, ("thresholds",)),
    Limit("curve: coverages, risks, coverage of a threshold", 1e-14, ("coverages", "risks", "threshold")),
    Limit(
        "readings: risk at a coverage, coverage at a risk",
        1e-12,
        ("risk at a coverage", "coverage at a risk"),
    ),
    Limit("areas of all conventions, AUGRC, oracle", 1e-13, _AREAS),
    Limit("areas of a random order", 1e-12, ("random",)),
    Limit("E-AURC (of the area)", 1e-13, tuple(f"excess: {name} (of the area)" for name in CONVENTIONS)),
    Limit(
        "normalised AURC (of the gap)",
        1e-12,
        tuple(f"normalised: {name} (of the gap)" for name in CONVENTIONS),
    ),
    Limit("AUROC, AUPR, false alarms", 1e-14, ("auroc", "aupr", "false alarms")),
    Limit("Spearman, Pearson (absolute)", 1e-12, ("spearman (absolute)", "pearson (absolute)")),
    Limit(
        "p-values: betting, Hoeffding-Bentkus, binomial", 1e-12, ("betting", "hoeffding-bentkus", "binomial")
    ),
)
TOLERANCES = {quantity: limit.allowed for limit in LIMITS for quantity in limit.quantities}
"""Of each quantity; of what is not in it nothing may be off."""
