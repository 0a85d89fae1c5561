"""Pickles: what nnU-Net wrote is read, and nothing that anybody wrote is run."""

import collections
import copyreg
import io
import os
import pickle
import pickletools
import random
import struct
import time
import tracemalloc
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st
from numpy._core import numeric

from segtrust.errors import DamagedFileError, ReadError, UnsafeFileError
from segtrust.io.formats.pickle import read_plain_pickle

FIXTURES = sorted((Path(__file__).parents[2] / "fixtures/nnunet").glob("*/*/*.pkl"))
PROTOCOLS = range(pickle.HIGHEST_PROTOCOL + 1)
in_folder = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
ABOUT = {
    "sitk_stuff": {"spacing": (1.0, 0.5, 2.0), "origin": (0.0, -1.5, 3.0)},
    "shape": [7, np.int64(8), np.float32(0.5), np.bool_(True)],
    "class_locations": {1: np.arange(12).reshape(3, 4), 2: np.array([[0.5]], order="F")},
    "ordered": collections.OrderedDict(b=1, a=[None, True, "Lungenläppchen", b"\x00\xff"]),
    "turned": np.asfortranarray(np.arange(6, dtype=np.uint8).reshape(2, 3)),
    "strided": np.arange(60.0).reshape(3, 4, 5).transpose(2, 0, 1),
    "swapped": np.arange(5, dtype=">i4"),
    "wide": np.arange(500, dtype=">f8"),
}


@pytest.fixture
def path(tmp_path):
    return tmp_path / "case.pkl"


@pytest.fixture
def canary(tmp_path):
    """A file that is there once anything was run."""
    return tmp_path / "canary"


def read(path, content: bytes):
    path.write_bytes(content)
    return read_plain_pickle(path)


def assert_same(found, wanted):
    assert type(found) is type(wanted)
    if isinstance(wanted, dict):
        assert list(found) == list(wanted)
        for name in wanted:
            assert_same(found[name], wanted[name])
    elif isinstance(wanted, list | tuple):
        assert len(found) == len(wanted)
        for one, other in zip(found, wanted, strict=True):
            assert_same(one, other)
    elif isinstance(wanted, np.ndarray):
        assert found.dtype == wanted.dtype
        np.testing.assert_array_equal(found, wanted)
    else:
        assert found == wanted


@pytest.mark.parametrize("fixture", FIXTURES, ids=lambda path: "-".join(path.parts[-3:]))
def test_what_nnunet_wrote_is_what_pickle_reads(fixture):
    assert_same(read_plain_pickle(fixture), pickle.loads(fixture.read_bytes()))


def test_there_are_fixtures():
    assert len(FIXTURES) == 8


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_plain_data_and_arrays_are_read(path, protocol):
    content = pickle.dumps(ABOUT, protocol)
    assert_same(read(path, content), pickle.loads(content))


@pytest.mark.parametrize("core", ["core", "_core"])
def test_arrays_of_older_and_newer_numpy_are_read(path, core):
    content = pickle.dumps(ABOUT["class_locations"], 2)
    content = content.replace(b"numpy._core.", f"numpy.{core}.".encode())
    assert_same(read(path, content), ABOUT["class_locations"])


plain = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text()
    | st.binary(min_size=1),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner) | st.tuples(inner, inner),
)


@given(value=plain, protocol=st.sampled_from(PROTOCOLS))
@in_folder
def test_all_plain_data_is_read(path, value, protocol):
    assert read(path, pickle.dumps(value, protocol)) == value


class Call:
    """Pickled as a call of a function."""

    def __init__(self, function, *arguments):
        self.call = function, arguments

    def __reduce__(self):
        return self.call


def named(module: str, name: str, argument: str) -> bytes:
    """A call by name, of what may not exist here."""
    return f"c{module}\n{name}\n(V{argument}\ntR.".encode()


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("wrap", [lambda bad: bad, lambda bad: [{"spacing": (1.0, bad)}]])
def test_no_function_is_called(path, canary, protocol, wrap):
    touch = f"touch {canary}"
    for bad in (
        Call(os.system, touch),
        Call(eval, f"open({str(canary)!r}, 'w')"),
        Call(exec, f"open({str(canary)!r}, 'w')"),
        Call(open, str(canary), "w"),
        Call(np.memmap, str(canary), "u1", "w+", 0, (10,)),
        Call(np.load, str(canary)),
        Call(getattr, "text", "upper"),
        Call(np.ndarray, (10,)),
        Call(bytearray, 10),
        Call(Path, str(canary)),
    ):
        with pytest.raises(
            UnsafeFileError, match=f"^{path}: expected plain data and arrays of numbers only, got"
        ):
            read(path, pickle.dumps(wrap(bad), protocol))
        assert not canary.exists()


