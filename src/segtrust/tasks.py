"""The path of `segtrust.paper.tasks` in release 0.1, for the tasks of others that import it from here."""

from segtrust.paper.tasks import *  # noqa: F403
from segtrust.paper.tasks import __all__ as __all__
