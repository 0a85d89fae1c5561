"""Which files belong together: layouts that people have, with one command that can be guessed."""

import json
from pathlib import Path

import numpy as np
import pytest

from tests.behaviour.helpers import read_csv
from tests.behaviour.maps import FLAT, blob, quantised, truth_of
from tests.commands import segtrust

pytestmark = pytest.mark.needs("PIL", "matplotlib", "pyarrow")
QUICK = ("--resamples", "100", "--estimators", "sdc")
ODD = "O'Brien's maps (2nd try)"
"""A folder with spaces, an apostrophe and brackets."""


def save(path, values):
    from PIL import Image

    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(values).save(path)


def write_case(folder, case, *, number=0, **folders):
    """Write a map, its ground truth and its image: by suffixes, or into folders of their own."""
    p = quantised(blob(FLAT, at=0.4 + 0.02 * number), np.uint8)
    files = {"map": p, "truth": 255 * truth_of(FLAT), "image": p}
    suffixes = {"map": "-pred", "truth": "-mask", "image": "-img"}
    for role, values in files.items():
        place = folders.get(role)
        save(folder / f"{case}{suffixes[role]}.png" if place is None else place / f"{case}.png", values)


def one_folder(folder, count=6):
    for number in range(count):
        write_case(folder, f"benign ({number})", number=number)
        save(folder / f"benign ({number})-pred_aid.png", np.zeros(FLAT, np.uint8))
    return folder


def two_folders(top, count=5):
    """Two folders of maps with the same case names, and ground truth and images in parallel folders."""
    for place, name in enumerate(("CVC", "ETIS")):
        for number in range(count):
            folders = {"map": top / f"maps/{name}", "truth": top / f"gt/{name}", "image": top / f"raw/{name}"}
            write_case(top, str(number), number=number + 5 * place, **folders)
    return [top / "maps/CVC", top / "maps/ETIS"]


