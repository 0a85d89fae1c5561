"""Errors for what is not an array, a probability map or a mask say what was received and what to do."""

import numpy as np
import pytest

import segtrust
from segtrust.confidence import expected_f_beta, patch_level_confidence, soft_dice_confidence
from segtrust.errors import (
    EmptyArrayError,
    MaskError,
    MaskShapeError,
    NotBinaryError,
    ParameterError,
    ProbabilityRangeError,
    ProbabilityTypeError,
)
from segtrust.kernels import as_array, check_array
from segtrust.maps import Prediction
from segtrust.risks import dice


def as_torch(values):
    import torch

    return torch.from_numpy(values)


KINDS = [np.asarray, pytest.param(as_torch, marks=pytest.mark.needs("torch"))]

REMEDIES = {
    "rounding below": ([0.3, -1e-9], r"looks like a rounding error: clip it first, numpy\.clip\(p, 0, 1\)"),
    "rounding above": ([0.3, 1.0 + 1e-6], "looks like a rounding error"),
    "half precision": ([0.3, 1.005], "looks like a rounding error"),
    "logits below": ([0.3, -0.02], "look like logits"),
    "logits above": ([0.3, 1.02], "look like logits"),
    "logits on both sides": ([-7.0, 12.0], "look like logits"),
    "rounding beside logits": ([-1e-9, -4.0], "look like logits"),
    "8-bit levels": ([0.0, 254.0], "look like 8-bit levels"),
    "logits above 1 only": ([0.2, 3.7, 8.1], "look like logits"),
    "logits between whole numbers": ([0.0, 3.7, 8.0], "look like logits"),
    "NaN": ([0.3, np.nan], "cannot be scored"),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", REMEDIES)
def test_the_remedy_suits_the_values(name, kind):
    values, remedy = REMEDIES[name]
    with pytest.raises(ProbabilityRangeError, match=remedy):
        soft_dice_confidence(kind(np.array(values)))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("value", "shown"),
    [(1.0 + 1e-9, "1.000000001"), (np.nextafter(1.0, 2.0), "1.0000000000000002"), (1.25, "1.25")],
)
def test_an_excess_is_not_rounded_to_the_bound(value, shown, kind):
    with pytest.raises(ProbabilityRangeError, match=rf"got {shown} at .* span \[0.5, {shown}\]"):
        soft_dice_confidence(kind(np.array([0.5, value])))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("values", "shown"),
    [([np.nan] * 9, "nan"), ([np.nan, 3, 3, np.nan], "3, nan"), ([0, 1 + 1e-9], "1.000000001")],
)
def test_values_of_a_mask_are_listed_once(values, shown, kind):
    mask = np.array(values, float)
    with pytest.raises(NotBinaryError, match=rf"got the values {shown}\. Threshold"):
        soft_dice_confidence(kind(np.full(mask.shape, 0.5)), kind(mask))


P = np.full((2, 3), 0.25)
BOTH_SHAPES = r"got \(2, 3\)\. Both must lie on the same grid; resample or transpose one of them first"
BAD_CALLS = {
    "dice of two shapes": (lambda: dice(P > 0, P.T > 0), MaskShapeError, BOTH_SHAPES),
    "mask of another shape": (lambda: soft_dice_confidence(P.T, P > 0), MaskShapeError, BOTH_SHAPES),
    "mask of a prediction": (lambda: Prediction(P.T, P > 0), MaskShapeError, BOTH_SHAPES),
    "object mask": (
        lambda: soft_dice_confidence(P, (P > 0).astype(object)),
        MaskError,
        r"got object\. Convert it to bool first, for example mask == 1\.",
    ),
    "object truth": (
        lambda: dice((P > 0).astype(object), P > 0),
        MaskError,
        r"truth: .* got object\. Convert it to bool first",
    ),
    "complex mask": (
        lambda: soft_dice_confidence(P, P + 0j),
        MaskError,
        r"got complex128\. Convert it to bool first",
    ),
    "threshold in percent": (
        lambda: soft_dice_confidence(P, threshold=50),
        ParameterError,
        r"threshold: expected a number in \[0, 1\], got 50\. Divide a percentage by 100",
    ),
    "threshold of logits": (
        lambda: soft_dice_confidence(P, threshold=-0.5),
        ParameterError,
        r"got -0\.5\. .* take the sigmoid of a logit\.",
    ),
    "threshold that is none": (lambda: Prediction(P, threshold=np.nan), ParameterError, r"got nan\. Divide"),
    "weight": (lambda: expected_f_beta(P, beta=-1), ParameterError, r"got -1\. Choose a number within"),
    "box": (lambda: patch_level_confidence(P, size=0), ParameterError, r"got 0\. It is the side of the box"),
    "nothing": (lambda: soft_dice_confidence(P[:0]), EmptyArrayError, "or drop the case"),
    "two empty arrays": (lambda: dice(P[:0], P[:0]), EmptyArrayError, "or drop the case"),
}


