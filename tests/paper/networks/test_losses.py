"""The losses, held to the values and gradients of the original code."""

from importlib.util import find_spec

import numpy as np
import pytest
from numpy.random import RandomState

from segtrust.errors import ParameterError
from segtrust.paper.networks import NAMES, training_loss
from tests.paper.networks.golden import read_json

pytestmark = pytest.mark.needs("torch")
if find_spec("torch"):  # elsewhere the mark skips every test
    import torch

    from segtrust.paper.networks.losses import cross_entropy_dice_loss, structure_loss


def logits(*shape: int):
    values = (RandomState(777).standard_normal(shape) * 2).astype(np.float32)
    return torch.from_numpy(values).requires_grad_()


def random_target(*shape: int, above: float):
    return torch.from_numpy((RandomState(778).uniform(size=shape) > above).astype(np.float32))


def disc(side: int, radius: float):
    row, column = np.mgrid[:side, :side]
    inside = (row - 0.45 * side) ** 2 + (column - 0.55 * side) ** 2 < (radius * side) ** 2
    return torch.from_numpy(inside.astype(np.float32))


def discs(side: int):
    return disc(side, 0.3).expand(2, 1, side, side).clone()


def assert_as_original(loss, values, expected) -> None:
    loss.backward()
    assert loss.item() == pytest.approx(expected["loss"], rel=2e-6)
    assert values.grad.double().norm().item() == pytest.approx(expected["grad_l2"], rel=1e-5)
    assert values.grad.double().sum().item() == pytest.approx(expected["grad_sum"], rel=1e-5, abs=1e-7)


@pytest.mark.parametrize("kind", ["random", "disc"])
def test_unext(kind):
    values = logits(2, 1, 32, 32)
    target = discs(32) if kind == "disc" else random_target(2, 1, 32, 32, above=0.7)
    loss = training_loss("unext")(values, target)
    assert_as_original(loss, values, read_json("unext", "loss_golden.json")["bce_dice"][kind])


@pytest.mark.parametrize("kind", ["random", "disc"])
def test_polyp_pvt(kind):
    values = logits(2, 1, 64, 64)
    target = discs(64) if kind == "disc" else random_target(2, 1, 64, 64, above=0.7)
    expected = read_json("polyp-pvt", "loss_golden.json")["structure_loss"][kind]
    both = training_loss("polyp-pvt")((values, values), target)
    assert both.item() == pytest.approx(2 * expected["loss"], rel=2e-6)
    assert_as_original(structure_loss(values, target), values, expected)


def test_segtran():
    values = logits(2, 3, 32, 32)
    outer, inner = disc(32, 0.3), disc(32, 0.15)
    target = torch.stack([1 - outer, outer, inner]).expand(2, 3, 32, 32)
    loss = training_loss("segtran")(values, target)
    assert_as_original(loss, values, read_json("segtran", "loss_golden.json")["segtran"])


def test_segtran_is_trained_on_masks_of_their_own_size():
    target = torch.rand(2, 3, 64, 64).round()
    values = logits(2, 3, 32, 32)
    larger = torch.nn.functional.interpolate(values, size=(64, 64), mode="bilinear")
    loss_of = training_loss("segtran")
    torch.testing.assert_close(loss_of(values, target), loss_of(larger, target))


def test_shifts_unet():
    values = logits(2, 2, 16, 16, 16)
    loss = training_loss("shifts-unet")(values, random_target(2, 1, 16, 16, 16, above=0.95))
    assert_as_original(loss, values, read_json("shifts-unet", "loss_golden.json")["shifts"])


@pytest.mark.parametrize("name", NAMES)
def test_a_target_that_would_be_broadcast_is_refused(name):
    given = logits(2, 3 if name == "segtran" else 2, 8, 8)
    given = (given, given) if name == "polyp-pvt" else given
    with pytest.raises(ParameterError, match="target: expected the shape"):
        training_loss(name)(given, torch.zeros(8, 8))


def test_cross_entropy_and_dice_of_an_even_guess():
    values, target = torch.zeros(2, 2, 4, 4, 4), torch.zeros(2, 1, 4, 4, 4)
    target[:, :, :2] = 1.0
    loss = cross_entropy_dice_loss(values, target)  # half of 64 voxels are foreground, all have p = 0.5
    assert loss.item() == pytest.approx(np.log(2.0) + 1.0 - 2.0 * 16.0 / 64.0, rel=1e-5)
    with pytest.raises(ParameterError, match="target"):
        cross_entropy_dice_loss(values, target[:1])
