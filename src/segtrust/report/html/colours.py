"""Colours of estimators on light and on dark ground: the same hues, as light as they must be to be seen."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from segtrust.report.styles import style_of

__all__ = ["class_of", "colour_rules", "dashes_of", "lightened"]

_DARK_GROUND = (0x17, 0x1C, 0x22)
_BLACK, _DARK_INK = "#000000", "#e7edf2"
_CONTRAST = 4.5
_STEP = 0.05
_SCALE = 1.8
"""Units of a chart for one of a figure's line."""


def class_of(estimator: str) -> str:
    """Give the class of an estimator's lines.

    Examples
    --------
    >>> class_of("idc(p_hat)")
    'e-idc-p-hat-'
    """
    return "e-" + "".join(letter if letter.isalnum() else "-" for letter in estimator)


def colour_rules(estimators: Sequence[str]) -> str:
    """Give the rules of a style sheet that say which colour each estimator has."""
    light = "".join(f".{class_of(each)}{{--c:{style_of(each).colour}}}" for each in estimators)
    dark = "".join(f".{class_of(each)}{{--c:{lightened(style_of(each).colour)}}}" for each in estimators)
    return f"{light}\n@media screen and (prefers-color-scheme:dark){{{dark}}}\n"


def dashes_of(estimator: str) -> str | None:
    """Give the dashes of an estimator's line as SVG has them; ``None`` for an unbroken one."""
    dashes: Any = style_of(estimator).dashes
    if isinstance(dashes, str):
        return None
    return " ".join(f"{_SCALE * each:g}" for each in dashes[1])


def lightened(colour: str) -> str:
    """Mix a colour with white until it can be read on dark ground; black becomes the colour of text there.

    Examples
    --------
    >>> lightened("#e69f00"), lightened("#000000")
    ('#e69f00', '#e7edf2')
    """
    if colour == _BLACK:
        return _DARK_INK
    red, green, blue = (int(colour[at : at + 2], 16) for at in (1, 3, 5))
    white = 0.0
    mixed: tuple[int, ...] = (red, green, blue)
    while _contrast(mixed, _DARK_GROUND) < _CONTRAST and white < 1.0:
        white += _STEP
        mixed = tuple(round((1 - white) * each + white * 255) for each in (red, green, blue))
    return "#" + "".join(f"{each:02x}" for each in mixed)


def _contrast(first: tuple[int, ...], second: tuple[int, ...]) -> float:
    """Contrast of two colours as the guidelines for accessible pages define it, from 1 to 21."""
    bright, dim = sorted((_luminance(first), _luminance(second)), reverse=True)
    return (bright + 0.05) / (dim + 0.05)


def _luminance(colour: tuple[int, ...]) -> float:
    linear = [
        share / 12.92 if share <= 0.04045 else ((share + 0.055) / 1.055) ** 2.4
        for share in (each / 255 for each in colour)
    ]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