@pytest.mark.parametrize("name", BAD_CALLS)
def test_errors_say_what_to_do(name):
    call, error, remedy = BAD_CALLS[name]
    with pytest.raises(error, match=remedy):
        call()


@pytest.mark.parametrize("dtype", [object, complex])
def test_the_remedy_for_a_mask_of_an_odd_type_helps(dtype):
    mask = np.array([[0, 1, 1], [0, 0, 1]])
    assert soft_dice_confidence(P, mask.astype(dtype) == 1) == soft_dice_confidence(P, mask)


@pytest.mark.needs("dask")
def test_a_chunked_map_is_rejected_in_the_same_words():
    import dask.array

    with pytest.raises(MaskShapeError, match=BOTH_SHAPES):
        soft_dice_confidence(dask.array.from_array(P.T), P > 0)
    with pytest.raises(EmptyArrayError, match="or drop the case"):
        soft_dice_confidence(dask.array.from_array(P[:0]))


ROW = np.array([[0.9, 0.2, 0.6]])
SCORES = {
    "soft_dice_confidence": segtrust.soft_dice_confidence,
    "ideal_dice_confidence": segtrust.ideal_dice_confidence,
    "expected_iou": segtrust.expected_iou,
    "average_class_probability": segtrust.average_class_probability,
    "dice_bounds": segtrust.dice_bounds,
    "score": segtrust.score,
    "assess": segtrust.assess,
    "score_batch": segtrust.score_batch,
}


@pytest.mark.parametrize("values", [0.7, [[0.7, 0.2]], ((0.7,), (0.2,)), np.float32(0.7)])
def test_numbers_and_lists_become_arrays(values):
    assert np.array_equal(as_array(values, "p"), np.asarray(values))


def test_arrays_stay_what_they_are():
    p = np.zeros((3, 4), np.uint8)
    assert as_array(p, "p") is p


def test_lists_that_are_no_array():
    with pytest.raises(
        ParameterError, match=r"p: expected an array, got a list that cannot be converted: .*same length"
    ):
        segtrust.soft_dice_confidence([[0.1], [0.2, 0.3]])


NO_ARRAYS = {
    "None": None,
    "dict {'p': 0.5}": {"p": 0.5},
    "set {0.5}": {0.5},
    "generator <generator": (value for value in (0.5,)),
    "the text 'p.npy'": "p.npy",
    r"list \['a'\]": ["a"],
    r"Prediction of shape \(1, 3\)\. Pass its probabilities": segtrust.Prediction(ROW),
}


@pytest.mark.parametrize("shown", NO_ARRAYS)
def test_what_is_no_array_is_named_by_what_it_is(shown):
    for function in SCORES.values():
        with pytest.raises(ParameterError, match=f"^p: expected an array, got {shown}"):
            function(NO_ARRAYS[shown])
        if NO_ARRAYS[shown] is not None:
            with pytest.raises(ParameterError, match=f"^mask: expected an array, got {shown}"):
                function(ROW, NO_ARRAYS[shown])


MASKED = np.ma.masked_less(ROW, 0.3)


def test_masked_pixels_are_rejected():
    for function in SCORES.values():
        with pytest.raises(
            ParameterError, match=r"^p: .* 1 of 3 pixels masked by numpy\.ma.* values\.filled\(0\), or crop"
        ):
            function(MASKED)
        with pytest.raises(ParameterError, match=r"^mask: .* got 1 of 3 pixels masked"):
            function(ROW, MASKED > 0.5)


def test_masked_arrays_that_hide_nothing_are_arrays():
    assert segtrust.soft_dice_confidence(np.ma.array(ROW)) == segtrust.soft_dice_confidence(ROW)


@pytest.mark.needs("dask")
def test_chunks_that_may_hide_pixels_are_rejected():
    import dask.array

    with pytest.raises(ParameterError, match=r"p: .* chunks masked by numpy\.ma.*dask\.array\.ma\.filled"):
        segtrust.soft_dice_confidence(dask.array.ma.masked_less(dask.array.from_array(ROW), 0.3))


@pytest.mark.needs("dask")
def test_dask_must_know_the_sizes_of_its_chunks():
    import dask.array

    p = dask.array.from_array(np.linspace(0, 1, 12).reshape(6, 2), chunks=2)
    unknown = p[p[:, 0] > 0.3]
    for function in SCORES.values():
        with pytest.raises(ParameterError, match=r"p: .* shape, got \(nan, 2\).*compute_chunk_sizes\(\)"):
            function(unknown)
    with pytest.raises(ParameterError, match=r"prediction: .* known shape"):
        segtrust.Prediction(unknown)
    for function in SCORES.values():
        function(unknown.compute_chunk_sizes())


