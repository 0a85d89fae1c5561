"""Input that is probably not what was meant: warned about or rejected, and ordinary input is not."""

import warnings

import numpy as np
import pytest

import segtrust as st
from segtrust.errors import ProbabilityError, SegtrustWarning
from tests.kernels.test_selection import Chunked

RANDOM = np.random.default_rng(0)
DISC = (np.hypot(*(np.mgrid[:64, :64] - 31.5)) < 12).astype(np.uint8)
ONE_MAP = {
    "sdc": st.soft_dice_confidence,
    "idc": st.ideal_dice_confidence,
    "bounds": st.dice_bounds,
    "iou": st.expected_iou,
    "amsp": st.average_max_probability,
    "apc": st.average_class_probability,
    "ane": st.average_negative_entropy,
    "mmmc": st.median_min_max_confidence,
    "pla": st.patch_level_confidence,
    "score": st.score,
    "assess": st.assess,
    "amsp alone": lambda p: st.score(p, estimators="amsp"),
    "an estimator": st.SoftDice(),
    "a prediction": lambda p: st.SoftDice().score(st.Prediction(p)),
    "the best mask": st.dice_optimal_mask,
    "full posterior": lambda p: st.full_posterior_dice(p, np.ones(p.shape, bool)),
}


def softmax(*shape):
    p = RANDOM.random(shape)
    return p / p.sum(0)


@pytest.fixture(params=ONE_MAP)
def call(request):
    return ONE_MAP[request.param]


class TestMasks:
    """tried.md: a 0/1 mask scores 0.0 as uint8, without a warning."""

    @pytest.mark.parametrize("kind", [np.uint8, np.uint16])
    def test_an_integer_map_of_0_and_1(self, call, kind):
        with pytest.warns(
            SegtrustWarning, match=r"largest value of this uint\d+ map is 1.* 0/1 mask"
        ) as caught:
            call(DISC.astype(kind))
        assert len(caught) == 1
        assert caught[0].filename == __file__

    def test_with_a_delivered_mask(self):
        with pytest.warns(SegtrustWarning, match="0/1 mask"):
            st.soft_dice_confidence(DISC, DISC)
        with pytest.warns(SegtrustWarning, match="0/1 mask"):
            st.score(DISC, DISC, "apc")

    def test_among_the_selected_pixels(self):
        p = DISC.copy()
        p[0] = 255
        st.soft_dice_confidence(p)
        where = np.ones(p.shape, bool)
        where[0] = False
        with pytest.warns(SegtrustWarning, match="0/1 mask"):
            st.soft_dice_confidence(p, where=where)

    def test_in_chunks_and_in_batches(self):
        with pytest.warns(SegtrustWarning, match="0/1 mask"):
            st.score(Chunked(DISC, (16, 16)))
        with pytest.warns(SegtrustWarning, match="0/1 mask"):
            st.score_batch(np.stack([DISC, DISC]))

    @pytest.mark.parametrize(
        "other",
        [
            lambda p: st.soft_dice_loss(p, DISC),
            lambda p: st.fuse([p > 0, p]),
            st.TemperatureScaling(2.0).apply,
            lambda p: st.score_classes(np.stack([p, p]), ["a", "b"], independent=True),
            lambda p: st.score_classes(np.stack([p, p])[None], ["a", "b"], independent=True, batch=True),
            lambda p: st.score_batch(p[None], where=np.ones((1, *p.shape), bool)),
        ],
    )
    def test_at_every_other_door(self, other):
        with pytest.warns(SegtrustWarning, match="0/1 mask") as caught:
            other(DISC)
        assert [warning.filename for warning in caught] == [__file__]
        other(np.where(DISC, 200, 1).astype(np.uint8))

    def test_a_recalibrated_prediction_passes(self):
        """The map of an image without a finding may have a largest value of 1."""
        st.TemperatureScaling(2.0).calibrate(st.Prediction(DISC))

    @pytest.mark.needs("torch")
    def test_as_a_tensor(self):
        import torch

        with pytest.warns(SegtrustWarning, match="0/1 mask"):
            st.soft_dice_confidence(torch.from_numpy(DISC))

    @pytest.mark.parametrize("p", [DISC.astype(bool), DISC.astype(float), DISC * 255, DISC * 0, DISC * 2])
    def test_other_maps_pass(self, call, p):
        call(p)


class TestScales:
    """attacks.md 3: per cent and 12-bit values pass for probabilities."""

    @pytest.mark.parametrize(
        ("top", "kind", "said"),
        [(100, np.uint8, "per cent"), (4095, np.uint16, "12-bit levels"), (255, np.uint16, "8-bit levels")],
    )
    def test_another_scale_is_rejected(self, call, top, kind, said):
        p = np.zeros((64, 64), kind)
        p[10:50, 10:50] = top
        with pytest.raises(ProbabilityError, match=f"got values up to {top} in 1600 pixels, .* {said}"):
            call(p)

    def test_a_few_pixels_are_a_coincidence(self):
        p = np.zeros((64, 64), np.uint8)
        p[0, :5] = 100
        assert st.soft_dice_confidence(p) == 0.0


