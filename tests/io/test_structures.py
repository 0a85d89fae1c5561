"""Structures, the masks of their labels, and where their names come from."""

import contextlib
import gzip
import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, strategies as st
from hypothesis.extra import numpy as arrays

from segtrust.errors import NotBinaryError, ProbabilityTypeError, UnknownNameError, WrongContentError
from segtrust.io.case_files import Failure, group_failures
from segtrust.io.structures import (
    FOREGROUND,
    LabelScheme,
    LazyMask,
    Structure,
    is_task,
    mask_from_labels,
    mask_from_truth,
    read_label_names,
    read_scheme,
)
from segtrust.io.volume import Volume
from segtrust.maps import Prediction
from tests.totalsegmentator_files import write_segmentation

PLAIN = LabelScheme((("organ", (1,)), ("lesion", (2,))), is_regions=False)


REGIONS = LabelScheme((("whole", (1, 2)), ("core", (2,))), is_regions=True)


ONE = LabelScheme((("organ", (1,)),), is_regions=False)


def volume_of(values, *, has_channels=True):
    def load(channel):
        return values if channel is None else values[channel]

    return Volume(Path("a.npz"), values.shape, values.dtype, load, has_channels)


def test_channels_of_a_softmax_begin_after_the_background():
    assert [(each.name, each.channel, each.values) for each in PLAIN.structures] == [
        ("organ", 1, (1,)),
        ("lesion", 2, (2,)),
    ]
    assert (PLAIN.channels, PLAIN.known) == (3, (0, 1, 2))


def test_channels_of_regions_begin_at_once():
    assert [(each.name, each.channel, each.values) for each in REGIONS.structures] == [
        ("whole", 0, (1, 2)),
        ("core", 1, (2,)),
    ]
    assert (REGIONS.channels, REGIONS.known) == (2, (0, 1, 2))


def test_the_usual_structure():
    assert REGIONS.usual.name == "whole"
    assert (ONE.usual.name, ONE.usual.channel, ONE.usual.is_complement) == ("organ", 1, False)
    usual = PLAIN.usual
    assert (usual.name, usual.channel, usual.is_complement, usual.values) == (FOREGROUND, 0, True, (1, 2))


def test_structures_are_chosen_by_name():
    assert PLAIN.chosen(()) == (PLAIN.usual,)
    assert PLAIN.chosen(("each",)) == PLAIN.structures
    assert PLAIN.chosen(("lesion", "organ")) == PLAIN.structures[::-1]
    assert PLAIN.chosen(("foreground",)) == (PLAIN.usual,)


@pytest.mark.parametrize("name", ["Lesion", "tumour", "", "background"])
def test_an_unknown_name_lists_the_known(name):
    with pytest.raises(
        UnknownNameError, match=f"Unknown region '{name}'; available: organ, lesion, foreground, each"
    ):
        PLAIN.chosen((name,))


P = np.array([[[0.75, 0.0, 1.0]], [[0.25, 1.0, 0.0]]])


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", ">f4"])
def test_the_complement_of_floats_keeps_their_type(dtype):
    found = Structure(channel=0, is_complement=True).probabilities(volume_of(P.astype(dtype)))
    wanted = "f4" if dtype == "f2" else dtype  # half of the digits would be lost
    assert found.dtype == np.dtype(wanted).newbyteorder("=")
    assert found.tolist() == [[0.25, 1.0, 0.0]]


@pytest.mark.parametrize("dtype", ["u1", "u2"])
def test_the_complement_of_integers_is_that_of_their_range(dtype):
    most = np.iinfo(dtype).max
    p = np.array([[0, 1, most]], dtype)
    found = Structure(channel=0, is_complement=True).probabilities(volume_of(p[np.newaxis]))
    assert found.dtype == p.dtype
    assert found.tolist() == [[most, most - 1, 0]]


def test_the_complement_of_truth_values():
    p = np.array([[[True, False]]])
    found = Structure(channel=0, is_complement=True).probabilities(volume_of(p))
    assert found.tolist() == [[False, True]]


