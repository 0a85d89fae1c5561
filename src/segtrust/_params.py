"""Settings by name, as scikit-learn expects them: ``get_params``, ``set_params`` and ``clone``."""

from __future__ import annotations

from dataclasses import MISSING, Field, fields, is_dataclass, replace
from typing import Any, ClassVar, Self

from segtrust.errors import ParameterError

__all__ = ["HasParams"]


class HasParams:
    """Mixin with the parameter methods of a scikit-learn estimator, for a frozen dataclass.

    The dataclass never changes, so `set_params` returns a new object where scikit-learn changes the old one
    and returns it; code that continues with the returned object, as scikit-learn's does, works with both.
    """

    _learned: ClassVar[tuple[str, ...]] = ()
    """Fields that are not settings: `fit` sets them, and they would be wrong with other settings.

    A value that can be passed or learned (size, weight, tau) counts as a setting.
    """

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the settings by name; ``deep`` exists for scikit-learn and has no effect."""
        all_fields: tuple[Field[Any], ...] = fields(self) if is_dataclass(self) else ()
        hidden = {*self._learned, "used_ids"}
        return {field.name: getattr(self, field.name) for field in all_fields if field.name not in hidden}

    def set_params(self, **params: Any) -> Self:
        """Return a copy with other settings and without what was learned with the old ones."""
        known = self.get_params()
        for name in params:
            if name not in known:
                raise ParameterError(
                    f"{name}: expected a setting of {type(self).__name__}, "
                    f"which has {', '.join(known) or 'none'}."
                )
        return replace(self, **{**self._unlearned(), **params}) if params else self  # type: ignore[type-var]

    def __sklearn_clone__(self) -> Self:
        """Return what ``sklearn.base.clone`` needs: the same settings without what was learned."""
        values = self._unlearned()
        return replace(self, **values) if values else self  # type: ignore[type-var]

    def _unlearned(self) -> dict[str, Any]:
        """Return the learned fields with their defaults."""
        if not self._learned:
            return {}
        learned = [field for field in fields(self) if field.name in self._learned]  # type: ignore[arg-type]
        defaults = {}
        for field in learned:
            make = field.default_factory
            defaults[field.name] = field.default if make is MISSING else make()
        return defaults
