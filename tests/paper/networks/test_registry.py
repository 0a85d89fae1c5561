"""Networks by name, and what is told of names and options that do not exist."""

import subprocess
import sys

import pytest

from segtrust.errors import MissingExtraError, ParameterError, UnknownNameError
from segtrust.paper.networks import NAMES, create, create_ensemble, training_loss

torch_needed = pytest.mark.needs("torch")


def python(code: str) -> str:
    command = [sys.executable, "-c", code]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def test_listing_the_networks_loads_no_torch():
    loaded = "{'torch', 'monai'} & {*sys.modules}"
    code = f"import sys; from segtrust.paper import networks; print(len(networks.NAMES), *{loaded})"
    assert python(code) == str(len(NAMES))


@pytest.mark.parametrize("make", [create, training_loss])
def test_unknown_name_lists_the_known_ones(make):
    with pytest.raises(UnknownNameError) as error:
        make("unxt")
    assert all(name in str(error.value) for name in NAMES)


@pytest.mark.parametrize("use", [lambda: create("unext"), lambda: training_loss("unext")])
def test_without_torch_the_extra_is_named(monkeypatch, use):
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(MissingExtraError, match=r"segtrust\[torch\]"):
        use()


def test_unknown_attribute_is_an_attribute_error():
    import segtrust.paper.networks

    assert not hasattr(segtrust.paper.networks, "UNeXt")


@torch_needed
def test_unknown_option_lists_the_known_ones():
    with pytest.raises(ParameterError, match=r"clases: unknown option of the network 'unext'; .*weights"):
        create("unext", clases=2)


@torch_needed
def test_weights_hold_the_backbone():
    with pytest.raises(ParameterError, match="expected one of them"):
        create("unext", weights="a.pth", backbone="b.pth")


@torch_needed
def test_public_names_resolve():
    import segtrust.paper.networks

    assert all(getattr(segtrust.paper.networks, name) is not None for name in segtrust.paper.networks.__all__)


@torch_needed
def test_ensemble_is_the_mean_of_its_members(tmp_path):
    import torch

    images, paths = torch.rand(2, 3, 32, 32), [tmp_path / f"{seed}.pth" for seed in range(3)]
    for path in paths:
        torch.save(create("unext").state_dict(), path)
    each = [create("unext", weights=path).probabilities(images) for path in paths]
    ensemble = create_ensemble("unext", paths)
    torch.testing.assert_close(ensemble.probabilities(images), torch.stack(each).mean(0))
    assert ensemble.probabilities(images, size=(64, 48)).shape == (2, 64, 48)


@torch_needed
def test_an_ensemble_has_members():
    with pytest.raises(ParameterError, match="at least one"):
        create_ensemble("unext", [])
