"""The page of the review desk in distributions: when it is built, and what is said where it cannot be."""

import importlib.util
import json
import os
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.fixture
def hook():
    spec = importlib.util.spec_from_file_location("hatch_web", ROOT / "tools/hatch_web.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def checkout(hook, tmp_path):
    """A folder with all sources of a page, and the page built a moment later."""
    for name in ("web/src/main.tsx", *(f"web/{each}" for each in hook._SOURCE_FILES), hook._PAGE):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("")
        os.utime(path, (1000, 1000))
    return tmp_path


def test_page_as_old_as_its_sources_is_kept(hook, checkout):
    assert hook.is_current(checkout)
    assert not hook.build(checkout)


def test_younger_source_outdates_the_page(hook, checkout):
    os.utime(checkout / "web/src/main.tsx", (2000, 2000))
    assert not hook.is_current(checkout)


def test_checkout_without_the_sources_of_the_page_builds_nothing(hook, tmp_path):
    assert not hook.build(tmp_path)


@pytest.mark.parametrize(
    ("version", "found"), [(None, "none"), ("v18.19.0", r"v18\.19\.0"), ("", "one without a version")]
)
def test_says_which_node_it_needs(hook, checkout, monkeypatch, version, found):
    (checkout / hook._PAGE).unlink()
    folder = checkout / "bin"
    folder.mkdir()
    for tool in () if version is None else ("node", "npm"):
        script = folder / tool
        script.write_text(f"#!/bin/sh\necho '{version}'\n")
        script.chmod(0o755)
    monkeypatch.setenv("PATH", str(folder))
    with pytest.raises(hook.NodeError, match=rf"expected Node 20\.19 or later, found {found}"):
        hook.build(checkout)


def test_versions_of_packages_are_exact_and_from_no_named_place():
    manifest = json.loads((ROOT / "web/package.json").read_text())
    lock = json.loads((ROOT / "web/package-lock.json").read_text())
    versions = {**manifest["dependencies"], **manifest["devDependencies"], **manifest["overrides"]}
    assert all(version[0].isdigit() for version in versions.values())
    packages = [each for name, each in lock["packages"].items() if name]
    assert all("integrity" in each and "resolved" not in each for each in packages)
