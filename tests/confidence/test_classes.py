"""Confidence of the classes, or regions, of one image."""

import math
import tracemalloc
from functools import partial

import numpy as np
import pytest

from segtrust.confidence import PatchLevel, ThresholdLevel, score, score_classes
from segtrust.errors import (
    EmptyArrayError,
    MaskError,
    MaskShapeError,
    NotBinaryError,
    NotNormalisedError,
    ParameterError,
    ProbabilityRangeError,
    ProbabilityTypeError,
)
from tests.references import logit_normal

EVERYTHING = ["sdc", "idc", "amsp", "apc", "ane", "mmmc", ThresholdLevel(0.3), PatchLevel(4)]
ORGANS = ["background", "liver", "tumour", "spleen"]


def softmax_of(shape, seed=0):
    logits = np.random.default_rng(seed).normal(0, 3, (4, *shape))
    logits[3] = -9  # the spleen is nowhere
    exponentials = np.exp(logits)
    return exponentials / exponentials.sum(0)


class TestSoftmaxClasses:
    P = softmax_of((12, 13))

    def test_each_class_is_scored_with_its_part_of_the_labels(self):
        found = score_classes(self.P, ORGANS, estimators=EVERYTHING)
        labels = self.P.argmax(0)
        assert found.predicted == ("liver", "tumour")
        assert list(found.classes) == ["liver", "tumour", "spleen"]
        for channel, name in ((1, "liver"), (2, "tumour")):
            assert found.classes[name] == score(self.P[channel], labels == channel, EVERYTHING)

    def test_a_class_neither_predicted_nor_probable_is_absent(self):
        assert score_classes(self.P, ORGANS).classes["spleen"] is None

    def test_a_class_that_is_probable_but_not_predicted_is_present(self):
        found = score_classes(self.P, ORGANS, mask=np.zeros((12, 13), int), threshold=0.2)
        assert found.classes["liver"]["sdc"] == 0
        assert found.predicted == ()
        assert found.case is None

    def test_the_case_is_the_mean_over_predicted_classes(self):
        found = score_classes(self.P, ORGANS, estimators=["sdc", "ane"])
        for name in ("sdc", "ane"):
            mean = np.mean([found.classes[organ][name] for organ in ("liver", "tumour")])
            assert math.isclose(found.case[name], mean, rel_tol=1e-15)

    @pytest.mark.parametrize("dtype", [np.uint8, np.float32])
    def test_labels_that_are_given_win(self, dtype):
        labels = np.random.default_rng(1).integers(0, 3, (12, 13)).astype(dtype)
        found = score_classes(self.P, ORGANS, labels, ["sdc"])
        assert found.classes["tumour"] == score(self.P[2], labels == 2, ["sdc"])

    @pytest.mark.parametrize("dtype", ["float32", "uint8"])
    def test_types(self, dtype):
        p = (255 * self.P).round().astype(dtype) if dtype == "uint8" else self.P.astype(dtype)
        found = score_classes(p, ORGANS, estimators=["sdc"])
        assert found.classes["liver"] == score(p[1], p.argmax(0) == 1, ["sdc"])

    def test_a_one_hot_map_is_a_softmax(self):
        p = np.arange(4)[:, None] == np.array([0, 1, 1, 2, 2, 2])
        found = score_classes(p, ORGANS)
        assert (found.case["sdc"], found.predicted) == (1, ("liver", "tumour"))

    @pytest.mark.parametrize("p", [P.transpose(1, 2, 0)[:4], P * 0.9, P + 0.1 * (P < 0.8), np.zeros((4, 3))])
    def test_sums_other_than_1(self, p):
        with pytest.raises(
            NotNormalisedError, match=r"sums run from .* Move the class axis to the front.*independent=True"
        ):
            score_classes(p, ORGANS)

    @pytest.mark.parametrize("names", [ORGANS[:3], [*ORGANS, "kidney"], ["background", "a", "a", "b"], []])
    def test_as_many_names_as_channels(self, names):
        with pytest.raises(ParameterError, match="names: expected 4 different names, got"):
            score_classes(self.P, names)

    def test_labels_of_another_shape(self):
        with pytest.raises(MaskShapeError, match=r"expected labels of shape \(12, 13\)"):
            score_classes(self.P, ORGANS, np.zeros((13, 12)))

    @pytest.mark.parametrize("channel", range(4))
    def test_bad_values_in_any_channel(self, channel):
        for value in (np.nan, -3.0, np.inf):
            p = softmax_of((70, 80))
            p[channel, 41, 43] = value
            with pytest.raises(ProbabilityRangeError, match=r"at index \(41, 43\)"):
                score_classes(p, ORGANS)

    def test_signed_integers(self):
        with pytest.raises(ProbabilityTypeError):
            score_classes(np.ones((4, 3), int), ORGANS)


