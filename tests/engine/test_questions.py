"""Questions about input that looks wrong, and copies among the cases."""

from collections import Counter

import numpy as np
import pytest

from segtrust.engine.questions import (
    FEW_AT_TOP,
    FULL_RANGE,
    GREY,
    LABELS,
    find_copies,
    hints_of_map,
    questions_about,
)
from tests.tuning_cases import blob


def row(name="a", **columns):
    """A row of a good case: 100 pixels, 20 of them in the mask and in the truth, 15 in both."""
    usual = {"case": name, "structure": "organ", "k": 20, "mu": 0.9, "lam": 1.0, "shape": "10×10"}
    return {**usual, "truth_ratio": 0.2, "dice": 0.75, "mask": "threshold", **columns}


def test_good_cases_raise_no_question():
    assert questions_about([row(str(at)) for at in range(20)]) == []
    assert questions_about([]) == questions_about([{"case": "a", "sdc": 0.5}]) == []


class TestInvertedMaps:
    @pytest.mark.parametrize("inverted", [0, 4, 6, 10])
    def test_are_seen_by_the_ground_truth_of_most_cases(self, inverted):
        rows = [row(str(at)) for at in range(10 - inverted)]
        rows += [row(f"i{at}", k=80, dice=0.1) for at in range(inverted)]
        asked = questions_about(rows)
        assert bool(asked) == (inverted > 5)
        assert not asked or asked[0].startswith(f"In {inverted} of 10 cases, 1 − p agrees better with the gr")

    def test_agree_with_the_dice_of_the_complement(self):
        rng = np.random.default_rng(0)
        for _ in range(200):
            mask, truth = rng.random((2, 6, 7)) < rng.random((2, 1, 1))
            if not mask.any() or not truth.any():
                continue
            dice, other = (2 * (m & truth).sum() / (m.sum() + truth.sum()) for m in (mask, ~mask))
            asked = questions_about(
                [row(k=int(mask.sum()), dice=dice, truth_ratio=truth.mean(), shape="6×7")]
            )
            assert bool(asked) == (other > dice)

    def test_are_seen_by_the_delivered_mask(self):
        rows = [row(mask_difference=0.97, mask="delivered", dice=None, truth_ratio=None)]
        assert "1 − p agrees better with the delivered mask" in questions_about(rows)[0]
        assert questions_about([{**rows[0], "mask_difference": 0.03}]) == []

    def test_empty_ground_truth_says_nothing(self):
        assert questions_about([row(truth_ratio=0.0, dice=0.0)]) == []


class TestMaps:
    def test_empty_masks_and_masks_as_maps(self):
        assert "All masks are empty" in questions_about([row(k=0)] * 2)[0]
        assert "or masks?" in questions_about([row(mu=1.0, lam=0.0)] * 2)[0]

    @pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.float32, np.float64])
    def test_stretched_to_the_full_range(self, dtype):
        p = blob(1).prediction.probabilities * 0.6
        top = np.iinfo(dtype).max if np.issubdtype(dtype, np.integer) else 1
        as_saved = (p * top).astype(dtype)
        stretched = ((p - p.min()) / (p.max() - p.min()) * top).astype(dtype)
        assert (hints_of_map(as_saved), hints_of_map(stretched)) == ((), (FULL_RANGE, FEW_AT_TOP))

    def test_saturated_maps_are_sure(self):
        p = np.zeros((20, 20))
        p[5:15, 5:15] = 1
        p[4, 5:15] = 0.5
        assert hints_of_map(p) == hints_of_map((p * 255).astype(np.uint8)) == (FULL_RANGE,)
        assert hints_of_map(np.zeros((3, 3))) == hints_of_map(np.ones((3, 3))) == ()
        assert hints_of_map(np.zeros((0, 3))) == hints_of_map(np.zeros((3, 3), bool)) == ()

    def test_a_question_needs_most_maps_and_not_too_few(self):
        rows = [row(str(at)) for at in range(10)]
        assert "stretched" in questions_about(rows, {FULL_RANGE: 10, FEW_AT_TOP: 1})[0]
        assert questions_about(rows, {FULL_RANGE: 10}) == []  # a saturated model
        assert questions_about(rows, {FULL_RANGE: 9, FEW_AT_TOP: 9}) == []
        assert questions_about(rows[:4], {FULL_RANGE: 4, FEW_AT_TOP: 4}) == []

    @pytest.mark.parametrize(
        ("folder", "stretched"),
        [
            ("polyp/CVC-ColonDB/predictions", True),
            ("polyp/ETIS-LaribPolypDB/predictions", True),
            ("busi-predictions/BCE_plain", False),
            ("busi-predictions/dice_plain", False),
        ],
    )
    @pytest.mark.needs("PIL", "data:polyp", "data:busi-predictions")
    def test_real_maps(self, data, folder, stretched):
        from PIL import Image

        name, _, below = folder.partition("/")
        paths = sorted((data(name) / below).glob("*.png"))
        hints = Counter(hint for path in paths for hint in hints_of_map(np.array(Image.open(path))))
        assert (
            any("stretched" in asked for asked in questions_about([row()] * len(paths), hints)) == stretched
        )

    @pytest.mark.parametrize(
        ("folder", "pattern", "is_asked"),
        [
            ("busi/benign", "*).png", True),
            ("skin/images", "*.jpg", True),
            ("busi-predictions/BCE_plain", "*.png", False),
            ("busi-predictions/dice_plain", "*.png", False),
            ("polyp/Kvasir/predictions", "*.png", False),
            ("fundus/softmaps_cup", "*.png", False),
        ],
    )
    @pytest.mark.needs("PIL", "data:busi", "data:skin", "data:busi-predictions", "data:polyp", "data:fundus")
    def test_images_given_as_maps(self, data, folder, pattern, is_asked):
        from PIL import Image

        name, _, below = folder.partition("/")
        paths = sorted((data(name) / below).glob(pattern))[::5]
        hints = Counter(
            hint for path in paths for hint in hints_of_map(np.asarray(Image.open(path).convert("L")))
        )
        assert (
            any("Are these images?" in asked for asked in questions_about([row()] * len(paths), hints))
            == is_asked
        )

    def test_few_grey_maps_raise_no_question(self):
        assert questions_about([row()] * 4, {GREY: 4}) == questions_about([row()] * 10, {GREY: 5}) == []

    def test_label_images(self):
        assert hints_of_map(np.array([[0, 1, 3]], np.uint8)) == (LABELS,)
        assert hints_of_map(np.array([[0, 1, 16]], np.uint8)) == ()
        assert "label images" in questions_about([row(k=0)] * 3, {LABELS: 2})[0]


