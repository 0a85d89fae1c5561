"""Rows of the score table, against numbers that are computed by hand from the same arrays."""

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import segtrust as st
from segtrust.calibration import PlattScaling
from segtrust.confidence import IdealDice, PatchLevel, SoftDice
from segtrust.engine.scoring import ScoreJob
from segtrust.io import (
    ArrayRef,
    CaseFiles,
    MaskKind,
    OpenedCase,
    ReadOptions,
    Volume,
    checksum_of,
    find_cases,
    open_truth,
    volume_in_memory,
)
from segtrust.io.formats._common import MASKS
from segtrust.io.formats.pickle import read_plain_pickle
from segtrust.io.volume import open_labels
from segtrust.maps import EmptyPolicy
from tests.engine.files import NNUNET, files_of
from tests.nnunet.fixtures import kept_run
from tests.tuning_cases import blob

ESTIMATORS = (SoftDice(), IdealDice(), PatchLevel(size=5))
RNG = np.random.default_rng(3)


def score(files, **options):
    read = {name: options.pop(name) for name in list(options) if name in ReadOptions.__dataclass_fields__}
    outcome = ScoreJob(ESTIMATORS, ReadOptions(**read), **options)(files)
    assert outcome.failure is None, outcome.failure
    assert outcome.case == files.id
    return outcome.rows


def failure(files, **options):
    read = {name: options.pop(name) for name in list(options) if name in ReadOptions.__dataclass_fields__}
    outcome = ScoreJob(ESTIMATORS, ReadOptions(**read), **options)(files)
    assert not outcome.rows
    return outcome.failure


def assert_as_by_hand(row, p, mask=None, threshold=0.5):
    found = st.assess(p, mask, ESTIMATORS, threshold=threshold)
    for name, value in found.scores.items():
        assert row[name] == pytest.approx(value, rel=1e-12)
    columns = {"lower": "idc_over_sdc_low", "upper": "idc_over_sdc_high"}
    for name in ("k", "mu", "lam", "s", "lower", "upper", "relative_error"):
        expected = getattr(found.bounds, name)
        assert row[columns.get(name, name)] == pytest.approx(expected, rel=1e-12, nan_ok=True)
    assert row["foreground_ratio"] == found.foreground_ratio
    assert row["shape"] == "×".join(map(str, p.shape))


def test_npy_cut_at_a_threshold(tmp_path):
    p = blob(1).prediction.probabilities
    np.save(tmp_path / "a.npy", p)
    (row,) = score(files_of(tmp_path / "a.npy", group="patient 1", split="test", set="ID"), threshold=0.3)
    assert_as_by_hand(row, p, threshold=0.3)
    assert (row["case"], row["structure"], row["set"]) == ("a", "foreground", "ID")
    assert (row["group"], row["split"], row["mask_difference"]) == ("patient 1", "test", None)
    assert row["file"] == str(tmp_path / "a.npy")
    assert row["checksum"].startswith("crc32:")
    assert row["mask_checksum"] == ""
    assert row["seconds"] > 0
    assert "dice" not in row


def test_a_delivered_mask_is_scored_or_only_compared(tmp_path):
    p, mask = blob(2).prediction.probabilities, blob(2).truth
    np.save(tmp_path / "a.npy", p)
    np.save(tmp_path / "m.npy", mask)
    files = files_of(tmp_path / "a.npy", mask=tmp_path / "m.npy")
    differing = np.mean((p >= 0.5) != mask)
    for kind, scored in ((MaskKind.DELIVERED, mask), (MaskKind.THRESHOLD, None)):
        (row,) = score(files, mask=kind)
        assert_as_by_hand(row, p, scored)
        assert row["mask_checksum"] == checksum_of(tmp_path / "m.npy")
        assert row["mask_difference"] == differing > 0


@pytest.mark.needs("nibabel")
def test_nifti_with_its_spacing(tmp_path):
    import nibabel

    p = RNG.random((7, 6, 5)).astype(np.float32)
    nibabel.save(nibabel.Nifti1Image(p, np.diag([0.5, 0.75, 3.0, 1.0])), tmp_path / "a.nii.gz")
    (row,) = score(files_of(tmp_path / "a.nii.gz"))
    found = st.assess(p, estimators=[SoftDice(), IdealDice()])
    assert row["sdc"] == pytest.approx(found.scores["sdc"], rel=1e-12)
    assert row["idc"] == pytest.approx(found.scores["idc"], rel=1e-12)
    assert sorted(row["spacing_mm"].split("×")) == ["0.5", "0.75", "3"]


@pytest.mark.needs("SimpleITK", "nibabel")
def area_difference_mm2(truth, mask, *, empty, spacing_mm):
    return abs(float(truth.sum()) - float(mask.sum())) * float(np.prod(spacing_mm))


