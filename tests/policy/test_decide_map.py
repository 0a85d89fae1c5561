"""From a map to a decision: `Policy.decide_map` decides as ``segtrust triage`` does on the files."""

import csv
from dataclasses import replace

import numpy as np
import pytest

import segtrust as st
from segtrust.confidence import PatchLevel, SoftDice
from segtrust.errors import MaskShapeError, ParameterError, PolicyError, ProbabilityRangeError
from segtrust.policy import Decision, MapDecision, Scoring
from tests.behaviour.decision_data import write_cases
from tests.commands import segtrust
from tests.policy.certified import policy

MAP = np.array([[0.9, 0.8], [0.1, 0.0]])
RNG = np.random.default_rng(0)
EMPTY = np.full((4, 4), 0.01)

SETTINGS = {
    "sdc": ("sdc", ()),
    "empty masks agree": ("sdc", ("--empty", "agree")),
    "amsp": ("amsp", ()),
    "pla": ("pla", ()),
    "recalibrated": ("sdc", ("--calibrate-maps", "{scaling}")),
    "masks at 0.3": ("sdc", ("--threshold", "0.3")),
    "dice-optimal": ("idc", ("--decode", "dice-optimal")),
    "recalibrated and dice-optimal": (
        "sdc",
        ("--decode", "dice-optimal", "--calibrate-maps", "{scaling}", "--empty", "agree"),
    ),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("maps")
    write_cases(folder / "known", 70, truth_folder=folder / "truth", empty_masks=(3,), empty_truth=(3,))
    write_cases(folder / "new", 20, first=300, empty_masks=(4, 9))
    st.PlattScaling(slope=0.7, intercept=0.1).save(folder / "scaling.json")
    return folder


def run(*arguments):
    done = segtrust(*arguments)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("name", SETTINGS)
def test_a_map_in_memory_is_decided_like_its_file(folder, tmp_path, name):
    estimator, options = SETTINGS[name]
    options = [each.format(scaling=folder / "scaling.json") for each in options]
    table, policy_file = tmp_path / "scores.csv", tmp_path / "policy.json"
    options += ["--estimators", estimator]
    limit = ["--target-risk", 0.5, "--delta", 0.2, "--estimator", estimator]
    run("score", folder / "known", "--truth", folder / "truth", "-o", table, *options)
    run("calibrate", table, "-o", policy_file, *limit)
    decoding = options[:2] if {"--decode", "--threshold"} & {*options} else ()
    run("score", folder / "new", "-o", tmp_path / "new.csv", "--policy", policy_file, "--details", *decoding)
    loaded = st.load(policy_file)
    with (tmp_path / "new.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 20
    assert len({row["decision"] for row in rows}) > 1
    for row in rows:
        result = loaded.decide_map(np.load(folder / f"new/{row['case']}.npy"))
        assert result.decision == row["decision"]
        assert result.confidence == pytest.approx(float(row[estimator]), rel=1e-12)
        assert result.empty_mask == (int(row["k"]) == 0)
        assert result.margin == pytest.approx(float(row["margin"]), abs=1e-12)


def test_the_result_equals_its_decision_and_shows_itself():
    result = policy().decide_map(MAP)
    assert result == "accept"
    assert result == Decision.ACCEPT
    assert result != "defer"
    assert result != 1
    assert result == policy().decide_map(MAP)
    assert {result: 1}["accept"] == 1
    assert str(result) == "accept"
    assert repr(result) == (
        "MapDecision(decision='accept', estimator='sdc', confidence=0.8947, threshold="
        f"{policy().threshold:.4g})"
    )
    assert "Decision: accept" in result._repr_html_()
    assert isinstance(result, MapDecision)


def test_a_delivered_mask_and_the_threshold_of_the_policy_are_used():
    mask = np.array([[True, True], [True, False]])
    assert policy().decide_map(MAP, mask).confidence == st.soft_dice_confidence(MAP, mask)
    expected = st.soft_dice_confidence(MAP, threshold=0.85)
    at_85 = policy(threshold=0.85)
    assert at_85.decide_map(MAP).confidence == expected
    assert at_85.decide_map(MAP, threshold=0.85).confidence == expected
    assert at_85.decide_map(st.Prediction(MAP, threshold=0.85)).confidence == expected
    assert at_85.decide_map(st.Prediction(MAP, mask)) == policy().decide_map(MAP, mask)
    prediction = st.Prediction(MAP, mask, id="case 7")
    assert policy().decide_map(prediction) == policy().decide_map(MAP, mask)
    assert policy().decide_map(st.Case(prediction, None)) == policy().decide_map(MAP, mask)


def test_another_threshold_than_that_of_the_policy_is_rejected():
    words = "calibrated with masks at the threshold 0.85, got 0.5"
    for arguments in ({"p": MAP, "threshold": 0.5}, {"p": st.Prediction(MAP)}):
        with pytest.raises(PolicyError, match=words):
            policy(threshold=0.85).decide_map(**arguments)
    with pytest.raises(PolicyError, match=r"at the threshold 0\.5, got 0.3"):
        policy().decide_map(MAP, threshold=0.3)


def test_the_threshold_is_saved_only_if_it_is_not_the_usual_one(tmp_path):
    at_3 = policy(threshold=0.3)
    assert "threshold" not in policy().to_dict()["scoring"]
    assert at_3.to_dict()["scoring"]["threshold"] == 0.3
    at_3.save(tmp_path / "policy.json")
    assert st.load(tmp_path / "policy.json") == at_3
    with pytest.raises(PolicyError, match=r"threshold: this policy was made with 0\.3, the confidences"):
        at_3.check_scoring(Scoring("sdc"))


SOFTMAX = np.stack([np.full((16, 16), 0.25), np.full((16, 16), 0.75)])
NO_MAPS = {
    "softmax": (SOFTMAX, "axis 0 of .* adds up to 1, as the classes of a softmax do"),
    "softmax of a prediction": (st.Prediction(SOFTMAX), "as the classes of a softmax do"),
    "batch": (np.zeros((4, 1, 16, 16)), "looks like a batch"),
    "number": (0.9, "got one number. Pass a confidence to decide"),
    "array without axes": (np.array(0.9), "got one number"),
}


@pytest.mark.parametrize("name", NO_MAPS)
def test_what_is_not_one_map_is_rejected(name):
    p, words = NO_MAPS[name]
    with pytest.raises(ParameterError, match=words):
        policy().decide_map(p)


def test_a_list_is_a_map():
    mask = [[1, 1], [1, 0]]
    assert policy().decide_map(MAP.tolist()) == policy().decide_map(MAP)
    assert policy().decide_map(MAP.tolist(), mask) == policy().decide_map(MAP, np.array(mask))


WHERE = {
    "sdc": {},
    "amsp": {"estimator": "amsp"},
    "delivered mask": {"mask": RNG.random((12, 12)) > 0.4},
    "recalibrated": {"recalibration": st.PlattScaling(0.7, 0.4).to_dict()},
    "decoded": {"decode": "dice-optimal"},
    "recalibrated and decoded": {
        "decode": "dice-optimal",
        "recalibration": st.PlattScaling(0.7, 0.4).to_dict(),
    },
}


@pytest.mark.parametrize("name", WHERE)
def test_pixels_that_do_not_count_may_hold_anything(name):
    """The rows below are left out: the decision is that on the rows above."""
    scoring = dict(WHERE[name])
    mask = scoring.pop("mask", None)
    p = np.concatenate([RNG.random((12, 12)), np.full((12, 12), np.nan)])
    where = np.arange(24)[:, None] < np.full(12, 12)
    whole = None if mask is None else np.concatenate([mask, ~mask])
    result = policy(**scoring).decide_map(p, whole, where=where)
    expected = policy(**scoring).decide_map(p[:12], mask)
    assert result.decision == expected.decision
    assert result.confidence == pytest.approx(expected.confidence, rel=1e-12)
    others = np.where(where, p, 0.3)
    assert policy(**scoring).decide_map(others, whole, where=where.tolist()) == result


def test_an_empty_mask_is_deferred_or_no_finding():
    assert policy(estimator="amsp").decide_map(EMPTY) == "defer"
    assert policy(estimator="amsp").decide_map(EMPTY).confidence > policy().threshold
    found = policy(empty="agree").decide_map(EMPTY)
    assert (found, found.empty_mask) == ("no finding", True)


@pytest.mark.needs("torch")
def test_a_tensor_is_decided_like_its_array():
    import torch

    tensor = torch.tensor(MAP, requires_grad=True)
    assert policy().decide_map(tensor).confidence == pytest.approx(policy().decide_map(MAP).confidence)
    assert isinstance(policy().decide_map(tensor).confidence, float)


def test_the_estimator_has_its_parameters_and_the_empty_rule():
    assert policy(estimator="pla", parameters={"size": 20}).estimator() == PatchLevel(size=20)
    assert policy(empty="agree").estimator() == SoftDice(empty="agree")


def test_a_fitted_estimator_scores_as_it_was_fitted():
    scoring = Scoring.of(st.ThresholdLevel(tau=0.2))
    assert policy(estimator="tla", parameters=scoring.parameters).decide_map(MAP).confidence == (
        st.ThresholdLevel(tau=0.2).score(st.Prediction(MAP))
    )


WRONG = {
    "another structure": ({"structure": "liver"}, PolicyError, "this policy is for 'tumour', got a map of"),
    "values": ({"p": MAP + 1}, ProbabilityRangeError, "p: "),
    "mask of another shape": ({"mask": np.ones(3, bool)}, MaskShapeError, "mask"),
    "mask twice": ({"p": st.Prediction(MAP), "mask": MAP > 0.5}, ParameterError, "own mask and threshold"),
    "threshold twice": ({"p": st.Prediction(MAP), "threshold": 0.5}, ParameterError, "own mask"),
}


@pytest.mark.parametrize("name", WRONG)
def test_input_that_does_not_fit(name):
    arguments, error, words = WRONG[name]
    tumour = replace(policy(), structure="tumour")
    with pytest.raises(error, match=words):
        tumour.decide_map(**{"p": MAP, **arguments})
    assert tumour.decide_map(MAP, structure="tumour") == "accept"
    assert policy().decide_map(MAP, structure="tumour") == "accept"  # a policy for any structure


@pytest.mark.parametrize("more", [{"mask": MAP > 0.5}, {"threshold": 0.5}])
def test_dice_optimal_masks_are_never_delivered(more):
    with pytest.raises(PolicyError, match="calibrated with Dice-optimal masks"):
        policy(decode="dice-optimal").decide_map(MAP, **more)


def test_an_estimator_of_ensembles_needs_the_members():
    with pytest.raises(PolicyError, match="compares the members of an ensemble, got a single map"):
        policy(estimator="pairwise-dice").decide_map(MAP)


def test_an_estimator_that_is_not_installed_names_its_package():
    lost = replace(policy(estimator="of-others"), versions={"segtrust": "0.1.0", "others": "3.2"})
    with pytest.raises(PolicyError, match=r"not installed here. Install it: pip install others==3\.2"):
        lost.decide_map(MAP)


def stored(p, kind, folder):
    """An array of another library with the same values, in chunks if it has any."""
    if kind == "dask":
        import dask.array

        return dask.array.from_array(p, chunks=(5, 7))
    if kind == "zarr":
        import zarr

        return zarr.array(p, chunks=(5, 7))
    if kind == "h5py":
        import h5py

        return h5py.File(folder / f"{p.dtype}.h5", "w").create_dataset("p", data=p, chunks=(5, 7))
    if kind == "torch":
        import torch

        return torch.from_numpy(p)
    return p


KINDS = [
    "numpy",
    *(pytest.param(kind, marks=pytest.mark.needs(kind)) for kind in ("dask", "zarr", "h5py", "torch")),
]
SCORINGS = {
    "as it is": {},
    "recalibrated": {"recalibration": st.TemperatureScaling(2.0).to_dict()},
    "decoded": {"decode": "dice-optimal"},
    "both": {"recalibration": st.TemperatureScaling(2.0).to_dict(), "decode": "dice-optimal"},
}


@pytest.mark.parametrize("kind_of_where", [None, *KINDS])
@pytest.mark.parametrize("scoring", SCORINGS)
@pytest.mark.parametrize("kind", KINDS)
def test_maps_of_every_kind_are_decided_alike(kind, scoring, kind_of_where, tmp_path):
    p = np.random.default_rng(1).beta(0.3, 0.5, (12, 15))
    where = None if kind_of_where is None else np.arange(15)[None, :].repeat(12, 0) > 4
    made = policy(**SCORINGS[scoring])
    expected = made.decide_map(p, where=where)
    selection = None if where is None else stored(where, kind_of_where, tmp_path)
    found = made.decide_map(stored(p, kind, tmp_path), where=selection)
    assert found.decision == expected.decision
    assert found.confidence == pytest.approx(expected.confidence, rel=1e-12)
    if where is not None and scoring == "as it is":
        alone = made.decide_map(np.ascontiguousarray(p[:, 5:]))
        assert found.confidence == pytest.approx(alone.confidence, rel=1e-12)