def test_maps_given_as_ground_truth():
    rows = [row(str(at), dice=1.0) for at in range(6)]
    assert "given as ground truth" in questions_about(rows)[0]
    assert questions_about(rows[:4]) == questions_about([*rows, *[row()] * 2]) == []


def test_some_cases_without_a_delivered_mask():
    rows = [row("a", mask="delivered", mask_difference=0.0), row("b")]
    assert questions_about(rows) == ["1 of 2 have no delivered mask: their maps were thresholded."]


class TestCopies:
    def test_within_and_between_sets(self):
        rows = [
            row("a", checksum="crc32:1", set="ID"),
            row("b", checksum="crc32:2", set="ID"),
            row("a", checksum="crc32:2", set="ood"),
            row("c", checksum="crc32:2", set="ood"),
        ]
        copies = find_copies(rows)
        assert copies.groups == (("ID: b", "ood: a", "ood: c"),)
        assert copies.extra == 2
        assert str(copies).startswith(
            "2 of 4 cases are copies of others (equal checksums): 1 within ood, 1 between ID and ood; such"
        )
        assert find_copies(rows[:2]).groups == ()
        assert str(find_copies([])) == "No copies."

    def test_at_most_three_groups_are_shown(self):
        rows = [row(f"{name}{at}", checksum=f"crc32:{at}") for at in range(5) for name in "ab"]
        assert str(find_copies(rows)).startswith(
            "5 of 10 cases are copies of others (equal checksums), such as a0 = b0; a1 = b1; a2 = b2. The "
            "column checksum shows all of them: --details."
        )
        assert "--details" not in str(find_copies(rows[:6]))
        assert str(find_copies(rows[:3])).startswith("1 of 3 cases is a copy of another")

    def test_structures_of_a_case_and_empty_masks_are_no_copies(self):
        rows = [row("a", checksum="crc32:1", structure=name) for name in ("organ", "lesion")]
        assert find_copies(rows).groups == ()
        rows = [row(name, checksum="crc32:1", k=0) for name in "ab"]
        assert find_copies(rows).groups == ()
        rows = [row(name, checksum="") for name in "ab"]
        assert find_copies(rows).groups == ()

    def test_several_structures_are_told_once(self):
        rows = [
            row(case, checksum="crc32:1", structure=name) for name in ("organ", "lesion") for case in "ab"
        ]
        assert find_copies(rows).groups == (("a", "b"),)

    def test_maps_of_one_stack_are_different(self):
        rows = [row(str(at), checksum="crc32:1", file=f"p.npy[{at}]") for at in range(3)]
        assert find_copies(rows).groups == ()