@pytest.mark.needs("nibabel")
def test_a_risk_gets_what_it_needs(tmp_path, monkeypatch):
    """A risk that takes more than counts is computed when a case is scored; without spacing it is unknown."""
    risk = st.Risk(
        "area_risk", area_difference_mm2, higher_is_better=False, bound=None, needs=frozenset({"spacing_mm"})
    )
    monkeypatch.setitem(st.RISKS, risk.name, risk)
    import nibabel

    p, truth = np.full((4, 5, 1), 0.9), np.zeros((4, 5, 1), np.uint8)
    truth[:2] = 1
    affine = np.diag([0.5, 2.0, 3.0, 1.0])
    nibabel.save(nibabel.Nifti1Image(p, affine), tmp_path / "a.nii.gz")
    nibabel.save(nibabel.Nifti1Image(truth, affine), tmp_path / "truth.nii.gz")
    (row,) = score(files_of(tmp_path / "a.nii.gz", truth=tmp_path / "truth.nii.gz"))
    assert row["area"] == 10 * 0.5 * 2.0  # a volume of one slice is an image
    np.save(tmp_path / "b.npy", p)
    np.save(tmp_path / "truth.npy", truth)
    (row,) = score(files_of(tmp_path / "b.npy", truth=tmp_path / "truth.npy"))
    assert row["area"] is None


@pytest.mark.parametrize("case", ["test_0", "test_1"])
def test_nnunet_with_labels(case):
    from tests.nnunet.contract import read_case

    folder, truths = NNUNET / "plain/predictions", NNUNET / "plain/labels"
    written = read_case(folder, truths, case)
    files = files_of(
        folder / f"{case}.npz",
        case,
        mask=folder / f"{case}.nii.gz",
        truth=truths / f"{case}.nii.gz",
    )
    (row,) = score(files, with_truth=True)
    assert row["structure"] == "foreground"
    assert_as_by_hand(row, 1 - written.probabilities[0], written.mask > 0)
    assert row["dice"] == st.dice(written.truth > 0, written.mask > 0)
    rows = score(files, regions=("each",), with_truth=True)
    assert [row["structure"] for row in rows] == ["organ", "lesion"]
    for label, row in enumerate(rows, 1):
        assert_as_by_hand(row, written.probabilities[label], written.mask == label)
        assert row["dice"] == st.dice(written.truth == label, written.mask == label)


@pytest.mark.needs("SimpleITK", "nibabel")
def test_nnunet_with_regions():
    from tests.nnunet.contract import read_case

    folder, truths = NNUNET / "regions/predictions", NNUNET / "regions/labels"
    written = read_case(folder, truths, "test_1")
    files = files_of(folder / "test_1.npz", mask=folder / "test_1.nii.gz", truth=truths / "test_1.nii.gz")
    rows = score(files, regions=("whole_tumor", "tumor_core", "enhancing_tumor"), with_truth=True)
    for number, (row, labels) in enumerate(zip(rows, ([1, 2, 3], [2, 3], [3]), strict=True)):
        mask, truth = np.isin(written.mask, labels), np.isin(written.truth, labels)
        assert_as_by_hand(row, written.probabilities[number], mask)
        assert row["iou"] == st.iou(truth, mask)
        assert row["truth_ratio"] == truth.mean()


def test_one_of_many_maps_in_an_archive(tmp_path):
    maps, truths = RNG.random((3, 9, 8)), RNG.random((3, 9, 8)) < 0.5
    np.savez(tmp_path / "many.npz", p_hat=maps, y=truths)
    path = tmp_path / "many.npz"
    files = files_of(path, truth=ArrayRef(path, "y", 1))
    files = files.__class__(files.id, ArrayRef(path, "p_hat", 1), truth=files.truth)
    (row,) = score(files, with_truth=True)
    assert_as_by_hand(row, maps[1])
    assert row["dice"] == st.dice(truths[1], maps[1] >= 0.5)


@pytest.mark.parametrize("policy", list(EmptyPolicy))
@pytest.mark.parametrize("mask", ["empty", "some"])
@pytest.mark.parametrize("truth", ["empty", "some"])
def test_overlaps_under_both_policies_of_empty_masks(tmp_path, policy, mask, truth):
    p, t = np.full((4, 5), 0.1), np.zeros((4, 5), np.uint8)
    p[0, :2] = 0.1 if mask == "empty" else 0.9
    t[0, :1] = truth == "some"
    np.save(tmp_path / "a.npy", p)
    np.save(tmp_path / "t.npy", t)
    (row,) = score(files_of(tmp_path / "a.npy", truth=tmp_path / "t.npy"), with_truth=True, empty=policy)
    both_empty = 0.0 if policy is EmptyPolicy.PAPER else 1.0
    assert row["dice"] == {"emptyempty": both_empty, "somesome": 2 / 3}.get(mask + truth, 0.0)
    assert row["iou"] == {"emptyempty": both_empty, "somesome": 1 / 2}.get(mask + truth, 0.0)
    assert row["truth_ratio"] == t.mean()


