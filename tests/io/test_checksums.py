"""Checksums of files, stamps that show a change, and the memory of a case."""

import gzip
import hashlib
import os
import zlib

import numpy as np
import pytest

from segtrust.engine.questions import find_copies
from segtrust.errors import DamagedFileError
from segtrust.io.array_ref import ArrayRef
from segtrust.io.case_files import CaseFiles
from segtrust.io.checksums import (
    check_unchanged,
    checksum_of,
    checksum_of_all,
    memory_of,
    stamp_files,
    stamps_of,
)

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
    assert checksum_of(write(WORDS)) == f"crc32:{zlib.crc32(WORDS):08x}"
    assert checksum_of(write(b"")) == "crc32:00000000"


def test_gzip_files_keep_their_own(write):
    assert checksum_of(write(gzip.compress(WORDS), "a.nii.gz")) == f"gzip-crc32:{zlib.crc32(WORDS):08x}"
    noise = np.random.default_rng(0).bytes(100_000)
    assert checksum_of(write(gzip.compress(noise), "a.gz")) == f"gzip-crc32:{zlib.crc32(noise):08x}"


def test_of_several_members_the_last_does_not_stand_for_all(write):
    """Tools that pack in blocks end with an empty one."""
    noise = np.random.default_rng(0).bytes(5000)
    for first, second in ((noise, noise[::-1]), (WORDS[:50], WORDS[1:51])):
        one, other = (
            checksum_of(write(gzip.compress(each) + gzip.compress(b""))) for each in (first, second)
        )
        assert one.startswith("sha256:")
        assert one != other


@pytest.mark.parametrize("length", [2, 7, 8, 17])
def test_gzip_files_cut_off_have_one_too(write, length):
    content = gzip.compress(WORDS)[:length]
    assert checksum_of(write(content, "a.nii.gz")) == f"sha256:{hashlib.sha256(content).hexdigest()}"


def test_archives_are_told_by_what_their_directory_says(tmp_path):
    path, other = tmp_path / "a.npz", tmp_path / "b.npz"
    values = np.arange(100.0)
    np.savez_compressed(path, p=values)
    np.savez(other, p=values)
    assert checksum_of(path) == checksum_of(other)
    assert checksum_of(path).startswith("zip-crc32:")
    np.savez(other, q=values)
    assert checksum_of(path) != checksum_of(other)
    np.savez(other, p=values[::-1])
    assert checksum_of(path) != checksum_of(other)
    np.savez(other, p=values, q=values)
    assert checksum_of(path) != checksum_of(other)


def test_a_damaged_archive_is_told(write):
    path = write(b"PK\3\4 words", "a.npz")
    with pytest.raises(DamagedFileError, match=f"^{path}: expected an archive"):
        checksum_of(path)


def test_sha256_is_that_of_the_file(write):
    assert checksum_of(write(WORDS), "sha256") == f"sha256:{hashlib.sha256(WORDS).hexdigest()}"


def test_large_folders_have_no_quick_one(write, tmp_path, monkeypatch):
    write(WORDS, "store/a")
    assert checksum_of(tmp_path / "store").startswith("folder-crc32:")
    monkeypatch.setattr("segtrust.io.checksums._LARGEST_STORE", len(WORDS) - 1)
    assert checksum_of(tmp_path / "store") == ""
    assert checksum_of_all([tmp_path / "store", tmp_path / "store"]) == ""


@pytest.mark.needs("zarr")
def test_copies_of_a_store_are_recognised(tmp_path):
    import zarr

    p = np.random.default_rng(0).random((40, 50)).astype(np.float32)
    for name, values in {"a": p, "copy": p, "other": p / 2}.items():
        zarr.save_array(tmp_path / f"{name}.zarr", values)
    rows = [
        {"case": name, "k": 3, "checksum": checksum_of(tmp_path / f"{name}.zarr")}
        for name in ("a", "copy", "other")
    ]
    assert find_copies(rows).groups == (("a", "copy"),)


@pytest.mark.parametrize("kind", ["quick", "sha256"])
def test_folders_are_told_apart_by_names_and_contents(write, tmp_path, kind):
    def of(**files):
        folder = tmp_path / str(len(list(tmp_path.iterdir())))
        for name, content in files.items():
            write(content, f"{folder.name}/{name}")
        return checksum_of(folder, kind)

    first = of(a=b"x", b=b"y")
    assert first == of(b=b"y", a=b"x")
    assert first != of(a=b"x", c=b"y")
    assert first != of(a=b"x", b=b"z")
    assert first != of(a=b"x")
    assert first != of(a=b"xb\0y")
    assert first != of(a=b"xb\x001\0y")


@pytest.mark.parametrize("kind", ["quick", "sha256"])
def test_what_a_link_leads_to_outside_of_a_folder_is_no_part_of_it(write, tmp_path, kind):
    within, outside = write(b"1", "store/a"), write(b"2", "secret")
    alone = checksum_of(tmp_path / "store", kind)
    (tmp_path / "store/b").symlink_to(outside)
    assert checksum_of(tmp_path / "store", kind) == alone
    (tmp_path / "store/c").symlink_to(within)
    assert checksum_of(tmp_path / "store", kind) != alone


def test_an_absent_file_is_an_error_of_the_system(tmp_path):
    with pytest.raises(FileNotFoundError):
        checksum_of(tmp_path / "absent.npy")


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
        found.append((checksum_of(path, kind), stamps_of([CaseFiles("a", ArrayRef(path))])["a"]))
    assert found[0][0] != found[1][0]
    assert found[0][1] != found[1][1]


