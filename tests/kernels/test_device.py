"""Maps on a device: the numbers and the errors of the NumPy path, with torch."""

from importlib import import_module
from importlib.util import find_spec

import numpy as np
import pytest
from hypothesis import given, strategies as st
from hypothesis.extra import numpy as hnp

import segtrust
from segtrust import Case, Prediction, ThresholdLevel, get_estimator
from segtrust.kernels import DeviceMap, UncertaintyNeeds, device, in_host_memory, is_device_array
from tests.kernels.devices import BAD, ESTIMATORS, MAPS, TOLERANCE, complaint, public_values
from tests.references import logit_normal

pytestmark = pytest.mark.needs("torch")
if find_spec("torch"):  # elsewhere the mark skips every test
    import torch

    torch.set_num_threads(1)  # several threads a test, and several tests, would wait for each other


READERS = (
    "calibration.scaling",
    "confidence.classes",
    "confidence.score",
    "confidence.soft_dice",
    "ensembles",
    "kernels.map_source",
    "risks",
)
"""Modules that read the memory of tensors on the CPU."""


@pytest.fixture
def kind(request):
    """A type of torch, by its name."""
    return getattr(torch, request.param)


@pytest.fixture(autouse=True, params=["compiled", "device"])
def path(request, monkeypatch):
    """Sum tensors without gradient in the compiled loops, as on a CPU, and by torch, as on other devices."""
    if request.param == "device":
        for module in READERS:
            found = import_module(f"segtrust.{module}")
            monkeypatch.setattr(found, "in_host_memory", lambda p: (p, device.as_float))
    return request.param


on_device = pytest.mark.parametrize("path", ["device"], indirect=True)


def assert_same(found, expected):
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        assert found[name].shape == (), name
        assert found[name].dtype == torch.float64, name
        np.testing.assert_allclose(found[name].item(), value, rtol=TOLERANCE, atol=0.0, err_msg=name)


@pytest.fixture
def no_copies(monkeypatch):
    """Fail where more than one number of a tensor goes to the host."""

    def forbid(name):
        original = getattr(torch.Tensor, name)

        def trap(self, *args, **kwargs):
            assert self.numel() == 1, f"Tensor.{name} of shape {tuple(self.shape)}"
            return original(self, *args, **kwargs)

        monkeypatch.setattr(torch.Tensor, name, trap)

    for name in ("__array__", "__dlpack__", "cpu", "numpy", "storage", "tolist", "untyped_storage"):
        forbid(name)


@pytest.mark.parametrize("name", MAPS)
def test_torch_gives_the_same_numbers(name):
    p = MAPS[name]
    assert_same(public_values(torch.from_numpy(p)), public_values(p))


@pytest.mark.parametrize("name", MAPS)
def test_a_given_mask_wins(name):
    p = MAPS[name]
    mask = np.array(np.random.default_rng(3).random(p.shape) < 0.3)
    assert_same(public_values(torch.from_numpy(p), torch.from_numpy(mask)), public_values(p, mask))


def test_masks_of_any_type():
    p = torch.from_numpy(MAPS["random"])
    mask = torch.from_numpy(np.random.default_rng(3).random(p.shape) < 0.3)
    for kind in (torch.uint8, torch.int64, torch.uint16, torch.float16, torch.float32):
        assert segtrust.soft_dice_confidence(p, mask.to(kind)) == segtrust.soft_dice_confidence(p, mask)
        assert segtrust.dice(mask, mask.to(kind)) == 1.0


@pytest.mark.parametrize("kind", [np.float16, np.float32, np.float64, np.uint8, np.uint16, bool])
def test_types_and_thresholds(kind):
    p = logit_normal((60, 50), mean=-1.0)
    scale = np.iinfo(kind).max if np.issubdtype(kind, np.integer) else 1
    for threshold in (0.0, 0.1, 0.7, 1.0):
        p[:2] = threshold  # the rounded threshold itself is in the map
        stored = np.round(p * scale).astype(kind) if scale > 1 else p.astype(kind)
        found = segtrust.score(torch.from_numpy(stored), None, ESTIMATORS, threshold=threshold)
        assert_same(found, segtrust.score(stored, None, ESTIMATORS, threshold=threshold))


@pytest.mark.parametrize("kind", ["uint8", "bool"], indirect=True)
@pytest.mark.filterwarnings("ignore:p. the largest value of this uint8 map is 1")
def test_all_public_functions_take_integers(kind):
    stored = (torch.rand(30, 40, generator=torch.Generator().manual_seed(0)) * 1.99).to(kind)
    mask = stored != 0
    assert_same(public_values(stored, mask), public_values(stored.numpy(), mask.numpy()))