class TestIndependentClasses:
    P = logit_normal((3, 10, 11))
    REGIONS = ("whole", "core", "rim")

    def test_regions_may_overlap(self):
        found = score_classes(self.P, self.REGIONS, independent=True, estimators=EVERYTHING, threshold=0.3)
        for channel, name in enumerate(self.REGIONS):
            assert found.classes[name] == score(self.P[channel], estimators=EVERYTHING, threshold=0.3)
        assert found.predicted == self.REGIONS

    def test_masks_that_are_given_win(self):
        masks = np.random.default_rng(0).random(self.P.shape) < 0.2
        found = score_classes(self.P, self.REGIONS, masks, ["sdc"], independent=True)
        assert found.classes["rim"] == score(self.P[2], masks[2], ["sdc"])

    def test_masks_of_another_shape(self):
        with pytest.raises(MaskShapeError, match="expected one mask per channel"):
            score_classes(self.P, self.REGIONS, np.zeros((10, 11)), independent=True)

    def test_labels_are_not_masks(self):
        with pytest.raises(NotBinaryError):
            score_classes(self.P, self.REGIONS, np.full(self.P.shape, 2), independent=True)

    def test_absent_regions_do_not_count(self):
        p = self.P.copy()
        p[1] = 0.01
        found = score_classes(p, self.REGIONS, independent=True)
        assert found.classes["core"] is None
        assert found.predicted == ("whole", "rim")
        mean = (found.classes["whole"]["sdc"] + found.classes["rim"]["sdc"]) / 2
        assert math.isclose(found.case["sdc"], mean, rel_tol=1e-15)


@pytest.mark.parametrize("label", [-1, 3, 255, 0.5, np.nan])
def test_labels_without_a_channel_are_refused(label):
    p = np.full((3, 4), 1 / 3)
    remedy = r"Renumber .*ignore index .*where=\(labels != 255\).*ignore_index=255"
    with pytest.raises(MaskError, match=rf"^mask: .* from 0 to 2, one per channel, got {label:g}\. {remedy}"):
        score_classes(p, ["background", "liver", "tumour"], np.array([0, 1, 2, label]))


def test_labels_of_text_are_refused():
    with pytest.raises(
        MaskError, match=r"^mask: expected whole numbers as labels, from 0 to 1, .* got the type <U5"
    ):
        score_classes(np.full((2, 1), 0.5), ["background", "liver"], np.array(["liver"]))


def test_eight_bit_softmax_of_many_classes_counts_as_normalised():
    p = np.random.default_rng(0).dirichlet(np.ones(100), size=50).T
    levels = np.round(p * 255).astype(np.uint8)
    assert score_classes(levels, [str(i) for i in range(100)]).predicted


@pytest.mark.parametrize("shape", [(), (3,), (3, 0), (0, 3)])
def test_an_axis_of_classes_and_a_pixel_are_needed(shape):
    with pytest.raises(
        EmptyArrayError, match="p: expected an axis of classes and at least one pixel, got shape"
    ):
        score_classes(np.zeros(shape), ["background", "liver", "tumour"])


@pytest.mark.parametrize("names", ["ab", None, 2])
def test_names_are_a_list(names):
    with pytest.raises(ParameterError, match="names: expected a list of 2 names, got"):
        score_classes(np.full((2, 3), 0.5), names)


def test_names_may_be_an_array():
    assert score_classes(np.full((2, 3), 0.5), np.array(["a", "b"])).predicted == ("a",)


@pytest.mark.parametrize("independent", [False, True])
def test_lists_are_scored_and_masked_arrays_rejected(independent):
    p, mask = np.full((2, 3), 0.5), np.array([0, 1, 0])
    mask = np.stack([mask, mask]) if independent else mask
    call = partial(score_classes, names=["a", "b"], independent=independent)
    assert call(p.tolist()) == call(p)
    assert call(p.tolist(), mask=mask.tolist()) == call(p, mask=mask)
    assert call([p.tolist()], mask=[mask.tolist()], batch=True)[0] == call(p, mask=mask)
    with pytest.raises(ParameterError, match=r"^p: expected an array"):
        call(np.ma.masked_less(p, 0.6))
    with pytest.raises(ParameterError, match=r"^mask: expected an array"):
        call(p, mask=np.ma.masked_less(p[0], 0.6))


