"""HDF5: which data set is read, and what is refused."""

import gc
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import segtrust
from segtrust.errors import DamagedFileError, UnsafeFileError, WrongContentError
from segtrust.io.array_ref import ArrayRef
from segtrust.io.formats import _common
from segtrust.io.formats.hdf5 import MAGIC, open_hdf5, recognises_hdf5
from segtrust.io.volume import open_labels

pytestmark = pytest.mark.needs("h5py")

P = np.random.default_rng(5).random((2, 3, 4, 5)).astype(np.float32)


def write(path, **datasets):
    import h5py

    with h5py.File(path, "w") as file:
        for name, values in datasets.items():
            file[name.replace("__", "/")] = values
    return path


@pytest.fixture
def path(tmp_path):
    return tmp_path / "case.h5"


def open_files() -> set[str]:
    gc.collect()
    descriptors = [entry for entry in Path("/proc/self/fd").iterdir() if entry.exists()]
    return {str(entry.readlink()) for entry in descriptors}


def test_it_is_known_by_its_first_bytes(path):
    write(path, p=P)
    assert recognises_hdf5(path, path.read_bytes()[:512])
    assert not recognises_hdf5(path, b"")
    assert not recognises_hdf5(path, b"\x93NUMPY")


@pytest.mark.parametrize("dtype", ["f4", "f8", "f2", ">f4", "u1", "u2", "bool"])
def test_an_array_is_read_as_it_was_written(path, dtype):
    values = P.astype(dtype) if dtype == "bool" else (P * 200).astype(dtype)
    volume = open_hdf5(write(path, p=values))
    assert (volume.shape, volume.dtype, volume.grid, volume.has_channels) == (P.shape, dtype, None, None)
    np.testing.assert_array_equal(volume.read(), values)
    np.testing.assert_array_equal(volume.read(1), values[1])


@pytest.mark.parametrize("key", ["model/softmax", "/model/softmax", "model//./softmax"])
def test_a_data_set_is_chosen_by_its_path(path, key):
    write(path, model__softmax=P, model__other=P[::-1], image=P[0])
    np.testing.assert_array_equal(open_hdf5(path, key).read(), P)


def test_without_a_key_the_only_map_is_taken(path):
    write(path, ids=np.arange(3), name="case 7", model__output=P, records=np.zeros((2, 2), [("a", "f4")]))
    np.testing.assert_array_equal(open_hdf5(path).read(), P)


def test_without_a_key_probabilities_are_taken_before_masks(path):
    write(path, image=P[1], mask=P[0] > 0.5, a__probabilities=P)
    np.testing.assert_array_equal(open_hdf5(path).read(), P)


def test_several_candidates_are_listed(path):
    write(path, first=P, group__second=P)
    with pytest.raises(WrongContentError, match=r"case\.h5: .* got 'first', 'group/second'\. Say .* --key"):
        open_hdf5(path)


@pytest.mark.parametrize(
    ("key", "got"),
    [
        ("absent", "got none"),
        ("group", "got a group of 'group/p'"),
        ("group/p/below", "got none"),
        ("", "got a"),
    ],
)
def test_a_key_that_names_no_data_set_is_refused(path, key, got):
    write(path, group__p=P)
    with pytest.raises(WrongContentError, match=rf"case\.h5: .*{got}.* The file holds 'group/p'\."):
        open_hdf5(path, key)


@pytest.mark.parametrize(
    "values",
    [
        "some text",
        np.zeros((2, 2), [("a", "f4")]),
        np.zeros((2, 2), "S3"),
        np.zeros((2, 2), "c8"),
        np.zeros(3),
    ],
)
def test_what_is_no_map_is_refused(path, values):
    with pytest.raises(WrongContentError, match=r"case\.h5: expected .* in 'x'"):
        open_hdf5(write(path, x=values), "x")