def test_maps_are_recalibrated_and_masks_stay_those_of_before(tmp_path):
    p = blob(4).prediction.probabilities
    scaling = PlattScaling(slope=0.7, intercept=-1.5)
    np.save(tmp_path / "a.npy", p)
    (row,) = score(files_of(tmp_path / "a.npy"), scaling=scaling)
    assert_as_by_hand(row, scaling.apply(p), p >= 0.5)


GOOD = blob(5).prediction.probabilities


def make_folder(path):
    path.unlink()
    path.mkdir()


SPOILED = {
    "missing": (lambda path: path.unlink(), "UnknownFormatError", "no such file"),
    "no map": (lambda path: path.write_text("nonsense"), "UnknownFormatError", "a.npy"),
    "truncated": (lambda path: path.write_bytes(path.read_bytes()[:-9]), "DamagedFileError", "a.npy"),
    "logits": (lambda path: np.save(path, 10 * GOOD - 5), "ProbabilityRangeError", "logits"),
    "nan": (lambda path: np.save(path, np.where(GOOD > 0.9, np.nan, GOOD)), "ProbabilityRangeError", "nan"),
    "a folder": (make_folder, "UnknownFormatError", "a.npy"),
}


@pytest.mark.parametrize("kind", SPOILED)
def test_what_is_wrong_with_a_map_is_told_with_its_file(tmp_path, kind):
    spoil, name, said = SPOILED[kind]
    np.save(tmp_path / "a.npy", GOOD)
    spoil(tmp_path / "a.npy")
    found = failure(files_of(tmp_path / "a.npy"))
    assert (found.case, found.file, found.kind) == ("a", str(tmp_path / "a.npy"), name)
    assert said in found.reason.lower()
    assert str(tmp_path / "a.npy") in found.reason
    assert "unexpected" not in found.reason


def test_what_is_wrong_with_a_truth_is_told_with_both_files(tmp_path):
    np.save(tmp_path / "a.npy", GOOD)
    np.save(tmp_path / "t.npy", np.ones((3, 4)))
    other = failure(files_of(tmp_path / "a.npy", truth=tmp_path / "t.npy"), with_truth=True)
    assert f"{tmp_path / 't.npy'}: expected the shape of the map" in other.reason
    assert str(tmp_path / "a.npy") in other.reason


class Broken(SoftDice):
    def __init__(self, error):
        super().__init__()
        object.__setattr__(self, "error", error)

    def read(self, summary):
        raise self.error


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (ZeroDivisionError("by nothing"), r"a.npy: unexpected: by nothing \(in read, line \d+\)"),
        (AssertionError(), r"a.npy: unexpected: AssertionError \(in read"),
        (MemoryError(), "a.npy: not enough memory for this case. Use fewer workers"),
        (OSError(5, "Input/output error"), "a.npy: .*Input/output error"),
        (RecursionError("too deep"), "a.npy: unexpected: too deep"),
    ],
)
def test_no_fault_stops_the_others(tmp_path, error, said):
    np.save(tmp_path / "a.npy", blob(6).prediction.probabilities)
    outcome = ScoreJob((Broken(error),))(files_of(tmp_path / "a.npy"))
    assert outcome.failure.kind == type(error).__name__
    assert re.search(said, outcome.failure.reason)


def test_ctrl_c_is_no_failure_of_a_case(tmp_path):
    np.save(tmp_path / "a.npy", blob(6).prediction.probabilities)
    with pytest.raises(KeyboardInterrupt):
        ScoreJob((Broken(KeyboardInterrupt()),))(files_of(tmp_path / "a.npy"))


def test_rounding_beyond_the_ends_is_cut_off_and_nothing_else(tmp_path):
    p = np.array([[1.0000001, 0.25], [-1e-9, 0.75]], np.float32)
    np.save(tmp_path / "a.npy", p)
    job = ScoreJob((SoftDice(),))
    (row,) = job(CaseFiles("a", ArrayRef(tmp_path / "a.npy"))).rows
    assert row["sdc"] == st.soft_dice_confidence(np.clip(p, 0, 1))
    scaled = replace(job, scaling=PlattScaling(1.0, 0.0, n_cases=1))
    assert scaled(CaseFiles("a", ArrayRef(tmp_path / "a.npy"))).failure is None
    np.save(tmp_path / "a.npy", p + np.float32(0.001))
    assert (
        "expected probabilities in [0, 1]" in job(CaseFiles("a", ArrayRef(tmp_path / "a.npy"))).failure.reason
    )