def test_the_complement_of_what_is_no_probability_is_refused_later():
    found = Structure(channel=0, is_complement=True).probabilities(volume_of(np.zeros((2, 3, 3), np.int16)))
    with pytest.raises(ProbabilityTypeError):
        Prediction(found)


def test_the_complement_of_nothing_is_nothing():
    p = np.zeros((2, 0, 3), np.float32)
    assert Structure(channel=0, is_complement=True).probabilities(volume_of(p)).shape == (0, 3)


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8"])
def test_sums_that_miss_one_in_the_last_digit_are_no_error(dtype):
    above = np.nextafter(np.ones((1, 2, 2), dtype), np.array(2, dtype))
    found = Structure(channel=0, is_complement=True).probabilities(volume_of(above))
    assert found.tolist() == [[0.0, 0.0], [0.0, 0.0]]


@pytest.mark.parametrize("worst", [1.5, np.nan])
def test_other_values_are_left_to_be_refused(worst):
    found = Structure(channel=0, is_complement=True).probabilities(volume_of(np.full((1, 2, 2), worst)))
    assert not (found >= 0).any()


def test_what_is_read_is_not_changed():
    p = np.full((1, 2, 2), 1.0 + 1e-7)
    Structure(channel=0, is_complement=True).probabilities(volume_of(p))
    assert (p == 1.0 + 1e-7).all()


def test_one_map_is_taken_whole():
    assert Structure().probabilities(volume_of(P, has_channels=None)) is P
    assert Structure().probabilities(volume_of(P, has_channels=False)) is P
    assert Structure().probabilities(volume_of(P[:1])).shape == (1, 3)


def test_several_channels_are_not_one_map():
    with pytest.raises(WrongContentError, match=r"^a\.npz: expected one map, got 2 channels\. .* --channel"):
        Structure().probabilities(volume_of(P))


def test_masks_are_those_of_the_labels():
    labels = np.array([0, 1, 2])
    assert PLAIN.usual.mask(labels, "a.nii.gz").tolist() == [False, True, True]
    assert REGIONS.structures[1].mask(labels, "a.nii.gz").tolist() == [False, False, True]
    assert Structure().mask(labels[:2], "a.nii.gz").tolist() == [False, True]


KINDS = ("u1", "u2", ">u2", "i1", "i2", "i4", "i8", "u8", "f2", "f4", "f8", ">f4")


@pytest.mark.parametrize("dtype", [*KINDS, "?"])
def test_zeros_and_ones_are_a_mask(dtype):
    mask = mask_from_labels(np.array([[0, 1], [1, 0]], dtype), None, "a.png")
    assert mask.dtype == bool
    assert mask.tolist() == [[False, True], [True, False]]


@pytest.mark.parametrize(
    ("dtype", "white"), [("u1", 255), ("u2", 255), ("u2", 65535), ("f4", 255), ("i4", 65535)]
)
def test_white_is_foreground(dtype, white):
    assert mask_from_labels(np.array([0, white], dtype), None, "a.png").tolist() == [False, True]


@pytest.mark.parametrize("dtype", KINDS)
def test_empty_and_full_masks_are_masks(dtype):
    assert not mask_from_labels(np.zeros((2, 2), dtype), None, "a.png").any()
    assert mask_from_labels(np.ones((2, 2), dtype), None, "a.png").all()
    assert mask_from_labels(np.zeros((0, 3), dtype), None, "a.png").shape == (0, 3)


@pytest.mark.parametrize(
    ("labels", "received"),
    [
        ([0, 2], "2 values from 0 to 2"),
        ([0, 1, 255], "3 values from 0 to 255"),
        ([0, -1], "2 values from -1 to 0"),
        ([-3, -2], "2 values from -3 to -2"),
        (list(range(20)), "20 values from 0 to 19"),
    ],
)
def test_labels_are_no_mask(labels, received):
    for dtype in ("i2", "f4", "i8"):
        with pytest.raises(NotBinaryError, match=rf"^a\.png: .* got {received}\. If .* say which .*--label"):
            mask_from_labels(np.array(labels, dtype), None, "a.png")