def test_bfloat16_is_summed_as_it_is():
    p = torch.from_numpy(logit_normal((60, 50))).to(torch.bfloat16)
    assert_same(public_values(p), public_values(p.double().numpy()))


@given(
    hnp.arrays(
        np.float64,
        hnp.array_shapes(max_dims=3, max_side=6),
        elements=st.floats(0.0, 1.0) | st.sampled_from([0.0, 0.5, 1.0]),
    ),
    st.floats(0.0, 1.0),
)
def test_any_map_gives_the_same_numbers(p, threshold):
    found = segtrust.score(torch.from_numpy(p), None, ESTIMATORS, threshold=threshold)
    expected = segtrust.score(p, None, ESTIMATORS, threshold=threshold)
    for name, value in expected.items():
        np.testing.assert_allclose(found[name].item(), value, rtol=TOLERANCE, atol=1e-300, err_msg=name)


def test_bounds_are_the_same_numbers():
    for p in MAPS.values():
        found, expected = segtrust.dice_bounds(torch.from_numpy(p)), segtrust.dice_bounds(p)
        assert found.k == expected.k
        for name in ("mu", "lam", "s", "lower", "upper", "relative_error"):
            values = getattr(found, name), getattr(expected, name)
            np.testing.assert_allclose(
                *values, rtol=TOLERANCE, atol=1e-16
            )  # 1 - mu of the fullest is rounding


def test_layout_does_not_matter():
    p = torch.from_numpy(logit_normal((20, 30, 40)))
    strided = torch.from_numpy(logit_normal((20, 60, 40)))[:, ::2]
    assert_same(public_values(p.permute(2, 0, 1)), public_values(p.permute(2, 0, 1).contiguous().numpy()))
    assert_same(public_values(strided), public_values(strided.contiguous().numpy()))


@on_device
def test_nothing_but_single_numbers_comes_to_the_host(no_copies):
    for p in (torch.rand(300, 301), torch.zeros(4, 5), torch.randint(0, 256, (40, 50), dtype=torch.uint8)):
        mask = p > 0.4
        public_values(p, mask)
        segtrust.dice_bounds(p)
        segtrust.assess(p, mask, ESTIMATORS)
        segtrust.score_batch(p, mask, ["sdc", "idc"])
        segtrust.dice(mask, mask)


@on_device
def test_nothing_but_single_numbers_of_several_classes_comes_to_the_host(no_copies):
    p = torch.rand(3, 40, 50).softmax(0)
    segtrust.score_classes(p, ["background", "liver", "tumour"], estimators=["sdc", "idc", "ane"])
    segtrust.score_classes(p, ["a", "b", "c"], torch.randint(0, 3, (40, 50)).float())
    segtrust.score_classes(p, ["a", "b", "c"], independent=True)
    with pytest.raises(segtrust.errors.MaskError):
        segtrust.score_classes(p, ["a", "b", "c"], torch.full((40, 50), 255, dtype=torch.uint8))


def test_warns_of_nothing_where_derivatives_are_kept():
    p = torch.rand(3, 20, 20).requires_grad_()
    public_values(p)
    segtrust.dice_bounds(p)
    segtrust.assess(p)
    segtrust.score_classes(p.softmax(0), ["background", "liver", "tumour"])


def test_an_estimator_scores_a_prediction_on_a_device():
    p = logit_normal((30, 40))
    case = Case(Prediction(torch.from_numpy(p), id="a"), truth=torch.zeros(30, 40))
    for name in ("sdc", "idc", "pla"):
        assert get_estimator(name).score(case).item() == pytest.approx(
            get_estimator(name).score(Prediction(p)), rel=TOLERANCE
        )


@pytest.mark.parametrize("kind", ["float32", "bfloat16", "uint8"], indirect=True)
def test_what_learns_copies_to_the_host(kind):
    maps = [logit_normal((20, 30), seed=seed) for seed in range(3)]
    stored = [torch.from_numpy(p * (255 if kind is torch.uint8 else 1)).to(kind) for p in maps]
    hosts = [p.double().numpy() if kind is torch.bfloat16 else p.numpy() for p in stored]
    mask = torch.from_numpy(maps[0] > 0.2)
    found = ThresholdLevel().fit([Prediction(p.requires_grad_(p.is_floating_point()), mask) for p in stored])
    assert found == ThresholdLevel().fit([Prediction(p, mask.numpy()) for p in hosts])


