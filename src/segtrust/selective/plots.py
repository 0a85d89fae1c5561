"""Drawing of risk-coverage curves; Matplotlib is loaded when the first one is drawn."""

from __future__ import annotations

from typing import Any

from segtrust.optional import require

__all__ = ["draw_curve"]

INK = "#4d4d4d"


def draw_curve(curve: Any, ax: Any, *, label: str | None, references: bool, style: dict[str, Any]) -> Any:
    """Draw a curve, and give the axes; see `RiskCoverageCurve.plot`."""
    ax = _new_axes() if ax is None else ax
    name = "confidence" if label is None else label
    options = {"linewidth": 1.8, "solid_joinstyle": "round", "label": _entry(name, curve.aurc), "zorder": 3}
    ax.plot(curve.coverages, curve.risks, **(options | style))
    if references:
        _draw_references(curve, ax)
    _dress(ax)
    return ax


def _new_axes() -> Any:
    pyplot = require("matplotlib.pyplot", extra="plots")
    return pyplot.subplots(figsize=(4.8, 3.4), layout="constrained")[1]


def _entry(name: str, area: float) -> str:
    return f"{name} (AURC {area:.3f})"


def _draw_references(curve: Any, ax: Any) -> None:
    oracle, random = curve.oracle, curve.random
    line = {"color": INK, "linewidth": 1.0, "zorder": 2}
    ax.plot(oracle.coverages, oracle.risks, linestyle="--", label=_entry("oracle", oracle.aurc), **line)
    ax.plot(random.coverages, random.risks, linestyle=":", label=_entry("random", random.aurc), **line)


def _dress(ax: Any) -> None:
    ax.set(xlabel="coverage", ylabel="selective risk", xlim=(0.0, 1.0))
    ax.autoscale(axis="y")  # a limit set for the curve before would cut this one off
    ax.autoscale_view(scalex=False)
    ax.set_ylim(bottom=0.0)
    ax.spines[["top", "right"]].set_visible(False)
    ax.grid(axis="y", color="#dddddd", linewidth=0.6)
    ax.set_axisbelow(True)
    ax.legend(fontsize="small", framealpha=0.9, edgecolor="none")