def evaluate(*command, out):
    done = segtrust("evaluate", *command, "-o", out, *QUICK, "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def rows_of(out):
    import pyarrow.parquet

    return pyarrow.parquet.read_table(out / "scores.parquet").to_pylist()


@pytest.mark.parametrize("name", ["benign", ODD])
def test_maps_masks_and_images_in_one_folder(tmp_path, name):
    """One command that a newcomer can guess."""
    folder = one_folder(tmp_path / name)
    done = segtrust("evaluate", folder, "-o", tmp_path / "run", *QUICK)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(
        "6 maps (`*-pred.png`), ground truth 6 (`*-mask.png`), images 6 (`*-img.png`), delivered masks none; "
        "left over: 6 `*-pred_aid.png`\n`*-mask.png` was taken for ground truth, because of its name."
    )
    rows = rows_of(tmp_path / "run")
    assert [Path(row["truth_file"]).name for row in rows] == [f"benign ({n})-mask.png" for n in range(6)]
    assert [Path(row["image_file"]).name for row in rows] == [f"benign ({n})-img.png" for n in range(6)]
    assert {row["mask"] for row in rows} == {"threshold"}
    assert not (tmp_path / "run/failures.csv").exists()


@pytest.mark.parametrize("chosen", ["folder", "files"])
def test_score_takes_no_neighbouring_mask(tmp_path, chosen):
    folder = one_folder(tmp_path / ODD)
    paths = [folder] if chosen == "folder" else sorted(folder.glob("*-pred.png"))
    done = segtrust("score", *paths, "-o", tmp_path / "scores.csv")
    assert (done.returncode, done.stderr) == (0, "")
    rows = read_csv(tmp_path / "scores.csv")
    assert [(row["case"], row["mask"]) for row in rows] == [(f"benign ({n})", "threshold") for n in range(6)]
    assert {row.get("truth_file", "") for row in rows} == {""}
    assert "6 `*-mask.png`" in done.stdout
    assert "Ground truth? Add --truth-pattern '{case}-mask.png'." in done.stdout
    added = segtrust(*("score", *paths, "-o", tmp_path / "again.csv", "--truth-pattern", "{case}-mask.png"))
    assert added.returncode == 0, added.stderr
    assert all(row["dice"] for row in read_csv(tmp_path / "again.csv"))


def test_soft_masks_next_to_maps_do_not_stop_score(tmp_path):
    folder = one_folder(tmp_path / "benign")
    for path in folder.glob("*-mask.png"):
        save(path, quantised(blob(FLAT), np.uint8))
    done = segtrust("score", *sorted(folder.glob("*-pred.png")), "-o", tmp_path / "scores.csv")
    assert (done.returncode, done.stderr) == (0, "")


def test_the_option_that_is_proposed_can_be_typed(tmp_path):
    """A name that a shell would split is quoted."""
    import re
    import shlex

    folder = tmp_path / "maps"
    for number in range(3):
        save(folder / f"c{number} pred.png", quantised(blob(FLAT), np.uint8))
        save(folder / f"c{number} mask.png", 255 * truth_of(FLAT))
    done = segtrust("score", folder, "-o", tmp_path / "scores.csv")
    proposal = re.search(r"Add (--truth-pattern .*?)\. Delivered", done.stdout)[1]
    done = segtrust("score", folder, "-o", tmp_path / "again.csv", *shlex.split(proposal))
    assert done.returncode == 0, done.stderr
    assert "ground truth 3 (`* mask.png`)" in done.stdout


def test_a_model_s_own_segmentation_is_not_taken_for_ground_truth(tmp_path):
    """`_seg` is what MONAI calls the masks that it writes: every Dice would be 1."""
    for number in range(3):
        save(tmp_path / f"maps/c{number}_prob.png", quantised(blob(FLAT), np.uint8))
        save(tmp_path / f"maps/c{number}_seg.png", 255 * truth_of(FLAT))
    done = segtrust("evaluate", tmp_path / "maps", "-o", tmp_path / "run", *QUICK)
    assert done.returncode == 2
    assert "--truth-pattern '{case}_seg.png'" in done.stderr


@pytest.mark.parametrize("way", ["in order", "by folder name", "by name", "parent"])
def test_two_folders_of_maps_with_two_folders_of_ground_truth(tmp_path, way):
    top = tmp_path / ODD
    folders = two_folders(top)
    truth = {
        "in order": [top / "gt/CVC", top / "gt/ETIS"],
        "by folder name": [top / "gt/ETIS", top / "gt/CVC"],
        "by name": [f"ETIS={top}/gt/ETIS", f"CVC={top}/gt/CVC"],
        "parent": [top / "gt"],
    }[way]
    options = [word for each in truth for word in ("--truth", each)]
    options += [word for each in truth for word in ("--image-dir", str(each).replace("/gt", "/raw"))]
    evaluate(*folders, *options, out=tmp_path / "run")
    rows = rows_of(tmp_path / "run")
    assert [row["case"] for row in rows] == [f"{name}/{n}" for name in ("CVC", "ETIS") for n in range(5)]
    for row in rows:
        name = row["case"].partition("/")[0]
        assert Path(row["truth_file"]).parent.name == name
        assert Path(row["image_file"]).parent.name == name


def test_folders_of_other_names_are_assigned_in_order(tmp_path):
    folders = two_folders(tmp_path)
    (tmp_path / "gt/CVC").rename(tmp_path / "gt/first")
    (tmp_path / "gt/ETIS").rename(tmp_path / "gt/second")
    options = ("--truth", tmp_path / "gt/first", "--truth", tmp_path / "gt/second")
    done = segtrust("evaluate", *folders, *options, "-o", tmp_path / "run", *QUICK)
    assert done.returncode == 0, done.stderr
    assert "CVC: 5 maps (`*.png`), ground truth 5 (`first/*.png`)" in done.stdout
    assert "ETIS: 5 maps (`*.png`), ground truth 5 (`second/*.png`)" in done.stdout


def test_a_pattern_per_folder_of_maps(tmp_path):
    for name, suffix in (("one", "_a"), ("two", "_b")):
        for number in range(3):
            save(tmp_path / name / f"c{number}.png", quantised(blob(FLAT, at=0.4), np.uint8))
            save(tmp_path / f"gt/{name}/c{number}{suffix}.png", 255 * truth_of(FLAT))
    folders = [tmp_path / "one", tmp_path / "two"]
    truth = ("--truth", tmp_path / "gt/one", "--truth", tmp_path / "gt/two")
    for patterns in (("{case}_a.png", "{case}_b.png"), ("two={case}_b.png", "one={case}_a.png")):
        options = [word for each in patterns for word in ("--truth-pattern", each)]
        done = segtrust("score", *folders, *truth, *options, "-o", tmp_path / "scores.csv", "--no-resume")
        assert done.returncode == 0, done.stderr
        assert all(row["dice"] for row in read_csv(tmp_path / "scores.csv"))


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (
            ("--truth", "{top}/gt/CVC", "--truth", "{top}/gt/ETIS", "--truth", "{top}/gt"),
            "truth: expected one for",
        ),
        (("--image-dir", "{top}/raw/CVC", "--image-dir", "{top}/raw", "--image-dir", "{top}"), "image-dir: "),
        (("--truth", "Kvasir={top}/gt/CVC"), "with the name of a folder of maps (CVC, ETIS), got 'Kvasir'"),
        (("--truth", "CVC={top}/gt/CVC", "--truth", "{top}/gt/ETIS"), "for all of them or for none"),
        (("--truth", "CVC={top}/gt/CVC", "--truth", "CVC={top}/gt/ETIS"), "truth: expected one for CVC"),
        (("--truth", "{top}/nowhere"), "nowhere: no such folder of ground truth"),
    ],
)
def test_an_option_that_would_be_ignored_is_an_error(tmp_path, options, said):
    folders = two_folders(tmp_path)
    words = [word.format(top=tmp_path) for word in options]
    done = segtrust("score", *folders, *words, "-o", tmp_path / "scores.csv")
    assert done.returncode == 2
    assert said in done.stderr


