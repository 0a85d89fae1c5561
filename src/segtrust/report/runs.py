"""A folder that tells how its results were made."""

from __future__ import annotations

import json
import platform
from collections.abc import Mapping
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

__all__ = ["write_run"]


def write_run(folder: Path, *, command: str, parameters: Mapping[str, Any], seconds: float) -> None:
    """Write ``run.json``: what was run, with what, when, and how long it took."""
    folder.mkdir(parents=True, exist_ok=True)
    run = {
        "command": command,
        "parameters": dict(parameters),
        "seconds": round(seconds, 1),
        "finished": datetime.now(UTC).isoformat(timespec="seconds"),
        "versions": {
            "python": platform.python_version(),
            **{name: version(name) for name in ("segtrust", "numpy", "scipy", "numba")},
        },
    }
    (folder / "run.json").write_text(json.dumps(run, indent=2) + "\n", encoding="utf-8")
