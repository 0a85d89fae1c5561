"""How much memory a case will take."""

import gzip
import os

import numpy as np
import pytest

from segtrust.io.cases import CaseFiles
from segtrust.io.places import Place
from segtrust.io.sizes import memory_of

P = np.zeros((4, 100, 100), np.float32)


def memory(path, **others):
    return memory_of(CaseFiles("a", Place(path), **others))


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
    place = Place(tmp_path / "a.npy")
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