def test_two_folders_of_ground_truth_for_one_folder_of_maps(tmp_path):
    """A repeated option no longer keeps only the last one."""
    folders = two_folders(tmp_path)
    options = ("--truth", tmp_path / "gt/CVC", "--truth", tmp_path / "gt/ETIS")
    done = segtrust("evaluate", folders[0], *options, "-o", tmp_path / "run", *QUICK)
    assert done.returncode == 2
    assert "truth: only one is possible for the one folder of maps, CVC; got 2." in done.stderr


def test_ground_truth_without_a_map_is_left_over(tmp_path):
    folders = two_folders(tmp_path)
    for number in (1, 2):
        (folders[0] / f"{number}.png").unlink()
    done = segtrust("score", folders[0], "--truth", tmp_path / "gt/CVC", "-o", tmp_path / "out/scores.csv")
    assert (done.returncode, done.stderr) == (0, "")
    assert "left over: 2 `CVC/*.png` (ground truth without a map)" in done.stdout
    assert not (tmp_path / "out/failures.csv").exists()


def test_failures_come_first_by_reason_and_the_list_is_complete(tmp_path):
    folders = two_folders(tmp_path, count=8)
    for number in range(3):
        (tmp_path / f"gt/CVC/{number}.png").unlink()
    (folders[0] / "7.png").write_bytes(b"")
    command = ("score", folders[0], "--mask-dir", tmp_path / "gt/CVC", "-o", tmp_path / "out/scores.csv")
    done = segtrust(*command)
    assert done.returncode == 1
    first, *reasons = done.stderr.splitlines()
    assert first == f"4 failures; {tmp_path}/out/failures.csv lists all of them:"
    assert reasons[0].startswith("  3 cases, for example 0: expected its mask in")
    assert reasons[1].startswith("  7: ")
    assert len(reasons) == 2
    listed = read_csv(tmp_path / "out/failures.csv")
    assert sorted(row["case"] for row in listed) == [0, 1, 2, 7]


@pytest.mark.needs("nibabel")
def test_a_nifti_pair_is_one_map(tmp_path):
    import nibabel

    (tmp_path / "maps").mkdir()
    p = blob((5, 9, 13)).astype(np.float32)
    for name in ("a", "b"):
        nibabel.save(nibabel.Nifti1Pair(p.T, np.eye(4)), tmp_path / f"maps/{name}.img")
    nibabel.save(nibabel.Nifti1Image(p.T, np.eye(4)), tmp_path / "maps/c.nii")
    (tmp_path / "maps/alone.hdr").write_bytes(b"")
    done = segtrust("score", tmp_path / "maps", "-o", tmp_path / "scores.csv")
    assert done.returncode == 1, "a header without its data is a failure"
    rows = read_csv(tmp_path / "scores.csv")
    assert [row["case"] for row in rows] == ["a", "b", "c"]
    assert len({row["sdc"] for row in rows}) == 1
    assert [row["case"] for row in read_csv(tmp_path / "failures.csv")] == ["alone.hdr"]


