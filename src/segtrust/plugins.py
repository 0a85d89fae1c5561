"""What other packages add: estimators, readers and tasks that they offer through entry points.

Nothing is looked for until a name is asked for that segtrust itself does not have, and then once. Own names
win. Whatever is wrong with a package is told where somebody uses it, and stops nothing else.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from multiprocessing import parent_process
from typing import Any

from segtrust.errors import PluginError

__all__ = ["GROUPS", "Plugin", "clashes_of", "find_plugin", "offers", "plugin_names", "tell_once"]

GROUPS = ("estimators", "readers", "tasks")
"""Kinds of things that may be added; their entry points are in ``segtrust.estimators`` and so on."""
_LOG = logging.getLogger("segtrust")


@dataclass(frozen=True)
class Plugin:
    """Something that a package offers.

    Attributes
    ----------
    group
        One of `GROUPS`.
    name
        Under which it is asked for; of a reader the ending of its files, without the dot.
    package, version
        That offer it.
    target
        Where it is in the package, ``module:attribute``.
    """

    group: str
    name: str
    package: str
    version: str
    target: str
    _entry: EntryPoint = field(repr=False, compare=False)

    def __str__(self) -> str:
        """Name it for errors."""
        return f"{self.package} {self.version} ({self.group[:-1]} {self.name!r}, {self.target})"

    def load(self, make: Callable[[Any], Any]) -> Any:
        """Import it and make of it what is wanted; whatever goes wrong there names the package.

        Parameters
        ----------
        make
            Checks what was imported and gives what is used of it.
        """
        try:
            return make(self._entry.load())
        except (Exception, SystemExit) as error:
            raise PluginError(
                f"{self}: {_told(error)}. Mend or upgrade the package, or remove it: pip uninstall "
                f"{self.package}."
            ) from error


def _told(error: BaseException) -> str:
    """Say what went wrong; errors of segtrust are sentences already."""
    said = str(error).rstrip(".")
    return said if isinstance(error, PluginError) else f"expected to be loaded, got {_kind(error)}{said}"


def _kind(error: BaseException) -> str:
    return f"{type(error).__name__}: " if str(error) else type(error).__name__


@cache
def offers(group: str) -> tuple[Plugin, ...]:
    """Give all that installed packages offer of a kind, in the order of their names; nothing is imported.

    Examples
    --------
    >>> all(each.group == "readers" for each in offers("readers"))
    True
    """
    found = {_plugin(group, entry) for entry in entry_points(group=f"segtrust.{group}")}
    return tuple(sorted(found, key=lambda each: (each.name, each.package, each.target)))


def _plugin(group: str, entry: EntryPoint) -> Plugin:
    about: Any = {}
    with suppress(Exception):  # a package may be half removed; its entry point is listed all the same
        about = entry.dist.metadata if entry.dist is not None else {}
    package, version = (str(about.get(key) or f"(no {key.lower()})") for key in ("Name", "Version"))
    return Plugin(group, entry.name, package, version, entry.value, entry)


def _by_name(group: str) -> Mapping[str, list[Plugin]]:
    found: dict[str, list[Plugin]] = {}
    for each in offers(group):
        found.setdefault(each.name, []).append(each)
    return found


def plugin_names(group: str, own: Collection[str]) -> list[str]:
    """Give the names that packages add to one's own; who clashes with those, or with another, is told once.

    Parameters
    ----------
    group
        One of `GROUPS`.
    own
        Names that segtrust itself has, which nobody replaces.
    """
    for text in clashes_of(group, own).values():
        tell_once(text)
    return [name for name in _by_name(group) if name not in own]


def clashes_of(group: str, own: Collection[str]) -> dict[Plugin, str]:
    """Say of what packages offer under a name that is taken why it is not used."""
    found = {}
    for name, several in _by_name(group).items():
        for each in several:
            if name in own:
                found[each] = f"{each}: segtrust has {name!r} itself, and its own is used."
            elif len(several) > 1:
                others = ", ".join(str(other) for other in several if other != each)
                found[each] = f"{each}: also offered by {others}; none is used. Remove one of them."
    return found


def find_plugin(group: str, name: str) -> Plugin | None:
    """Give who offers a name that segtrust does not have; ``None`` for nobody.

    Raises
    ------
    PluginError
        If several do: nobody could tell which is meant.
    """
    found = _by_name(group).get(name, [])
    if len(found) > 1:
        listed = ", ".join(map(str, found))
        raise PluginError(
            f"{group[:-1]} {name!r}: expected one package that offers it, got {listed}. Remove all but one: "
            "pip uninstall."
        )
    return found[0] if found else None


@cache
def tell_once(text: str) -> None:
    """Write a warning to the log, once, and not from each of the processes that work side by side."""
    if parent_process() is None:
        _LOG.warning("%s", text)