class TestNamesByNumber:
    P = np.array([[0.9, 0.2], [0.1, 0.8]])

    def test_a_mapping_from_numbers(self):
        found = score_classes(self.P, {1: "lesion", 0: "Background"})
        assert list(found.classes) == ["lesion"]
        assert found == score_classes(self.P, ["Background", "lesion"])
        assert score_classes(self.P[None], {0: "background", 1: "lesion"}, batch=True)[0] == found

    def test_the_labels_of_nnunet_are_the_inverse(self):
        with pytest.raises(
            ParameterError, match=r"numbers from 0 to 1 as keys, got .* Turn names to numbers"
        ):
            score_classes(self.P, {"background": 0, "lesion": 1})

    @pytest.mark.parametrize("names", [{0: "a", 2: "b"}, {1: "a", 2: "b"}])
    def test_other_numbers(self, names):
        with pytest.raises(ParameterError, match="expected the channel numbers from 0 to 1 as keys"):
            score_classes(self.P, names)

    @pytest.mark.parametrize("names", [[0, 1], {0: 0, 1: 1}, ["a", None]])
    def test_names_are_texts(self, names):
        with pytest.raises(ParameterError, match="names: expected one text per channel"):
            score_classes(self.P, names)


def as_zarr(array, chunks, path):
    import zarr

    return zarr.create_array(path / f"{len(list(path.iterdir()))}.zarr", data=array, chunks=chunks)


def as_hdf5(array, chunks, path):
    import h5py

    file = h5py.File(path / f"{len(list(path.iterdir()))}.h5", "w")
    return file.create_dataset("p", data=array, chunks=chunks)


def as_plain_hdf5(array, chunks, path):
    return as_hdf5(array, None, path)


def as_dask(array, chunks, path):
    import dask.array

    return dask.array.from_array(array, chunks=chunks)


KINDS = [
    pytest.param(as_dask, marks=pytest.mark.needs("dask")),
    pytest.param(as_zarr, marks=pytest.mark.needs("zarr")),
    pytest.param(as_hdf5, marks=pytest.mark.needs("h5py")),
    pytest.param(as_plain_hdf5, marks=pytest.mark.needs("h5py")),
]


@pytest.mark.parametrize("kind", KINDS)
class TestChunks:
    P = softmax_of((23, 31)).astype(np.float32)
    LABELS = np.random.default_rng(1).integers(0, 4, (23, 31))
    MASKS = np.random.default_rng(2).random(P.shape) < 0.3

    def assert_same(self, p, mask=None, in_memory=None, **options):
        given = mask if in_memory is None else in_memory
        expected = score_classes(self.P, ORGANS, given, EVERYTHING, **options)
        found = score_classes(p, ORGANS, mask, EVERYTHING, **options)
        assert found.predicted == expected.predicted
        assert found.case == pytest.approx(expected.case, rel=1e-12)
        for organ, row in expected.classes.items():
            assert found.classes[organ] == (row if row is None else pytest.approx(row, rel=1e-12))

    @pytest.mark.parametrize("chunks", [(1, 10, 10), (3, 23, 5)])
    def test_equal_the_map_in_memory(self, kind, chunks, tmp_path):
        p = kind(self.P, chunks, tmp_path)
        self.assert_same(p)
        self.assert_same(p, independent=True, threshold=0.3)

    def test_labels_and_masks_in_chunks_or_in_memory(self, kind, tmp_path):
        p = kind(self.P, (2, 10, 10), tmp_path)
        labels, masks = kind(self.LABELS, (9, 8), tmp_path), kind(self.MASKS, (4, 9, 8), tmp_path)
        for map_ in (p, self.P):
            self.assert_same(map_, labels, self.LABELS)
            self.assert_same(map_, masks, self.MASKS, independent=True)
        self.assert_same(p, self.LABELS)
        self.assert_same(p, self.MASKS, independent=True)

    def test_what_is_refused(self, kind, tmp_path):
        p = kind(self.P, (2, 10, 10), tmp_path)
        with pytest.raises(MaskError, match="from 0 to 3, one per channel, got 255"):
            score_classes(p, ORGANS, kind(np.where(self.LABELS == 3, 255, 0), (9, 8), tmp_path))
        with pytest.raises(NotNormalisedError, match="sums run from"):
            score_classes(kind(self.P * 0.9, (2, 10, 10), tmp_path), ORGANS)
        bad = self.P.copy()
        bad[2, 17, 19] = np.nan
        with pytest.raises(ProbabilityRangeError, match=r"nan at index \(17, 19\)"):
            score_classes(kind(bad, (2, 10, 10), tmp_path), ORGANS)