@pytest.mark.parametrize("members", ["parent", "named"])
def test_members_of_two_folders_of_maps(tmp_path, members):
    folders = two_folders(tmp_path)
    for name in ("CVC", "ETIS"):
        for path in (tmp_path / f"maps/{name}").iterdir():
            save(tmp_path / f"second/{name}/{path.name}", quantised(blob(FLAT, at=0.5), np.uint8))
    options = {
        "parent": ("--member", tmp_path / "second"),
        "named": ("--member", f"CVC={tmp_path}/second/CVC", "--member", f"ETIS={tmp_path}/second/ETIS"),
    }[members]
    done = segtrust("score", *folders, *options, "-o", tmp_path / "scores.csv")
    assert done.returncode == 0, done.stderr
    assert "2 members per case" in done.stdout
    for row in read_csv(tmp_path / "scores.csv"):
        assert Path(row["member_files"]).parent.name == row["case"].partition("/")[0]


def test_nothing_is_printed_with_json_and_the_table_stays_alone(tmp_path):
    folder = one_folder(tmp_path / "maps")
    done = segtrust("score", folder, "-o", tmp_path / "scores.csv", "--json")
    assert json.loads(done.stdout)["cases"] == 6
    piped = segtrust("score", folder, "-o", "-")
    assert piped.stdout.startswith("case,")
    assert piped.stderr.startswith("6 maps (`*-pred.png`)")


def test_evaluate_of_predictions_masks_and_images(tmp_path):
    for number in range(6):
        folders = {
            role: tmp_path / f"data/{name}" for role, name in (("map", "predictions"), ("truth", "masks"))
        }
        write_case(tmp_path, f"c{number}", number=number, **folders, image=tmp_path / "data/images")
    done = segtrust("evaluate", tmp_path / "data", "-o", tmp_path / "run", *QUICK)
    assert done.returncode == 0, done.stderr
    expected = (
        "6 maps (`*.png`), ground truth 6 (`masks/*.png`), images 6 (`images/*.png`), delivered masks none\n"
    )
    assert done.stdout.startswith(expected)


def test_ground_truth_of_one_site_is_never_used_for_another(tmp_path):
    folders = two_folders(tmp_path)
    command = ("evaluate", *folders, "--truth", tmp_path / "gt/CVC", "-o", tmp_path / "run", *QUICK)
    done = segtrust(*command)
    assert done.returncode == 2
    assert f"gt/CVC is named like {folders[0]}, but would be used for {folders[1]}." in done.stderr
    assert not (tmp_path / "run").exists()


def test_the_folder_of_maps_as_ground_truth(tmp_path):
    folders = two_folders(tmp_path)
    done = segtrust("evaluate", folders[0], "--truth", folders[0], "-o", tmp_path / "run", *QUICK)
    assert done.returncode == 2
    assert "0.png is one of the maps: the folder of maps was given as ground truth." in done.stderr


def test_a_proposed_pair_of_patterns_can_be_typed(tmp_path):
    import re
    import shlex

    for number in range(6):
        folders = {"map": tmp_path / "old maps", "truth": tmp_path / "old gt", "image": tmp_path / "raw"}
        write_case(tmp_path, str(number), number=number, **folders)
        (tmp_path / f"old maps/{number}.png").rename(tmp_path / f"old maps/pred_{number}.png")
        (tmp_path / f"old gt/{number}.png").rename(tmp_path / f"old gt/mask_{number}.png")
    command = ("evaluate", tmp_path / "old maps", "--truth", tmp_path / "old gt", "-o", tmp_path / "run")
    done = segtrust(*command, *QUICK)
    assert done.returncode == 2
    proposal = re.search(r"Add (--pattern .*)\.$", done.stderr.strip())[1]
    done = segtrust(*command, *QUICK, *shlex.split(proposal))
    assert done.returncode == 0, done.stderr
    assert "6 maps (`pred_*.png`), ground truth 6 (`old gt/mask_*.png`)" in done.stdout


