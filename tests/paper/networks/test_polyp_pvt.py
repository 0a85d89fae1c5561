"""Polyp-PVT: the original's names, shapes and outputs, and its backbone's checkpoint."""

from importlib.util import find_spec

import numpy as np
import pytest

from segtrust.errors import ParameterError, WrongContentError
from segtrust.paper.networks import create
from tests.paper.networks.golden import assert_golden, filled_weights, golden_model, outputs, published_shapes
from tests.paper.networks.training import assert_learns

pytestmark = [pytest.mark.slow, pytest.mark.needs("torch", "monai")]
if find_spec("torch"):  # elsewhere the mark skips every test
    import torch

    from segtrust.paper.networks import load_backbone, stretched

SHAPE = (1, 3, 352, 352)


@pytest.fixture(scope="module")
def model():
    return create("polyp-pvt")


def test_names_and_shapes_are_the_published_ones(model):
    shapes = {name: tuple(each.shape) for name, each in model.state_dict().items()}
    assert shapes == published_shapes("polyp-pvt")
    assert sum(each.numel() for each in model.parameters()) == 25_107_604


def test_outputs_are_those_of_the_original():
    model = golden_model("polyp-pvt")
    for dtype in ("float32", "float64"):
        for found, key in zip(outputs(model, *SHAPE, dtype=dtype), ("P1", "P2"), strict=True):
            assert_golden(found, "polyp-pvt", key)


def test_outputs_of_another_filling():
    weights = dict(filled_weights("polyp-pvt", {"kind": "fixed", "scale": 0.05}))
    found = outputs(golden_model("polyp-pvt", weights=weights), *SHAPE, dtype="float32")
    for each, key in zip(found, ("plain_P1", "plain_P2"), strict=True):
        assert_golden(each, "polyp-pvt", key)


def test_probabilities_are_sigmoids_of_both_logits(model):
    images = torch.rand(2, 3, 64, 96)
    with torch.no_grad():
        expected = sum(model.eval()(images))[:, 0].sigmoid()
    torch.testing.assert_close(model.probabilities(images), expected)


def test_published_maps_are_stretched():
    p = torch.rand(3, 8, 9) * 0.5 + 0.2
    expected = np.stack([(each - each.min()) / (each.max() - each.min() + 1e-8) for each in p.numpy()])
    np.testing.assert_allclose(stretched(p).numpy(), expected, rtol=1e-6)
    assert stretched(torch.full((1, 2, 2), 0.3)).abs().max() == 0


def test_backbone_of_a_classifier_is_read(tmp_path, model):
    path = tmp_path / "pvt_v2_b2.pth"
    published = create("polyp-pvt").backbone.state_dict()
    torch.save({**published, "head.weight": torch.zeros(1000, 512), "head.bias": torch.zeros(1000)}, path)
    started = create("polyp-pvt", backbone=path)
    assert all(torch.equal(each, published[name]) for name, each in started.backbone.state_dict().items())


def test_another_backbone_is_refused(tmp_path, model):
    path = tmp_path / "backbone.pth"
    weights = model.backbone.state_dict()
    torch.save({name: each for name, each in weights.items() if "block3.5" not in name}, path)
    with pytest.raises(WrongContentError, match=r"the backbone of 'polyp-pvt', .*missing: block3\.5\.norm1"):
        load_backbone(model, path)


def test_a_whole_network_is_no_backbone(tmp_path, model):
    path = tmp_path / "PolypPVT.pth"
    torch.save(model.state_dict(), path)
    with pytest.raises(WrongContentError, match=r"those of 'polyp-pvt': create\('polyp-pvt', weights="):
        create("polyp-pvt", backbone=path)
    with pytest.raises(WrongContentError, match=r"the weights of 'unext'.*those of 'polyp-pvt'"):
        create("unext", weights=path)


def test_images_of_another_layout_are_refused(model):
    with pytest.raises(ParameterError, match="multiples of 32"):
        model(torch.zeros(1, 3, 350, 350))


def test_training_lowers_the_loss():
    torch.manual_seed(0)
    target = (torch.rand(2, 1, 64, 64) > 0.5).float()
    assert_learns(create("polyp-pvt"), torch.rand(2, 3, 64, 64), target, rate=0.01)
