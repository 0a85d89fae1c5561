"""What several tests of files share."""

from importlib import import_module

import pytest

from segtrust.io.formats import _deflate


@pytest.fixture(
    params=[pytest.param(name, marks=pytest.mark.needs(name.split(".")[0])) for name in _deflate._NAMES]
)
def library(request, monkeypatch):
    """Each library that unpacks deflate streams, in turn."""
    found = import_module(request.param)
    monkeypatch.setattr(_deflate, "deflate_library", lambda: found)
    return found


@pytest.fixture
def folder(tmp_path):
    """Make files, whose content does not matter, and give their folder."""

    def made(*names, inside="maps"):
        for name in names:
            path = tmp_path / inside / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch()
        return tmp_path / inside

    return made