def test_cases_with_different_labels_fail_for_the_same_reason():
    failures = []
    for name, count in (("case_1", 3), ("case_2", 5), ("case_3", 20)):
        with pytest.raises(NotBinaryError) as raised:
            mask_from_labels(np.arange(count), None, f"{name}.png")
        failures.append(Failure(name, f"{name}.png", "NotBinaryError", str(raised.value)))
    assert len(group_failures(failures)) == 1


@pytest.mark.parametrize("worst", [0.5, np.nan, np.inf, -np.inf, 3e9, 1e300])
def test_floats_that_are_not_whole_are_no_labels(worst):
    for values in (None, (1,)):
        with pytest.raises(NotBinaryError, match=r"^a\.npy: expected labels, .* got float64 from .* to"):
            mask_from_labels(np.array([0.0, worst]), values, "a.npy")


@pytest.mark.parametrize("dtype", ["c8", "U1", "S1", "M8[s]", [("a", "f4")]])
def test_what_is_no_number_is_no_label(dtype):
    with pytest.raises(NotBinaryError, match=r"^a\.npy: expected labels, which are whole numbers, got"):
        mask_from_labels(np.zeros(3, dtype), None, "a.npy")


@given(
    labels=arrays.arrays(st.sampled_from(KINDS), (3, 4), elements=st.integers(0, 9)),
    values=st.sets(st.integers(0, 12), max_size=4),
)
def test_labels_of_a_structure_are_its_mask(labels, values):
    found = mask_from_labels(labels, tuple(values), "a.nii.gz")
    assert found.dtype == bool
    assert (found == np.isin(labels, sorted(values))).all()


def test_a_structure_may_be_the_background_of_a_mask():
    labels = np.array([True, False])
    assert mask_from_labels(labels, (0,), "a.npy").tolist() == [False, True]
    assert mask_from_labels(labels, (1, 2), "a.npy").tolist() == [True, False]
    assert mask_from_labels(labels, (2,), "a.npy").tolist() == [False, False]


def test_a_structure_of_no_labels_is_nowhere():
    assert not mask_from_labels(np.array([-1, 0, 1]), (), "a.npy").any()


def test_labels_beyond_the_type_are_not_there():
    assert not mask_from_labels(np.array([0, 44], np.uint8), (300,), "a.npy").any()


@pytest.mark.parametrize("dtype", ["u1", "u2", "i4", "f4"])
@pytest.mark.parametrize("known", [(0, 1, 2), (0, 1, 4), (1, 2)])
def test_labels_of_another_data_set_are_told(dtype, known):
    labels = np.array([0, 1, 7, 9], dtype)
    with pytest.raises(
        NotBinaryError, match=rf"^a\.nii: expected the labels {min(known)}?.*, got 7, 9 as well"
    ):
        mask_from_labels(labels, (1,), "a.nii", known=known)
    assert mask_from_labels(labels[:2], (1,), "a.nii", known=known).tolist() == [False, True]


def test_negative_labels_are_told():
    with pytest.raises(NotBinaryError, match="got -1 as well"):
        mask_from_labels(np.array([0, -1, 1], np.int8), (1,), "a.nii", known=(0, 1))


def soft(shape=(64, 64), radius=20.0, width=2.0):
    """A disc with soft edges, 0 to 255."""
    y, x = np.indices(shape)
    distance = np.hypot(y - shape[0] / 2, x - shape[1] / 2)
    return np.rint(255 * np.clip((radius - distance) / width + 0.5, 0, 1)).astype(np.uint8)


@pytest.mark.parametrize("dtype", ["u1", "u2", "i4"])
def test_soft_edges_are_thresholded_at_half_with_a_note(dtype):
    truth = soft()
    mask, note = mask_from_truth(truth.astype(dtype), "a.png")
    np.testing.assert_array_equal(mask, truth >= 128)
    between = np.count_nonzero((truth > 25) & (truth < 230))
    assert between > 0
    assert note == f"a.png: ground truth thresholded at 127.5; {between} of 4096 pixels lay in between."
    with pytest.raises(NotBinaryError):  # as delivered masks are read
        mask_from_labels(truth, None, "a.png")


