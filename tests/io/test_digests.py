"""Fingerprints tell files apart."""

import gzip
import hashlib
import zlib

import numpy as np
import pytest

from segtrust.errors import DamagedFileError
from segtrust.io.cases import CaseFiles
from segtrust.io.digests import digest_of
from segtrust.io.places import Place
from segtrust.io.stamps import stamps_of

WORDS = b"a map, a mask, a truth; " * 100


@pytest.fixture
def write(tmp_path):
    def written(content, name="a.bin"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        return path

    return written


def test_plain_files_have_the_checksum_of_zlib(write):
    assert digest_of(write(WORDS)) == f"crc32:{zlib.crc32(WORDS):08x}"
    assert digest_of(write(b"")) == "crc32:00000000"


def test_gzip_files_keep_their_own(write):
    assert digest_of(write(gzip.compress(WORDS), "a.nii.gz")) == f"gzip-crc32:{zlib.crc32(WORDS):08x}"
    noise = np.random.default_rng(0).bytes(100_000)
    assert digest_of(write(gzip.compress(noise), "a.gz")) == f"gzip-crc32:{zlib.crc32(noise):08x}"


def test_of_several_members_the_last_does_not_stand_for_all(write):
    """Tools that pack in blocks end with an empty one."""
    noise = np.random.default_rng(0).bytes(5000)
    for first, second in ((noise, noise[::-1]), (WORDS[:50], WORDS[1:51])):
        one, other = (digest_of(write(gzip.compress(each) + gzip.compress(b""))) for each in (first, second))
        assert one.startswith("sha256:")
        assert one != other


@pytest.mark.parametrize("length", [2, 7, 8, 17])
def test_gzip_files_cut_off_have_one_too(write, length):
    content = gzip.compress(WORDS)[:length]
    assert digest_of(write(content, "a.nii.gz")) == f"sha256:{hashlib.sha256(content).hexdigest()}"


def test_archives_are_told_by_what_their_directory_says(tmp_path):
    path, other = tmp_path / "a.npz", tmp_path / "b.npz"
    values = np.arange(100.0)
    np.savez_compressed(path, p=values)
    np.savez(other, p=values)
    assert digest_of(path) == digest_of(other)
    assert digest_of(path).startswith("zip-crc32:")
    np.savez(other, q=values)
    assert digest_of(path) != digest_of(other)
    np.savez(other, p=values[::-1])
    assert digest_of(path) != digest_of(other)
    np.savez(other, p=values, q=values)
    assert digest_of(path) != digest_of(other)


def test_a_damaged_archive_is_told(write):
    path = write(b"PK\3\4 words", "a.npz")
    with pytest.raises(DamagedFileError, match=f"^{path}: expected an archive"):
        digest_of(path)


def test_sha256_is_that_of_the_file(write):
    assert digest_of(write(WORDS), "sha256") == f"sha256:{hashlib.sha256(WORDS).hexdigest()}"


def test_folders_have_no_quick_one(tmp_path):
    assert digest_of(tmp_path) == ""


def test_folders_are_told_apart_by_names_and_contents(write, tmp_path):
    def of(**files):
        folder = tmp_path / str(len(list(tmp_path.iterdir())))
        for name, content in files.items():
            write(content, f"{folder.name}/{name}")
        return digest_of(folder, "sha256")

    first = of(a=b"x", b=b"y")
    assert first == of(b=b"y", a=b"x")
    assert first != of(a=b"x", c=b"y")
    assert first != of(a=b"x", b=b"z")
    assert first != of(a=b"x")
    assert first != of(a=b"xb\0y")
    assert first != of(a=b"xb\x001\0y")


def test_what_a_link_leads_to_outside_of_a_folder_is_no_part_of_it(write, tmp_path):
    within, outside = write(b"1", "store/a"), write(b"2", "secret")
    alone = digest_of(tmp_path / "store", "sha256")
    (tmp_path / "store/b").symlink_to(outside)
    assert digest_of(tmp_path / "store", "sha256") == alone
    (tmp_path / "store/c").symlink_to(within)
    assert digest_of(tmp_path / "store", "sha256") != alone


def test_an_absent_file_is_an_error_of_the_system(tmp_path):
    with pytest.raises(FileNotFoundError):
        digest_of(tmp_path / "absent.npy")


@pytest.mark.needs("SimpleITK")
@pytest.mark.parametrize("ending", [".mhd", ".nhdr"])
@pytest.mark.parametrize("kind", ["quick", "sha256"])
def test_pixels_in_another_file_count(tmp_path, ending, kind):
    import SimpleITK

    path = tmp_path / f"a{ending}"
    found = []
    for value in (0.25, 0.5):
        image = SimpleITK.GetImageFromArray(np.full((4, 5, 6), value, np.float32))
        SimpleITK.WriteImage(image, str(path))
        found.append((digest_of(path, kind), stamps_of([CaseFiles("a", Place(path))])["a"]))
    assert found[0][0] != found[1][0]
    assert found[0][1] != found[1][1]


@pytest.mark.parametrize("kind", ["quick", "sha256"])
@pytest.mark.parametrize("name", ["a.hdr", "a.img"])
def test_of_a_pair_both_files_count(write, name, kind):
    paths = {each: write(WORDS, each) for each in ("a.hdr", "a.img")}
    before = digest_of(paths[name], kind)
    for each in paths:
        write(WORDS + b".", each)
        assert digest_of(paths[name], kind) != before
        write(WORDS, each)
    assert digest_of(paths[name], kind) == before
