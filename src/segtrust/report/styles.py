"""How lines look in figures. Label and colour of an estimator are defined on its class.

The colours are those of Okabe and Ito, which people with any of the common forms of colour blindness can tell
apart, two dark ones of Paul Tol, and a grey for references. SDC* and PLA* have the colours of SDC and PLA,
which they are with other parameters. Lines that lie on top of each other are told apart by their dashes.
"""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass
from typing import Any
from zlib import crc32

from segtrust.confidence import ESTIMATORS, REFERENCES, colour_of, is_free_name, label_of
from segtrust.errors import UnknownNameError

__all__ = ["STYLES", "Style", "is_styled", "style_of"]

_SOLID, _DASHED, _DOTTED, _MIXED = "-", (0, (4, 1.6)), (0, (1, 1.4)), (0, (5, 1.4, 1, 1.4))


@dataclass(frozen=True)
class Style:
    """Label of an estimator in tables and figures, and how its lines are drawn."""

    label: str
    colour: str
    dashes: Any = _SOLID
    width: float = 1.4

    def line(self) -> dict[str, Any]:
        """Options for Matplotlib's lines."""
        return {
            "label": self.label,
            "color": self.colour,
            "linestyle": self.dashes,
            "linewidth": self.width,
        }


_DASHES: dict[str, Any] = {
    "sdc": _MIXED,
    "sdc-tuned": _DOTTED,
    "tla": _DASHED,
    "pla-tuned": _DASHED,
    "aef": _MIXED,
    "aef-sdc": _DASHED,
    "pairwise-dice": _DOTTED,
    "oracle": _DASHED,
    "random": _DOTTED,
}
_WIDTHS = {"idc": 1.8, "oracle": 1.0}

STYLES = {
    "idc(x)": Style("IDC(x)", "#000000", width=1.8),
    "idc(p)": Style("IDC(p)", "#56b4e9", _DASHED),
    "idc(p_hat)": Style("IDC(p̂)", colour_of("idc"), width=1.8),
    **{
        name: Style(label_of(name), colour_of(name), _DASHES.get(name, _SOLID), _WIDTHS.get(name, 1.4))
        for name in (*ESTIMATORS, *REFERENCES)
    },
}
"""Styles by name: the IDC of the synthetic experiments, segtrust's estimators, and references."""

_PLUGIN_DASHES = (_DASHED, _DOTTED, _MIXED)


def style_of(name: str) -> Style:
    """Return the style of an estimator by its name, also for one of another package, installed here or not.

    Examples
    --------
    >>> style_of("aef-sdc").label
    'AEF+SDC'
    """
    if name in STYLES:
        return STYLES[name]
    if not is_free_name(name):
        raise UnknownNameError(f"Unknown estimator {name!r}; available: {', '.join(STYLES)}.")
    return Style(label_of(name), colour_of(name), _PLUGIN_DASHES[crc32(name.encode()) // 3 % 3])


def is_styled(name: str, known: Container[str] = ()) -> bool:
    """Return whether a column is a confidence: of segtrust's estimators, or one that the table names."""
    return name in STYLES or (name in known and is_free_name(name))