def test_sparse_matrices_are_rejected():
    from scipy.sparse import csr_array

    with pytest.raises(
        ParameterError, match=r"p: expected a dense array, got a sparse csr_array.*todense\(\)"
    ):
        segtrust.soft_dice_confidence(csr_array(ROW))


@pytest.mark.needs("torch")
@pytest.mark.parametrize("layout", ["to_sparse", "to_sparse_csr", "to_sparse_csc", "to_mkldnn"])
@pytest.mark.filterwarnings("ignore:Sparse")
def test_sparse_tensors_are_rejected(layout):
    import torch

    p = torch.tensor(ROW, dtype=torch.float32)
    for name, call in SCORES.items():
        with pytest.raises(
            ParameterError, match=r"^p: expected a dense array, got a sparse Tensor.*to_dense\(\)"
        ):
            call(getattr(p, layout)())
        if name != "score_batch":
            with pytest.raises(ParameterError, match=r"^mask: expected a dense array"):
                call(p, getattr((p > 0.5).float(), layout)())


@pytest.mark.needs("h5py")
def test_a_data_set_without_data(tmp_path):
    import h5py

    with h5py.File(tmp_path / "empty.h5", "w") as file:
        empty = file.create_dataset("p", data=h5py.Empty("f4"))
        with pytest.raises(EmptyArrayError, match="p: expected at least one pixel"):
            check_array(empty, "p")


@pytest.mark.needs("torch")
@pytest.mark.filterwarnings("ignore:The PyTorch API of nested")
@pytest.mark.parametrize("name", ["soft_dice_confidence", "dice_bounds", "score_batch", "Prediction"])
class TestTensorsThatCannotBeRead:
    def call(self, name, *arguments):
        return (segtrust.Prediction if name == "Prediction" else SCORES[name])(*arguments)

    def test_meta(self, name):
        import torch

        p = torch.tensor(ROW)
        message = "expected an array that holds its pixels, got a tensor on the device 'meta'.* Run the model"
        with pytest.raises(ParameterError, match=message):
            self.call(name, p.to("meta"))
        for map_ in (p, ROW):
            with pytest.raises(ParameterError, match=f"mask: {message}"):
                self.call(name, map_, (p > 0.5).to("meta"))

    @pytest.mark.parametrize("layout", ["strided", "jagged"])
    def test_nested(self, name, layout):
        import torch

        parts = [torch.rand(3), torch.rand(2)]
        nested = torch.nested.nested_tensor(parts, layout=getattr(torch, layout))
        message = r"expected a dense array, got a nested tensor.* values\.unbind\(\)"
        with pytest.raises(ParameterError, match=message):
            self.call(name, nested)
        with pytest.raises(ParameterError, match=f"mask: {message}"):
            self.call(name, ROW, nested)

    @pytest.mark.parametrize("dtype", ["float8_e4m3fn", "float8_e5m2"])
    def test_eight_bit_floats(self, name, dtype):
        import torch

        with pytest.raises(
            ProbabilityTypeError, match=f"expected float16, .* got torch.{dtype}. Convert the map to float32"
        ):
            self.call(name, torch.tensor(ROW).to(getattr(torch, dtype)))


@pytest.mark.needs("torch")
@pytest.mark.parametrize("dtype", ["longdouble", ">f8", ">i4", "float32"])
def test_masks_without_a_twin_in_torch(dtype):
    import torch

    mask = np.array([[0, 1, 1]], dtype)
    assert float(segtrust.soft_dice_confidence(torch.tensor(ROW), mask)) == pytest.approx(
        segtrust.soft_dice_confidence(ROW, mask), rel=1e-15
    )
    backwards = mask[:, ::-1]  # torch has no negative strides either
    assert float(segtrust.soft_dice_confidence(torch.tensor(ROW), backwards)) == pytest.approx(
        segtrust.soft_dice_confidence(ROW, backwards), rel=1e-15
    )
    with pytest.raises(NotBinaryError, match="mask: expected only 0 and 1, got the values 2"):
        segtrust.soft_dice_confidence(torch.tensor(ROW), 2 * mask)


@pytest.mark.needs("torch")
@pytest.mark.parametrize("dtype", ["bfloat16", "float8_e4m3fn"])
def test_masks_of_torch_without_a_twin_in_numpy(dtype):
    import torch

    mask = torch.tensor([[0.0, 1.0, 1.0]]).to(getattr(torch, dtype))
    assert segtrust.soft_dice_confidence(ROW, mask) == segtrust.soft_dice_confidence(
        ROW, np.array([[0, 1, 1]])
    )
