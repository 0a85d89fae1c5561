"""The commands ``segtrust reproduce`` and ``segtrust tasks``."""

from __future__ import annotations

from segtrust.paper.commands.reproduce import reproduce_app
from segtrust.paper.commands.tasks import tasks_app

__all__ = ["reproduce_app", "tasks_app"]