class TestShapes:
    """Issue 22: (C, H, W) or (B, 1, H, W) arrays passed as one map."""

    def test_a_batch(self, call):
        with pytest.warns(SegtrustWarning, match=r"\(4, 1, 16, 16\) looks like a batch"):
            call(RANDOM.random((4, 1, 16, 16)))

    @pytest.mark.parametrize("axis", [0, -1])
    def test_a_softmax(self, call, axis):
        p = np.moveaxis(softmax(3, 16, 18), 0, axis)
        with pytest.warns(SegtrustWarning, match=r"adds up to 1, as the classes of a softmax"):
            call(p)

    def test_a_batch_of_softmaxes(self):
        p = np.stack([softmax(3, 16, 16), softmax(3, 16, 16)])
        with pytest.warns(SegtrustWarning, match="axis 1 of"):
            st.score(p)
        with pytest.warns(SegtrustWarning, match="axis 0 of"):
            st.score_batch(p)

    @pytest.mark.needs("torch")
    def test_a_softmax_as_a_tensor(self):
        import torch

        with pytest.warns(SegtrustWarning, match="softmax"):
            st.score(torch.from_numpy(softmax(2, 32, 32)))

    def test_a_softmax_of_8_bits_in_chunks(self):
        p = np.round(softmax(2, 32, 32) * 255).astype(np.uint8)
        with pytest.warns(SegtrustWarning, match="softmax"):
            st.score(p)
        with pytest.warns(SegtrustWarning, match="softmax"):
            st.score(Chunked(p, (2, 16, 16)))

    @pytest.mark.parametrize(
        "p",
        [
            RANDOM.random((3, 64, 64)),  # a volume of three slices, or sigmoids
            np.stack([DISC * 1.0] * 2),
            np.zeros((2, 64, 64)),
            RANDOM.random((1, 64, 64)),
            RANDOM.random((1, 1, 64, 64)),
            RANDOM.random((64, 64, 2)),
            RANDOM.random((5, 1, 64)),
            np.full((2, 3, 4), 0.5),
        ],
        ids=lambda p: str(p.shape),
    )
    def test_volumes_pass(self, call, p):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            call(p)

    def test_what_is_meant_as_a_batch_passes(self):
        st.score_batch(RANDOM.random((4, 1, 16, 16)))
        st.score_classes(softmax(3, 16, 16), ["a", "b", "c"])


class TestStoredArrays:
    """Zarr and HDF5 arrays that would be read as something else than was stored (attacks 3 and 10)."""

    @pytest.mark.needs("zarr")
    def test_zarr_without_any_chunk(self):
        import zarr

        p = zarr.create_array({}, shape=(16, 16), chunks=(8, 8), dtype="float32")
        with pytest.raises(st.errors.ParameterError, match="stored pixels"):
            st.score(p, estimators="amsp")
        p[:8] = 0.75
        assert st.score(p, estimators="amsp")["amsp"] == 0.875  # single missing chunks hold the fill value

    @pytest.mark.needs("h5py")
    @pytest.mark.parametrize("chunks", [None, (8, 8)])
    def test_hdf5_without_any_data(self, tmp_path, chunks):
        import h5py

        with h5py.File(tmp_path / "p.h5", "w") as file:
            p = file.create_dataset("p", (16, 16), "float32", chunks=chunks)
            for argument in ({"p": p}, {"p": np.ones((16, 16)), "mask": p}):
                with pytest.raises(st.errors.ParameterError, match="stored pixels"):
                    st.soft_dice_confidence(**argument)
            p[:] = 0.75
            assert st.soft_dice_confidence(p) == st.soft_dice_confidence(np.full((16, 16), 0.75))

    @pytest.mark.needs("h5py")
    def test_virtual_hdf5_is_stored_elsewhere(self, tmp_path):
        import h5py

        with h5py.File(tmp_path / "p.h5", "w") as file:
            layout = h5py.VirtualLayout((4, 4), "float64")
            layout[:] = h5py.VirtualSource(file.create_dataset("p", data=np.full((4, 4), 0.75)))
            assert st.soft_dice_confidence(file.create_virtual_dataset("v", layout)) == pytest.approx(6 / 7)

    @pytest.mark.needs("h5py")
    @pytest.mark.parametrize(("attribute", "value"), [("scale_factor", 1 / 200), ("add_offset", 0.5)])
    def test_scale_and_offset_are_not_ignored(self, tmp_path, attribute, value):
        import h5py

        with h5py.File(tmp_path / "p.h5", "w") as file:
            p = file.create_dataset("p", data=np.full((4, 4), 200, np.uint8))
            p.attrs["scale_factor"], p.attrs["add_offset"] = 1.0, 0.0
            st.soft_dice_confidence(p)
            for stored in (value, np.array([value]), str(value), np.array([value, 1.0])):
                p.attrs[attribute] = stored
                with pytest.raises(st.errors.ParameterError, match=f"{attribute} .* is not applied"):
                    st.soft_dice_confidence(p)


@pytest.mark.parametrize(
    ("side", "dtype", "top"), [(64, "uint8", 100), (96, "uint8", 100), (128, "uint16", 4095)]
)
def test_small_maps_on_another_scale_raise(side, dtype, top):
    radius = np.hypot(*(np.mgrid[:side, :side] - side / 2))
    p = 1.0 / (1.0 + np.exp((radius - side / 4) / 2))
    with pytest.raises(ProbabilityError, match=f"Divide by {top}"):
        st.score(np.round(p * top).astype(dtype), estimators="amsp")
    st.score(np.round(p * np.iinfo(dtype).max).astype(dtype), estimators="amsp")
    faint = np.round(p * top * 0.9).astype(dtype)  # its largest value is nobody's scale
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        st.score(faint, estimators="amsp")


def test_a_smooth_map_whose_largest_value_is_a_scale_by_chance_is_scored():
    side = 256
    p = np.exp(-(np.hypot(*(np.mgrid[:side, :side] - side / 2)) ** 2) / (2 * 30**2))
    levels = np.round(p * 100).astype(np.uint8)
    assert levels.max() == 100
    assert st.score(levels, estimators="amsp")["amsp"] > 0.5


def test_the_loss_of_a_batch_warns():
    p = np.random.default_rng(0).random((4, 1, 32, 32))
    with pytest.warns(SegtrustWarning, match="looks like a batch"):
        st.soft_dice_loss(p, p > 0.5)
