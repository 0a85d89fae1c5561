"""A confidence for each structure that TotalSegmentator has segmented.

Nothing of TotalSegmentator runs here: it is read what ``--save_probabilities`` (in Python
``save_probabilities=``) wrote, and the segmentation that it delivered. The same is done by
``segtrust score FOLDER --names totalsegmentator:total --region each --resample truth``.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from segtrust.confidence import Estimators, get_estimators
from segtrust.engine import FOLDER, ScoreJob, settings_of
from segtrust.io import (
    SCORES_FORMAT,
    TASK_PREFIX,
    ArrayRef,
    CaseFiles,
    ReadOptions,
    Resample,
    Table,
    load_case,
    stem_of,
)

__all__ = ["score_structures"]


def score_structures(
    probabilities: Path | str,
    segmentation: Path | str | None = None,
    *,
    task: str | None = None,
    structures: Sequence[str] = ("each",),
    estimators: Estimators = ("sdc",),
) -> Table:
    """Score the structures of one case: a table of one row each, as `segtrust score` writes it.

    Parameters
    ----------
    probabilities
        What ``save_probabilities`` wrote, an ``.npz`` file with its ``.pkl`` file beside it.
    segmentation
        What was delivered, one image of all labels (``ml=True``). It lies on the grid of the CT and is
        brought to that of the probabilities, by the nearest neighbour. Without it masks are
        ``p >= 0.5``.
    task
        As TotalSegmentator calls it, whose package is asked for the names: ``"total"``, or
        ``"total/ribs"`` for the last of several models, the only one whose probabilities are kept. ``None``
        where the segmentation tells the names in its header, as it does for tasks of one model.
    structures
        Names; all where nothing is said.
    estimators
        Names, or estimators with settings of their own.

    Notes
    -----
    One channel is in memory at a time.

    Examples
    --------
    >>> import tempfile, numpy as np
    >>> path = Path(tempfile.mkdtemp()) / "ct.npz"
    >>> p = np.random.default_rng(0).dirichlet((1, 1, 1), (4, 5, 6)).transpose(3, 0, 1, 2)
    >>> np.savez_compressed(path, probabilities=p.astype(np.float32))
    >>> table = score_structures(path)
    >>> [(row["case"], row["structure"]) for row in table.rows]
    [('ct', 'class 1'), ('ct', 'class 2')]
    """
    path = Path(probabilities)
    mask = None if segmentation is None else ArrayRef(Path(segmentation))
    scheme = None if task is None else Path(f"{TASK_PREFIX}{task}")
    read = ReadOptions(tuple(structures), resample=Resample.TRUTH, scheme=scheme)
    job = ScoreJob(tuple(get_estimators(estimators)), read, with_truth=False)
    files = CaseFiles(stem_of(path), ArrayRef(path), mask=mask)
    rows = [job.row(loaded, files) for loaded in load_case(files, read)]
    return Table.of(rows, {"format": SCORES_FORMAT, **settings_of(job), FOLDER: str(Path.cwd())})
