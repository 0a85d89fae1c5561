"""One number where one is asked for, and arrays of which every pixel can be read."""

from fractions import Fraction

import numpy as np
import pytest

import segtrust
from segtrust.errors import EmptyArrayError, NotBinaryError, ParameterError, ProbabilityTypeError
from segtrust.kernels.inputs import (
    as_array,
    check_array,
)

P = np.array([[0.9, 0.2, 0.6]])
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


@pytest.mark.parametrize(
    "value", [10**400, -(10**400), Fraction(10**5000)], ids=["int", "negative", "fraction"]
)
@pytest.mark.parametrize("name", ["soft_dice_confidence", "score", "score_batch"])
def test_numbers_too_large_for_a_float(name, value):
    with pytest.raises(
        ParameterError, match=r"threshold: expected a number in \[0, 1\], got a number too large"
    ):
        SCORES[name](P, threshold=value)


NO_NUMBERS = {
    "the text '0.5'": "0.5",
    "None": None,
    r"ndarray of shape \(2,\)": np.array([0.1, 0.5]),
    r"ndarray of shape \(\)": np.array(0.5),
    r"list \[0.5\]": [0.5],
    "complex 1j": 1j,
}


@pytest.mark.parametrize("shown", NO_NUMBERS)
@pytest.mark.parametrize("name", SCORES)
def test_thresholds_that_are_no_number(name, shown):
    with pytest.raises(
        ParameterError, match=rf"threshold: expected a number in \[0, 1\], got {shown}\. Pass one"
    ):
        SCORES[name](P, threshold=NO_NUMBERS[shown])


@pytest.mark.parametrize("values", [0.7, [[0.7, 0.2]], ((0.7,), (0.2,)), np.float32(0.7)])
def test_numbers_and_lists_become_arrays(values):
    assert np.array_equal(as_array(values, "p"), np.asarray(values))


def test_arrays_stay_what_they_are():
    p = np.zeros((3, 4), np.uint8)
    assert as_array(p, "p") is p


def test_lists_that_are_no_array():
    with pytest.raises(ParameterError, match=r"p: expected an array, got a list that is none: .*same length"):
        segtrust.soft_dice_confidence([[0.1], [0.2, 0.3]])


NO_ARRAYS = {
    "None": None,
    "dict {'p': 0.5}": {"p": 0.5},
    "set {0.5}": {0.5},
    "generator <generator": (value for value in (0.5,)),
    "the text 'p.npy'": "p.npy",
    r"list \['a'\]": ["a"],
    r"Prediction of shape \(1, 3\)\. Pass its probabilities": segtrust.Prediction(P),
}


@pytest.mark.parametrize("shown", NO_ARRAYS)
@pytest.mark.parametrize("name", SCORES)
def test_what_is_no_array_is_named_by_what_it_is(name, shown):
    with pytest.raises(ParameterError, match=f"^p: expected an array, got {shown}"):
        SCORES[name](NO_ARRAYS[shown])
    if NO_ARRAYS[shown] is not None:
        with pytest.raises(ParameterError, match=f"^mask: expected an array, got {shown}"):
            SCORES[name](P, NO_ARRAYS[shown])


MASKED = np.ma.masked_less(P, 0.3)


@pytest.mark.parametrize("name", SCORES)
def test_masked_pixels_are_refused(name):
    with pytest.raises(
        ParameterError, match=r"^p: .* got 1 of 3 pixels masked by numpy\.ma.* values\.filled\(0\), or crop"
    ):
        SCORES[name](MASKED)
    with pytest.raises(ParameterError, match=r"^mask: .* got 1 of 3 pixels masked"):
        SCORES[name](P, MASKED > 0.5)


def test_masked_arrays_that_hide_nothing_are_arrays():
    assert segtrust.soft_dice_confidence(np.ma.array(P)) == segtrust.soft_dice_confidence(P)


