"""``segtrust nnunet``: what is found in nnU-Net's folders, and decisions for one fold or for several."""

import json
import os
import shutil
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from tests.behaviour.helpers import assert_golden, read_csv
from tests.commands import segtrust_process

pytestmark = pytest.mark.needs("nibabel")
UNTIMED = ("seconds", "checksum", "mask_checksum", "file", "mask_file", "truth_file", "image_file", "policy")
ROUNDING = 1e-15  # relative_error is a difference from 1
FOLD_0 = ("-c", "3d_fullres", "-f", "0")


KEPT = Path(__file__).parents[1] / "fixtures/nnunet/plain"
DATASET, MODEL = "Dataset001_Plain", "nnUNetTrainer__nnUNetPlans__3d_fullres"


@dataclass
class Layout:
    """nnU-Net's three folders, and one of predictions."""

    root: Path

    @property
    def model(self):
        return self.root / "results" / DATASET / MODEL

    @property
    def predictions(self):
        return self.root / "predictions"


def link(source, target):
    target.parent.mkdir(parents=True, exist_ok=True)
    target.symlink_to(source)


@pytest.fixture(scope="module")
def laid_out(tmp_path_factory):
    """Two folds of sixty cases each, which are slightly fainter copies of two, and two predictions."""
    found = Layout(tmp_path_factory.mktemp("nnunet"))
    for fold in (0, 1):
        folder = found.model / f"fold_{fold}/validation"
        link(KEPT / "validation/summary.json", folder / "summary.json")
        for case, number in product(("train_0", "train_1"), range(30)):
            name = f"{case}_{fold}_{number:03}"
            for ending in ("pkl", "nii.gz"):
                link(KEPT / f"validation/{case}.{ending}", folder / f"{name}.{ending}")
            if number:
                with np.load(KEPT / f"validation/{case}.npz") as kept:
                    fainter = kept["probabilities"][1:] * (1.0 - number / 1000.0)
                p = np.concatenate([1.0 - fainter.sum(axis=0, keepdims=True), fainter])
                np.savez_compressed(folder / f"{name}.npz", probabilities=p.astype(fainter.dtype))
            else:
                link(KEPT / f"validation/{case}.npz", folder / f"{name}.npz")
            truth = found.root / "preprocessed" / DATASET / f"gt_segmentations/{name}.nii.gz"
            link(KEPT / f"validation_labels/{case}.nii.gz", truth)
    raw = found.root / "raw" / DATASET
    for folder in (found.model, raw):
        link(KEPT / "predictions/dataset.json", folder / "dataset.json")
    (raw / "imagesTs").mkdir()
    for path in (KEPT / "labels").iterdir():
        link(path, raw / "labelsTs" / path.name)
    shutil.copytree(KEPT / "predictions", found.predictions)
    noted = found.predictions / "predict_from_raw_data_args.json"
    noted.write_text(noted.read_text().replace("/data", str(found.root)))
    return found


def nnunet(layout, *arguments, code=0):
    places = {f"nnUNet_{name}": str(layout.root / name) for name in ("raw", "preprocessed", "results")}
    done = segtrust_process("nnunet", *arguments, "--json", env={**os.environ, **places})
    assert done.returncode == code, done.stderr
    return json.loads(done.stdout) if done.stdout else None


def without_root(value, root):
    return json.loads(json.dumps(value).replace(str(root), "ROOT"))


def test_show(laid_out):
    found = {
        "dataset": nnunet(laid_out, "show", "1"),
        "predictions": nnunet(laid_out, "show", laid_out.predictions),
    }
    assert_golden("decisions/nnunet_show", without_root(found, laid_out.root))


@pytest.fixture(scope="module")
def policy(laid_out):
    """A policy of fold 0."""
    path = laid_out.root / "policies/fold.json"
    nnunet(laid_out, "calibrate", "1", "-o", path, "--target-risk", 0.4, "-f", "0")
    return path


def test_calibrate(laid_out, policy):
    content = json.loads(policy.read_text())
    assert content["standing"] == "certified"
    assert (content["evidence"]["n"], content["evidence"]["set_aside"]) == (60, 0)
    name = content["scoring"]["predictor"]
    rows = read_csv(policy.with_name("fold.scores.csv"), without=UNTIMED)
    assert len(rows) == 60
    first = [rows[0], rows[30]]
    assert_golden("decisions/nnunet_calibrate", {"predictor": name, "rows": first}, abs_tol=ROUNDING)
    both = policy.with_name("both.json")
    nnunet(laid_out, "calibrate", "1", "-o", both, "--target-risk", 0.4)
    assert json.loads(both.read_text())["standing"] == "estimated"


def test_triage(laid_out, policy):
    out = Path(laid_out.root) / "triage"
    command = ("triage", laid_out.predictions, "--policy", policy)
    same = nnunet(laid_out, *command, "-o", out, *FOLD_0)
    assert same["standing"] == {"foreground": "certified"}
    other = nnunet(laid_out, *command, "-o", out / "other", "-c", "3d_fullres", "-f", "0,1")
    assert other["standing"] == {"foreground": "estimated"}
    assert sum(same["counts"].values()) == sum(other["counts"].values()) == 2
    rows = read_csv(out / "scores.csv", without=(*UNTIMED, "margin", "decision"))
    assert_golden("decisions/nnunet_triage", rows, abs_tol=ROUNDING)
    nnunet(laid_out, "triage", laid_out.model, "--policy", policy, "-o", out / "none", code=2)
