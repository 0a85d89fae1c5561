"""One drawn case that is spoilt: the right error comes, and it says where.

Each check gives a pair of what was spoilt and 0, or infinity where nothing was refused, something else was
raised, or the message does not name the place.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import segtrust as st
from segtrust import errors
from segtrust.confidence import assess_map
from tools.reliability.compared import estimators_of, source_of
from tools.reliability.random_cases import DrawnMap, DrawnTable, InChunks

__all__ = ["check_refused_map", "check_refused_table"]

Checks = Iterator[tuple[str, float]]
Rng = np.random.Generator

_BAD: dict[str, Callable[[Any], Any]] = {
    "NaN": lambda info: np.nan,
    "infinity": lambda info: np.inf,
    "minus infinity": lambda info: -np.inf,
    "hardly negative": lambda info: -info.smallest_subnormal,
    "hardly above 1": lambda info: 1 + info.eps,
    "logit": lambda info: -4.25,
    "8-bit level": lambda info: 255,
}


def _refused(call: Callable[[], object], error: type[Exception], words: str = "") -> float:
    """Give 0 where a call is refused as it should be."""
    try:
        call()
    except error as raised:
        return 0.0 if type(raised) is error and words in str(raised) else math.inf
    except Exception:  # noqa: BLE001 - whatever else it is, it is wrong
        return math.inf
    return math.inf


def _with(drawn: DrawnMap, **changed: Any) -> DrawnMap:
    return DrawnMap(**{**vars(drawn), **changed})


def _spoilt(p: Any, at: tuple[int, ...], value: Any) -> Any:
    """Put a value into a copy that lies in memory as the map does."""
    if isinstance(p, InChunks):
        return InChunks(_spoilt(p.values, at, value), p.chunks)
    copy = np.copy(p, order="K")
    copy[at] = value
    return copy


def check_refused_map(drawn: DrawnMap, rng: Rng) -> Checks:
    """Spoil a map, its mask or a setting, one after the other."""
    shape, dtype = tuple(drawn.p.shape), np.dtype(drawn.p.dtype)
    if dtype.kind == "f":
        yield from _check_bad_value(drawn, shape, rng)
    plain = drawn.p.values if isinstance(drawn.p, InChunks) else drawn.p
    signed = _with(drawn, p=np.zeros(shape, rng.choice(["int8", "int32", "int64"])))
    yield "refused: signed integers", _refused(lambda: source_of(signed).count(), errors.ProbabilityTypeError)
    larger = _with(drawn, mask=np.zeros((*shape, 2), bool))
    yield "refused: shape of a mask", _refused(lambda: source_of(larger).count(), errors.MaskShapeError)
    wrong = np.zeros(shape, rng.choice(["uint8", "float32"]))
    wrong[tuple(rng.integers(0, shape))] = rng.choice([2, 255])
    odd = _with(drawn, mask=wrong)
    yield "refused: values of a mask", _refused(lambda: source_of(odd).count(), errors.NotBinaryError)
    value = float(rng.choice([np.nan, np.inf, -0.1, 1.5]))
    yield (
        "refused: threshold",
        _refused(lambda: st.soft_dice_confidence(plain, threshold=value), errors.ParameterError),
    )
    yield (
        "refused: no pixels",
        _refused(lambda: st.soft_dice_confidence(np.zeros((*shape, 0))), errors.EmptyArrayError),
    )


def _check_bad_value(drawn: DrawnMap, shape: tuple[int, ...], rng: Rng) -> Checks:
    """Put one bad value anywhere: every estimator refuses it, alone and with the others."""
    at = tuple(int(i) for i in rng.integers(0, shape))
    named = at or (0,)  # a number counts as a line of one pixel
    name = str(rng.choice(list(_BAD)))
    value = _BAD[name](np.finfo(drawn.p.dtype))
    spoilt = _with(drawn, p=_spoilt(drawn.p, at, value))
    all_of_them = estimators_of(drawn)
    one = all_of_them[int(rng.integers(len(all_of_them)))]
    for estimators in ([one], all_of_them):
        yield (
            f"refused: {name}",
            _refused(
                lambda chosen=estimators: _scores_of(spoilt, chosen),
                errors.ProbabilityRangeError,
                f"at index {named}",
            ),
        )


def _scores_of(drawn: DrawnMap, estimators: Any) -> object:
    if len(estimators) > 1:
        return assess_map(source_of(drawn), estimators)
    if drawn.path == "arrays":
        return assess_map(source_of(drawn), estimators)
    return st.score(drawn.p, drawn.mask, estimators, threshold=drawn.threshold)


def check_refused_table(drawn: DrawnTable, rng: Rng) -> Checks:
    """Spoil confidences, losses, weights or their number."""
    confidence, loss, n = drawn.confidence, drawn.loss, drawn.loss.size
    at = int(rng.integers(n))
    bad, negative = loss.copy(), loss.copy()
    bad[at] = rng.choice([np.nan, np.inf, -np.inf])
    negative[at] = rng.choice([-1e-300, -1.0])
    weights = np.ones(n)
    weights[at] = -1e-300
    curve, value, place = st.risk_coverage_curve, errors.CaseValueError, f"for case {at}"
    tried = {
        "confidence": (lambda: curve(bad, loss), value, place),
        "loss": (lambda: curve(confidence, bad), value, place),
        "negative loss": (lambda: curve(confidence, negative), value, place),
        "negative weight": (lambda: curve(confidence, loss, weights=weights), value, place),
        "no weight": (lambda: curve(confidence, loss, weights=np.zeros(n)), value, "weights"),
        "length": (lambda: curve(confidence, loss[1:]), errors.CaseLengthError, "loss"),
        "one case": (lambda: curve(confidence[:1], loss[:1]), errors.TooFewCasesError, "2"),
        "failure": (lambda: st.failure_detection(bad, loss, cutoff=0.5), value, place),
    }
    for name, (call, error, words) in tried.items():
        yield f"refused: {name} of cases", _refused(call, error, words)
