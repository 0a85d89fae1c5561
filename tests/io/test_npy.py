"""NumPy's own files, against NumPy."""

import random
from contextlib import suppress

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st
from hypothesis.extra import numpy as arrays

from segtrust.errors import DamagedFileError, ReadError, UnsafeFileError, WrongContentError
from segtrust.io.npy import MAGIC, header_of, open_npy, recognises_npy
from tests.io.zip_files import npy_bytes

in_folder = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
DTYPES = ("f2", "f4", "f8", ">f4", "u1", "u2", ">u2", "i1", "i8", "?")


def described(text: str, version: int = 1) -> bytes:
    """A header of any words."""
    length = len(text).to_bytes(2 if version == 1 else 4, "little")
    return MAGIC + bytes([version, 0]) + length + text.encode("latin-1")


def save(path, values):
    np.save(path, values)
    return path


@given(
    values=arrays.arrays(
        st.sampled_from(DTYPES), arrays.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=4)
    ),
    order=st.sampled_from("CF"),
)
@in_folder
def test_arrays_are_those_of_numpy(tmp_path, values, order):
    path = save(tmp_path / "a.npy", np.array(values, order=order))
    volume = open_npy(path)
    assert (volume.shape, volume.dtype, volume.has_channels, volume.grid) == (
        values.shape,
        values.dtype,
        None,
        None,
    )
    np.testing.assert_array_equal(volume.read(), values)
    if values.ndim > 2:
        for channel in range(values.shape[0]):
            np.testing.assert_array_equal(volume.read(channel), values[channel])


def test_pixels_stay_on_the_disk(tmp_path):
    assert isinstance(open_npy(save(tmp_path / "a.npy", np.zeros((3, 4, 5)))).read(), np.memmap)


def test_it_is_known_by_its_first_bytes(tmp_path):
    path = save(tmp_path / "a", np.zeros(3)).with_suffix(".npy")
    assert recognises_npy(path, path.read_bytes()[:512])
    assert not recognises_npy(path, b"PK\3\4")
    assert not recognises_npy(path, b"")


@pytest.mark.parametrize("version", [(1, 0), (2, 0), (3, 0)])
def test_all_versions_are_read(tmp_path, version):
    values = np.arange(6.0).reshape(2, 3)
    with (tmp_path / "a.npy").open("wb") as file:
        np.lib.format.write_array(file, values, version)
    assert (open_npy(tmp_path / "a.npy").read() == values).all()


@pytest.mark.parametrize("version", [0, 4, 255])
def test_a_version_to_come_is_refused(version):
    content = bytearray(npy_bytes(np.zeros(3)))
    content[6] = version
    with pytest.raises(DamagedFileError, match=rf"^a\.npy: .*\(version {version}\.0"):
        header_of(bytes(content), "a.npy")


def test_a_truncated_file_is_never_read(tmp_path):
    content = npy_bytes(np.ones((3, 4), np.float32))
    path = tmp_path / "a.npy"
    for length in range(len(content)):
        path.write_bytes(content[:length])
        with pytest.raises(DamagedFileError, match="^" + str(path)):
            open_npy(path)
    path.write_bytes(content[:-1])
    with pytest.raises(DamagedFileError, match=r"expected 48 bytes for an array of shape \(3, 4\), got 47"):
        open_npy(path)


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "{[]: 1}",
        "1" * 5000,
        "{'descr': '<f4', 'fortran_order': False, 'shape': (3,)",
        "{'descr': '<f4', 'fortran_order': 0, 'shape': (3,)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': 3}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (3.5,)}",
        "{'descr': 'words', 'fortran_order': False, 'shape': (3,)}",
        "{'descr': (), 'fortran_order': False, 'shape': (3,)}",
        "{'descr': [()], 'fortran_order': False, 'shape': (3,)}",
        "{'descr': 7, 'fortran_order': False, 'shape': (3,)}",
        "{'descr': '<f4', 7: False, 'shape': (3,)}",
        "__import__('os').getcwd()",
        "(" * 400,
    ],
)
def test_a_header_that_makes_no_sense_is_named(text):
    with pytest.raises(DamagedFileError, match=r"^a\.npy: expected the header of a NumPy array, got"):
        header_of(described(text), "a.npy")


@pytest.mark.parametrize(
    "shape", ["(-1, 3)", "(0, 2**62)", f"(0, {1 << 70})", f"({1 << 70},)", f"{(1,) * 65}"]
)
def test_a_shape_that_no_array_has_is_refused(shape):
    text = f"{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}}}".replace("2**62", str(1 << 62))
    with pytest.raises(DamagedFileError, match=r"^a\.npy: expected .*shape"):
        header_of(described(text), "a.npy")


def test_an_announced_size_has_a_limit(tmp_path, monkeypatch):
    path = save(tmp_path / "a.npy", np.zeros((10, 10, 10), np.uint8))
    monkeypatch.setenv("SEGTRUST_MAX_BYTES", "999")
    with pytest.raises(UnsafeFileError, match=rf"^{path}: .*SEGTRUST_MAX_BYTES=1000"):
        open_npy(path).read()
    assert open_npy(path).read(3).shape == (10, 10)


def test_objects_are_not_loaded(tmp_path):
    path = tmp_path / "a.npy"
    path.write_bytes(npy_bytes(np.array([{"a": 1}, None], object)))
    with pytest.raises(UnsafeFileError, match=rf"^{path}: expected an array of numbers, got .* pickle"):
        open_npy(path)
    path.write_bytes(npy_bytes(np.zeros(2, [("a", "f4"), ("b", "O")])))
    with pytest.raises(UnsafeFileError):
        open_npy(path)


@pytest.mark.parametrize("dtype", ["c8", "U3", "S3", "M8[s]", "V4", [("a", "f4")], "S0"])
def test_only_real_numbers_are_pixels(tmp_path, dtype):
    path = tmp_path / "a.npy"
    path.write_bytes(npy_bytes(np.zeros((2, 3), dtype)))
    with pytest.raises(WrongContentError, match=rf"^{path}: expected one real number a pixel"):
        open_npy(path)


@pytest.mark.filterwarnings("ignore")
def test_a_garbled_file_is_an_error_or_an_array(tmp_path):
    content, draw = npy_bytes(np.ones((3, 4), np.float32)), random.Random(0)
    path = tmp_path / "a.npy"
    for _ in range(1500):
        garbled = bytearray(content)
        for _ in range(draw.randint(1, 4)):
            garbled[draw.randrange(len(garbled))] = draw.randrange(256)
        path.write_bytes(garbled)
        with suppress(ReadError):
            volume = open_npy(path)
            assert volume.read().shape == volume.shape
