"""``segtrust nnunet``: from nnU-Net's folders to a policy and to decisions."""

import json
import shutil

import pytest

from segtrust.io import read_table, write_predictor
from tests.commands import segtrust
from tests.nnunet.fixtures import kept_run
from tests.nnunet.layout import MODEL, lay_out

FOLD_0 = ("-c", "3d_fullres", "-f", "0")
ENSEMBLE = ("-c", "3d_fullres", "-f", "0,1")
TARGET = ("--target-risk", "0.4")


@pytest.fixture(scope="module")
def laid_out(tmp_path_factory):
    """Two folds of sixty cases each, and two predictions."""
    return lay_out(tmp_path_factory.mktemp("nnunet"), kept_run("plain"), "plain", folds=(0, 1), copies=30)


@pytest.fixture
def made(laid_out, monkeypatch):
    for name, value in laid_out.variables.items():
        monkeypatch.setenv(name, value)
    return laid_out


@pytest.fixture(scope="module")
def policies(laid_out):
    """Of fold 0, and of both folds."""
    out = laid_out.root / "policies"
    with pytest.MonkeyPatch.context() as patched:
        for name, value in laid_out.variables.items():
            patched.setenv(name, value)
        for name, options in (("fold", ("-f", "0")), ("both", ())):
            done = segtrust("nnunet", "calibrate", 1, "-o", out / f"{name}.json", *TARGET, *options)
            assert done.returncode == 0, done.stderr
            (out / f"{name}.txt").write_text(done.stdout)
    return out


def standing(done):
    assert done.returncode == 0, done.stderr
    (found,) = json.loads(done.stdout)["standing"].values()
    return found


def triage(made, policy, *options):
    out = made.root / "triage" / "-".join([policy.stem, *options])
    command = ("nnunet", "triage", made.predictions, "--policy", policy, "-o", out, "--json", "--no-resume")
    return segtrust(*command, *options)


def test_a_data_set_is_shown_without_a_command(made):
    done = segtrust("nnunet", "1")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(
        "Dataset001_Plain: labels organ, lesion; scored unless --region is given: f"
    )
    assert "fold_1        60 cases validated, 60 with probabilities" in done.stdout
    assert done.stdout == segtrust("nnunet", "show", "Dataset001_Plain").stdout


def test_what_is_shown_can_be_read_by_machines(made):
    found = json.loads(segtrust("nnunet", "show", made.model, "--json").stdout)
    assert found["truth"] == str(made.truths)
    assert found["models"] == [
        {
            "model": MODEL,
            "folds": {key: {"validated": 60, "maps": 60, "makes_maps": None} for key in "01"},
        }
    ]


def test_regions_and_folds_without_maps_are_shown(tmp_path, monkeypatch):
    made = lay_out(tmp_path, kept_run("regions"), "regions")
    for path in (made.fold(0) / "validation").glob("*.npz"):
        path.unlink()
    done = segtrust("nnunet", made.model)
    assert "regions whole_tumor, tumor_core, enhancing_tumor; scored unless" in done.stdout
    assert "raw           not found (nnUNet_raw)" in done.stdout
    assert f"To make probabilities: nnUNetv2_train {made.dataset} 3d_fullres 0" in done.stdout


def test_predictions_are_shown(made):
    done = segtrust("nnunet", made.predictions)
    assert "2 masks, 2 with probabilities" in done.stdout
    assert "predictor     not noted by nnU-Net: repeat -c, -tr, -p and -f" in done.stdout
    assert f"labels        {made.root / 'raw/Dataset001_Plain/labelsTs'}" in done.stdout


def test_one_fold_is_certified_and_several_are_estimated(policies):
    assert "Policy for foreground (certified): accept" in (policies / "fold.txt").read_text()
    assert f"Valid for the model Dataset001_Plain/{MODEL}/fold_0." in (policies / "fold.txt").read_text()
    both = (policies / "both.txt").read_text()
    assert "estimated, not certified: each calibration case was predicted by its own fold" in both
    assert "Expected, but not guaranteed: " in both


@pytest.mark.parametrize(
    ("policy", "options", "expected"),
    [
        ("fold", FOLD_0, "certified"),
        ("fold", ENSEMBLE, "estimated"),
        ("fold", ("-c", "3d_fullres", "-f", "1"), "estimated"),
        ("fold", ("-c", "3d_fullres", "-f", "0", "-tr", "OneEpochTrainer"), "estimated"),
        ("fold", (), "estimated"),
        ("both", FOLD_0, "estimated"),
        ("both", ENSEMBLE, "estimated"),
    ],
)
def test_the_promise_holds_for_the_same_fold_alone(made, policies, policy, options, expected):
    assert standing(triage(made, policies / f"{policy}.json", *options)) == expected