def test_the_folder_of_the_maps_may_hold_the_ground_truth(tmp_path):
    maps = one_folder(tmp_path / "b")
    done = segtrust("evaluate", maps, "--truth", maps, "-o", tmp_path / "run", *QUICK)
    assert done.returncode == 0, done.stderr
    assert "ground truth 6 (`*-mask.png`)" in done.stdout


def test_names_that_begin_with_what_they_hold_are_proposed(tmp_path):
    """Issue 24: "If names suggest a layout (suffixes, …), propose it together with the option to type." """
    import shlex

    for number in range(6):
        write_case(tmp_path, str(number), number=number)
        for old, new in (("pred", "pred"), ("mask", "gt"), ("img", "img")):
            (tmp_path / f"{number}-{old}.png").rename(tmp_path / f"{new}_{number}.png")
    done = segtrust("score", tmp_path, "-o", tmp_path / "out/a.csv")
    proposal = "--pattern 'pred_{case}.png' --truth-pattern 'gt_{case}.png' --image-pattern 'img_{case}.png'"
    assert f"`pred_0.png`, `gt_0.png` and `img_0.png` seem to belong together. Add {proposal}." in done.stdout
    done = segtrust("score", tmp_path, "-o", tmp_path / "out/b.csv", *shlex.split(proposal))
    found = "6 maps (`pred_*.png`), ground truth 6 (`gt_*.png`), images 6 (`img_*.png`)"
    assert done.stdout.startswith(found)


@pytest.mark.parametrize("column", ["masks", "truths", "Images"])
def test_a_misspelled_column_of_a_manifest_is_an_error(tmp_path, column):
    write_case(tmp_path, "a")
    (tmp_path / "cases.csv").write_text(f"probabilities,{column}\na-pred.png,a-mask.png\n")
    done = segtrust("score", tmp_path / "cases.csv", "-o", tmp_path / "scores.csv")
    assert done.returncode == 2
    assert f"unknown column '{column.lower()}'. Did you mean '{column.lower()[:-1]}'?" in done.stderr


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--key", "p"), "key: no map is in a format with named arrays"),
        (("--mask-dir", "masks", "--decode", "dice-optimal"), "decode: all cases have delivered masks"),
        (("--predictor", "fold 0"), "predictor: expected with --policy only"),
        (("--memory", "50MB"), "memory: expected at least 256 MiB"),
        (("--truth-threshold", "0.5"), "truth-threshold: no case has ground truth"),
        (("--pattern", "*-pred.png"), "Write '{case}-pred.png'"),
        (("--truth", "a-mask.png"), "expected a folder of ground truth, got a file"),
    ],
)
def test_an_option_that_no_case_can_use_is_an_error(tmp_path, options, said):
    """Issue 24: "An option that would be ignored is an error." """
    write_case(tmp_path, "a", map=tmp_path / "maps", truth=tmp_path / "masks")
    write_case(tmp_path, "a")
    places = [tmp_path / text if text in ("masks", "a-mask.png") else text for text in options]
    done = segtrust("score", tmp_path / "maps", "-o", tmp_path / "scores.csv", *places)
    assert (done.returncode, said in done.stderr) == (2, True), done.stderr


def test_seeds_of_splits_need_splits(tmp_path):
    done = segtrust("evaluate", one_folder(tmp_path / "b"), "-o", tmp_path / "run", *QUICK, "--seed", "3")
    assert (done.returncode, "seed: expected with --tune only" in done.stderr) == (2, True)


def test_one_name_in_a_list_that_is_not_there_is_a_failure(tmp_path):
    write_case(tmp_path, "a")
    names = [tmp_path / "a-pred.png", tmp_path / "b-pred.png"]
    done = segtrust("score", *names, "-o", tmp_path / "scores.csv")
    assert done.returncode == 1
    assert [row["case"] for row in read_csv(tmp_path / "scores.csv")] == ["a"]
    (failure,) = read_csv(tmp_path / "failures.csv")
    assert (failure["case"], failure["reason"]) == ("b", "no such file or folder")