@pytest.mark.parametrize(
    ("module", "name"),
    [
        ("os", "system"),
        ("posix", "system"),
        ("nt", "system"),
        ("subprocess", "Popen"),
        ("builtins", "eval"),
        ("__builtin__", "eval"),
        ("builtins", "__import__"),
        ("numpy", "load"),
        ("numpy", "fromfile"),
        ("numpy.f2py", "compile"),
        ("numpy.f2py.diagnose", "run_command"),
        ("numpy.testing._private.utils", "runstring"),
        ("numpy.core.multiarray", "fromfile"),
        ("numpy._core.multiarray", "load"),
        ("numpy.core.numeric", "load"),
        ("numpy", "dtype.__init__"),
        ("collections", "OrderedDict.fromkeys"),
        ("copyreg", "__newobj__"),
        ("copy_reg", "_reconstructor"),
        ("_codecs", "decode"),
        ("segtrust.io.formats.pickle", "_bytes"),
    ],
)
def test_names_are_refused_before_they_are_looked_up(path, module, name):
    with pytest.raises(UnsafeFileError, match=f"got {module}.{name}"):
        read(path, named(module, name, "touch canary"))


@pytest.mark.parametrize("content", [b"Pname\n.", b"\x80\x04\x8c\x04nameQ."])
def test_references_to_elsewhere_are_refused(path, content):
    with pytest.raises(UnsafeFileError, match="got a reference to something else"):
        read(path, content)


def test_extensions_are_refused(path, canary):
    copyreg.add_extension("os", "system", 240)
    try:
        pickle.loads(b"\x80\x02\x82\xf0.")  # from now on it is remembered, and no name is looked up
        for code in (b"\x82\xf0", b"\x83\xf0\x00", b"\x84\xf0\x00\x00\x00"):
            with pytest.raises(UnsafeFileError, match="got the extension 240"):
                read(path, b"\x80\x02" + code + f"(Vtouch {canary}\ntR.".encode())
    finally:
        copyreg.remove_extension("os", "system", 240)
        copyreg.clear_extension_cache()
    assert not canary.exists()


def test_functions_are_not_changed(path):
    """To complete an object sets what it is told to, also the defaults of a function."""
    before = numeric._frombuffer.__defaults__
    for state in (b"N}X\x0c\0\0\0__defaults__)s\x86b.", b"}X\x05\0\0\0helloK\x01sb."):
        for made in (b"cnumpy.core.numeric\n_frombuffer\n", b"ccollections\nOrderedDict\n)R", b"]"):
            with pytest.raises(UnsafeFileError, match="got the state of"):
                read(path, b"\x80\x02" + made + state)
    assert numeric._frombuffer.__defaults__ == before


OBJECTS = np.array([{"a": 1}, None], object)


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize(
    "values",
    [OBJECTS, np.zeros(2, [("a", "f4")]), np.array(["text"]), np.zeros(2, "M8[s]"), np.zeros(2, "V4")],
    ids=["objects", "fields", "text", "times", "void"],
)
def test_arrays_of_anything_but_numbers_are_refused(path, protocol, values):
    with pytest.raises(UnsafeFileError, match="got an array of"):
        read(path, pickle.dumps({"a": values}, protocol))


@pytest.mark.parametrize(
    "state",
    [
        (3, "<", ("f8", (2,)), None, None, -1, -1, 0),
        (3, "<", None, ("a",), {"a": (np.dtype("f8"), 100)}, 8, 8, 0),
        (3, "<", None, None, None, 1 << 20, 8, 0),
        (3, "<", None, None, None, -1, -(1 << 20), 0),
        (3, "<", None, None, None, -1, -1, 1),
        (3, "x", None, None, None, -1, -1, 0),
        ("<",),
        (),
        7,
    ],
)
def test_a_type_that_lies_about_itself_is_refused(path, state):
    with pytest.raises(ReadError, match=f"^{path}: expected"):
        read(path, pickle.dumps(Stated(np.dtype, ("f8", False, True), state), 2))


class Stated:
    """Pickled as an object with a state of any kind."""

    def __init__(self, maker, arguments, state):
        self.reduced = maker, arguments, state

    def __reduce__(self):
        return self.reduced


@pytest.mark.parametrize(
    "state",
    [
        (1, (10**12,), np.dtype("f8"), False, b"abc"),
        (1, (-1,), np.dtype("f8"), False, b"abc"),
        (1, (2**40, 2**40), np.dtype("f8"), False, b""),
        (1, (3,), np.dtype("f8"), False, [1, 2, 3]),
        (1, (1,), "f8", False, bytes(8)),
        (1, (3,)),
        None,
    ],
)
def test_an_array_that_lies_about_itself_is_refused(path, state):
    make = np._core.multiarray._reconstruct
    with pytest.raises(ReadError, match=f"^{path}: expected"):
        read(path, pickle.dumps(Stated(make, (np.ndarray, (0,), b"b"), state or 7), 2))


