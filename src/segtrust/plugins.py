"""Plug-ins: estimators, readers and tasks that other packages add through entry points.

Packages are searched once, when a name is requested that segtrust itself does not have. The names of segtrust
take precedence. A problem with a plug-in is reported where it is used and stops nothing else.
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

__all__ = [
    "GROUPS",
    "Plugin",
    "find_clashes",
    "find_plugin",
    "installed_plugins",
    "plugin_names",
    "warn_once",
]

GROUPS = ("estimators", "readers", "tasks")
"""Kinds of plug-ins; their entry points are in ``segtrust.estimators`` and so on."""
_LOG = logging.getLogger("segtrust")


@dataclass(frozen=True)
class Plugin:
    """An estimator, reader or task of another package.

    Attributes
    ----------
    group
        One of `GROUPS`.
    name
        Name under which it is used; for a reader the suffix of its files, without the dot.
    package, version
        Package that provides it, and its version.
    target
        Its location in the package, ``module:attribute``.
    """

    group: str
    name: str
    package: str
    version: str
    target: str
    _entry: EntryPoint = field(repr=False, compare=False)

    def __str__(self) -> str:
        """Return how errors name the plug-in."""
        return f"{self.package} {self.version} ({self.group[:-1]} {self.name!r}, {self.target})"

    def load(self, make: Callable[[Any], Any]) -> Any:
        """Import the plug-in and return what is made of it; an error names the package.

        Parameters
        ----------
        make
            Function that checks the imported object and returns what segtrust uses of it.
        """
        try:
            return make(self._entry.load())
        except (Exception, SystemExit) as error:
            reason = str(error).rstrip(".")
            if not isinstance(error, PluginError):  # whose text is a sentence already
                kind = type(error).__name__
                reason = f"expected to be loaded, got {kind}: {reason}".removesuffix(": ")
            raise PluginError(
                f"{self}: {reason}. Fix or upgrade the package, or remove it: pip uninstall {self.package}."
            ) from error


@cache
def installed_plugins(group: str) -> tuple[Plugin, ...]:
    """Return the plug-ins of one kind in all installed packages, sorted by name; nothing is imported.

    Examples
    --------
    >>> all(plugin.group == "readers" for plugin in installed_plugins("readers"))
    True
    """
    plugins = set()
    for entry in entry_points(group=f"segtrust.{group}"):
        metadata: Any = {}
        with suppress(Exception):  # a package may be half removed; its entry point is still listed
            metadata = entry.dist.metadata if entry.dist is not None else {}
        package, version = (str(metadata.get(key) or f"(no {key.lower()})") for key in ("Name", "Version"))
        plugins.add(Plugin(group, entry.name, package, version, entry.value, entry))
    return tuple(sorted(plugins, key=lambda plugin: (plugin.name, plugin.package, plugin.target)))


def _by_name(group: str) -> Mapping[str, list[Plugin]]:
    plugins: dict[str, list[Plugin]] = {}
    for plugin in installed_plugins(group):
        plugins.setdefault(plugin.name, []).append(plugin)
    return plugins


def plugin_names(group: str, own: Collection[str]) -> list[str]:
    """Return the names that plug-ins add; a plug-in whose name is taken is reported once in the log.

    Parameters
    ----------
    group
        One of `GROUPS`.
    own
        Names that segtrust itself has, which no plug-in replaces.
    """
    for problem in find_clashes(group, own).values():
        warn_once(problem)
    return [name for name in _by_name(group) if name not in own]


def find_clashes(group: str, own: Collection[str]) -> dict[Plugin, str]:
    """Return the plug-ins that are not used because their name is taken, each with the reason."""
    clashes = {}
    for name, plugins in _by_name(group).items():
        for plugin in plugins:
            if name in own:
                clashes[plugin] = f"{plugin}: segtrust has {name!r} itself, and its own is used."
            elif len(plugins) > 1:
                others = ", ".join(str(other) for other in plugins if other != plugin)
                clashes[plugin] = f"{plugin}: also offered by {others}; none is used. Remove one of them."
    return clashes


def find_plugin(group: str, name: str) -> Plugin | None:
    """Return the plug-in with a name that segtrust itself does not have; ``None`` if there is none.

    Raises
    ------
    PluginError
        If several packages have one of this name.
    """
    plugins = _by_name(group).get(name, [])
    if len(plugins) > 1:
        packages = ", ".join(map(str, plugins))
        raise PluginError(
            f"{group[:-1]} {name!r}: expected one package that offers it, got {packages}. "
            "Remove all but one: pip uninstall."
        )
    return plugins[0] if plugins else None


@cache
def warn_once(text: str) -> None:
    """Write a warning to the log once, and not from each worker process."""
    if parent_process() is None:
        _LOG.warning("%s", text)
