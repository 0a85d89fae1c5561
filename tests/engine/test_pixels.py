"""Estimators that see pixels receive spacing and image from the files of a case."""

from dataclasses import dataclass

import numpy as np
import pytest

from segtrust.confidence import ConfidenceEstimator, Needs, SoftDice
from segtrust.engine.scoring import ScoreJob
from tests.engine.files import files_of

pytestmark = pytest.mark.needs("nibabel")


@dataclass(frozen=True)
class Weighed(ConfidenceEstimator):
    """Volume of the mask in mm³ times the mean of the image inside; the volume alone without an image."""

    name = "weighed"
    label = "weighed"

    @property
    def needs(self):
        return Needs(pixels=True)

    def read(self, summary):
        whole, spacing = summary.pixels.whole, summary.pixels.spacing_mm or (1.0,)
        mean = 1.0 if whole.image is None else float(whole.image[whole.mask].mean())
        return float(whole.mask.sum()) * float(np.prod(spacing)) * mean


def write(path, values, spacing):
    import nibabel

    nibabel.save(nibabel.Nifti1Image(values.T, np.diag([*spacing[::-1], 1.0])), path)


@pytest.fixture
def arrays(tmp_path):
    random = np.random.default_rng(0)
    p, image = random.random((4, 5, 6)).astype(np.float32), random.normal(5, 1, (4, 5, 6)).astype(np.float32)
    write(tmp_path / "a.nii.gz", p, (3.0, 0.5, 0.5))
    write(tmp_path / "image.nii.gz", image, (3.0, 0.5, 0.5))
    return p, image


def row_of(files, estimators):
    outcome = ScoreJob(estimators)(files)
    assert outcome.failure is None, outcome.failure
    return outcome.rows[0]


def test_spacing_and_image_of_a_volume(arrays, tmp_path):
    p, image = arrays
    volume = (p >= 0.5).sum() * 0.75
    alone = row_of(files_of(tmp_path / "a.nii.gz"), (SoftDice(), Weighed()))
    assert alone["weighed"] == pytest.approx(volume)
    files = files_of(tmp_path / "a.nii.gz", image=tmp_path / "image.nii.gz")
    row = row_of(files, (SoftDice(), Weighed()))
    assert row["weighed"] == pytest.approx(volume * image[p >= 0.5].mean())
    assert row["sdc"] == alone["sdc"]


def test_an_image_is_read_only_if_an_estimator_needs_it(arrays, tmp_path):
    (tmp_path / "image.nii.gz").write_bytes(b"no image")
    files = files_of(tmp_path / "a.nii.gz", image=tmp_path / "image.nii.gz")
    assert row_of(files, (SoftDice(),))["sdc"] > 0
    failure = ScoreJob((Weighed(),))(files).failure
    assert "image.nii.gz" in failure.reason