def unpacked(number: int) -> bytes:
    return struct.pack("<Q", number)


HUGE = 1 << 40
RECONSTRUCT = b"\x80\x02cnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\n"


@pytest.mark.parametrize(
    "content",
    [
        b"\x80\x04Nr" + struct.pack("<I", 0xFFFFFFFF) + b".",
        b"\x80\x05\x96" + unpacked(HUGE) + b"abc.",
        b"\x80\x04\x8e" + unpacked(HUGE) + b"abc.",
        b"\x80\x04\x8d" + unpacked(HUGE) + b"abc.",
        b"\x80\x04\x95" + unpacked(HUGE) + b"abc.",
        b"\x80\x04\x96" + unpacked((1 << 64) - 1) + b"abc.",
        b"\x80\x02\x8b\xff\xff\xff\x7fabc.",
        b"\x80\x02cnumpy\nndarray\nJ\xff\xff\xff\x7f\x85U\x01O\x86R.",
        RECONSTRUCT + b"J\xff\xff\xff\x7f\x85U\x01O\x87R.",
        b"\x80\x02cnumpy\ndtype\nX\x10\0\0\0(1000000000,)f8,\x85R.",
        b"c_codecs\nencode\n(Vabc\nVpunycode\ntR.",
        b"ccollections\nOrderedDict\n(I1000000000\ntR.",
    ],
)
def test_what_is_announced_is_not_set_aside(path, content):
    path.write_bytes(content)
    tracemalloc.start()
    begin = time.perf_counter()
    with suppress(ReadError):
        read_plain_pickle(path)
    assert time.perf_counter() - begin < 2
    assert tracemalloc.get_traced_memory()[1] < 8 << 20
    tracemalloc.stop()


@pytest.mark.parametrize("kind", ["bytes", "arrays"])
def test_few_bytes_do_not_make_many(path, kind):
    large = 4 << 20
    text = b"X" + struct.pack("<I", large) + b"x" * large + b"q\x010"
    call = {
        "bytes": text + (b"c_codecs\nencode\nh\x01X\x06\0\0\0latin1\x86R" * 40),
        "arrays": b"B" + struct.pack("<I", large) + bytes(large) + b"q\x010" + _swapped(large) * 40,
    }[kind]
    tracemalloc.start()
    with pytest.raises(UnsafeFileError, match="got more than 67108864 bytes"):
        read(path, b"\x80\x04(" + call + b"l.")
    assert tracemalloc.get_traced_memory()[1] < 300 << 20
    tracemalloc.stop()


def _swapped(count: int) -> bytes:
    """An array of the other byte order, which is a copy, of the bytes in place 1."""
    dtype = b"cnumpy\ndtype\nX\x02\0\0\0f8\x85R(K\x03X\x01\0\0\0>NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\0tb"
    empty = b"cnumpy.core.multiarray\n_reconstruct\n(cnumpy\nndarray\nK\0\x85C\x01btR"
    return empty + b"(K\x01J" + struct.pack("<i", count // 8) + b"\x85" + dtype + b"\x89h\x01tb"


def test_a_large_pickle_is_not_opened(path):
    with path.open("wb") as file:
        file.truncate((64 << 20) + 1)
    with pytest.raises(
        UnsafeFileError, match=rf"^{path}: expected the geometry of a case, got a pickle of 67108865"
    ):
        read_plain_pickle(path)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_truncated_pickle_is_told(path, protocol):
    content = pickle.dumps({"a": ABOUT["class_locations"], "b": [1.5]}, protocol)
    for length in range(len(content)):
        with pytest.raises(ReadError, match=f"^{path}: expected"):
            read(path, content[:length])


@given(content=st.binary(max_size=300))
@in_folder
def test_random_bytes_are_an_error_or_plain(path, content):
    with suppress(ReadError):
        read(path, content)


@pytest.mark.parametrize("protocol", [0, 2, 4, 5])
def test_mutations_are_an_error_or_plain(path, protocol):
    content, draw = pickle.dumps(ABOUT, protocol), random.Random(protocol)
    codes = [ord(each.code) for each in pickletools.opcodes]
    for _ in range(500):
        garbled = bytearray(content)
        for _ in range(draw.randint(1, 5)):
            place = draw.randrange(len(garbled))
            garbled[place] = draw.choice(codes) if draw.random() < 0.5 else draw.randrange(256)
        with suppress(ReadError):
            read(path, bytes(garbled))


def test_other_files_are_told(path):
    image = io.BytesIO()
    np.save(image, np.zeros(3))
    for content in (b"", b"words", image.getvalue(), b"\x80\x09."):
        with pytest.raises(DamagedFileError, match=f"^{path}: expected a pickle of plain data"):
            read(path, content)