def test_a_data_set_without_data_is_refused(path):
    import h5py

    write(path, x=h5py.Empty("f4"))
    with pytest.raises(WrongContentError, match="at least 2 dimensions"):
        open_hdf5(path, "x")


@pytest.mark.parametrize("chunks", [None, (1, 2, 3, 2), (2, 3, 4, 5)])
def test_a_large_array_is_scored_in_pieces(path, chunks, monkeypatch):
    import h5py

    with h5py.File(path, "w") as file:
        file.create_dataset("p", data=P, chunks=chunks, compression=chunks and "gzip")
    monkeypatch.setattr(_common, "_AT_ONCE", 8)
    volume = open_hdf5(path)
    assert volume.lazy
    names = ("sdc", "idc", "amsp", "ane", "mmmc")
    lazy, channel = volume.read(), volume.read(1)
    assert not isinstance(lazy, np.ndarray)
    assert not isinstance(channel, np.ndarray)
    assert segtrust.score(lazy, estimators=names) == pytest.approx(segtrust.score(P, estimators=names))
    assert segtrust.score(channel, estimators=names) == pytest.approx(segtrust.score(P[1], estimators=names))


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="open files are listed in /proc")
def test_files_of_small_arrays_are_closed(path, monkeypatch):
    volume = open_hdf5(write(path, p=P))
    kept = volume.read()
    assert str(path) not in open_files()
    monkeypatch.setattr(_common, "_AT_ONCE", 8)
    kept = volume.read()
    assert str(path) in open_files()
    del kept
    assert str(path) not in open_files()


def test_links_are_followed_within_the_folder(path, tmp_path):
    import h5py

    (tmp_path / "below").mkdir()
    write(tmp_path / "below/other.h5", p=P)
    write(path, b=h5py.ExternalLink("below/other.h5", "/p"))
    with h5py.File(path, "a") as file:
        file["c"] = h5py.SoftLink("/b")
        file["d"] = h5py.SoftLink("c")
    np.testing.assert_array_equal(open_hdf5(path, "d").read(), P)


@pytest.mark.parametrize("where", ["../outside.h5", "{absolute}", "link.h5"])
@pytest.mark.parametrize("key", ["out/p", "soft"])
def test_links_that_lead_out_are_refused(tmp_path, where, key):
    import h5py

    (tmp_path / "folder").mkdir()
    outside = write(tmp_path / "outside.h5", p=P)
    (tmp_path / "folder/link.h5").symlink_to(outside)
    link = h5py.ExternalLink(where.format(absolute=outside), "/")
    path = write(tmp_path / "folder/case.h5", out=link, soft=h5py.SoftLink("/out/p"))
    with pytest.raises(UnsafeFileError, match=r"case\.h5: expected links within its folder, got one to '"):
        open_hdf5(path, key)


def test_links_that_nobody_asked_for_are_passed_over(tmp_path):
    import h5py

    (tmp_path / "folder").mkdir()
    write(tmp_path / "outside.h5", p=P)
    path = write(tmp_path / "folder/case.h5", probabilities=P, image=h5py.ExternalLink("../outside.h5", "/p"))
    np.testing.assert_array_equal(open_hdf5(path).read(), P)


def test_a_link_with_a_usual_name_is_found_without_a_key(tmp_path):
    import h5py

    write(tmp_path / "other.h5", p=P)
    path = write(tmp_path / "case.h5", probabilities=h5py.ExternalLink("other.h5", "/p"), image=P * 0)
    np.testing.assert_array_equal(open_hdf5(path).read(), P)
    path = write(tmp_path / "alone.h5", probabilities=h5py.ExternalLink("other.h5", "/p"))
    np.testing.assert_array_equal(open_hdf5(path).read(), P)


def test_a_link_to_an_absent_file_is_refused(path):
    import h5py

    with pytest.raises(DamagedFileError, match=r"case\.h5: expected the file 'absent\.h5' next to it"):
        open_hdf5(write(path, out=h5py.ExternalLink("absent.h5", "/p")), "out")


