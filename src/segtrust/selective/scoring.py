"""How confidences are made, as a policy records it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from segtrust.errors import ParameterError, PluginError, UnknownNameError
from segtrust.saved import plain
from segtrust.selective.seen import used_names

__all__ = ["Scoring"]

_DECODINGS = ("threshold", "dice-optimal")


@dataclass(frozen=True)
class Scoring:
    """How the confidences were made that a policy was calibrated on, and must be made where it is used.

    Attributes
    ----------
    estimator, parameters
        Name of the estimator and what it was fitted or set to, as plain values.
    empty
        The empty-mask policy, ``"paper"`` or ``"agree"``; that of the estimator where its parameters say one.
    recalibration
        The recalibration of the maps as plain values; ``None`` where maps are scored as they are. The ids
        that it has learned from (``used_ids``) are compared with the calibration cases when a policy is made,
        and then left out: they do not change a confidence, and a policy holds no id in the clear.
    predictor
        Which model made the maps, in words: a fold and an ensemble of folds are different predictors.
    decode
        How masks were made where none was delivered: ``"threshold"`` or ``"dice-optimal"``.
    seen_ids
        Ids of the cases that the estimator and the recalibration have learned from, gathered from the
        ``used_ids`` of both; a policy does not keep them.

    Examples
    --------
    >>> Scoring("tla", {"tau": 0.3}).estimator
    'tla'
    """

    estimator: str
    parameters: Mapping[str, Any] = field(default_factory=dict)
    empty: str = "paper"
    recalibration: Mapping[str, Any] | None = None
    predictor: str = ""
    decode: str = "threshold"
    seen_ids: frozenset[str] = field(default=frozenset(), repr=False, compare=False)

    @classmethod
    def of(cls, estimator: Any, **about: Any) -> Scoring:
        """Describe scoring by an estimator; ``about`` are the other attributes.

        Examples
        --------
        >>> from segtrust.confidence import PatchLevel
        >>> Scoring.of(PatchLevel(size=20), predictor="fold 0").parameters
        {'size': 20}
        """
        if isinstance(estimator, str) or not hasattr(estimator, "parameters"):
            raise ParameterError(
                f"estimator: expected an estimator, such as get_estimator('sdc'), got {estimator!r}."
            )
        learned = {"used_ids": getattr(estimator, "used_ids", ())}
        return cls(estimator.name, {**estimator.parameters, **learned}, **about)

    def __post_init__(self) -> None:
        """Check the values and keep copies of them."""
        if not isinstance(self.estimator, str) or not self.estimator:
            raise ParameterError(f"estimator: expected a name, got {self.estimator!r}.")
        if not isinstance(self.predictor, str):
            raise ParameterError(f"predictor: expected a name, or nothing, got {self.predictor!r}.")
        if self.decode not in _DECODINGS:
            raise ParameterError(f"decode: expected {' or '.join(_DECODINGS)}, got {self.decode!r}.")
        learned = _ids_in(self.parameters, "parameters") | _ids_in(self.recalibration or {}, "recalibration")
        object.__setattr__(self, "seen_ids", used_names(self.seen_ids) | learned)
        parameters = _copied(self.parameters, "parameters")
        object.__setattr__(self, "empty", _empty_of(self.empty, parameters.pop("empty", None)))
        object.__setattr__(self, "parameters", parameters)
        if self.recalibration is not None:
            object.__setattr__(self, "recalibration", _copied(self.recalibration, "recalibration"))

    def difference(self, other: Scoring) -> tuple[str, Any, Any] | None:
        """Give the first attribute in which confidences would differ, with both values; not the predictor.

        What is not said of an estimator is what is usual for it, and from how many cases a recalibration was
        learned makes no difference.

        Examples
        --------
        >>> Scoring("pla").difference(Scoring("pla", {"size": 10})) is None
        True
        >>> Scoring("pla").difference(Scoring("pla", {"size": 20}))
        ('parameters', {'size': 10}, {'size': 20})
        """
        ours, theirs = _effective(self), _effective(other)
        names = (name for name in ours if ours[name] != theirs[name])
        return next(((name, ours[name], theirs[name]) for name in names), None)


def _effective(scoring: Scoring) -> dict[str, Any]:
    recalibration = scoring.recalibration
    return {
        "estimator": scoring.estimator,
        "parameters": {**_usual(scoring.estimator), **scoring.parameters},
        "empty": scoring.empty,
        "decode": scoring.decode,
        "recalibration": recalibration and {k: v for k, v in recalibration.items() if k != "n_cases"},
    }


def _usual(estimator: str) -> dict[str, Any]:
    """Give the parameters that an estimator has unless others are said; none if it is not known here."""
    from segtrust.confidence.registry import get_estimator

    try:
        parameters = get_estimator(estimator).parameters
    except (UnknownNameError, PluginError):
        return {}
    return {key: value for key, value in parameters.items() if key not in ("empty", "used_ids")}


def _empty_of(said: Any, of_estimator: Any) -> str:
    """Give the empty-mask policy; where the estimator has one of its own, that."""
    found = said if of_estimator is None else of_estimator
    if found not in ("paper", "agree"):
        raise ParameterError(f"empty: expected 'paper' or 'agree', got {found!r}.")
    if said not in ("paper", found):
        raise ParameterError(f"empty: the estimator has {str(found)!r}, got {str(said)!r}. Say it once.")
    return str(found)


def _ids_in(values: Any, name: str) -> frozenset[str]:
    if not isinstance(values, Mapping):
        raise ParameterError(f"{name}: expected a mapping of plain values, got {values!r}.")
    return used_names(values.get("used_ids", ()))


def _copied(values: Any, name: str) -> dict[str, Any]:
    """Give plain values without ids."""
    found: dict[str, Any] = plain({key: value for key, value in values.items() if key != "used_ids"}, name)
    return found
