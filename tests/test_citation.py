"""How the software and the paper are to be cited."""

from pathlib import Path

import pytest

import segtrust

pytestmark = pytest.mark.needs("yaml")
REQUIRED = {"cff-version", "message", "title", "authors"}


@pytest.fixture
def citation():
    import yaml

    return yaml.safe_load((Path(__file__).parents[1] / "CITATION.cff").read_text(encoding="utf-8"))


def test_what_the_format_requires_is_there(citation):
    assert citation.keys() >= REQUIRED
    assert citation["cff-version"] == "1.2.0"
    assert all({"name", "family-names"} & author.keys() for author in citation["authors"])


def test_it_is_of_this_version(citation):
    assert str(citation["version"]) == segtrust.__version__


def test_the_paper_is_cited(citation):
    (paper,) = citation["references"]
    assert paper.keys() >= {"type", "title", "authors", "year"}
    assert "2402.10665" in paper["url"]
    assert [author["family-names"] for author in paper["authors"]] == ["Borges", "Pacheco", "Silva"]
