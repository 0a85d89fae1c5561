"""Axes of a small chart in SVG: where a value lies, and the lines and numbers around it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from segtrust.report.html.markup import Html, joined, tag

__all__ = ["Frame", "axes_of", "inside", "number_of", "span_of", "ticks_of"]

_STEPS = (1.0, 2.0, 2.5, 5.0, 10.0)
_MARGIN = 0.03
"""Share of a span that is left free on each side of it."""


@dataclass(frozen=True)
class Frame:
    """A rectangle of a picture, and the values that it spans.

    Attributes
    ----------
    x, y
        Values at its left and right, and at its bottom and top.
    width, height
        Of the whole picture, in its own units.
    left, right, top, bottom
        Room around the rectangle.
    """

    x: tuple[float, float]
    y: tuple[float, float]
    width: float = 560.0
    height: float = 350.0
    left: float = 58.0
    right: float = 14.0
    top: float = 12.0
    bottom: float = 46.0

    def across(self, value: float) -> float:
        """Where a value of the horizontal axis lies.

        Examples
        --------
        >>> Frame((0.0, 1.0), (0.0, 1.0)).across(0.5)
        302.0
        """
        share = (value - self.x[0]) / (self.x[1] - self.x[0])
        return self.left + share * (self.width - self.left - self.right)

    def up(self, value: float) -> float:
        """Where a value of the vertical axis lies."""
        share = (value - self.y[0]) / (self.y[1] - self.y[0])
        return self.height - self.bottom - share * (self.height - self.top - self.bottom)

    def point(self, x: float, y: float) -> str:
        """Give a point as SVG writes it, to a tenth of a unit."""
        return f"{self.across(x):.1f} {self.up(y):.1f}"

    def to_dict(self) -> dict[str, list[float]]:
        """Give what a script needs to find points again."""
        return {
            "x": [*self.x, self.left, self.width - self.right],
            "y": [*self.y, self.height - self.bottom, self.top],
        }


def span_of(values: Sequence[float]) -> tuple[float, float]:
    """Give a span around values, with some room; one around a single value has a width too.

    Examples
    --------
    >>> span_of([0.5])
    (0.0, 1.0)
    """
    low, high = float(np.min(values)), float(np.max(values))
    if low == high:
        return low - 0.5, high + 0.5
    room = _MARGIN * (high - low)
    return low - room, high + room


def ticks_of(low: float, high: float, count: int = 5) -> list[float]:
    """Give round values between two, about so many.

    Examples
    --------
    >>> ticks_of(0.0, 0.23)
    [0.0, 0.05, 0.1, 0.15, 0.2]
    """
    rough = (high - low) / count
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * each for each in _STEPS if power * each >= rough * 0.999)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [round(number * step, 12) for number in range(first, last + 1)]


def number_of(value: float) -> str:
    """Give a number as an axis shows it.

    Examples
    --------
    >>> number_of(0.25), number_of(-20.0)
    ('0.25', '−20')
    """
    return f"{value:g}".replace("-", "−")


def inside(frame: Frame, *children: Html | None) -> Html:
    """Cut what is drawn at the edges of the rectangle."""
    width, height = frame.width - frame.left - frame.right, frame.height - frame.top - frame.bottom
    return tag(
        "svg",
        *children,
        x=frame.left,
        y=frame.top,
        width=width,
        height=height,
        view_box=f"{frame.left} {frame.top} {width} {height}",
    )


def axes_of(frame: Frame, across: str, up: str) -> Html:
    """Draw the grid, the numbers and the names of both axes."""
    left, right = frame.left, frame.width - frame.right
    bottom, top = frame.height - frame.bottom, frame.top
    columns, lines = ticks_of(*frame.x), ticks_of(*frame.y)
    grid = [f"M{frame.across(each):.1f} {bottom}V{top}" for each in columns]
    grid += [f"M{left} {frame.up(each):.1f}H{right}" for each in lines]
    below = [
        tag("text", number_of(each), x=f"{frame.across(each):.1f}", y=bottom + 17, class_="tick middle")
        for each in columns
    ]
    beside = [
        tag("text", number_of(each), x=left - 8, y=f"{frame.up(each) + 4:.1f}", class_="tick end")
        for each in lines
    ]
    middle = (top + bottom) / 2
    return joined(
        tag("path", d="".join(grid), class_="grid"),
        tag("path", d=f"M{left} {top}V{bottom}H{right}", class_="axis"),
        *below,
        *beside,
        tag("text", across, x=(left + right) / 2, y=frame.height - 8, class_="name middle"),
        tag("text", up, x=14, y=middle, class_="name middle", transform=f"rotate(-90 14 {middle})"),
    )
