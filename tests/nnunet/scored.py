"""What segtrust makes of nnU-Net's files, held against the arrays themselves."""

import csv
import json

import numpy as np
import pytest

import segtrust as st
from segtrust.confidence import get_estimator
from segtrust.engine import ScoreJob
from segtrust.engine.losses import read_losses
from segtrust.io import ReadOptions, find_cases, read_scheme
from tests.commands import segtrust
from tests.nnunet.contract import read_case
from tests.nnunet.data import TEST_CASES, VALIDATION_CASES, VARIANTS

ESTIMATORS = ("sdc", "idc", "amsp", "ane", "pla")


def questions(labels, probabilities, mask):
    """By structure the map and the mask, straight from the arrays."""
    if labels == "plain":
        yield "foreground", 1 - probabilities[0], mask > 0
        yield "organ", probabilities[1], mask == 1
        yield "lesion", probabilities[2], mask == 2
    else:
        for channel, (name, values) in enumerate(
            {"whole_tumor": (1, 2, 3), "tumor_core": (2, 3), "enhancing_tumor": (3,)}.items()
        ):
            yield name, probabilities[channel], np.isin(mask, values)


class ScoredContract:
    """Subclasses give a fixture ``run``: a function that takes the name of a variant."""

    @pytest.mark.parametrize("labels", VARIANTS)
    def test_scores_equal_those_of_the_arrays(self, run, labels, tmp_path):
        made = run(labels)
        rows = {}
        for name, options in (("usual", ()), ("each", ("--region", "each"))):
            out = tmp_path / f"{name}.csv"
            command = ("score", made.predictions, "-o", out, "--details", *options)
            done = segtrust(*command, "--estimators", ",".join(ESTIMATORS))
            assert done.returncode == 0, done.stderr
            with out.open(newline="") as file:
                rows |= {(row["case"], row["structure"]): row for row in csv.DictReader(file)}
        for case in TEST_CASES:
            written = read_case(made.predictions, made.labels, case)
            for structure, p, mask in questions(labels, written.probabilities, written.mask):
                row = rows.pop((case, structure))
                expected = st.assess(p, mask, ESTIMATORS)
                for estimator in ESTIMATORS:
                    assert float(row[estimator]) == pytest.approx(expected.scores[estimator], rel=1e-12)
                assert int(row["k"]) == mask.sum() == expected.bounds.k
                assert float(row["mask_difference"]) == np.mean((p >= 0.5) != mask)
                assert row["shape"] == "×".join(map(str, p.shape))
        assert not rows

    @pytest.mark.parametrize("labels", VARIANTS)
    def test_dice_is_that_of_nnunet(self, run, labels):
        """Its summary.json has the Dice of each label or region, by its own code."""
        made = run(labels)
        found = find_cases(made.validation, truth=made.validation_labels)
        job = ScoreJob(
            (get_estimator("sdc"),),
            ReadOptions(regions=("each",), scheme=made.dataset_json),
            with_truth=True,
        )
        _, theirs = read_losses(made.validation / "summary.json", None, read_scheme(made.dataset_json))
        rows = [row for case in found.cases for row in job(case).rows]
        assert {row["case"] for row in rows} == set(VALIDATION_CASES)
        assert len(theirs) == len(rows) == 2 * len(read_scheme(made.dataset_json).structures)
        for row in rows:
            loss = theirs[row["case"], row["structure"]]
            assert loss == pytest.approx(1 - row["dice"], abs=1e-12)

    def test_the_map_cut_at_a_half_can_be_scored_instead(self, run):
        made = run("regions")
        (job,) = (ScoreJob((get_estimator("sdc"),), ReadOptions(mask="threshold")),)
        for case in find_cases([made.predictions]).cases:
            written = read_case(made.predictions, made.labels, case.id)
            (row,) = job(case).rows
            assert row["sdc"] == pytest.approx(st.soft_dice_confidence(written.probabilities[0]), rel=1e-12)

    def test_a_truth_that_is_turned_is_refused_and_resampled(self, run, tmp_path):
        import SimpleITK

        made = run("plain")
        for path in made.labels.glob("*.nii.gz"):
            turned = SimpleITK.Flip(SimpleITK.ReadImage(path), (True, False, False))
            SimpleITK.WriteImage(turned, tmp_path / path.name)
        found = find_cases(made.predictions, truth=tmp_path)
        plainly, resampled = (
            ScoreJob((get_estimator("sdc"),), ReadOptions(resample=each), with_truth=True)
            for each in (False, True)
        )
        straight = find_cases(made.predictions, truth=made.labels)
        for case, other in zip(found.cases, straight.cases, strict=True):
            assert "expected the grid of" in plainly(case).failure.reason
            assert resampled(case).rows[0]["dice"] == plainly(other).rows[0]["dice"]

    def test_names_are_those_of_the_description(self, run):
        described = json.loads(run("regions").dataset_json.read_text())["labels"]
        found = [each.name for each in read_scheme(run("regions").dataset_json).structures]
        assert found == [name for name in described if name != "background"]
