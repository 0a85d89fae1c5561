"""Run in the environment of nnU-Net: one predictor, its maps saved and its maps scored in memory.

``python hook.py MODEL IMAGES LABELS OUT``: below OUT ``saved`` holds what nnU-Net itself writes, ``hooked``
what the hook writes, with tables of both.
"""

import sys
from pathlib import Path

import torch

from segtrust.confidence import get_estimators
from segtrust.engine import ScoreJob, ScoreRun, make_executor, score_cases
from segtrust.integrations.nnunet import ScoringOptions, load_predictor, score_predictions
from segtrust.io import ReadOptions, find_cases

ESTIMATORS = ("sdc", "idc", "amsp", "ane", "pla")
EACH = ReadOptions(regions=("each",))


def main(model: Path, images: Path, labels: Path, out: Path) -> None:
    """Predict twice with one predictor and one thread, so that the network gives the same numbers."""
    torch.set_num_threads(1)
    predictor = load_predictor(model, ["0"], device="cpu")
    saved = out / "saved"
    saved.mkdir(parents=True)
    predictor.predict_from_files_sequential(str(images), str(saved), save_probabilities=True)
    found = find_cases(saved, truth=labels)
    job = ScoreJob(tuple(get_estimators(ESTIMATORS)), EACH)
    score_cases(found, job, ScoreRun(out / "saved.csv", make_executor()))
    options = ScoringOptions(ESTIMATORS, EACH, labels, workers=2)
    score_predictions(predictor, images, out / "hooked", table=out / "hooked.csv", options=options)


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