# Several maps, several classes, risks


def test_a_batch_stays_on_its_device():
    p = logit_normal((5, 20, 30))
    found = segtrust.score_batch(torch.from_numpy(p), None, ESTIMATORS)
    expected = segtrust.score_batch(p, None, ESTIMATORS)
    for name, values in expected.items():
        assert found[name].shape == (5,)
        np.testing.assert_allclose(found[name].numpy(), values, rtol=TOLERANCE)


@pytest.mark.parametrize("independent", [False, True])
@pytest.mark.parametrize("kind", ["float64", "uint8", "bool"], indirect=True)
def test_classes_are_the_same_numbers(kind, independent):
    p = torch.from_numpy(np.random.default_rng(5).normal(0, 3, (4, 20, 30))).softmax(0)
    p[3] *= 1e-4  # predicted nowhere
    p = p / p.sum(0)
    levels = {torch.uint8: 255, torch.uint16: 65535}.get(kind)
    p = (p * levels).round().to(kind) if levels else (p > 0.5 if kind is torch.bool else p.to(kind))
    if kind is torch.bool and not independent:
        p[0] |= ~p.any(0)
    names = ["background", "liver", "tumour", "cyst"]
    found = segtrust.score_classes(p, names, None, ESTIMATORS, independent=independent)
    expected = segtrust.score_classes(p.numpy(), names, None, ESTIMATORS, independent=independent)
    assert found.predicted == expected.predicted
    assert found.classes["cyst"] is expected.classes["cyst"] is None
    for name in found.predicted:
        assert_same(found.classes[name], expected.classes[name])
    assert_same(found.case, expected.case)


def test_labels_on_a_device_choose_the_masks():
    p = torch.rand(3, 20, 30, dtype=torch.float64).softmax(0)
    labels = torch.randint(0, 3, (20, 30))
    names = ["background", "liver", "tumour"]
    found = segtrust.score_classes(p, names, labels)
    assert_same(found.case, segtrust.score_classes(p.numpy(), names, labels.numpy()).case)


@pytest.mark.parametrize("empty", ["paper", "agree"])
@pytest.mark.parametrize("fractions", [(0.3, 0.4), (0.0, 0.0), (0.0, 0.5), (0.5, 0.0)])
def test_risks_are_the_same_numbers(fractions, empty):
    truth, mask = (torch.rand(20, 30) < fraction for fraction in fractions)
    scores = (
        segtrust.dice,
        segtrust.iou,
        lambda *masks, **policy: segtrust.f_beta(*masks, beta=2.0, **policy),
    )
    for score in scores:
        found = score(truth, mask.to(torch.int32), empty=empty)
        assert found.shape == ()
        assert found.dtype == torch.float64
        assert found.item() == pytest.approx(score(truth.numpy(), mask.numpy(), empty=empty), rel=TOLERANCE)
        assert score(truth.numpy(), mask, empty=empty).item() == found.item()
    assert torch.is_tensor(segtrust.RISKS["dice_risk"].of(truth, mask, empty=empty))


def test_a_mask_of_another_library_is_brought_to_the_map():
    p, mask = logit_normal((20, 30)), np.random.default_rng(0).random((20, 30)) < 0.3
    found = segtrust.score(torch.from_numpy(p), mask, ESTIMATORS)
    assert_same(found, segtrust.score(p, mask, ESTIMATORS))


# Bad input


@pytest.mark.parametrize("name", BAD)
def test_complaints_are_the_same(name):
    p, mask = BAD[name]
    tensors = torch.from_numpy(p), None if mask is None else torch.from_numpy(mask)
    assert complaint(*tensors) == complaint(p, mask)


@pytest.mark.parametrize("function", [segtrust.average_max_probability, segtrust.median_min_max_confidence])
def test_every_pass_checks_the_values(function):
    with pytest.raises(segtrust.errors.ProbabilityRangeError, match=r"got -0\.5 at index \(1, 0\)"):
        function(torch.tensor([[0.1, 0.9], [-0.5, 0.3]], requires_grad=True))


def test_a_bad_value_is_found_where_it_is():
    p = torch.zeros(3, 300, 301)
    p[2, 7, 11] = float("nan")
    with pytest.raises(segtrust.errors.ProbabilityRangeError, match=r"nan at index \(2, 7, 11\)"):
        segtrust.soft_dice_confidence(p)


