"""Readers keep the contract, and the contract notices one that does not."""

import struct

import numpy as np
import pytest

from segtrust.errors import WrongContentError
from segtrust.io import Reader, Volume
from segtrust.io.volume import READERS
from segtrust.testing import ReaderContract

OWN = {reader.name: reader for reader in READERS}


class TestNpy(ReaderContract):
    reader, ending = OWN["NumPy array"], ".npy"

    def write(self, path, values):
        np.save(path, values)

    def hostile(self, folder):
        path = folder / "harm.npy"
        np.save(path, np.array([{}], object), allow_pickle=True)
        yield path
        header = "{'descr': '<f4', 'fortran_order': False, 'shape': (99999999, 99999999), }".ljust(117) + "\n"
        path.write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode())
        yield path


class TestNpz(ReaderContract):
    reader, ending = OWN["NumPy archive"], ".npz"

    def write(self, path, values):
        np.savez_compressed(path, probs=values)


@pytest.mark.needs("nibabel")
class TestNifti(ReaderContract):
    reader, ending = OWN["NIfTI"], ".nii.gz"

    def write(self, path, values):
        import nibabel

        nibabel.save(nibabel.Nifti1Image(values.T, np.eye(4)), path)


@pytest.mark.needs("SimpleITK")
class TestMha(ReaderContract):
    reader, ending = OWN["MetaImage or NRRD"], ".mha"

    def write(self, path, values):
        import SimpleITK

        SimpleITK.WriteImage(SimpleITK.GetImageFromArray(values), str(path))


def open_careless(path, key):
    """Reads what is there, and fills up with zeros what is not."""
    head, data = path.read_bytes()[:12], path.read_bytes()[12:]
    if len(head) < 12:
        raise WrongContentError(f"{path}: expected more.")
    shape = struct.unpack("<3I", head)
    shape = shape[1:] if shape[0] == 0 else shape
    if min(shape) == 0:
        shape = (1, 1)
    if np.prod(shape) > 1e6:
        raise WrongContentError(f"{path}: expected less.")
    values = np.zeros(int(np.prod(shape)), "<f4")
    found = np.frombuffer(data[: len(data) // 4 * 4], "<f4")
    values[: found.size] = found[: values.size]
    return Volume(path, shape, np.dtype("<f4"), lambda channel: values.reshape(shape))


class Careless(ReaderContract):
    reader, ending = Reader("careless", lambda path, head: True, open_careless), ".raw"

    def write(self, path, values):
        shape = (0, *values.shape) if values.ndim == 2 else values.shape
        path.write_bytes(struct.pack("<3I", *shape) + values.tobytes())


def test_the_contract_notices_zeros_in_place_of_pixels():
    contract = Careless()
    contract.test_gives_back_what_was_written()
    with pytest.raises(AssertionError, match=r"read \d+% of a file"):
        contract.test_a_file_that_ends_too_early_is_refused()


def test_the_contract_notices_strangers_that_are_read():
    with pytest.raises(AssertionError, match="read zeros as a map"):
        Careless().test_leaves_files_of_others_alone()
