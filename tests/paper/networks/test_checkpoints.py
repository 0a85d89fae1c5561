"""Checkpoints: published forms are read, nothing in them is run, and a wrong one is told by its names."""

import os
import pickle
from argparse import Namespace
from importlib.util import find_spec

import pytest

from segtrust.errors import (
    DamagedFileError,
    ParameterError,
    UnknownFormatError,
    UnsafeFileError,
    WrongContentError,
)
from segtrust.paper.networks import create

pytestmark = pytest.mark.needs("torch")
if find_spec("torch"):  # elsewhere the mark skips every test
    import torch

    from segtrust.paper.networks import load_backbone, load_weights
    from segtrust.paper.networks.checkpoints import read_weights


class Code:
    """Leaves a file behind when it is unpickled."""

    def __init__(self, path) -> None:
        self.path = path

    def __reduce__(self):
        return os.mkdir, (str(self.path),)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.pth"


@pytest.fixture(scope="module")
def weights():
    return create("unext").state_dict()


FORMS = {
    "bare": lambda weights: weights,
    "plain": dict,
    "state_dict": lambda weights: {"state_dict": weights, "epoch": 3},
    "model_state_dict": lambda weights: {"model_state_dict": weights, "loss": 0.5},
    "model": lambda weights: {"iter_num": 7000, "model": weights, "args": Namespace(lr=2e-4, gpu=[0, 1])},
    "parallel": lambda weights: {f"module.{name}": each for name, each in weights.items()},
    "parallel inside": lambda weights: {"net": {f"module.{name}": each for name, each in weights.items()}},
    "without counters": lambda weights: {
        name: each for name, each in weights.items() if not name.endswith("num_batches_tracked")
    },
}


@pytest.mark.parametrize("archive", [True, False], ids=["zip", "older form"])
@pytest.mark.parametrize("form", FORMS)
def test_published_forms_are_read(path, weights, form, archive):
    torch.save(FORMS[form](weights), path, _use_new_zipfile_serialization=archive)
    model = create("unext", weights=path)
    assert all(torch.equal(each, weights[name]) for name, each in model.state_dict().items())


def test_weights_keep_the_type_of_the_network(path, weights):
    torch.save({name: each.half() for name, each in weights.items()}, path)
    model = create("unext").double()
    load_weights(model, path)
    assert model.final.weight.dtype is torch.float64
    assert torch.equal(model.final.weight, weights["final.weight"].half().double())


def test_first_names_that_differ_are_told(path, weights):
    changed = {f"x.{name}" if "encoder" in name else name: each for name, each in weights.items()}
    changed["final.weight"] = torch.zeros(2, 16, 1, 1)
    torch.save(changed, path)
    with pytest.raises(WrongContentError) as error:
        create("unext", weights=path)
    told = str(error.value)
    assert told.startswith(f"{path}: expected the weights of 'unext', got others: ")
    assert "missing: encoder1.weight, encoder1.bias, encoder2.weight and 3 more; " in told
    assert "unexpected: x.encoder1.weight, " in told
    assert "of another shape: final.weight (2, 16, 1, 1) for (1, 16, 1, 1). " in told


def test_a_refused_checkpoint_changes_nothing(path, weights):
    model = create("unext")
    before = {name: each.clone() for name, each in model.state_dict().items()}
    torch.save({name: each for name, each in weights.items() if name != "final.bias"}, path)
    with pytest.raises(WrongContentError, match=r"missing: final\.bias\. Give the checkpoint of this very"):
        load_weights(model, path)
    assert all(torch.equal(each, before[name]) for name, each in model.state_dict().items())


@pytest.mark.parametrize("archive", [True, False], ids=["zip", "older form"])
def test_code_is_not_run(tmp_path, path, weights, archive):
    canary = tmp_path / "canary"
    torch.save({**weights, "more": Code(canary)}, path, _use_new_zipfile_serialization=archive)
    with pytest.raises(UnsafeFileError, match=r"got \w+\.mkdir\. A checkpoint can run code"):
        create("unext", weights=path)
    assert not canary.exists()


def test_a_whole_module_is_not_unpickled(path):
    torch.save(torch.nn.Linear(2, 2), path)
    with pytest.raises(UnsafeFileError, match=r"got torch\.nn\.modules\.linear\.Linear\..*state dict alone"):
        create("unext", weights=path)


@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
def test_other_pickles_are_refused_and_not_run(tmp_path, path, protocol):
    canary = tmp_path / "canary"
    path.write_bytes(pickle.dumps({"a": Code(canary)}, protocol))
    with pytest.raises((UnsafeFileError, DamagedFileError), match=r"model\.pth: expected"):
        create("unext", weights=path)
    assert not canary.exists()


@pytest.mark.parametrize("archive", [True, False], ids=["zip", "older form"])
@pytest.mark.parametrize("part", [0.01, 0.5, 0.999])
def test_truncated_files_are_damaged(path, weights, archive, part):
    torch.save(weights, path, _use_new_zipfile_serialization=archive)
    content = path.read_bytes()
    path.write_bytes(content[: int(part * len(content))])
    with pytest.raises(DamagedFileError, match=r"model\.pth: .* cannot be read .* compare its size"):
        create("unext", weights=path)


def test_garbled_values_are_damaged(path, weights):
    torch.save(weights, path)
    content = bytearray(path.read_bytes())
    place = content.index(weights["encoder1.weight"].numpy().tobytes()[:16])
    content[place] ^= 0xFF
    path.write_bytes(content)
    with pytest.raises(DamagedFileError, match=r"checksum of .* does not fit"):
        create("unext", weights=path)


@pytest.mark.parametrize(
    "content", [b"", b"<html><body>Not found", b"version https://git-lfs.github.com/spec/v1"]
)
def test_what_is_no_checkpoint_is_told_by_its_first_bytes(path, content):
    path.write_bytes(content)
    with pytest.raises(UnknownFormatError) as error:
        create("unext", weights=path)
    assert repr(content[:16]) in str(error.value)


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ([1, 2], "got list"),
        ({}, "got an empty mapping"),
        ({"epoch": 3, "lr": 0.1}, "got a mapping with 'epoch', 'lr'"),
        ({"state_dict": {"a": 1}}, "got a mapping with 'a'"),
    ],
)
def test_what_holds_no_tensors_is_told(path, content, told):
    torch.save(content, path)
    with pytest.raises(WrongContentError, match=f"expected tensors by name, {told}"):
        read_weights(path)


@pytest.mark.filterwarnings("ignore:.*torch.jit:DeprecationWarning")
def test_a_torchscript_archive_is_refused(path):
    torch.jit.trace(torch.nn.Linear(2, 2), torch.zeros(1, 2)).save(str(path))
    with pytest.raises(DamagedFileError, match="TorchScript"):
        read_weights(path)


def test_a_missing_file_is_a_missing_file(path):
    with pytest.raises(FileNotFoundError, match=r"model\.pth"):
        create("unext", weights=path)


def test_a_network_without_backbone_says_so(path):
    with pytest.raises(ParameterError, match="'unext' has none"):
        load_backbone(create("unext"), path)
