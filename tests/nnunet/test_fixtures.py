"""The kept files of a run are as nnU-Net wrote them, small, and say nothing of a machine."""

import gzip
import re
import zipfile

import pytest

from tests.nnunet.contract import NnunetContract
from tests.nnunet.fixtures import FIXTURES, kept_run
from tests.nnunet.scored import ScoredContract

pytestmark = pytest.mark.needs("SimpleITK")

FILES = sorted(path for path in FIXTURES.rglob("*") if path.is_file())
MOST_BYTES = 1_500_000
PATH = re.compile(rb"(?<![\w.-])/(?!data/)(?:[\w.-]+/)+[\w.-]+")


@pytest.fixture(scope="module")
def run():
    return kept_run


class TestFixtures(NnunetContract, ScoredContract):
    pass


def content(path):
    """What a file holds, unpacked."""
    if path.suffix == ".gz":
        return gzip.decompress(path.read_bytes())
    if path.suffix == ".npz":
        return b"\n".join(name.encode() for name in zipfile.ZipFile(path).namelist())
    return path.read_bytes()


def test_kept_files_are_small():
    assert sum(path.stat().st_size for path in FILES) < MOST_BYTES


@pytest.mark.parametrize("path", [path for path in FILES if path.suffix != ".md"], ids=lambda path: path.name)
def test_no_path_of_a_machine_is_kept(path):
    assert not PATH.findall(content(path))
