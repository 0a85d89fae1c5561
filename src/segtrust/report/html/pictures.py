"""Cases as cards: image and map with the outlines of mask and truth, and what was decided."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from segtrust.engine import PICTURE_SECONDS, Sandbox
from segtrust.report.html.charts import short_name
from segtrust.report.html.choosing import MOST_CASES, Choice, choices_of
from segtrust.report.html.contours import outline
from segtrust.report.html.markup import Html, joined, tag
from segtrust.report.html.planes import Plane, planes_of
from segtrust.report.html.png import png_url
from segtrust.report.html.run import ReportedRun
from segtrust.report.html.words import listed
from segtrust.report.styles import style_of

__all__ = ["pictures_of"]

Row = dict[str, Any]
_MOST_BYTES = 6_000_000
"""Of all pictures of a page."""
_ANCHORS = ((11, 10, 46), (52, 42, 120), (38, 102, 150), (36, 158, 138), (140, 205, 84), (252, 240, 150))
"""Colours of probabilities from 0 to 1: ever brighter, so that they can be ranked without their hues."""


def _palette() -> Any:
    places = np.linspace(0, len(_ANCHORS) - 1, 256)
    channels = np.array(_ANCHORS).T
    return np.array([np.interp(places, range(len(_ANCHORS)), each) for each in channels]).T.round()


def pictures_of(run: ReportedRun) -> list[Html]:
    """Return a block for each set and structure; a case whose files cannot be read is a note.

    A worker process reads the files. Once the pictures fill the page the rest are notes too.
    """
    room = _MOST_BYTES
    blocks = []
    with Sandbox(seconds=PICTURE_SECONDS) as sandbox:
        for (name, structure), rows in list(run.groups.items())[:_MOST_GROUPS]:
            title = f"{name}, {structure}" if run.several_structures else name
            kinds = []
            for choice in choices_of(rows, run):
                cards = [_card(row, run, room, sandbox) for row in choice.rows]
                room -= sum(map(len, cards))
                kinds.append(_kind(choice, cards))
            shown = tag("div", *kinds, class_="kinds")
            blocks.append(tag("section", tag("h3", title), shown, class_="group"))
    left = [f"{name}, {structure}" for name, structure in list(run.groups)[_MOST_GROUPS:]]
    return [*blocks, *([_note(f"Without pictures: {listed(left)}.")] if left else [])]


_MOST_GROUPS = MOST_CASES // 4
"""Sets and structures that have pictures."""


def _kind(choice: Choice, cards: Sequence[Html]) -> Html:
    heading = tag("h4", choice.title, " ", tag("small", choice.why))
    return tag("section", heading, *cards, class_="kind")


def _card(row: Row, run: ReportedRun, room: int, sandbox: Sandbox) -> Html:
    caption = tag("figcaption", tag("span", short_name(row["case"]), class_="case"), _facts(row, run))
    return tag("figure", caption, _pictures(row, run, room, sandbox), class_="card")


def _facts(row: Row, run: ReportedRun) -> Html:
    """Say what is known of a case in a few words."""
    found = [tag("span", f"{style_of(run.main).label} {row[run.main]:.3f}")]
    if row.get("dice") is not None:
        found.append(tag("span", f"Dice {row['dice']:.3f}"))
    if row.get("loss") is not None and run.loss_name != "dice":
        found.append(tag("span", f"{run.loss_label} {row['loss']:.3f}"))
    decision = row.get("decision")
    if decision:
        kind = decision.replace(" ", "-")
        found.append(tag("span", decision, class_=f"badge {kind if kind in _BADGES else ''}"))
    return tag("span", *found, class_="facts")


_BADGES = ("accept", "defer", "no-finding")


def _pictures(row: Row, run: ReportedRun, room: int, sandbox: Sandbox) -> Html:
    if room <= 0:
        return _note("Not shown: the pictures above fill this page.")
    try:
        files = [row.get(name) for name in _FILES if row.get(name)]
        found = sandbox.call(planes_of, row, run.about, files=files)
    except Exception as error:  # noqa: BLE001 - whatever a library makes of a file
        return _note(f"No picture: {error or type(error).__name__}")
    shown = tag("div", *(_plane(plane, short_name(row["case"])) for plane in found.planes), class_="planes")
    return joined(shown, _note(found.note)) if found.note else shown


_FILES = ("file", "member_files", "mask_file", "truth_file", "image_file")


def _note(text: str) -> Html:
    return tag("p", text, class_="missing")


def _plane(plane: Plane, case: str) -> Html:
    """Show an image beside its map; where no image is known the map alone, with the outlines."""
    outlines = _outlines(plane)
    where = f", {plane.title}" if plane.title else ""
    levels = (255.0 * np.clip(plane.probabilities, 0.0, 1.0)).round().astype(np.uint8)
    mapped = png_url(levels, _PALETTE)
    if plane.image is None:
        shown = [_picture(plane, mapped, f"Probability map of {case}{where}, with outlines", outlines)]
    else:
        described = f"Image of {case}{where}, with outlines of mask and truth"
        shown = [
            _picture(plane, png_url(plane.image), described, outlines),
            _picture(plane, mapped, f"Probability map of {case}{where}", Html("")),
        ]
    title = tag("p", f"{plane.title}; {_sides(plane)}", class_="slice") if plane.title else None
    return tag("div", tag("div", *shown, class_="pair"), title)


def _sides(plane: Plane) -> str:
    """Say which way up a slice is shown."""
    if not plane.letters:
        return "orientation unknown"
    return f"{plane.letters[0]} on the left, {plane.letters[2]} on top"


_PALETTE = _palette()


def _outlines(plane: Plane) -> Html:
    """Draw the outlines, the truth's below; each on a dark line, which is seen on bright images."""
    found = [("truth", plane.truth), ("mask", plane.mask)]
    paths = [(kind, outline(values)) for kind, values in found if values is not None]
    return joined(
        *(
            joined(tag("path", d=path, class_="halo"), tag("path", d=path, class_=kind))
            for kind, path in paths
            if path
        )
    )


def _picture(plane: Plane, url: str, described: str, over: Html) -> Html:
    height, width = plane.mask.shape
    image = tag("image", href=url, width=width, height=height, preserve_aspect_ratio="none")
    return tag(
        "svg",
        tag("g", image, over, transform=f"scale(1 {plane.aspect:g})" if plane.aspect != 1.0 else None),
        view_box=f"0 0 {width} {height * plane.aspect:g}",
        role="img",
        aria_label=described,
    )