@pytest.mark.needs("zarr")
def test_a_store_is_read_a_channel_and_a_chunk_at_a_time(tmp_path):
    import zarr

    rows, columns, chunk = 3072, 2048, 64
    size = {"shape": (4, rows, columns), "chunks": (1, chunk, columns)}
    p = zarr.create_array(tmp_path / "p.zarr", **size, dtype="float32", compressors=None)
    piece = softmax_of((chunk, columns)).astype(np.float32)
    for first in range(0, rows, chunk):
        p[:, first : first + chunk] = piece
    score_classes(piece, ORGANS)  # what is imported and compiled once does not count
    tracemalloc.start()
    found = score_classes(p, ORGANS)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert found.case == pytest.approx(score_classes(piece, ORGANS).case)
    assert peak < p.nbytes / 5


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_a_softmax_in_memory_takes_a_byte_a_pixel_for_its_labels(dtype):
    p = softmax_of((64, 128, 128)).astype(dtype)
    score_classes(p[:, :2], ORGANS)  # what is imported and compiled once does not count
    tracemalloc.start()
    score_classes(p, ORGANS)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 0.4 * p.nbytes


def test_names_that_are_lists():
    with pytest.raises(
        ParameterError, match=r"names: expected one text per channel, got list \[\['a'\], \['b'\]\]"
    ):
        score_classes(np.full((2, 3), 0.5), [["a"], ["b"]])


@pytest.mark.parametrize(("names", "independent"), [(ORGANS, False), (np.array(ORGANS), True)])
def test_a_bad_pixel_is_named_by_its_class(names, independent):
    for channel in (0, 1):
        p = softmax_of((12, 13))
        p[channel, 4, 5] = np.nan
        message = rf"^p\['{ORGANS[channel]}'\]: .* got nan at index \(4, 5\)"
        with pytest.raises(ProbabilityRangeError, match=message):
            score_classes(p, names, independent=independent)


def test_a_bad_mask_is_named_by_its_class():
    masks = np.zeros((2, 3), int)
    masks[1, 2] = 7
    with pytest.raises(NotBinaryError, match=r"^mask\['b'\]: expected only 0 and 1, got the values 7"):
        score_classes(np.full((2, 3), 0.5), ["a", "b"], masks, independent=True)


@pytest.mark.parametrize("dtype", ["U1", "int64", "object", "M8[s]"])
def test_a_wrong_type_is_that_of_the_whole_map(dtype):
    with pytest.raises(ProbabilityTypeError, match=r"^p: expected float16"):
        score_classes(np.zeros((2, 3), dtype), ["a", "b"])


class TestBatches:
    P = np.stack([softmax_of((12, 13), seed) for seed in (0, 1, 2)])

    def test_each_image_is_scored_alone(self):
        found = score_classes(self.P, ORGANS, estimators=EVERYTHING, batch=True)
        assert len(found) == 3
        for image, p in zip(found, self.P, strict=True):
            assert image == score_classes(p, ORGANS, estimators=EVERYTHING)
        assert found[-1] == found.images[2]
        assert list(found[1:]) == [found[1], found[2]]

    def test_labels_masks_and_selections_are_stacked_too(self):
        labels = self.P.argmax(1)
        where = np.random.default_rng(3).random(labels.shape) < 0.5
        found = score_classes(self.P, ORGANS, np.where(where, labels, 255), where=where, batch=True)
        for image, p, one, chosen in zip(found, self.P, labels, where, strict=True):
            assert image == score_classes(p, ORGANS, one, where=chosen)
        masks = self.P > 0.4
        found = score_classes(self.P, ORGANS, masks, independent=True, batch=True)
        assert found[1] == score_classes(self.P[1], ORGANS, masks[1], independent=True)

    def test_a_batch_of_other_things_is_refused(self):
        with pytest.raises(EmptyArrayError, match="expected a batch axis, an axis of classes and pixels"):
            score_classes(self.P[0, 0], ORGANS, batch=True)
        with pytest.raises(MaskShapeError, match="mask: expected 3 images along the first axis"):
            score_classes(self.P, ORGANS, self.P[0].argmax(0), batch=True)

    @pytest.mark.needs("pandas")
    def test_rows(self):
        one = score_classes(self.P[0], ORGANS, estimators="sdc").to_dataframe()
        assert one.columns.tolist() == ["class", "predicted", "sdc"]
        assert one["class"].tolist() == ORGANS[1:]
        assert math.isnan(one["sdc"][2])
        many = score_classes(self.P, ORGANS, estimators="sdc", batch=True).to_dataframe()
        assert many.columns.tolist() == ["image", "class", "predicted", "sdc"]
        assert len(many) == 9

    def test_they_display_themselves(self):
        one = score_classes(self.P[0], ORGANS, estimators="sdc")
        assert repr(one).startswith("ClassScores(predicted=(liver, tumour), classes=3, sdc=0.")
        assert "<th>liver</th><td>True</td>" in one._repr_html_()
        many = score_classes(self.P, ORGANS, estimators="sdc", batch=True)
        assert repr(many) == "BatchClassScores(images=3, classes=[liver, tumour, spleen])"
        assert many._repr_html_().count("<tr>") == 10

    @pytest.mark.needs("dask")
    def test_in_chunks(self):
        import dask.array

        stored = dask.array.from_array(self.P, chunks=(1, 2, 5, 6))
        found = score_classes(stored, ORGANS, batch=True)
        expected = score_classes(self.P, ORGANS, batch=True)
        assert [image.predicted for image in found] == [image.predicted for image in expected]
        assert found[2].case["sdc"] == pytest.approx(expected[2].case["sdc"])