def test_a_policy_of_pooled_folds_is_estimated_even_for_its_own_name(made, policies):
    own = ("--predictor", f"Dataset001_Plain/{MODEL}/cross-validation of folds 0,1")
    assert standing(triage(made, policies / "both.json", *own)) == "estimated"


def test_every_output_says_so(made, policies, tmp_path):
    command = ("nnunet", "triage", made.predictions, "--policy", policies / "fold.json", "-o", tmp_path)
    done = segtrust(*command)
    assert "Repeat what was given to nnUNetv2_predict" in done.stderr
    assert "The guarantee does not apply: made with" in done.stdout
    assert "used with an unnamed model." in done.stdout
    assert {path.name for path in tmp_path.iterdir()} >= {"accept.csv", "defer.csv", "scores.csv"}


def test_predictions_that_know_their_model_need_no_options(made, policies, tmp_path):
    copied = shutil.copytree(made.predictions, tmp_path / "predictions", symlinks=True)
    write_predictor(copied, f"Dataset001_Plain/{MODEL}/fold_0")
    command = (
        "nnunet",
        "triage",
        copied,
        "--policy",
        policies / "fold.json",
        "-o",
        tmp_path / "out",
        "--json",
    )
    assert standing(segtrust(*command)) == "certified"


def test_triage_wants_predictions(made, policies, tmp_path):
    done = segtrust("nnunet", "triage", made.model, "--policy", policies / "fold.json", "-o", tmp_path)
    assert done.returncode == 2
    assert "expected a folder of predictions, got one of a data set or model" in done.stderr


def test_masks_alone_cannot_be_decided_on(made, policies, tmp_path):
    copied = shutil.copytree(made.predictions, tmp_path / "predictions", symlinks=True)
    for path in copied.glob("*.npz"):
        path.unlink()
    done = segtrust("nnunet", "triage", copied, "--policy", policies / "fold.json", "-o", tmp_path / "out")
    assert done.returncode == 2
    assert "--save_probabilities or by `segtrust nnunet predict`" in done.stderr


def test_the_scores_are_kept_for_an_evaluation(policies):
    table = read_table(policies / "fold.scores.csv")
    assert len(table.rows) == 60
    assert {"sdc", "idc", "amsp", "dice"} <= set(table.columns)
    assert table.about["predictor"] == f"Dataset001_Plain/{MODEL}/fold_0"


def test_numbers_are_those_of_the_general_commands(made, policies, tmp_path):
    scores = tmp_path / "scores.csv"
    assert segtrust("score", made.fold(0), "--truth", made.truths, "-o", scores).returncode == 0
    ours, theirs = read_table(policies / "fold.scores.csv"), read_table(scores)
    for column in ("case", "sdc", "idc", "amsp", "dice", "mask"):
        assert ours.column(column) == theirs.column(column)
    name = f"Dataset001_Plain/{MODEL}/fold_0"
    done = segtrust("calibrate", scores, "-o", tmp_path / "policy.json", *TARGET, "--predictor", name)
    told = (policies / "fold.txt").read_text()
    assert done.stdout.split("\n")[0] == told.split("\n")[1]  # after what was paired


def predicted_again(made, folder, prefix=""):
    """Predictions of the validation cases of fold 0, in a folder of their own, under other names."""
    shutil.copytree(made.fold(0) / "validation", folder, symlinks=True)
    for path in list(folder.iterdir()):
        path.rename(path.with_name(f"{prefix}{path.name}"))
    for name in ("dataset.json", "plans.json"):
        shutil.copy(made.predictions / name, folder)
    return folder


def truths_again(made, folder, prefix):
    folder.mkdir()
    for path in made.truths.iterdir():
        shutil.copy(path, folder / f"{prefix}{path.name}")
    return folder


def calibrated(made, folder, truths, out, *options):
    done = segtrust("nnunet", "calibrate", folder, "--truth", truths, "-o", out, *TARGET, "--json", *options)
    return done, json.loads(done.stdout)


