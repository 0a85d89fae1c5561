"""Options that the commands of ``segtrust nnunet`` share, named as nnU-Net names them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from segtrust.io import ModelChoice, NnunetTarget

__all__ = ["ModelFlags", "target_of"]


def _option(*names: str, help: str) -> Any:
    return typer.Option(*names, help=help, rich_help_panel="Which model, as for nnU-Net", show_default=False)


@dataclass(kw_only=True)
class ModelFlags:
    """Which model is meant."""

    configuration: Annotated[
        str, _option("--configuration", "-c", help="Such as 3d_fullres; not needed where there is one only.")
    ] = ""
    trainer: Annotated[str, _option("--trainer", "-tr", help="Class that trained it.")] = ""
    plans: Annotated[str, _option("--plans", "-p", help="Name of its plans.")] = ""
    fold: Annotated[str, _option("--fold", "-f", help="One, or several with commas: 0 or 0,1,2,3,4.")] = ""

    @property
    def choice(self) -> ModelChoice:
        """Which model was asked for."""
        from segtrust.io import ModelChoice

        return ModelChoice(self.configuration, self.trainer, self.plans)

    @property
    def folds(self) -> tuple[str, ...]:
        """Which of its folds; none where nothing was said."""
        from segtrust.io import parse_folds

        return parse_folds(self.fold)


def target_of(text: str) -> NnunetTarget:
    """Find out what a person means, with nnU-Net's variables as they are set."""
    from segtrust.io import Roots, find_target

    return find_target(text, Roots.from_environment())
