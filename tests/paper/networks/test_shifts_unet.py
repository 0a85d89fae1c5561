"""The 3-D U-Net: the original's names, shapes and outputs, and volumes of any size."""

from importlib.util import find_spec

import numpy as np
import pytest

from segtrust.errors import ParameterError
from segtrust.paper.networks import create
from tests.paper.networks.golden import assert_golden, golden_model, outputs, published_shapes
from tests.paper.networks.training import assert_learns

pytestmark = pytest.mark.needs("torch", "monai")
if find_spec("torch"):  # elsewhere the mark skips every test
    import torch


def test_names_and_shapes_are_the_published_ones():
    model = create("shifts-unet")
    shapes = {name: tuple(each.shape) for name, each in model.state_dict().items()}
    assert shapes == published_shapes("shifts-unet")
    assert sum(each.numel() for each in model.parameters()) == 7_912_874


def test_outputs_are_those_of_the_original():
    model = golden_model("shifts-unet")
    for dtype in ("float32", "float64"):
        (found,) = outputs(model, 1, 1, 96, 96, 96, dtype=dtype)
        assert_golden(found, "shifts-unet", "out")


def test_a_volume_of_one_window_goes_through_at_once():
    model, volume = create("shifts-unet", window=32).eval(), torch.rand(2, 1, 32, 32, 32)
    with torch.no_grad():
        expected = model(volume).softmax(1)[:, 1]
    torch.testing.assert_close(model.probabilities(volume), expected)


def test_windows_are_blended_by_a_gaussian():
    """Two windows of 32 along the last axis, at 0 and at 16."""
    model = create("shifts-unet", window=32, overlap=0.5).double().eval()
    volume = torch.rand(1, 1, 32, 32, 48, dtype=torch.float64)
    line = np.exp(-0.5 * ((np.arange(32) - 15.5) / (0.125 * 32)) ** 2)
    weight = torch.from_numpy(line[:, None, None] * line[:, None] * line).clamp(min=1e-3)
    total, weights = torch.zeros(2, 32, 32, 48).double(), torch.zeros(32, 32, 48).double()
    with torch.no_grad():
        for window in (slice(0, 32), slice(16, 48)):
            total[..., window] += weight * model(volume[..., window])[0]
            weights[..., window] += weight
    expected = (total / weights).softmax(0)[1]
    torch.testing.assert_close(model.probabilities(volume)[0], expected, rtol=0, atol=1e-6)


@pytest.mark.parametrize("shape", [(7, 20, 33), (32, 40, 31)])
def test_volumes_of_any_size(shape):
    found = create("shifts-unet", window=32).probabilities(torch.rand(1, 1, *shape))
    assert found.shape == (1, *shape)
    assert 0.0 <= found.min() < found.max() <= 1.0


def test_window_with_three_sides():
    torch.manual_seed(0)
    network, volume = create("shifts-unet", window=(32, 48, 32)), torch.rand(1, 1, 32, 48, 32)
    expected = network(volume).softmax(1)[:, 1]
    assert torch.allclose(network.probabilities(volume), expected, atol=1e-5)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"window": 40}, "a multiple of 16, 32 or more, or three such, got 40"),
        ({"window": 16}, "got 16"),
        ({"window": (32, 48)}, "three such"),
        ({"overlap": 1.0}, "a share in"),
    ],
)
def test_windows_that_cannot_be_are_refused(options, told):
    with pytest.raises(ParameterError, match=told):
        create("shifts-unet", **options)


def test_windows_of_another_layout_are_refused():
    with pytest.raises(ParameterError, match=r"\(N, 1, D, H, W\) with sides that are multiples of 16"):
        create("shifts-unet")(torch.zeros(1, 1, 20, 16, 16))


def test_training_lowers_the_loss():
    torch.manual_seed(0)
    target = (torch.rand(2, 1, 32, 32, 32) > 0.5).float()
    assert_learns(create("shifts-unet"), torch.rand(2, 1, 32, 32, 32), target, rate=0.01)