@pytest.mark.needs("dask")
def test_chunks_that_may_hide_pixels_are_refused():
    import dask.array

    with pytest.raises(ParameterError, match=r"p: .* chunks masked by numpy\.ma.*dask\.array\.ma\.filled"):
        segtrust.soft_dice_confidence(dask.array.ma.masked_less(dask.array.from_array(P), 0.3))


@pytest.mark.needs("dask")
@pytest.mark.parametrize("name", SCORES)
def test_dask_must_know_the_sizes_of_its_chunks(name):
    import dask.array

    p = dask.array.from_array(np.linspace(0, 1, 12).reshape(6, 2), chunks=2)
    unknown = p[p[:, 0] > 0.3]
    with pytest.raises(ParameterError, match=r"p: .* known shape, got \(nan, 2\).*compute_chunk_sizes\(\)"):
        SCORES[name](unknown)
    with pytest.raises(ParameterError, match=r"prediction: .* known shape"):
        segtrust.Prediction(unknown)
    SCORES[name](unknown.compute_chunk_sizes())


def test_sparse_matrices_are_refused():
    from scipy.sparse import csr_array

    with pytest.raises(
        ParameterError, match=r"p: expected a dense array, got a sparse csr_array.*todense\(\)"
    ):
        segtrust.soft_dice_confidence(csr_array(P))


@pytest.mark.needs("torch")
@pytest.mark.parametrize("layout", ["to_sparse", "to_sparse_csr", "to_sparse_csc", "to_mkldnn"])
@pytest.mark.filterwarnings("ignore:Sparse")
def test_sparse_tensors_are_refused(layout):
    import torch

    p = torch.tensor(P, dtype=torch.float32)
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
@pytest.mark.parametrize("name", [*SCORES, "Prediction"])
class TestTensorsThatCannotBeRead:
    def call(self, name, *arguments):
        return (segtrust.Prediction if name == "Prediction" else SCORES[name])(*arguments)

    def test_meta(self, name):
        import torch

        p = torch.tensor(P)
        message = "expected an array that holds its pixels, got a tensor on the device 'meta'.* Run the model"
        with pytest.raises(ParameterError, match=message):
            self.call(name, p.to("meta"))
        for map_ in (p, P):
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
            self.call(name, P, nested)

    @pytest.mark.parametrize("dtype", ["float8_e4m3fn", "float8_e5m2"])
    def test_eight_bit_floats(self, name, dtype):
        import torch

        with pytest.raises(
            ProbabilityTypeError, match=f"expected float16, .* got torch.{dtype}. Convert the map to float32"
        ):
            self.call(name, torch.tensor(P).to(getattr(torch, dtype)))


@pytest.mark.needs("torch")
@pytest.mark.parametrize("dtype", ["longdouble", ">f8", ">i4", "float32"])
def test_masks_without_a_twin_in_torch(dtype):
    import torch

    mask = np.array([[0, 1, 1]], dtype)
    assert float(segtrust.soft_dice_confidence(torch.tensor(P), mask)) == pytest.approx(
        segtrust.soft_dice_confidence(P, mask), rel=1e-15
    )
    backwards = mask[:, ::-1]  # torch has no negative strides either
    assert float(segtrust.soft_dice_confidence(torch.tensor(P), backwards)) == pytest.approx(
        segtrust.soft_dice_confidence(P, backwards), rel=1e-15
    )
    with pytest.raises(NotBinaryError, match="mask: expected only 0 and 1, got the values 2"):
        segtrust.soft_dice_confidence(torch.tensor(P), 2 * mask)


@pytest.mark.needs("torch")
@pytest.mark.parametrize("dtype", ["bfloat16", "float8_e4m3fn"])
def test_masks_of_torch_without_a_twin_in_numpy(dtype):
    import torch

    mask = torch.tensor([[0.0, 1.0, 1.0]]).to(getattr(torch, dtype))
    assert segtrust.soft_dice_confidence(P, mask) == segtrust.soft_dice_confidence(P, np.array([[0, 1, 1]]))