def test_rows_say_which_mask_was_scored(tmp_path):
    np.save(tmp_path / "a.npy", np.full((2, 3), 0.75))
    np.save(tmp_path / "m.npy", np.ones((2, 3), np.uint8))
    job, case = ScoreJob((SoftDice(),)), CaseFiles("a", ArrayRef(tmp_path / "a.npy"))
    assert job(case).rows[0]["mask"] == "threshold"
    assert job(replace(case, mask=ArrayRef(tmp_path / "m.npy"))).rows[0]["mask"] == "delivered"


@pytest.mark.parametrize("policy", list(EmptyPolicy))
def test_masks_are_sought_by_the_policy_by_which_they_are_judged(tmp_path, policy):
    np.save(tmp_path / "a.npy", np.full((2, 3), 0.05))
    (row,) = score(files_of(tmp_path / "a.npy"), decode="dice-optimal", empty=policy)
    assert row["k"] == (0 if policy is EmptyPolicy.AGREE else 6)
    assert row["mask_threshold"] == (1.0 if policy is EmptyPolicy.AGREE else 0.05)


def refuse_to_read_all(self, dtype=None, copy=None):
    raise AssertionError("a map in pieces was read whole")


@pytest.mark.needs("zarr")
@pytest.mark.parametrize("with_mask", [False, True])
def test_a_map_in_pieces_is_compared_with_its_truth_piece_by_piece(tmp_path, monkeypatch, with_mask):
    import zarr

    from segtrust.io.formats import _common

    rng = np.random.default_rng(3)
    arrays = {"p": rng.random((9, 10, 11)).astype(np.float32), "mask": rng.random((9, 10, 11)) > 0.4}
    arrays["truth"] = rng.random((9, 10, 11)) > 0.6
    for name, values in arrays.items():
        stored = zarr.create_array(
            store=str(tmp_path / f"{name}.zarr"), shape=values.shape, chunks=(4, 4, 4), dtype=values.dtype
        )
        stored[:] = values
    masks = {"mask": tmp_path / "mask.zarr"} if with_mask else {}
    files = files_of(tmp_path / "p.zarr", truth=tmp_path / "truth.zarr", **masks)
    monkeypatch.setattr(_common, "_AT_ONCE", 0)
    monkeypatch.setattr(_common.ChunkedArray, "__array__", refuse_to_read_all)
    (row,) = ScoreJob((SoftDice(),))(files).rows
    mask = arrays["mask"] if with_mask else arrays["p"] >= 0.5
    both = np.count_nonzero(mask & arrays["truth"])
    assert row["dice"] == pytest.approx(2 * both / (mask.sum() + arrays["truth"].sum()))
    assert row["iou"] == pytest.approx(both / np.count_nonzero(mask | arrays["truth"]))


@pytest.mark.needs("SimpleITK")
@pytest.mark.parametrize("labels", ["plain", "regions"])
@pytest.mark.parametrize("with_truth", [True, False])
def test_a_map_in_memory_gives_the_rows_of_one_that_was_saved(labels, with_truth):
    """As the hook of nnU-Net scores, and as it would have been read from its files."""
    made = kept_run(labels)
    job = ScoreJob(ESTIMATORS, ReadOptions(regions=("each",)), with_truth=with_truth)
    for files in find_cases(made.predictions, truth=made.labels).cases:
        path = files.probabilities.path
        with np.load(path) as saved:
            p = saved["probabilities"]
        labels_of_mask = open_labels(files.mask, MASKS).read()

        def opened(path=path, p=p, mask=labels_of_mask, files=files):
            volume = volume_in_memory(path, p, read_plain_pickle(path.with_suffix(".pkl")))
            delivered = Volume(files.mask.path, mask.shape, mask.dtype, lambda _: mask, False, volume.grid)
            truth = open_truth(files.truth if with_truth else None)
            return OpenedCase(files.id, path, volume, delivered, truth)

        expected, found = job(files), job.score_opened(files, opened)
        assert len(found.rows) == len(expected.rows) > 1
        for row, other in zip(found.rows, expected.rows, strict=True):
            own = ("file", "checksum", "mask_checksum", "seconds")
            assert {k: v for k, v in row.items() if k not in own} == {
                k: v for k, v in other.items() if k not in own
            }
            assert (row["file"], row["checksum"], row["mask_checksum"]) == ("", "", "")


def test_a_map_in_memory_that_cannot_be_made_is_a_failure_like_any():
    def opened():
        raise MemoryError

    files = CaseFiles("a", ArrayRef(Path("a_0000.nii.gz")))
    outcome = ScoreJob(ESTIMATORS).score_opened(files, opened)
    assert "not enough memory" in outcome.failure.reason
    assert outcome.rows == ()
