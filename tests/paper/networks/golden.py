"""The published networks' own numbers: names, shapes and outputs for tensors filled by a rule."""

import csv
import json
from collections.abc import Iterator
from pathlib import Path
from zlib import crc32

import numpy as np
import pytest
from numpy.random import RandomState

FOLDER = Path(__file__).parents[2] / "fixtures/models"
INPUT_SEED = 12345
STEP = 4
LIMITS = {("polyp-pvt", "P2"): 3e-4}
"""Where rounding in float32 moves more than elsewhere."""


def published_shapes(name: str) -> dict[str, tuple[int, ...]]:
    """Shapes of the tensors of a published checkpoint."""
    with (FOLDER / name / "state_dict.tsv").open() as file:
        rows = list(csv.DictReader(file, delimiter="\t"))
    return {row["name"]: () if row["shape"] == "scalar" else shape_of(row["shape"]) for row in rows}


def shape_of(text: str) -> tuple[int, ...]:
    return tuple(map(int, text.split(",")))


def golden(name: str) -> dict[str, np.ndarray]:
    with np.load(FOLDER / name / "golden.npz") as arrays:
        return dict(arrays)


def read_json(name: str, file: str) -> dict:
    return json.loads((FOLDER / name / file).read_text())


def images(*shape: int) -> np.ndarray:
    return RandomState(INPUT_SEED).standard_normal(shape).astype(np.float32)


def noise(name: str, shape: tuple[int, ...]) -> np.ndarray:
    seed = crc32(name.encode()) & 0x7FFFFFFF
    return RandomState(seed).standard_normal(int(np.prod(shape))).astype(np.float32).reshape(shape)


def scale_of(name: str, shape: tuple[int, ...], rule: dict) -> np.float32:
    found = next((part for prefix, part in rule.get("prefix", ()) if name.startswith(prefix)), rule)
    if found["kind"] == "fixed":
        return np.float32(found["scale"])
    return np.float32(found["gain"] / np.sqrt(np.prod(shape[1:])))


def filled(name: str, shape: tuple[int, ...], rule: dict) -> np.ndarray:
    """The values of one tensor."""
    if name.endswith("num_batches_tracked"):
        return np.zeros((), np.int64)
    z = noise(name, shape)
    if name.endswith("running_var"):
        return np.float32(1.0) + np.float32(0.1) * abs(z)
    return mean_of(name, shape) + deviation_of(name, shape, rule) * z


def mean_of(name: str, shape: tuple[int, ...]) -> np.float32:
    if len(shape) >= 2 or not name.endswith(".weight"):
        return np.float32(0.0)
    return np.float32(0.25 if is_slope(name, shape) else 1.0)


def deviation_of(name: str, shape: tuple[int, ...], rule: dict) -> np.float32:
    if len(shape) >= 2:
        return scale_of(name, shape, rule)
    return np.float32(0.05 if name.endswith((".weight", "running_mean")) else 0.02)


def is_slope(name: str, shape: tuple[int, ...]) -> bool:
    """Whether it is the slope of a PReLU."""
    return name.endswith(".A.weight") and shape == (1,)


def rule_of(name: str) -> dict:
    return json.loads((FOLDER / "rules.json").read_text())[name]


def filled_weights(name: str, rule: dict | None = None) -> Iterator[tuple[str, np.ndarray]]:
    """The values of all tensors of a published checkpoint."""
    for tensor, shape in published_shapes(name).items():
        yield tensor, filled(tensor, shape, rule or rule_of(name))


def golden_model(name: str, *, weights: dict[str, np.ndarray] | None = None, **options):
    """A network with the values of the rule, in evaluation mode."""
    import torch

    from segtrust.paper.networks import create

    with torch.device("meta"):  # random values would be thrown away
        model = create(name, **options)
    values = dict(filled_weights(name)) if weights is None else weights
    model.load_state_dict({each: torch.from_numpy(values[each]) for each in values}, assign=True)
    return model.eval()


def sampled(values) -> np.ndarray:
    """Every fourth element along the spatial axes, as the golden arrays have them."""
    return values[(..., *[slice(None, None, STEP)] * (values.ndim - 2))].numpy()


def outputs(model, *shape: int, dtype: str) -> list[np.ndarray]:
    """What a network gives for the golden images of this shape."""
    import torch

    kind = getattr(torch, dtype)
    with torch.inference_mode():
        found = model.to(kind)(torch.from_numpy(images(*shape)).to(kind))
    return list(found) if isinstance(found, tuple) else [found]


def assert_golden(found, name: str, key: str) -> None:
    """Within 1e-9 of the original in float64, and within 1e-5 + 1e-4 standard deviations in float32."""
    wide = str(found.dtype) == "torch.float64"
    expected = golden(name)[f"f64_{key}" if wide else key]
    about = read_json(name, "outputs.json")[key]
    limit = 1e-9 if wide else LIMITS.get((name, key), 1e-5 + 1e-4 * about["std"])
    assert list(found.shape) == about["shape"]
    assert abs(sampled(found) - expected).max() <= limit
    if wide:
        assert found.abs().sum().item() == pytest.approx(about["float64_sumabs"], rel=1e-11)
