"""How estimators look: one name, one label, one colour in every figure.

The colours are those of Okabe and Ito, which people with any of the common forms of colour blindness can tell
apart, two dark ones of Paul Tol, and a grey for references. SDC* and PLA* have the colours of SDC and PLA,
which they are with other parameters. Lines that lie on top of each other are told apart by their dashes.
"""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass
from typing import Any
from zlib import crc32

from segtrust.confidence import get_estimator
from segtrust.confidence.registry import is_free_name
from segtrust.errors import PluginError, UnknownNameError

__all__ = ["STYLES", "Style", "is_styled", "style_of"]

_BLACK, _GREY = "#000000", "#7f7f7f"
_BLUE, _SKY, _GREEN = "#0072b2", "#56b4e9", "#009e73"
_ORANGE, _VERMILION, _PURPLE, _OLIVE = "#e69f00", "#d55e00", "#cc79a7", "#8a7d00"
_INDIGO, _WINE = "#332288", "#882255"

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


STYLES = {
    "idc(x)": Style("IDC(x)", _BLACK, width=1.8),
    "idc(p)": Style("IDC(p)", _SKY, _DASHED),
    "idc(p_hat)": Style("IDC(p̂)", _GREEN, width=1.8),
    "idc": Style("IDC", _GREEN, width=1.8),
    "sdc": Style("SDC", _VERMILION, _MIXED),
    "sdc-tuned": Style("SDC*", _VERMILION, _DOTTED),
    "amsp": Style("aMSP", _BLUE),
    "apc": Style("aPC", _SKY),
    "ane": Style("aNE", _ORANGE),
    "mmmc": Style("MMMC", _OLIVE),
    "tla": Style("TLA", _WINE, _DASHED),
    "pla": Style("PLA", _PURPLE),
    "pla-tuned": Style("PLA*", _PURPLE, _DASHED),
    "aef": Style("AEF", _SKY, _MIXED),
    "aef-sdc": Style("AEF+SDC", _INDIGO, _DASHED),
    "pairwise-dice": Style("pairwise Dice", _GREEN, _DOTTED),
    "oracle": Style("oracle", _BLACK, _DASHED, width=1.0),
    "random": Style("random", _GREY, _DOTTED),
}
"""Styles by the names of the library; see `style_of`."""


_OTHERS = tuple(
    (colour, dashes) for dashes in (_DASHED, _DOTTED, _MIXED) for colour in (_OLIVE, _WINE, _BLUE)
)
"""Looks of estimators of other packages, which have none of their own."""


def style_of(name: str) -> Style:
    """Give the style of an estimator by its name, also of one of another package, installed here or not.

    Examples
    --------
    >>> style_of("aef-sdc").label
    'AEF+SDC'
    """
    if name in STYLES:
        return STYLES[name]
    if not is_free_name(name):
        raise UnknownNameError(f"Unknown estimator {name!r}; available: {', '.join(STYLES)}.")
    colour, dashes = _OTHERS[crc32(name.encode()) % len(_OTHERS)]
    return Style(_label_of(name), colour, dashes)


def is_styled(name: str, told: Container[str] = ()) -> bool:
    """Tell whether a column is a confidence: an estimator's of segtrust, or one that a table tells of."""
    return name in STYLES or (name in told and is_free_name(name))


def _label_of(name: str) -> str:
    """Give the label of an estimator of another package; its name where it cannot be asked."""
    try:
        return get_estimator(name).label
    except (UnknownNameError, PluginError):
        return name
