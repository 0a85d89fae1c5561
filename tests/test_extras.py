"""The extras: those that messages name exist, and `all` holds what fits together."""

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
LEFT_OUT = {"all", "models", "docs", "dev", "nnunet", "totalsegmentator", "radiomics"}


def included(extra):
    """All extras that an extra installs, itself among them."""
    found = {extra}
    for requirement in EXTRAS[extra]:
        if match := re.fullmatch(r"segtrust\[(.*)\]", requirement):
            for name in match[1].split(","):
                found |= included(name)
    return found


def test_all_is_everything_that_fits_together():
    assert included("all") == set(EXTRAS) - LEFT_OUT | {"all"}


def test_models_is_still_an_extra():
    assert "torch" in included("models")
    assert any(requirement.startswith("monai") for name in included("models") for requirement in EXTRAS[name])


def test_messages_name_extras_that_exist():
    code = "\n".join(path.read_text() for path in (ROOT / "src").rglob("*.py"))
    named = set(re.findall(r'(?:extra=|install_hint\()"(\w+)"', code)) - {
        "none",
        "forbid",
    }  # a doctest, and pydantic
    assert {"torch", "plots"} <= named <= set(EXTRAS)
    assert "models" not in named