@pytest.mark.parametrize("values", [(0, 1), (0, 255), (0, 65535), (0,)])
@pytest.mark.parametrize("threshold", [None, 0.5, 128.0])
def test_masks_of_two_values_are_read_as_they_are(values, threshold):
    truth = np.resize(np.array(values, np.uint16), (4, 5))
    mask, note = mask_from_truth(truth, "a.png", threshold=threshold)
    assert note == ""
    np.testing.assert_array_equal(mask, truth > 0)


def labelled(*values, sizes):
    return np.repeat(np.array(values, np.uint8), sizes)


@pytest.mark.parametrize(
    "labels",
    [
        labelled(0, 1, 2, 3, sizes=(90, 5, 3, 2)),
        labelled(0, 1, 255, sizes=(50, 20, 30)),  # 255: not annotated
        labelled(0, 128, 255, sizes=(80, 5, 15)),  # disc and cup
        labelled(0, 85, 170, 255, sizes=(80, 2, 2, 16)),
        labelled(*range(21), 255, sizes=(500, *[20] * 20, 100)),  # 20 classes, and a border
        np.kron(
            labelled(*range(0, 25), 255, sizes=(300, *[10] * 24, 100)).reshape(20, 32), np.ones((8, 8), "u1")
        ),
        labelled(0, *range(10, 250, 20), 255, sizes=(60, *[2] * 12, 16)),  # more grey than bright pixels
        np.random.default_rng(0).integers(0, 256, 1000).astype(np.uint8),  # an image
    ],
)
def test_labels_and_images_are_never_thresholded_unasked(labels):
    with pytest.raises(NotBinaryError, match=r"^a\.png: .* --label.* --truth-threshold\.$"):
        mask_from_truth(labels, "a.png")


@pytest.mark.parametrize("p", [np.array([0.0, 0.4, 0.6]), np.array([0.0, 0.5, 1.0], np.float16)])
def test_floats_are_thresholded_only_if_asked(p):
    with pytest.raises(NotBinaryError, match=r"--truth-threshold\.$"):
        mask_from_truth(p, "a.npy")
    assert mask_from_truth(p, "a.npy", threshold=0.5)[0].tolist() == (p >= 0.5).tolist()


@pytest.mark.parametrize(
    ("threshold", "foreground"), [(0.5, 2), (0.25, 3), (128, 2), (64, 3), (1, 3), (191.5, 1), (0.1, 3)]
)
def test_a_threshold_is_a_grey_level_or_a_share_of_white(threshold, foreground):
    levels = np.array([0, 64, 128, 255], np.uint8)
    assert mask_from_truth(levels, "a.png", threshold=threshold)[0].sum() == foreground


@pytest.mark.parametrize(
    ("values", "threshold"), [([0, 1, 2, 3], 0.5), ([0, 3, 9], 10), ([0, np.nan], 0.5), ([0, np.nan], 2.0)]
)
def test_a_threshold_that_nothing_reaches_is_an_error(values, threshold):
    kind = np.uint8 if not np.isnan(values).any() else np.float32
    with pytest.raises(NotBinaryError, match=r"expected ground truth that reaches the threshold"):
        mask_from_truth(np.array(values, kind), "a.png", threshold=threshold)


def test_text_cannot_be_thresholded():
    with pytest.raises(NotBinaryError, match="whole numbers"):
        mask_from_truth(np.array(["a"]), "a.npy", threshold=0.5)


@pytest.mark.needs("PIL")
@pytest.mark.parametrize("quality", [10, 30, 50, 75, 95, 100])
@pytest.mark.parametrize("radius", [6, 20, 30])
def test_jpeg_is_thresholded_at_half(quality, radius):
    import io

    from PIL import Image

    truth = soft(radius=radius, width=0.01)
    file = io.BytesIO()
    Image.fromarray(truth).save(file, "JPEG", quality=quality)
    levels = np.asarray(Image.open(file))
    mask, note = mask_from_truth(levels, "a.jpg", is_lossy=True)
    assert np.count_nonzero(mask != (truth > 0)) <= 0.01 * truth.size
    assert note.startswith("a.jpg: ground truth thresholded at ")
    assert "?" not in note


