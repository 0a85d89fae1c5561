"""``speed``: one table of what users do most, each in units of what they would write themselves."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from importlib.util import find_spec
from typing import Any

import numpy as np

import segtrust as st
from benchmarks.kernels import SHAPE, all_estimators, logit_normal_volume
from benchmarks.process import first_calls
from benchmarks.timing import Ratio, shortest_times
from segtrust.demo.lesions import mostly_empty_volume

__all__ = ["plain_classes", "plain_soft_dice", "sharp_object", "smooth_object", "speed_sections"]

_FORMULA = "NumPy formula"
_SHORT = 1e-3
"""Seconds that a measurement takes at least: calls of a few microseconds are repeated."""


def plain_soft_dice(p: Any, mask: Any = None) -> Any:
    """Compute the SDC as one would write it, with boolean indexing."""
    mask = p >= 0.5 if mask is None else mask
    s = p[mask].sum()
    return 2 * s / (mask.sum() + p.sum())


def plain_batch(p: Any) -> Any:
    """Compute the SDC of each map of a batch in three lines."""
    mask = p >= 0.5
    s = (p * mask).sum((1, 2))
    return 2 * s / (mask.sum((1, 2)) + p.sum((1, 2)))


def plain_classes(p: Any) -> list[Any]:
    """Compute the SDC of each class but the first, with sums in floats: those of half floats overflow."""
    labels = np.argmax(p, axis=0)
    found = []
    for number in range(1, p.shape[0]):
        channel, mask = p[number], labels == number
        s = channel[mask].sum(dtype=np.float32)
        found.append(2 * s / (mask.sum() + channel.sum(dtype=np.float32)))
    return found


def smooth_object(side: int) -> Any:
    """Return a map of one round object with a soft edge, float32."""
    y, x = np.mgrid[:side, :side]
    radius = np.hypot(y - side / 2, x - side / 2)
    return (1.0 / (1.0 + np.exp((radius - side / 5) / (side / 40)))).astype(np.float32)


def sharp_object(side: int) -> Any:
    """Return a map of one round object whose edge is a few pixels wide at any size, float32."""
    y, x = np.mgrid[:side, :side]
    distance = np.hypot(y - side / 2, x - side / 2) - side / 4
    return (1.0 / (1.0 + np.exp(distance))).astype(np.float32)


def _small_maps() -> dict[str, Callable[[int], Any]]:
    return {
        "one object": smooth_object,
        "sharp object": sharp_object,
        "noise": lambda side: logit_normal_volume((side, side)),
    }


_Run = Callable[[], Any]


def _row(what: str, against: str, of: str, runs: tuple[_Run, _Run], limit: float, rounds: int) -> Ratio:
    """Time the first of two functions against the second."""
    times = shortest_times({"ours": runs[0], "yardstick": runs[1]}, rounds=rounds, least=_SHORT)
    return Ratio(what, against, of, times["ours"], times["ours"] / times["yardstick"], f"<= {limit:g}")


def small_maps(*, rounds: int) -> Iterator[Ratio]:
    """Time SDC and IDC of single images against the formula of the SDC."""
    for name, make in _small_maps().items():
        for side in (16, 64, 256, 512):
            p = make(side)
            mask, of = p >= 0.5, f"{side}² float32, {name}"
            plain = _bind(plain_soft_dice, p)
            yield _row("SDC", _FORMULA, of, (_bind(st.soft_dice_confidence, p), plain), 1.0, rounds)
            runs = _bind(st.soft_dice_confidence, p, mask), _bind(plain_soft_dice, p, mask)
            yield _row("SDC", _FORMULA, f"{of}, bool mask", runs, 1.2, rounds)
            if side in (64, 512):
                limit = 3.0 if side == 64 else 1.0
                yield _row("IDC", _FORMULA, of, (_bind(st.ideal_dice_confidence, p), plain), limit, rounds)


def volumes(*, rounds: int) -> Iterator[Ratio]:
    """Time the SDC, and all estimators, of volumes against ``numpy.sum``."""
    for name, p in {"noise": logit_normal_volume(), "mostly empty": mostly_empty_volume(SHAPE)}.items():
        mask, double, of = p >= 0.5, p.astype(np.float64), f"155×240×240, {name}"
        runs = _bind(st.soft_dice_confidence, p), p.sum
        yield _row("SDC", "numpy.sum", f"{of}, float32", runs, 1.4, rounds)
        runs = _bind(st.soft_dice_confidence, p, mask), p.sum
        yield _row("SDC", "numpy.sum", f"{of}, float32, bool mask", runs, 1.8, rounds)
        runs = _bind(st.soft_dice_confidence, double), double.sum
        yield _row("SDC", "numpy.sum", f"{of}, float64", runs, 1.6, rounds)
        runs = _bind(st.assess, p, None, all_estimators()), p.sum
        yield _row("all estimators and bounds", "numpy.sum", f"{of}, float32", runs, 22.0, rounds)


def tensors(*, rounds: int) -> Iterator[Ratio]:
    """Time tensors on the CPU without gradient against the arrays on the same memory."""
    import torch

    for side in (16, 64, 256, 512):
        p = smooth_object(side)
        tensor, of = torch.from_numpy(p), f"{side}² float32, one object"
        for what, score in {"SDC": st.soft_dice_confidence, "IDC": st.ideal_dice_confidence}.items():
            runs = {"tensor": _bind(score, tensor), "array": _bind(score, p)}
            times = shortest_times(runs, rounds=rounds, least=_SHORT)
            small = side < 256
            unit = times["array"] + (6e-6 if small else 0.0)
            against, limit = ("the array + 6 µs", 1.0) if small else ("the array", 1.15)
            ratio = times["tensor"] / unit
            yield Ratio(f"{what} of a tensor", against, of, times["tensor"], ratio, f"<= {limit:g}")


def batches(*, rounds: int) -> Iterator[Ratio]:
    """Time the SDC of batches against three lines of vectorised NumPy."""
    for side in (64, 256):
        p = logit_normal_volume((1000, side, side))
        runs = _bind(st.score_batch, p, None, ["sdc"]), _bind(plain_batch, p)
        turns = rounds if side == 64 else min(rounds, 2)
        yield _row(
            "score_batch, SDC", "three lines of NumPy", f"1000×{side}² float32, noise", runs, 0.8, turns
        )


def classes(*, side: int) -> Iterator[Ratio]:
    """Time the SDC of the classes of a softmax, checks included, against ``numpy.argmax`` and a loop."""
    p = softmax_of_labels(101, side)
    names = ["background", *(f"organ {number}" for number in range(1, 101))]
    runs = _bind(st.score_classes, p, names, None, ["sdc"]), _bind(plain_classes, p)
    against = "numpy.argmax and a loop"
    times = shortest_times({"ours": runs[0], "yardstick": runs[1]}, rounds=1)
    ratio = times["ours"] / times["yardstick"]
    of = f"101×{side}³ float16, no mask, one thread"
    yield Ratio("score_classes, SDC", against, of, times["ours"], ratio, "<= 0.2")


def softmax_of_labels(count: int, side: int) -> Any:
    """Return a softmax of half floats: cubes of one class each, which has a probability of 0.9."""
    labels = np.random.default_rng(0).integers(0, count, (-(-side // 8),) * 3)
    for axis in range(3):
        labels = labels.repeat(8, axis).take(range(side), axis)
    p = np.full((count, side, side, side), 0.1 / (count - 1), np.float16)
    for number in range(count):
        p[number][labels == number] = 0.9
    return p


def _bind(function: Callable[..., Any], *arguments: Any) -> Callable[[], Any]:
    return lambda: function(*arguments)


def speed_sections(*, rounds: int, side: int) -> Iterator[tuple[str, Iterable[Any]]]:
    """Measure section by section; a title and its rows each."""
    yield "One image", small_maps(rounds=rounds)
    yield "Volumes, one thread", volumes(rounds=rounds)
    if find_spec("torch"):
        from benchmarks.torch_module import module_ratio

        yield "Tensors on the CPU without gradient", tensors(rounds=rounds)
        yield "Module, forward and backward", [module_ratio(rounds=rounds)]
    yield "Batches", batches(rounds=rounds)
    yield "Classes", classes(side=side)
    yield "First call in a process, kernels cached, imports included", first_calls()
