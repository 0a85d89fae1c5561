"""UNeXt: the original's names, shapes and outputs."""

from importlib.util import find_spec

import pytest

from segtrust.errors import ParameterError
from segtrust.paper.networks import create
from tests.paper.networks.golden import assert_golden, golden_model, outputs, published_shapes
from tests.paper.networks.training import assert_learns

pytestmark = pytest.mark.needs("torch")
if find_spec("torch"):  # elsewhere the mark skips every test
    import torch

    from segtrust.paper.networks.unext import _shifted


def test_names_and_shapes_are_the_published_ones():
    model = create("unext")
    assert {name: tuple(each.shape) for name, each in model.state_dict().items()} == published_shapes("unext")
    assert sum(each.numel() for each in model.parameters()) == 1_471_921


@pytest.mark.parametrize("shape", [(2, 3, 256, 256), (1, 3, 512, 512)])
def test_outputs_are_those_of_the_original(shape):
    model = golden_model("unext")
    for dtype in ("float32", "float64"):
        (found,) = outputs(model, *shape, dtype=dtype)
        assert_golden(found, "unext", f"out_{shape[-1]}")


@pytest.mark.parametrize("axis", [1, 2])
def test_shift_moves_groups_of_channels_with_zeros_from_outside(axis):
    """Seven channels are groups of 2, 2, 2, 1; the fifth is empty, as with torch.chunk."""
    tokens = torch.rand(1, 6, 6, 7)
    found = _shifted(tokens, axis).movedim(axis, 0)
    lines = tokens.movedim(axis, 0)
    for channel in range(7):
        by = channel // 2 - 2
        for row in range(6):
            inside = 0 <= row - by < 6
            expected = lines[row - by, ..., channel] if inside else torch.zeros(1, 6)
            assert torch.equal(found[row, ..., channel], expected)


def test_probabilities_are_sigmoids_of_the_logits_without_change_of_mode():
    model, images = create("unext"), torch.rand(2, 3, 32, 64)
    model.probabilities(images)
    assert model.training
    p, logits = model.probabilities(images), model.eval()(images)
    assert p.shape == (2, 32, 64)
    torch.testing.assert_close(p, logits[:, 0].sigmoid())
    larger = torch.nn.functional.interpolate(logits, size=(40, 70), mode="bilinear")
    torch.testing.assert_close(model.probabilities(images, size=(40, 70)), larger[:, 0].sigmoid())


@pytest.mark.parametrize("shape", [(1, 3, 64, 60), (1, 1, 64, 64), (3, 64, 64)])
def test_images_of_another_layout_are_refused(shape):
    with pytest.raises(ParameterError, match=r"\(N, 3, H, W\) with sides that are multiples of 32, got"):
        create("unext")(torch.zeros(shape))


def test_training_lowers_the_loss():
    torch.manual_seed(0)
    target = (torch.rand(2, 1, 64, 64) > 0.5).float()
    assert_learns(create("unext"), torch.rand(2, 3, 64, 64), target, rate=0.01)