@pytest.mark.parametrize(
    "levels", [[0, 0, 1, 2], [0, 1, 1, 1], [0, 100, 120, 255], list(range(0, 256, 5)), [30, 30, 40]]
)
def test_jpeg_that_is_no_mask_is_rejected(levels):
    """Labels that were saved as JPEG, and photographs."""
    with pytest.raises(NotBinaryError, match=r"a\.jpg: expected a mask, in JPEG .*--truth-threshold.*PNG"):
        mask_from_truth(np.array(levels, np.uint8), "a.jpg", is_lossy=True)


def test_an_empty_jpeg_is_an_empty_mask():
    assert not mask_from_truth(np.zeros((3, 4), np.uint8), "a.jpg", is_lossy=True)[0].any()


FOLDER = "Was the folder of images given as ground truth?"


@pytest.mark.needs("PIL", "data:busi")
def test_an_image_given_as_ground_truth_raises_a_question(data):
    from PIL import Image

    for path in sorted((data("busi") / "benign").glob("*).png"))[::40]:
        image = np.asarray(Image.open(path).convert("L"))
        with pytest.raises(NotBinaryError, match=re.escape(FOLDER)):
            mask_from_truth(image, str(path))
        note = mask_from_truth(image, str(path), threshold=0.3)[1]
        assert (FOLDER in note) == (np.mean((image > 25) & (image < 230)) > 0.34)


@pytest.mark.needs("PIL", "data:busi-predictions")
def test_probability_maps_given_as_ground_truth_raise_a_question(data):
    from PIL import Image

    notes = []
    for path in sorted((data("busi-predictions") / "dice_plain").glob("*.png")):
        with contextlib.suppress(NotBinaryError):
            notes.append(mask_from_truth(np.asarray(Image.open(path)), str(path))[1])
    assert len(notes) > 100
    assert sum("Were probability maps given as ground truth?" in note for note in notes) > 80


def test_labels_raise_no_question_about_images():
    labels = np.repeat(np.arange(20, dtype=np.uint8), 30)
    with pytest.raises(NotBinaryError) as raised:
        mask_from_truth(labels, "a.png")
    assert "folder" not in str(raised.value)


@pytest.mark.needs("PIL", "data:busi")
def test_real_masks_that_were_resized(data):
    """Of breast-ultrasound images, as they are read again after bilinear resizing."""
    from PIL import Image

    paths = sorted((data("busi") / "benign").glob("*_mask.png"))[::20]
    assert len(paths) > 15
    for path in paths:
        image = Image.open(path).convert("L")
        for size in ((128, 128), (512, 512), (352, 352)):
            levels = np.asarray(image.resize(size, Image.Resampling.BILINEAR))
            mask, note = mask_from_truth(levels, str(path))
            np.testing.assert_array_equal(mask, 2 * levels.astype(int) >= levels.max())
            assert note.endswith("pixels lay in between.")


def test_pieces_are_read_as_they_are_needed():
    labels = np.arange(12).reshape(3, 4) % 3
    mask = LazyMask(labels, (2,), "a.zarr", (0, 1, 2))
    assert (mask.shape, mask.dtype) == ((3, 4), bool)
    assert (mask[1:, :2] == (labels == 2)[1:, :2]).all()
    assert (np.asarray(mask) == (labels == 2)).all()
    with pytest.raises(NotBinaryError, match=r"^a\.zarr: expected the labels 0, 1, got 2 as well"):
        LazyMask(labels, (1,), "a.zarr", (0, 1))[:1]


LABELS = np.zeros((4, 4, 4), np.uint8)


def scheme(task):
    return read_scheme(Path(f"totalsegmentator:{task}"))


