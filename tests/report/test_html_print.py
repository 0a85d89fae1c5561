"""A report on paper: headings stay with what they are of, and rows of cards stay whole."""

import re
import subprocess

import pytest

from tests.report.runs import QUICK, run, section, words, write_manifest

pytestmark = [
    pytest.mark.slow,
    pytest.mark.needs("playwright", "chromium", "pdftotext", "matplotlib", "pyarrow"),
]
SETS = ("near", "far", "farther", "elsewhere")


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    """Of five sets, whose cards fill several pages."""
    folder = tmp_path_factory.mktemp("print")
    manifests = [write_manifest(folder / "data", name, 9, seed=at) for at, name in enumerate(("id", *SETS))]
    others = [f"{name}={path}" for name, path in zip(SETS, manifests[1:], strict=True)]
    options = [each for pair in others for each in ("--ood", pair)]
    run("evaluate", manifests[0], *options, "-o", folder / "run", *QUICK)
    return folder / "run/report.html"


@pytest.fixture(scope="module", params=["A4", "Letter"])
def pages(request, report, tool, browser, tmp_path_factory):
    """The text of each page."""
    path = tmp_path_factory.mktemp("pdf") / "report.pdf"
    page = browser.new_page()
    page.goto(report.as_uri())
    page.pdf(path=path, format=request.param)
    page.close()
    command = [tool("pdftotext"), "-layout", path, "-"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.split("\f")


def page_of(text, pages):
    (found,) = [
        at for at, page in enumerate(pages) if re.search(rf"(?<![\w/-]){re.escape(text)}(?!\w)", page)
    ]
    return found


def rows_of_cards(report):
    """Names of the cases in each row of cards, by set."""
    groups = section(report.read_text(), "cases").split('<section class="group">')[1:]
    kinds = [group.split('<section class="kind">')[1:] for group in groups]
    names = [[re.findall(r'<span class="case">(.*?)</span>', kind) for kind in group] for group in kinds]
    return [[[kind[row] for kind in group if len(kind) > row] for row in range(2)] for group in names]


def test_rows_of_cards_are_whole(report, pages):
    for group in rows_of_cards(report):
        for row in group:
            assert len({page_of(name, pages) for name in row}) == 1, row


def test_headings_are_on_the_page_of_their_cards(report, pages):
    firsts = [page_of(group[0][0], pages) for group in rows_of_cards(report)]
    assert len(firsts) == 1 + len(SETS)
    for at, page in enumerate(pages):
        assert words(page).count("Worst of the surer half") == firsts.count(at)


def test_no_title_is_at_the_foot(pages):
    for page in pages:
        last = page.strip().splitlines()[-1:]
        assert not re.fullmatch(
            r"(Best and worst cases|Tables|Settings|Data|To reproduce)", "".join(last).strip()
        )
