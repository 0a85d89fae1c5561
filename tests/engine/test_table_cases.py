"""Cases of a score table are opened as they were scored."""

import numpy as np
import pytest

from segtrust.confidence import get_estimators
from segtrust.engine.executors import make_executor
from segtrust.engine.score_table import ScoreRun, score_cases
from segtrust.engine.scoring import ScoreJob
from segtrust.engine.table_cases import files_of_row, read_options_of, reopen_case
from segtrust.errors import WrongContentError
from segtrust.io import LabelScheme, ReadOptions, find_cases, read_table

SCHEME = LabelScheme((("organ", (1,)), ("lesion", (2,))), is_regions=False)


@pytest.fixture
def scored(tmp_path, monkeypatch):
    """A table of one case with two structures, scored from a folder that is not that of the test."""
    rng = np.random.default_rng(0)
    p = rng.dirichlet([1, 1, 1], size=(6, 7)).transpose(2, 0, 1)
    for name, values in (("maps", p), ("truths", p.argmax(0)), ("images", p[0])):
        (tmp_path / name).mkdir()
        np.save(tmp_path / name / "a.npy", values)
    monkeypatch.chdir(tmp_path)
    from pathlib import Path

    job = ScoreJob(tuple(get_estimators(["sdc"])), ReadOptions(regions=("each",), scheme=SCHEME))
    score_cases(
        find_cases("maps", truth="truths", images="images"),
        job,
        ScoreRun(Path("scores.csv"), make_executor()),
    )
    monkeypatch.chdir("/")
    return read_table(tmp_path / "scores.csv"), p, tmp_path


def test_rows_lead_to_what_was_scored(scored):
    table, p, folder = scored
    assert read_options_of(table.about) == ReadOptions(regions=("each",), scheme=SCHEME)
    for number, row in enumerate(table.rows, 1):
        loaded = reopen_case(row, table.about)
        assert loaded.structure == row["structure"]
        assert np.array_equal(loaded.prediction.probabilities, p[number])
        assert np.array_equal(loaded.truth, p.argmax(0) == number)
        assert files_of_row(row, table.about).image.path == folder / "images/a.npy"


def test_a_map_that_is_gone(scored):
    table, _, folder = scored
    (folder / "maps/a.npy").unlink()
    with pytest.raises(WrongContentError, match="expected the map of the case a, got no such file"):
        reopen_case(table.rows[0], table.about)