@pytest.mark.parametrize("target", ["/nothing", "/round"])
def test_links_that_lead_nowhere_are_refused(path, target):
    import h5py

    with pytest.raises(WrongContentError, match="expected a dataset called 'round', got none"):
        open_hdf5(write(path, p=P, round=h5py.SoftLink(target)), "round")


def test_groups_that_hold_themselves_are_looked_into_once(path):
    import h5py

    write(path, group__p=P)
    with h5py.File(path, "a") as file:
        file["group/again"] = file["group"]
        file["group/top"] = file["/"]
    np.testing.assert_array_equal(open_hdf5(path).read(), P)


def test_pixels_in_another_file_are_refused(path, tmp_path):
    import h5py

    (tmp_path / "raw").write_bytes(P.tobytes())
    with h5py.File(path, "w") as file:
        file.create_dataset("p", P.shape, "f4", external=[(str(tmp_path / "raw"), 0, P.nbytes)])
    with pytest.raises(UnsafeFileError, match=r"case\.h5: expected the pixels of 'p' in the file itself"):
        open_hdf5(path)


def test_a_virtual_data_set_is_refused(path, tmp_path):
    import h5py

    other = write(tmp_path / "other.h5", p=P)
    layout = h5py.VirtualLayout(P.shape, P.dtype)
    layout[:] = h5py.VirtualSource(other, "p", P.shape)
    with h5py.File(path, "w") as file:
        file.create_virtual_dataset("p", layout)
    with pytest.raises(UnsafeFileError, match=r"case\.h5: expected the pixels of 'p' in the file itself"):
        open_hdf5(path)


def test_chunks_that_would_fill_the_memory_are_refused(path, monkeypatch):
    import h5py

    with h5py.File(path, "w") as file:
        file.create_dataset("p", (10**6, 10**6), "f4", chunks=(10**4, 10**4))
    monkeypatch.setenv("SEGTRUST_MAX_BYTES", str(10**8))
    with pytest.raises(
        UnsafeFileError, match=r"case\.h5: expected an array of at most .* SEGTRUST_MAX_BYTES"
    ):
        open_hdf5(path)


def test_an_array_above_the_limit_is_left_on_the_disk(path, monkeypatch):
    monkeypatch.setenv("SEGTRUST_MAX_BYTES", "100")
    volume = open_hdf5(write(path, p=P))
    assert volume.lazy
    assert segtrust.score(volume.read()) == pytest.approx(segtrust.score(P))


@pytest.mark.parametrize("length", [len(MAGIC), 100, 2000])
def test_a_truncated_file_is_refused(path, length):
    path.write_bytes(write(path, p=P).read_bytes()[:length])
    with pytest.raises(
        DamagedFileError, match=r"case\.h5: expected an HDF5 file, got one that cannot be read"
    ):
        open_hdf5(path)


def test_an_empty_file_is_refused(path):
    path.touch()
    with pytest.raises(DamagedFileError, match="expected an HDF5 file"):
        open_hdf5(path)


def test_a_garbled_chunk_is_refused(path):
    import h5py

    with h5py.File(path, "w") as file:
        values = file.create_dataset("p", data=P, chunks=P.shape, compression="gzip")
        begin = values.id.get_chunk_info(0).byte_offset
    written = bytearray(path.read_bytes())
    written[begin : begin + 64] = b"\0" * 64
    path.write_bytes(written)
    volume = open_hdf5(path)
    with pytest.raises(DamagedFileError, match=r"case\.h5: expected a part of an array"):
        volume.read()