@pytest.mark.parametrize("kind", ["quick", "sha256"])
@pytest.mark.parametrize("name", ["a.hdr", "a.img"])
def test_of_a_pair_both_files_count(write, name, kind):
    paths = {each: write(WORDS, each) for each in ("a.hdr", "a.img")}
    before = checksum_of(paths[name], kind)
    for each in paths:
        write(WORDS + b".", each)
        assert checksum_of(paths[name], kind) != before
        write(WORDS, each)
    assert checksum_of(paths[name], kind) == before


def stamp(path):
    return stamps_of([CaseFiles("a", ArrayRef(path))])["a"]


@pytest.mark.needs("nibabel")
@pytest.mark.parametrize(("given", "changed"), [("a.hdr", "a.img"), ("a.img", "a.hdr")])
def test_either_file_of_a_nifti_pair(tmp_path, given, changed):
    import nibabel

    image = nibabel.Nifti1Pair(np.zeros((4, 5, 6), np.float32), np.eye(4))
    nibabel.save(image, tmp_path / "a.hdr")
    before = stamp(tmp_path / given)
    assert stamp(tmp_path / given) == before
    with (tmp_path / changed).open("ab") as file:
        file.write(b"more")
    assert stamp(tmp_path / given) != before


def test_a_file_whose_partner_is_not_there(tmp_path):
    (tmp_path / "a.hdr").write_bytes(b"header")
    assert stamp(tmp_path / "a.hdr")["files"][0][1] == 6


@pytest.mark.needs("h5py")
@pytest.mark.parametrize("kind", ["quick", "sha256"])
def test_files_that_hdf5_links_to_count(tmp_path, kind):
    import h5py

    def write(name, key, value):
        with h5py.File(tmp_path / name, "w") as file:
            file[key] = value

    write("second.h5", "q", np.full((4, 5), 0.25, np.float32))
    write("first.h5", "p", h5py.ExternalLink("second.h5", "q"))
    write("top.h5", "p", h5py.ExternalLink("first.h5", "p"))
    before = checksum_of(tmp_path / "top.h5", kind), stamp(tmp_path / "top.h5")
    assert (checksum_of(tmp_path / "top.h5", kind), stamp(tmp_path / "top.h5")) == before
    write("second.h5", "q", np.full((4, 5), 0.75, np.float32))
    assert checksum_of(tmp_path / "top.h5", kind) != before[0]
    assert stamp(tmp_path / "top.h5") != before[1]


@pytest.mark.parametrize("change", ["written", "longer", "removed", "replaced"])
def test_a_file_that_changes_while_it_is_read_is_an_error(write, tmp_path, change):
    refs = [ArrayRef(write(WORDS, "a.npy")), None, ArrayRef(write(WORDS, "b.npy"))]
    stamps = stamp_files(refs)
    check_unchanged(refs, stamps)
    path = refs[2].path
    if change == "removed":
        path.unlink()
    elif change == "replaced":
        write(WORDS, "c.npy").replace(path)
        os.utime(path, ns=(1, 1))
    else:
        path.write_bytes(WORDS + b"." * (change == "longer"))
        os.utime(path, ns=(2, 2))
    with pytest.raises(DamagedFileError, match=f"^{path}: .* it changed"):
        check_unchanged(refs, stamps)


# Memory

P = np.zeros((4, 100, 100), np.float32)


def memory(path, **others):
    return memory_of(CaseFiles("a", ArrayRef(path), **others))


def test_plain_arrays_take_their_size(tmp_path):
    np.save(tmp_path / "a.npy", P)
    assert P.nbytes <= memory(tmp_path / "a.npy") / 2 <= P.nbytes + 256


def test_packed_arrays_take_what_they_unpack_to(tmp_path):
    np.savez_compressed(tmp_path / "a.npz", p=P, small=P[0])
    assert P.nbytes <= memory(tmp_path / "a.npz") / 2 <= P.nbytes + 256
    (tmp_path / "a.nii.gz").write_bytes(gzip.compress(P.tobytes()))
    assert memory(tmp_path / "a.nii.gz") == 2 * P.nbytes


def test_of_nnunet_one_channel_is_in_memory_at_a_time(tmp_path):
    np.savez_compressed(tmp_path / "a.npz", probabilities=P[:, None])
    assert P.nbytes / 4 <= memory(tmp_path / "a.npz") / 2 <= P.nbytes / 4 + 256


def test_masks_and_truths_count(tmp_path):
    np.save(tmp_path / "a.npy", P)
    place = ArrayRef(tmp_path / "a.npy")
    assert memory(tmp_path / "a.npy", mask=place, truth=place) == 3 * memory(tmp_path / "a.npy")


@pytest.mark.parametrize("ending", [".zarr", ".ome.zarr", ".h5", ".hdf5"])
def test_stores_are_read_piece_by_piece(tmp_path, ending):
    assert memory(tmp_path / f"a{ending}") == 2 * (256 << 20)


@pytest.mark.parametrize("content", [b"", b"\x1f\x8b", b"PK\3\4 words", b"\x1f\x8b\xff"])
def test_what_is_damaged_says_so_itself(tmp_path, content):
    path = tmp_path / "a.npz"
    path.write_bytes(content)
    assert memory(path) <= 2 * len(content)


def test_what_is_no_file_takes_nothing(tmp_path):
    assert memory(tmp_path) == memory(tmp_path / "absent.npy") == 0


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes here")
def test_a_pipe_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "a.npy")
    assert memory(tmp_path / "a.npy") == 0
