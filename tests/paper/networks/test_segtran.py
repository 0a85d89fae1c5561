"""Segtran: the original's names, shapes and outputs, with its options."""

from argparse import Namespace
from importlib.util import find_spec

import pytest

from segtrust.errors import ParameterError, WrongContentError
from segtrust.paper.networks import create
from tests.paper.networks.golden import assert_golden, filled_weights, golden_model, outputs, published_shapes
from tests.paper.networks.training import assert_learns

pytestmark = [pytest.mark.slow, pytest.mark.needs("torch", "monai")]
if find_spec("torch"):  # elsewhere the mark skips every test
    import torch

    from segtrust.paper.networks import load_backbone, load_weights

SHAPE = (1, 3, 288, 288)
BIASES = (".query.bias", ".key.bias")
PUBLISHED = published_shapes("segtran")
WITHOUT_BIASES = {name: shape for name, shape in PUBLISHED.items() if not name.endswith(BIASES)}


def without_values(**options):
    with torch.device("meta"):
        return create("segtran", **options)


def shapes_of(model) -> dict[str, tuple[int, ...]]:
    return {name: tuple(each.shape) for name, each in model.state_dict().items()}


def count(model) -> int:
    return sum(each.numel() for each in model.parameters())


def constant(shapes: dict[str, tuple[int, ...]], value: float = 0.0):
    """Tensors of these shapes that take no room in a file."""
    return {
        name: torch.full((1,), value).expand(shape or (1,)).reshape(shape) for name, shape in shapes.items()
    }


@pytest.fixture
def path(tmp_path):
    return tmp_path / "iter_7000.pth"


@pytest.fixture(scope="module")
def golden_weights():
    """A hundred million values, which take seconds to draw."""
    return dict(filled_weights("segtran"))


@pytest.fixture(scope="module")
def model():
    return create("segtran").eval()


def test_names_and_shapes_are_the_published_ones():
    tied, untied = without_values(), without_values(tied=False)
    assert shapes_of(tied) == shapes_of(untied) == PUBLISHED
    assert shapes_of(without_values(qk_bias=False)) == WITHOUT_BIASES
    assert (len(PUBLISHED), len(WITHOUT_BIASES)) == (831, 819)
    assert (count(tied), count(untied)) == (99_326_881, 113_786_529)


@pytest.mark.slow
def test_outputs_are_those_of_the_original(golden_weights):
    model = golden_model("segtran", weights=golden_weights, tied=False)
    for dtype in ("float32", "float64"):
        (found,) = outputs(model, *SHAPE, dtype=dtype)
        assert_golden(found, "segtran", "out")


@pytest.mark.parametrize(
    ("key", "qk_bias"), [pytest.param("tied_out", True, marks=pytest.mark.slow), ("noqkbias_out", False)]
)
def test_outputs_with_tied_queries_and_keys(golden_weights, key, qk_bias):
    names = PUBLISHED if qk_bias else WITHOUT_BIASES
    weights = {name: golden_weights[name.replace(".key.", ".query.")] for name in names}
    (found,) = outputs(golden_model("segtran", weights=weights, qk_bias=qk_bias), *SHAPE, dtype="float32")
    assert_golden(found, "segtran", key)


def test_probabilities_are_those_of_the_structure(model, monkeypatch):
    images = torch.rand(1, 3, 64, 96)
    with torch.no_grad():
        logits = model(images)
    for structure, channel in (("cup", 2), ("disc", 1)):
        monkeypatch.setattr(model, "structure", structure)
        torch.testing.assert_close(model.probabilities(images), logits[:, channel].sigmoid())
    assert model.probabilities(images, size=(128, 192)).shape == (1, 128, 192)


def test_unknown_structure_is_refused():
    with pytest.raises(ParameterError, match="structure: expected one of disc, cup, got 'rim'"):
        create("segtran", structure="rim")


def test_black_corners_take_no_part(model):
    """Tokens of nothing but zeros are left out; all others are not."""
    images = torch.rand(1, 3, 64, 64) + 0.1
    images[..., :16, :16] = 0
    seen = []
    hook = model.voxel_fusion.register_forward_pre_hook(lambda _, given: seen.append(given[2]))
    model.probabilities(images)
    hook.remove()
    expected = torch.ones(8, 8, dtype=torch.bool)
    expected[:2, :2] = False
    assert torch.equal(seen[0][0, :, 0].view(8, 8), expected)


def test_published_form_is_read(path, model):
    torch.save({"iter_num": 7000, "model": constant(PUBLISHED, 0.25), "args": Namespace(lr=2e-4)}, path)
    before = {name: each.clone() for name, each in model.state_dict().items()}
    load_weights(model, path)
    assert all((each == 0.25).all() for each in model.parameters())
    model.load_state_dict(before)


def test_backbone_is_read(path, model):
    prefix = "backbone."
    shapes = {
        name.removeprefix(prefix): shape for name, shape in PUBLISHED.items() if name.startswith(prefix)
    }
    before = {name: each.clone() for name, each in model.backbone.state_dict().items()}
    torch.save(constant(shapes, 0.25), path)
    load_backbone(model, path)
    assert all((each == 0.25).all() for each in model.backbone.parameters())
    model.backbone.load_state_dict(before)


@pytest.mark.parametrize(
    ("saved", "qk_bias", "told"),
    [(WITHOUT_BIASES, True, "missing: .*qk_bias=False"), (PUBLISHED, False, "unexpected: .*qk_bias=True")],
)
def test_weights_of_another_option_name_it(path, saved, qk_bias, told):
    torch.save(constant(saved), path)
    with pytest.raises(WrongContentError, match=told):
        load_weights(without_values(qk_bias=qk_bias), path)


def test_queries_and_keys_that_differ_are_not_tied(path):
    weights = constant(PUBLISHED)
    weights["voxel_fusion.translayers.1.ator_out_trans.key.bias"] = torch.ones(1792)
    torch.save(weights, path)
    with pytest.raises(WrongContentError, match=r"translayers\.1\.ator_out_trans\.key\.bias.*tied=False"):
        load_weights(without_values(), path)


def test_weights_of_another_network_name_it(path):
    torch.save(constant(PUBLISHED), path)
    with pytest.raises(WrongContentError, match=r"the weights of 'unext'.*those of 'segtran'"):
        create("unext", weights=path)


@pytest.mark.slow
def test_training_lowers_the_loss():
    torch.manual_seed(0)
    disc = (torch.rand(2, 1, 64, 64) > 0.5).float()
    target = torch.cat([1 - disc, disc, disc * torch.rand(2, 1, 64, 64).round()], 1)
    assert_learns(create("segtran"), torch.rand(2, 3, 32, 32), target, steps=1, rate=0.01)