class TestSelectedPixels:
    P = softmax_of((12, 13))
    WHERE = np.random.default_rng(4).random((12, 13)) < 0.6

    def spoiled(self):
        return np.where(self.WHERE, self.P, np.nan)

    def assert_same(self, found, expected):
        assert found.predicted == expected.predicted
        for name in expected.predicted:
            assert found.classes[name] == pytest.approx(expected.classes[name])

    def test_others_may_hold_anything(self):
        alone = ["sdc", "idc", "amsp", "mmmc"]
        expected = score_classes(self.P[:, self.WHERE], ORGANS, estimators=alone)
        self.assert_same(score_classes(self.spoiled(), ORGANS, estimators=alone, where=self.WHERE), expected)
        labels = np.where(self.WHERE, self.P.argmax(0), 255)
        found = score_classes(self.spoiled(), ORGANS, labels, alone, where=self.WHERE)
        self.assert_same(found, expected)

    @pytest.mark.needs("dask")
    def test_in_chunks(self):
        import dask.array

        stored = dask.array.from_array(self.spoiled(), chunks=(2, 5, 6))
        labels = dask.array.from_array(np.where(self.WHERE, self.P.argmax(0), 255), chunks=(5, 6))
        expected = score_classes(self.P[:, self.WHERE], ORGANS)
        self.assert_same(score_classes(stored, ORGANS, where=self.WHERE), expected)
        chosen = dask.array.from_array(self.WHERE, chunks=(4, 4))
        self.assert_same(score_classes(stored, ORGANS, labels, where=chosen), expected)

    @pytest.mark.needs("torch")
    def test_as_tensors(self):
        import torch

        expected = score_classes(self.P[:, self.WHERE], ORGANS)
        found = score_classes(torch.from_numpy(self.spoiled()), ORGANS, where=torch.from_numpy(self.WHERE))
        assert found.predicted == expected.predicted
        assert float(found.case["sdc"]) == pytest.approx(expected.case["sdc"])

    def test_sums_other_than_1_among_the_selected(self):
        with pytest.raises(NotNormalisedError):
            score_classes(self.P * 0.5, ORGANS, where=self.WHERE)


class TestBackground:
    P = softmax_of((12, 13))

    @pytest.mark.parametrize("name", ["background", "Background", "BACKGROUND"])
    def test_in_any_capitalisation(self, name):
        assert list(score_classes(self.P, [name, "a", "b", "c"]).classes) == ["a", "b", "c"]

    @pytest.mark.parametrize(
        ("background", "left"),
        [(1, ["Rest", "b", "c"]), ("rest", ["a", "b", "c"]), (None, ["Rest", "a", "b", "c"])],
    )
    def test_by_number_and_by_name(self, background, left):
        assert list(score_classes(self.P, ["Rest", "a", "b", "c"], background=background).classes) == left

    @pytest.mark.parametrize("background", ["other", 4, -1, 1.5, True])
    def test_what_is_no_channel(self, background):
        with pytest.raises(ParameterError, match="background: expected"):
            score_classes(self.P, ["Rest", "a", "b", "c"], background=background)
