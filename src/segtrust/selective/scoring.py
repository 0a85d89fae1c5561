"""How confidences are made, as a policy records it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from segtrust.errors import ParameterError
from segtrust.saved import plain

__all__ = ["Scoring"]


@dataclass(frozen=True)
class Scoring:
    """How the confidences were made that a policy was calibrated on, and must be made where it is used.

    Attributes
    ----------
    estimator, parameters
        Name of the estimator and what it was fitted or set to, as plain values.
    empty
        The empty-mask policy, ``"paper"`` or ``"agree"``.
    recalibration
        The recalibration of the maps as plain values; ``None`` where maps are scored as they are. The ids
        that it has learned from (``used_ids``) are left out: they do not change a confidence, and a policy
        holds no id in the clear.
    predictor
        Which model made the maps, in words: a fold and an ensemble of folds are different predictors.

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
        return cls(estimator.name, estimator.parameters, **about)

    def __post_init__(self) -> None:
        """Check the values and keep copies of them."""
        if not isinstance(self.estimator, str) or not self.estimator:
            raise ParameterError(f"estimator: expected a name, got {self.estimator!r}.")
        if not isinstance(self.predictor, str):
            raise ParameterError(f"predictor: expected a name, or nothing, got {self.predictor!r}.")
        if self.empty not in ("paper", "agree"):
            raise ParameterError(f"empty: expected 'paper' or 'agree', got {self.empty!r}.")
        object.__setattr__(self, "empty", str(self.empty))
        object.__setattr__(self, "parameters", _copied(self.parameters, "parameters"))
        if self.recalibration is not None:
            object.__setattr__(self, "recalibration", _copied(self.recalibration, "recalibration"))


def _copied(values: Any, name: str) -> dict[str, Any]:
    """Give plain values without ids."""
    if not isinstance(values, Mapping):
        raise ParameterError(f"{name}: expected a mapping of plain values, got {values!r}.")
    found: dict[str, Any] = plain({key: value for key, value in values.items() if key != "used_ids"}, name)
    return found