@pytest.mark.parametrize("dtype", ["object", "U1", "complex64"])
def test_masks_of_numpy_that_hold_none(dtype):
    p, mask = torch.rand(2, 3), np.zeros((2, 3), dtype)
    with pytest.raises(segtrust.errors.MaskError, match="mask: expected bool, integers or floats"):
        segtrust.soft_dice_confidence(p, mask)
    with pytest.raises(segtrust.errors.MaskError, match="truth: expected bool, integers or floats"):
        segtrust.dice(mask, p > 0.5)


def test_threshold_is_checked():
    with pytest.raises(segtrust.errors.ParameterError, match=r"threshold: expected a number in \[0, 1\]"):
        segtrust.soft_dice_confidence(torch.rand(3), threshold=1.5)


def test_risks_complain_the_same():
    labels = np.array([0, 1, 2])
    for masks in [(labels, labels > 0), (labels > 0, labels), (labels > 0, labels[:2] > 0)]:
        messages = []
        for convert in (np.asarray, torch.from_numpy):
            with pytest.raises(segtrust.errors.MaskError) as caught:
                segtrust.dice(*map(convert, masks))
            messages.append((type(caught.value), str(caught.value)))
        assert messages[0] == messages[1]


# The parts


def test_only_arrays_of_other_libraries_lie_on_a_device():
    import dask.array

    assert is_device_array(torch.zeros(2))
    assert not any(map(is_device_array, (np.zeros(2), np.float64(0), 0.5, [0.5], dask.array.zeros(2))))


@on_device
def test_a_device_without_doubles_sums_in_floats(monkeypatch):
    monkeypatch.setattr(device, "wide_type", lambda _: torch.float32)
    p = logit_normal((40, 50)).astype(np.float32)
    found = segtrust.score(torch.from_numpy(p), None, ESTIMATORS)
    for name, value in segtrust.score(p, None, ESTIMATORS).items():
        assert found[name].dtype == torch.float32
        assert found[name].item() == pytest.approx(value, rel=1e-5)


def test_a_sample_that_misleads_about_the_median_is_found_out():
    p = np.linspace(0.0, 0.5, 1 << 16)
    p[:: (1 << 16) // device._SAMPLE] = 0.5  # all that the sample sees
    found = segtrust.median_min_max_confidence(torch.from_numpy(p))
    assert found.item() == pytest.approx(segtrust.median_min_max_confidence(p), rel=TOLERANCE)


@on_device
def test_statistics_on_a_device_do_not_add_up():
    statistics = segtrust.kernels.open_map(torch.tensor([0.2, 0.9])).dice_statistics()
    with pytest.raises(TypeError):
        statistics + statistics


def test_patches_of_every_side():
    p = logit_normal((8, 25, 31))
    source = DeviceMap(torch.from_numpy(p), None, 0.5, "p")
    for side in (1, 2, 3, 5, 6, 7, 10, 13, 40):
        patch = source.measure(UncertaintyNeeds(side=side)).patch.item()
        assert patch == pytest.approx(-segtrust.patch_level_confidence(p, size=side), rel=TOLERANCE)


@pytest.mark.parametrize("path", ["compiled"], indirect=True)
class TestMemoryOfTensors:
    def test_is_not_copied(self, path):
        p = torch.rand(20, 30)
        for tensor in (p, p.T, p[::2], torch.nn.Parameter(p, requires_grad=False)):
            values, _ = in_host_memory(tensor)
            assert values.__array_interface__["data"][0] == tensor.data_ptr()

    def test_is_not_used_where_a_gradient_is_needed(self, path):
        p = torch.rand(20, 30, requires_grad=True)
        assert in_host_memory(p)[0] is p
        assert segtrust.soft_dice_confidence(p).requires_grad
        with torch.no_grad():
            assert isinstance(in_host_memory(p)[0], np.ndarray)
            found = segtrust.soft_dice_confidence(p)
        assert not found.requires_grad
        assert found.item() == pytest.approx(segtrust.soft_dice_confidence(p).item(), rel=TOLERANCE)

    def test_is_not_used_for_types_that_numpy_lacks(self, path):
        p = torch.zeros(3, dtype=torch.bfloat16)
        assert in_host_memory(p)[0] is p

    def test_other_arrays_are_returned_as_they_are(self, path):
        for p in (np.zeros(3), 0.5, [0.5], torch.zeros(3).to_sparse(), torch.zeros(3, device="meta")):
            assert in_host_memory(p)[0] is p