@pytest.mark.needs("totalsegmentator")
class TestTasks:
    def test_a_task_of_one_model(self):
        found = scheme("total")
        assert found.channels == 118
        assert found.labels[4] == ("liver", (5,))
        assert not found.is_regions
        assert len(found.chosen(["each"])) == 117
        assert found.chosen(["spleen"])[0].channel == 1

    @pytest.mark.parametrize("part", ["ribs", "class_map_part_ribs"])
    def test_one_of_several_models(self, part):
        found, whole = scheme(f"total/{part}"), scheme("total")
        assert found.channels == 27
        names = dict(whole.labels)
        assert all(names[name] == values for name, values in found.labels)
        assert found.known == whole.known  # the masks are those of all parts
        assert found.usual.values == tuple(sorted(value for _, (value,) in found.labels))

    def test_parts_are_those_of_the_task(self):
        ct, mr = scheme("total/organs"), scheme("total_mr/organs")
        assert (ct.channels, mr.channels) == (25, 30)
        assert "vertebrae_L6" in dict(scheme("total_v3/vertebrae").labels)
        assert "vertebrae_L6" not in dict(scheme("total/vertebrae").labels)

    def test_what_is_taken_out_of_masks_is_not_scored(self):
        found = scheme("kidney_cysts")
        assert found.channels == 5
        assert [each.name for each in found.chosen(["each"])] == ["kidney_cyst_left", "kidney_cyst_right"]
        assert found.chosen(["kidney_left"])[0].channel == 3

    def test_every_task_has_a_scheme(self):
        from totalsegmentator.map_to_binary import class_map
        from totalsegmentator.registry import TASKS

        for task in TASKS:
            if task in class_map:
                found = scheme(task)
                assert [values for _, values in found.labels] == [(i,) for i in range(1, found.channels)]

    def test_unknown_names_list_the_known_ones(self):
        with pytest.raises(UnknownNameError, match=r"task of TotalSegmentator 'totl'; available: .*total, "):
            scheme("totl")
        with pytest.raises(UnknownNameError, match="'total' 'rips'; available: organs, vertebrae, cardiac"):
            scheme("total/rips")
        with pytest.raises(UnknownNameError, match="'body' 'ribs'; available: none"):
            scheme("body/ribs")


def test_paths_are_no_tasks():
    assert not is_task(Path("a/totalsegmentator:total/dataset.json"))


class TestLabelTables:
    @pytest.mark.needs("totalsegmentator", "nibabel")
    @pytest.mark.parametrize("ending", [".nii", ".nii.gz"])
    def test_names_that_the_package_wrote(self, tmp_path, ending):
        names = {1: "spleen", 2: "kidney & <ureter>", 117: "costal_cartilages"}
        path = write_segmentation(tmp_path / f"a{ending}", LABELS, names)
        assert read_label_names(path) == names

    @pytest.mark.needs("nibabel")
    def test_files_without_names(self, tmp_path):
        import nibabel

        image = nibabel.Nifti1Image(LABELS, np.eye(4))
        nibabel.save(image, tmp_path / "plain.nii.gz")
        image.header.extensions.append(nibabel.nifti1.Nifti1Extension(6, b"a comment <Label Key='1'>"))
        nibabel.save(image, tmp_path / "comment.nii")
        assert read_label_names(tmp_path / "plain.nii.gz") == read_label_names(tmp_path / "comment.nii") == {}

    @pytest.mark.needs("nibabel")
    @pytest.mark.parametrize(
        "content",
        [b"", b"\x1f\x8b", b"\x5c\x01\0\0", gzip.compress(b"x" * 900, mtime=0), bytes(400), b"\xff" * 900],
    )
    def test_damaged_files_tell_none(self, tmp_path, content):
        path = tmp_path / "a.nii.gz"
        path.write_bytes(content)
        assert read_label_names(path) == {}

    @pytest.mark.needs("nibabel")
    def test_text_as_xml_writes_it(self, tmp_path):
        import nibabel

        body = b'<LabelTable><Label Key="3" Red="1">left &amp; right</Label></LabelTable>'
        image = nibabel.Nifti1Image(LABELS, np.eye(4))
        image.header.extensions.append(nibabel.nifti1.Nifti1Extension(0, body))
        nibabel.save(image, tmp_path / "a.nii")
        assert read_label_names(tmp_path / "a.nii") == {3: "left & right"}
        assert read_label_names(tmp_path / "missing.nii") == {}
