"""What all networks have in common."""

import pytest

from segtrust.errors import ParameterError, WrongContentError

pytestmark = [pytest.mark.slow, pytest.mark.needs("torch", "monai")]


def test_layers_that_are_frozen_stay_so():
    import torch

    from segtrust.paper.networks import create

    model = create("unext").train()
    model.ebn1.eval()
    model.probabilities(torch.zeros(1, 3, 32, 32))
    assert model.training
    assert model.ebn2.training
    assert not model.ebn1.training


@pytest.mark.parametrize(
    "wrong", [{"windows_at_once": 0}, {"window": 96.0}, {"window": 40}, {"overlap": 1.0}]
)
def test_options_of_windows_that_mean_nothing(wrong):
    from segtrust.paper.networks import create

    with pytest.raises(ParameterError, match=f"{next(iter(wrong))}: expected"):
        create("shifts-unet", **wrong)


def test_volumes_with_channels_are_told_as_they_were_given():
    import torch

    from segtrust.paper.networks import create

    with pytest.raises(ParameterError, match=r"expected \(N, 1, D, H, W\), got \(1, 2, 40, 40, 40\)"):
        create("shifts-unet").probabilities(torch.zeros(1, 2, 40, 40, 40))


@pytest.mark.parametrize("kind", ["nan", "integers", "sparse", "meta"])
def test_tensors_that_cannot_be_weights_change_nothing(kind, tmp_path):
    import torch

    from segtrust.paper.networks import create, load_weights

    weights = create("unext").state_dict()
    last = next(name for name in reversed(weights) if weights[name].is_floating_point())
    bad = {
        "nan": lambda each: each * float("nan"),
        "integers": lambda each: each.int(),
        "sparse": lambda each: each.to_sparse(),
        "meta": lambda each: each.to("meta"),
    }[kind]
    torch.save({**weights, last: bad(weights[last])}, tmp_path / "bad.pth")
    model = create("unext")
    before = {name: each.clone() for name, each in model.state_dict().items()}
    with pytest.raises(WrongContentError, match="expected finite numbers in all tensors"):
        load_weights(model, tmp_path / "bad.pth")
    assert all(torch.equal(each, before[name]) for name, each in model.state_dict().items())


def test_numbers_of_numpy_beside_the_weights_are_no_danger(tmp_path):
    import numpy as np
    import torch

    from segtrust.paper.networks import create, load_weights

    content = {"state_dict": create("unext").state_dict(), "best_dice": np.float64(0.7), "epoch": np.int64(3)}
    torch.save(content, tmp_path / "model.pth")
    load_weights(create("unext"), tmp_path / "model.pth")


def test_a_weight_that_is_no_number_is_not_blamed_on_ties(tmp_path):
    import torch

    from segtrust.paper.networks import create, load_weights

    model = create("segtran")
    weights = model.state_dict()
    weights["backbone._conv_stem.weight"][0] = float("nan")
    torch.save(weights, tmp_path / "model.pth")
    with pytest.raises(WrongContentError, match="_conv_stem"):
        load_weights(model, tmp_path / "model.pth")