@pytest.mark.parametrize(
    ("options", "expected"),
    [(ENSEMBLE, "estimated"), (FOLD_0, "certified"), (("-c", "3d_fullres", "-f", "1"), "estimated")],
)
def test_cases_that_a_model_was_trained_with_certify_nothing(made, tmp_path, options, expected):
    folder = predicted_again(made, tmp_path / "held")
    names = {path.name.removesuffix(".npz") for path in folder.glob("*.npz")}
    others = {path.name.removesuffix(".nii.gz") for path in made.truths.iterdir()} - names
    splits = [
        {"train": sorted(others), "val": sorted(names)},
        {"train": sorted(names), "val": sorted(others)},
    ]
    path = made.truths.with_name("splits_final.json")
    path.write_text(json.dumps(splits))
    try:
        _, found = calibrated(made, folder, made.truths, tmp_path / "p.json", *options)
    finally:
        path.unlink()
    assert found["standing"] == expected
    assert ("trained with" in (tmp_path / "p.json").read_text()) == (expected == "estimated")
    again = segtrust("calibrate", tmp_path / "p.scores.csv", "-o", tmp_path / "again.json", *TARGET)
    assert f"foreground ({expected}" in again.stdout, "the table itself knows"


@pytest.mark.needs("pyarrow", "matplotlib")
def test_a_table_of_pooled_folds_certifies_nothing_by_any_command(policies, tmp_path):
    table = policies / "both.scores.csv"
    done = segtrust("evaluate", table, "-o", tmp_path / "evaluation")
    assert done.returncode == 0, done.stderr
    for scores in (table, tmp_path / "evaluation/scores.parquet"):
        done = segtrust("calibrate", scores, "-o", tmp_path / "again.json", *TARGET)
        assert "estimated, not certified: each calibration case was predicted by its own fold" in done.stdout
        done = segtrust("calibrate", scores, "-o", tmp_path / "again.json", *TARGET, "--json")
        told = json.loads(done.stdout)["foreground"]
        assert (told["certified"], told["standing"]) == (False, "estimated")
        assert told["text"].startswith("Estimated, and nothing is promised (each calibration case")


def test_held_out_predictions_of_an_ensemble_certify_it(made, tmp_path):
    held = predicted_again(made, tmp_path / "held", "new_")
    truths = truths_again(made, tmp_path / "truths", "new_")
    done, found = calibrated(made, held, truths, tmp_path / "p.json", *ENSEMBLE)
    assert found["standing"] == "certified"
    assert found["predictor"].endswith("/ensemble of folds 0,1")
    assert (done.returncode, found["failures"]) == (0, [])
    assert found["unpredicted"] > 0, "labels of fold 1 have no predictions here, which is told"
    assert standing(triage(made, tmp_path / "p.json", *ENSEMBLE)) == "certified"


def test_folds_that_the_model_does_not_have_are_not_taken_for_granted(made, policies):
    done = triage(made, policies / "fold.json", "-c", "3d_fullres")
    assert done.returncode == 2
    assert "expected with -c also -f" in done.stderr
    assert "has 0, 1 here" in done.stderr


def test_folds_with_spaces_are_told_how(made, policies):
    done = triage(made, policies / "fold.json", "-c", "3d_fullres", "-f", "0", "1")
    assert done.returncode == 2
    assert "expected several as -f 0,1" in done.stderr


def test_too_few_cases_are_told(made, tmp_path):
    done = segtrust("nnunet", "calibrate", made.predictions, "-o", tmp_path / "p.json", *TARGET, *FOLD_0)
    assert done.returncode == 1
    assert "Not certifiable with these 2 cases" in done.stderr


def test_a_target_that_is_out_of_reach_writes_no_policy(made, tmp_path):
    command = (
        "nnunet",
        "calibrate",
        1,
        "-f",
        0,
        "-o",
        tmp_path / "p.json",
        "--target-risk",
        "0.01",
        "--json",
    )
    done = segtrust(*command)
    assert done.returncode == 1
    assert json.loads(done.stdout)["standing"] is None
    assert not (tmp_path / "p.json").exists()


@pytest.mark.filterwarnings("ignore:.*more confident cases have:segtrust.errors.SegtrustWarning")
def test_each_structure_has_its_threshold(made, tmp_path):
    command = ("nnunet", "calibrate", 1, "-f", 0, "-o", tmp_path / "p.json", *TARGET, "--region", "each")
    done = segtrust(*command)
    assert done.returncode == 0, done.stderr
    assert "organ" in done.stdout
    assert "lesion" in done.stdout


def test_a_cross_validation_has_a_name_of_its_own(made, tmp_path):
    done = segtrust("nnunet", "calibrate", 1, "-o", tmp_path / "p.json", *TARGET, "--predictor", "mine")
    assert done.returncode == 2
    assert "that of a cross-validation is known" in done.stderr


def test_a_model_without_weights_predicts_nothing(made, tmp_path):
    done = segtrust("nnunet", "predict", 1, "-i", made.root, "-o", tmp_path / "out")
    assert done.returncode == 2
    assert "expected checkpoint_final.pth in one of its folds, got none" in done.stderr
