"""The paper's Figure 1: two cases that one confidence ranks right and another wrong, as pictures."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, count
from pathlib import Path
from typing import Any

import numpy as np

from segtrust.confidence import mask_and_truth
from segtrust.engine import PICTURE_SECONDS, Sandbox
from segtrust.errors import SegtrustError
from segtrust.evaluation import ALL_STRUCTURES, EvaluatedSet, FileCase
from segtrust.io import orientation_of, read_case_image
from segtrust.maps import Case
from segtrust.report.figures import new_axes, plain_name, save_figure
from segtrust.report.styles import style_of

__all__ = ["Example", "choose_pair", "draw_examples", "load_example", "overlay", "save_examples"]

_LOG = logging.getLogger(__name__)
Row = Mapping[str, Any]
RIGHT, MISSED, FALSE = (0.56, 0.93, 0.56), (0.0, 0.0, 1.0), (1.0, 0.0, 0.0)
"""Colours of true positives, false negatives and false positives: light green, blue and red."""
_SHOWN = ("sdc", "amsp")
_OPACITY = 0.6
_WHITE = 0.998
"""Share of the pixels of a picture that are darker than white."""
_PROBABILITIES = "probabilities:\ndark 0, bright 1"
_PREDICTION = "prediction: green right,\nblue missed, red false"


@dataclass(frozen=True, eq=False)
class Example:
    """A case as pictures.

    Attributes
    ----------
    row
        Of the score table.
    image
        Colours (H, W, 3) in [0, 1]; of a volume the slice with most foreground.
    probabilities, mask, truth
        Of the same size.
    aspect
        Height of a pixel for its width.
    """

    row: Row
    image: Any
    probabilities: Any
    mask: Any
    truth: Any
    aspect: float = 1.0


def choose_pair(rows: Sequence[Row], right: str = "sdc", wrong: str = "amsp") -> tuple[Row, Row] | None:
    """Choose a good and a bad case that one confidence ranks right and another wrong, as far apart as any.

    Examples
    --------
    >>> rows = [{"loss": 0.1, "sdc": 0.9, "amsp": 0.8}, {"loss": 0.7, "sdc": 0.4, "amsp": 0.9}]
    >>> choose_pair(rows)[1]["loss"]
    0.7
    >>> choose_pair(rows[:1]) is None
    True
    """
    loss, ours, other = (
        np.array([row.get(name) for row in rows], np.float64) for name in ("loss", right, wrong)
    )
    widest, pair = 0.0, None
    for good, row in enumerate(rows):
        gaps = np.where((ours[good] > ours) & (other[good] < other), loss - loss[good], 0.0)
        bad = int(np.argmax(gaps))
        if gaps[bad] > widest:
            widest, pair = gaps[bad], (row, rows[bad])
    return pair


def save_examples(
    sets: Sequence[EvaluatedSet], cases_of: Callable[[EvaluatedSet], Sequence[FileCase]], stem: Path
) -> None:
    """Draw two cases, see `choose_pair`, of each set and structure whose images are at hand, as files.

    A worker process reads the cases; one that cannot be read is a warning in the log.
    """
    structures = list(dict.fromkeys(found.structure for found in sets))
    taken: set[str] = set()
    for found, figure in _examples(sets, cases_of):
        number = f"_{structures.index(found.structure)}_{plain_name(found.structure)}"
        name = f"{plain_name(found.name).lower()}{number if len(structures) > 1 else ''}"
        free = next(each for each in chain([name], (f"{name}-{i}" for i in count(2))) if each not in taken)
        taken.add(free)
        save_figure(figure, stem.with_name(f"{stem.name}_{free}"))


def _examples(
    sets: Sequence[EvaluatedSet], cases_of: Callable[[EvaluatedSet], Sequence[FileCase]]
) -> Iterator[tuple[EvaluatedSet, Any]]:
    with Sandbox(seconds=PICTURE_SECONDS) as sandbox:
        for found in sets:
            pair = choose_pair(found.rows) if found.structure != ALL_STRUCTURES else None
            if pair is None:
                continue
            cases = dict(zip((row["case"] for row in found.rows), cases_of(found), strict=True))
            examples = []
            for row in pair:
                files = cases[row["case"]].files
                refs = [ref for ref in (*files.maps, files.mask, files.truth, files.image) if ref is not None]
                try:
                    examples.append(sandbox.call(load_example, row, cases[row["case"]], files=refs))
                except Exception as error:  # noqa: BLE001 - whatever a library makes of a file
                    _LOG.warning("No example picture of %s, %s: %s", found.name, found.structure, error)
                    examples.append(None)
            drawn = [example for example in examples if example is not None]
            if len(drawn) == len(pair):
                yield found, draw_examples(drawn)


def load_example(row: Row, case: FileCase) -> Example | None:
    """Load the pictures of a case; ``None`` where it has no image or no truth."""
    if case.files.image is None or case.files.truth is None or not case.files.image.path.exists():
        return None
    loaded = case.load()
    mask, truth = mask_and_truth(Case(loaded.prediction, loaded.truth))
    p = _as_floats(np.asarray(loaded.prediction.probabilities))
    try:
        image = read_case_image(case.files.image, p.shape, loaded.grid, resample=case.options.resample)
    except SegtrustError:
        return None
    if p.ndim == 3:
        at = int(np.argmax((mask | truth).sum((1, 2))))
        p, mask, truth, image = p[at], mask[at], truth[at], image[at]
    orientation = orientation_of(loaded.grid)
    p, mask, truth, image = (orientation.turned(each) for each in (p, mask, truth, image))
    aspect = orientation.aspect(loaded.prediction.spacing_mm)
    return Example(row, _as_colours(image), p, mask, truth, aspect)


def _as_floats(p: Any) -> Any:
    return p / np.iinfo(p.dtype).max if p.dtype.kind == "u" else p.astype(np.float64)


def _as_colours(image: Any) -> Any:
    """Give colours in [0, 1]: a volume's from its darkest to its brightest, a dark picture's brighter."""
    values = image.astype(np.float64)
    if values.ndim == 2:
        low, high = values.min(), values.max()
        values = ((values - low) / (high - low if high > low else 1.0))[..., None]
    else:
        values = np.clip(values / max(float(np.quantile(values, _WHITE)), 1.0), 0.0, 1.0)
    return np.broadcast_to(values, (*values.shape[:2], 3))


def overlay(example: Example) -> Any:
    """Colour an image by where mask and truth agree and differ."""
    shown = example.image.copy()
    kinds = (
        (example.mask & example.truth, RIGHT),
        (~example.mask & example.truth, MISSED),
        (example.mask & ~example.truth, FALSE),
    )
    for where, colour in kinds:
        shown[where] = (1.0 - _OPACITY) * shown[where] + _OPACITY * np.array(colour)
    return shown


def draw_examples(examples: Sequence[Example]) -> Any:
    """Draw a row for each case: image, probabilities, confidences, and the prediction with its errors."""
    figure, axes = new_axes(len(examples), 4, width=7.0, height=1.8 * len(examples) + 0.3)
    for place, title in enumerate(("image", _PROBABILITIES, "confidence", _PREDICTION)):
        axes[0, place].set_title(title, fontsize=7 if "\n" in title else 9)
    for row, example in zip(axes, examples, strict=True):
        row[0].imshow(example.image, aspect=example.aspect)
        row[1].imshow(example.probabilities, vmin=0.0, vmax=1.0, cmap="viridis", aspect=example.aspect)
        row[2].text(
            0.5, 0.5, _told(example.row), ha="center", va="center", fontsize=9, transform=row[2].transAxes
        )
        row[3].imshow(overlay(example), aspect=example.aspect)
        row[2].set_box_aspect(1.0)
        for ax in row:
            ax.set_axis_off()
    return figure


def _told(row: Row) -> str:
    scores = [f"{style_of(name).label} {row[name]:.3f}" for name in _SHOWN]
    return "\n".join([*scores, f"Dice {row['dice']:.3f}"])
