"""Settings by name, in the manner of scikit-learn: ``get_params``, ``set_params`` and ``clone``."""

from __future__ import annotations

from dataclasses import MISSING, Field, fields, is_dataclass, replace
from typing import Any, ClassVar, Self

from segtrust.errors import ParameterError

__all__ = ["HasParams"]


class HasParams:
    """What scikit-learn asks of an estimator, for frozen dataclasses.

    Nothing in them changes, so `set_params` gives a new one where scikit-learn's changes its own and gives
    that; code that goes on with what it gets, as scikit-learn's does, works with both.
    """

    _learned: ClassVar[tuple[str, ...]] = ()
    """Fields that are no settings: `fit` fills them, and other settings would make them wrong."""

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Give the settings by name; ``deep`` is there for scikit-learn, and makes no difference."""
        listed: tuple[Field[Any], ...] = fields(self) if is_dataclass(self) else ()
        hidden = {*self._learned, "used_ids"}
        return {each.name: getattr(self, each.name) for each in listed if each.name not in hidden}

    def set_params(self, **params: Any) -> Self:
        """Give one with other settings; what was learned with those before is forgotten."""
        unknown = [name for name in params if name not in self.get_params()]
        if unknown:
            known = ", ".join(self.get_params()) or "none"
            raise ParameterError(
                f"{unknown[0]}: expected a setting of {type(self).__name__}, which has {known}."
            )
        return self._with({**self._forgotten(), **params}) if params else self

    def __sklearn_clone__(self) -> Self:
        """Give what ``sklearn.base.clone`` asks for: the same settings, without what was learned."""
        return self._with(self._forgotten())

    def _with(self, values: dict[str, Any]) -> Self:
        return replace(self, **values) if values else self  # type: ignore[type-var]

    def _forgotten(self) -> dict[str, Any]:
        """Give the fields that hold what was learned as they are before."""
        found = {each.name: each for each in fields(self)} if self._learned else {}  # type: ignore[arg-type]
        return {name: _default_of(found[name]) for name in self._learned}


def _default_of(each: Any) -> Any:
    return each.default_factory() if each.default is MISSING else each.default
