"""Ground truth as people have it: with soft edges, in JPEG, and of another size than the map."""

import numpy as np
import pytest

import segtrust as st
from tests.behaviour.helpers import read_csv
from tests.behaviour.maps import blob, truth_of
from tests.commands import segtrust

pytestmark = pytest.mark.needs("PIL")

SHAPE = (48, 64)
CASES = {"a": 0.4, "b": 0.5, "it's c": 0.6}


def save(path, values, **how):
    from PIL import Image

    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(values).save(path, **how)


def resized(values, shape):
    from PIL import Image

    return np.asarray(Image.fromarray(values).resize(shape[::-1], Image.Resampling.BILINEAR))


@pytest.fixture
def maps(tmp_path):
    folder = tmp_path / "my maps"
    for name, at in CASES.items():
        save(folder / f"{name}.png", np.rint(255 * blob(SHAPE, at=at)).astype(np.uint8))
    return folder


def masks(shape):
    return {name: truth_of(shape, at=at).astype(np.uint8) * 255 for name, at in CASES.items()}


def scores(maps, truth, *options, code=0):
    out = maps.parent / "scores.csv"
    done = segtrust("score", maps, "--truth", truth, "-o", out, "--overwrite", *options)
    assert done.returncode == code, done.stdout + done.stderr
    return {row["case"]: float(row["dice"]) for row in read_csv(out)} if code == 0 else done.stderr


def dice_of(maps, truths):
    from PIL import Image

    p = {name: np.asarray(Image.open(maps / f"{name}.png")) for name in truths}
    return {name: float(st.dice(truth, p[name] >= 128)) for name, truth in truths.items()}


def test_soft_edges_are_cut_at_half(maps, tmp_path):
    soft = {name: resized(mask, SHAPE) for name, mask in masks((120, 160)).items()}
    for name, mask in soft.items():
        save(tmp_path / f"truth/{name}.png", mask)
    assert scores(maps, tmp_path / "truth") == dice_of(
        maps, {name: mask >= 128 for name, mask in soft.items()}
    )
    strict = dice_of(maps, {name: mask >= 200 for name, mask in soft.items()})
    assert scores(maps, tmp_path / "truth", "--truth-threshold", "200") == strict


@pytest.mark.parametrize("ending", [".jpg", ".jpeg", ".JPG"])
def test_ground_truth_in_jpeg(maps, tmp_path, ending):
    for name, mask in masks(SHAPE).items():
        save(tmp_path / f"truth/{name}{ending}", mask, quality=90, format="JPEG")
    found = scores(maps, tmp_path / "truth")
    expected = dice_of(maps, {name: mask > 0 for name, mask in masks(SHAPE).items()})
    assert found == pytest.approx(expected, abs=0.01)


@pytest.mark.parametrize("resample", ["truth", "map"])
def test_ground_truth_at_the_original_size(maps, tmp_path, resample):
    original = masks((150, 201))
    for name, mask in original.items():
        save(tmp_path / f"truth/{name}.png", mask)
    said = scores(maps, tmp_path / "truth", code=2)
    for part in ("my maps/a.png", "truth/a.png", "(150, 201)", "(48, 64)", f"--resample {resample}"):
        assert part in said, said
    found = scores(maps, tmp_path / "truth", "--resample", resample)
    expected = dice_of(maps, {name: mask > 0 for name, mask in masks(SHAPE).items()})
    assert found == pytest.approx(expected, abs=0.02)
    shape = read_csv(tmp_path / "scores.csv")[0]["shape"]
    assert shape == ("48×64" if resample == "truth" else "150×201")


def test_another_choice_is_rejected(maps, tmp_path):
    for option, value in (("--resample", "masks"), ("--truth-threshold", "-1")):
        done = segtrust("score", maps, "-o", tmp_path / "a.csv", option, value)
        assert done.returncode == 2
        assert option.strip("-").replace("-", "_") in done.stderr


@pytest.mark.parametrize("kind", ["grey", "one bit", "palette"])
def test_label_1_of_masks_of_two_values(maps, tmp_path, kind):
    """Issue 24: "Handle, or reject with a remedy, but never silently misread: … palettes"."""
    from PIL import Image

    labels = {name: values // 255 for name, values in masks(SHAPE).items()}
    for name, values in labels.items():
        (tmp_path / "labels").mkdir(exist_ok=True)
        image = Image.fromarray(values.astype(bool) if kind == "one bit" else values)
        if kind == "palette":
            image.putpalette([0, 0, 0, 255, 255, 255])
        image.save(tmp_path / f"labels/{name}.png")
    assert scores(maps, tmp_path / "labels", "--label", "1") == pytest.approx(
        dice_of(maps, labels), rel=1e-12
    )


def test_a_label_that_no_ground_truth_has(maps, tmp_path):
    for name, values in masks(SHAPE).items():
        save(tmp_path / f"truth/{name}.png", values)
    out = tmp_path / "scores.csv"
    done = segtrust("score", maps, "--truth", tmp_path / "truth", "-o", out, "--label", "1")
    assert "Note: 3 cases, for example a: " in done.stderr
    assert "truth/a.png: does not have label 1; it has 255." in done.stderr