@pytest.mark.parametrize("compression", ["gzip", "lzf"])
@pytest.mark.parametrize("more", [{}, {"shuffle": True}, {"fletcher32": True}])
@pytest.mark.parametrize("rows", [10, 20])
def test_a_chunk_whose_stream_ends_early_is_rejected(path, tmp_path, compression, more, rows):
    """HDF5 returns what was in memory behind the end of the stream."""
    import h5py

    p = np.linspace(0, 1, 20 * 24, dtype=np.float32).reshape(20, 24)
    with h5py.File(tmp_path / "short.h5", "w") as file:
        short = file.create_dataset("p", data=p[:rows], chunks=(rows, 24), compression=compression, **more)
        mask, stream = short.id.read_direct_chunk((0, 0))
    with h5py.File(path, "w") as file:
        values = file.create_dataset("p", p.shape, p.dtype, chunks=p.shape, compression=compression, **more)
        values.id.write_direct_chunk((0, 0), stream, mask)
    if rows == 20:
        assert_array_equal(open_hdf5(path).read(), p)
    else:
        with pytest.raises(DamagedFileError, match=r"case\.h5: expected 1920 bytes in the chunk at \(0, 0\)"):
            open_hdf5(path)


def test_chunks_that_were_not_compressed_are_read(path):
    import h5py

    p = np.linspace(0, 1, 20 * 24, dtype=np.float32).reshape(20, 24)
    with h5py.File(path, "w") as file:
        values = file.create_dataset("p", p.shape, p.dtype, chunks=p.shape, compression="gzip")
        values.id.write_direct_chunk((0, 0), p.tobytes(), filter_mask=1)
    assert_array_equal(open_hdf5(path).read(), p)


def test_masks_and_truths_in_one_file_are_told_apart(tmp_path):
    import h5py

    with h5py.File(tmp_path / "a.h5", "w") as file:
        for name, value in (("probabilities", 0.25), ("mask", 1), ("truth", 0), ("image", 7)):
            file[name] = np.full((4, 5), value)
    place = ArrayRef(tmp_path / "a.h5")
    assert open_hdf5(place.path).read()[0, 0] == 0.25
    assert open_labels(place, _common.MASKS).read()[0, 0] == 1
    assert open_labels(place, _common.TRUTHS).read()[0, 0] == 0


@pytest.mark.parametrize(
    ("chunks", "rows", "why"),
    [((2, 3), 2, "2 of 4 chunks"), ((2, 3), 0, "0 of 4 chunks"), (None, 0, "0 of 1 chunks")],
)
def test_chunks_that_were_never_written_are_an_error_unless_they_are_to_be_filled(path, chunks, rows, why):
    import h5py

    with h5py.File(path, "w") as file:
        dataset = file.create_dataset("p", (4, 5), "f4", chunks=chunks, fillvalue=0.9)
        if rows:
            dataset[:rows] = 0.25
    with pytest.raises(DamagedFileError, match=f"expected all parts of 'p', got {why}.*--fill-missing"):
        open_hdf5(path)
    values = open_hdf5(path, fill_missing=True).read()
    assert (values[rows:] == np.float32(0.9)).all()


def test_compact_and_resized_datasets_are_whole(path):
    import h5py

    with h5py.File(path, "w") as file:
        dataset = file.create_dataset("p", (2, 3), "f4", chunks=(2, 3), maxshape=(None, 3))
        dataset.resize((4, 3))
        dataset[:] = 0.5
    assert open_hdf5(path).read().tolist() == [[0.5] * 3] * 4


@pytest.mark.parametrize(
    "attributes", [{"scale_factor": 1 / 254}, {"scale_factor": [0.5]}, {"add_offset": 0.5}]
)
def test_values_packed_by_cf_are_rejected(path, attributes):
    import h5py

    with h5py.File(path, "w") as file:
        file["p"] = np.arange(20, dtype=np.uint8).reshape(4, 5)
        file["p"].attrs.update(attributes)
    with pytest.raises(WrongContentError, match=r"expected the values themselves in 'p', got packed ones"):
        open_hdf5(path)
    with h5py.File(path, "a") as file:
        file["p"].attrs.update({"scale_factor": np.float32(1), "add_offset": [0]})
    assert open_hdf5(path).read().sum() == 190
