"""Zarr: arrays, groups and OME-Zarr images, of both versions, in directories and zip files."""

import json
import os
import shutil
from functools import partial
from pathlib import Path

import numpy as np
import pytest

import segtrust
from segtrust.errors import DamagedFileError, GeometryError, UnsafeFileError, WrongContentError
from segtrust.io.formats import _common
from segtrust.io.formats.zarr import open_zarr, recognises_zarr

pytestmark = pytest.mark.needs("zarr")

P = np.random.default_rng(6).random((2, 3, 4, 5)).astype(np.float32)
NAMES = ("sdc", "idc", "amsp", "ane", "mmmc")
VERSIONS = pytest.mark.parametrize("version", [2, 3])


@pytest.fixture
def path(tmp_path):
    return tmp_path / "case.zarr"


def write_array(path, values=P, *, version=3, **options):
    import zarr

    options = {"chunks": (1,) * (values.ndim - 2) + (3, 2), **options}
    zarr.create_array(path, data=values, zarr_format=version, **options)
    return path


def write_group(path, *, version=3, attributes=None, **arrays):
    import zarr

    group = zarr.create_group(path, zarr_format=version, attributes=attributes)
    for name, values in arrays.items():
        place = name.replace("__", "/")
        if isinstance(values, dict):
            group.create_group(place, attributes=values)
        else:
            group.create_array(place, data=values)
    return path


def packed(path, folder=""):
    """A zip file of a store, by other means than Zarr's."""
    made = shutil.make_archive(str(path), "zip", path.parent if folder else path, folder or None)
    return Path(made)


def level(scale, translation=None, path="0"):
    transformations = [{"type": "scale", "scale": scale}]
    transformations += [{"type": "translation", "translation": translation}] if translation else []
    return {"path": path, "coordinateTransformations": transformations}


def described(axes, datasets, *, unit="millimeter", version="0.4", **more):
    kinds = {"t": {"type": "time"}, "c": {"type": "channel"}}
    listed = [{"name": name, **kinds.get(name, {"type": "space", "unit": unit})} for name in axes]
    ome = {"multiscales": [{"axes": listed, "datasets": datasets, **more}]}
    return {"ome": {"version": version, **ome}} if version == "0.5" else ome


@VERSIONS
def test_a_store_is_known_by_what_lies_in_it(path, tmp_path, version):
    write_array(path, version=version)
    other = path.rename(tmp_path / "other")
    assert recognises_zarr(other, b"")
    assert recognises_zarr(packed(other).rename(path.with_suffix(".zarr.zip")), b"PK\3\4")


def test_other_folders_and_files_are_not_known(tmp_path):
    assert not recognises_zarr(tmp_path, b"")
    (tmp_path / "broken.zarr").mkdir()
    assert recognises_zarr(tmp_path / "broken.zarr", b"")
    assert not recognises_zarr(tmp_path / "case.zip", b"PK\3\4")
    assert not recognises_zarr(tmp_path / "case.zarr.zip", b"\x89HDF")


@VERSIONS
@pytest.mark.parametrize("dtype", ["f4", "f8", "f2", ">f4", "u1", "u2", "bool"])
def test_an_array_is_read_as_it_was_written(path, version, dtype):
    values = P.astype(dtype) if dtype == "bool" else (P * 200).astype(dtype)
    volume = open_zarr(write_array(path, values, version=version))
    assert (volume.shape, volume.grid, volume.has_channels) == (P.shape, None, None)
    assert volume.dtype.newbyteorder("=") == np.dtype(dtype).newbyteorder("=")
    np.testing.assert_array_equal(volume.read(), values)
    np.testing.assert_array_equal(volume.read(1), values[1])


@VERSIONS
@pytest.mark.parametrize("folder", ["", "case.zarr"])
def test_a_zip_file_is_read_as_the_directory(path, version, folder):
    volume = open_zarr(packed(write_array(path, version=version), folder))
    np.testing.assert_array_equal(volume.read(), P)
    np.testing.assert_array_equal(volume.read(1), P[1])


@VERSIONS
@pytest.mark.parametrize("is_packed", [False, True])
def test_a_large_array_is_scored_in_pieces(path, version, is_packed, monkeypatch):
    monkeypatch.setattr(_common, "_AT_ONCE", 8)
    write_array(path, version=version)
    volume = open_zarr(packed(path) if is_packed else path)
    lazy, channel = volume.read(), volume.read(1)
    assert volume.lazy
    assert not isinstance(lazy, np.ndarray)
    assert not isinstance(channel, np.ndarray)
    assert segtrust.score(lazy, estimators=NAMES) == pytest.approx(segtrust.score(P, estimators=NAMES))
    assert segtrust.score(channel, estimators=NAMES) == pytest.approx(segtrust.score(P[1], estimators=NAMES))


def test_shards_are_read_by_their_chunks(path, monkeypatch):
    monkeypatch.setattr(_common, "_AT_ONCE", 8)
    volume = open_zarr(write_array(path, chunks=(1, 3, 2, 5), shards=(2, 3, 4, 5)))
    assert volume.read().chunks == (1, 3, 2, 5)
    assert segtrust.score(volume.read(0)) == pytest.approx(segtrust.score(P[0]))


@VERSIONS
@pytest.mark.parametrize("is_packed", [False, True])
def test_a_missing_chunk_is_an_error_unless_it_is_to_be_filled(path, version, is_packed):
    import zarr

    array = zarr.create_array(
        path, shape=(4, 5), chunks=(2, 2), dtype="f4", fill_value=0.25, zarr_format=version
    )
    array[:2, :4] = 0.5
    array[2:] = 0.5
    store = packed(path) if is_packed else path
    with pytest.raises(DamagedFileError, match=r"got only 5 of 6 chunks\. .*--fill-missing"):
        open_zarr(store)
    values = open_zarr(store, fill_missing=True).read()
    assert (values[:2, 4] == 0.25).all()
    assert (values[2:] == 0.5).all()


@pytest.mark.parametrize("location", ["end", "start"])
def test_a_chunk_that_is_missing_in_a_shard_is_an_error(path, location):
    """The last shard reaches beyond the array; the chunks there are not missing."""
    import zarr

    def create(fill):
        return zarr.create_array(
            path,
            shape=(6, 7),
            chunks=(2, 2),
            shards={"shape": (4, 4), "index_location": location},
            dtype="f4",
            fill_value=fill,
            overwrite=True,
        )

    values = np.random.default_rng(0).random((6, 7)).astype(np.float32)
    create(0)[:] = values
    np.testing.assert_array_equal(open_zarr(path).read(), values)
    create(0.9)[:2, :] = values[:2]
    create(0.9)[:] = np.where(np.arange(7) < 6, values, np.float32(0.9))
    with pytest.raises(DamagedFileError, match=r"got only 9 of 12 chunks"):
        open_zarr(path)
    assert (open_zarr(path, fill_missing=True).read()[:, 6] == np.float32(0.9)).all()


@VERSIONS
@pytest.mark.parametrize(
    ("attributes", "is_packed"),
    [
        ({"scale_factor": 1 / 254}, True),
        ({"add_offset": 0.5, "scale_factor": 1.0}, True),
        ({"scale_factor": "x"}, True),
        ({"scale_factor": 1.0, "add_offset": 0}, False),
        ({"units": "1"}, False),
    ],
)
def test_values_packed_by_cf_are_rejected(path, version, attributes, is_packed):
    import zarr

    array = zarr.create_array(path, shape=(4, 5), dtype="u1", zarr_format=version, attributes=attributes)
    array[:] = np.arange(1, 21, dtype=np.uint8).reshape(4, 5)
    if is_packed:
        with pytest.raises(
            WrongContentError, match=r"expected the values themselves in the array, .* as float32\."
        ):
            open_zarr(path)
    else:
        assert open_zarr(path).read().sum() == 210


@VERSIONS
@pytest.mark.parametrize("is_packed", [False, True])
@pytest.mark.parametrize("key", ["", "model/softmax"])
def test_an_array_without_any_chunk_is_rejected(path, version, is_packed, key):
    """Its fill value would be a certain map, which aMSP rates highest."""
    import zarr

    root = zarr.create_group(path, zarr_format=version) if key else path
    make = root.create_array if key else partial(zarr.create_array, root, zarr_format=version)
    make(**({"name": key} if key else {}), shape=(4, 5), chunks=(2, 2), dtype="f4", fill_value=0.0)
    elsewhere = ("00.01", "c.0.0") if version == 2 else ("0.0", "c.0.0")  # keys of another encoding
    for stray in (".DS_Store", "9.9", "0.0.partial", "notes.txt", "1", *elsewhere):
        (path / key / stray).write_bytes(b"1")
    (path / key / "c/0").mkdir(parents=True)
    for stray in ("0.partial", "00", *(("0",) if version == 2 else ())):
        (path / key / "c/0" / stray).write_bytes(b"1")
    store = packed(path) if is_packed else path
    with pytest.raises(
        DamagedFileError, match=rf"^{store}: expected all parts of .*, got only 0 of \d+ chunks"
    ):
        open_zarr(store, key or None)


def test_chunks_that_are_named_otherwise_than_described_are_no_chunks(path):
    """Zarr reads only the keys of the description, and would fill all of the array."""
    write_array(path, P[0, 0], version=2, chunks=(2, 2))
    for chunk in [each for each in path.iterdir() if each.name[0].isdigit()]:
        nested = path.joinpath(*chunk.name.split("."))
        chunk.rename(path / "moved")
        nested.parent.mkdir(exist_ok=True)
        (path / "moved").rename(nested)
    with pytest.raises(DamagedFileError, match=r"got only 0 of 6 chunks\. .*dimension_separator"):
        open_zarr(path)
    document = json.loads((path / ".zarray").read_text())
    (path / ".zarray").write_text(json.dumps({**document, "dimension_separator": "/"}))
    assert (open_zarr(path).read() == P[0, 0]).all()


@pytest.mark.parametrize("separator", [".", "/"])
@pytest.mark.parametrize("name", ["default", "v2"])
def test_chunks_are_found_by_every_encoding_of_their_names(path, name, separator):
    encoding = {"name": name, "separator": separator}
    write_array(path, P[0], chunk_key_encoding=encoding)
    assert (open_zarr(path).read() == P[0]).all()


@VERSIONS
@pytest.mark.parametrize("key", [None, "model/softmax", "/model/softmax/", "model"])
def test_an_array_of_a_group_is_chosen(path, version, key):
    write_group(path, version=version, model__softmax=P, image=P[0], ids=np.arange(3))
    np.testing.assert_array_equal(open_zarr(path, key).read(), P)


def test_several_candidates_are_listed(path):
    write_group(path, first=P, group__second=P, ids=np.arange(3))
    (path / "notes").mkdir()
    with pytest.raises(WrongContentError, match=r"case\.zarr: .* got 'first', 'group/second'\. Say .* --key"):
        open_zarr(path)
    with pytest.raises(WrongContentError, match=r"called 'third', got none\. The store holds 'first', 'gr"):
        open_zarr(path, "third")


@VERSIONS
@pytest.mark.parametrize("dtype", ["U3", "S3", "c8"])
def test_only_numbers_are_maps(path, version, dtype):
    import zarr

    zarr.create_array(path, shape=(2, 3), dtype="f4", zarr_format=version)
    name, field = {2: (".zarray", "dtype"), 3: ("zarr.json", "data_type")}[version]
    document = json.loads((path / name).read_text())
    (path / name).write_text(json.dumps(document | {field: f"<{dtype}" if version == 2 else "string"}))
    with pytest.raises(WrongContentError, match=r"case\.zarr: expected numbers .* got the type '"):
        open_zarr(path)


def test_a_row_is_no_map(path):
    with pytest.raises(WrongContentError, match=r"at least 2 dimensions in the array, .* the shape \[3\]"):
        open_zarr(write_array(path, np.zeros(3), chunks=(3,)))


@pytest.mark.parametrize("place", ["filters", "compressor"])
@pytest.mark.parametrize("dtype", ["<f4", "|O"])
def test_pickles_are_refused(path, place, dtype):
    path.mkdir()
    described = {"zarr_format": 2, "shape": [2, 2], "chunks": [2, 2], "dtype": dtype, "order": "C"}
    pickled = [{"id": "pickle"}] if place == "filters" else {"id": "pickle"}
    document = described | {"filters": None, "compressor": None, "fill_value": 0} | {place: pickled}
    (path / ".zarray").write_text(json.dumps(document))
    with pytest.raises(UnsafeFileError, match=r"case\.zarr: expected numbers in the array, got pickles"):
        open_zarr(path)


@pytest.mark.parametrize("what", ["chunk", "array"])
def test_links_that_lead_out_are_refused(path, tmp_path, what):
    write_group(path, p=P)
    linked = path / "p" / "c" if what == "chunk" else path / "p"
    shutil.move(linked, tmp_path / "outside")
    linked.symlink_to(tmp_path / "outside")
    with pytest.raises(
        UnsafeFileError, match=r"case\.zarr: expected all of the store in its folder, got the l"
    ):
        open_zarr(path, "p")


@pytest.mark.parametrize("key", ["p", None])
@pytest.mark.parametrize("where", ["", "p"])
def test_a_description_that_lies_elsewhere_is_not_read(path, tmp_path, where, key):
    write_group(path, p=P)
    described = path / where / "zarr.json"
    shutil.move(described, tmp_path / "outside.json")
    described.symlink_to(tmp_path / "outside.json")
    if where or key is None:  # a group above is not looked at where an array is named
        with pytest.raises(UnsafeFileError, match=r"got the link 'zarr\.json', which leads out of it"):
            open_zarr(path, key)
    else:
        np.testing.assert_array_equal(open_zarr(path, key).read(), P)


@pytest.mark.parametrize("is_linked", [True, False])
def test_a_pipe_among_the_chunks_is_not_waited_for(path, is_linked):
    write_group(path, p=P)
    os.mkfifo(path / "p" / "pipe")
    if is_linked:
        (path / "p" / "chunk").symlink_to(path / "p" / "pipe")
    with pytest.raises(UnsafeFileError, match=r"case\.zarr: expected files and folders in the store"):
        open_zarr(path, "p")


def test_links_within_the_store_are_followed(path):
    write_group(path, p=P)
    (path / "again").symlink_to(path / "p")
    np.testing.assert_array_equal(open_zarr(path, "again").read(), P)
    np.testing.assert_array_equal(open_zarr(path).read(), P)


@pytest.mark.parametrize("key", ["../other.zarr", "p/../../other.zarr"])
def test_a_name_that_leads_out_is_refused(path, key):
    write_group(path, p=P)
    write_array(path.with_name("other.zarr"))
    with pytest.raises(UnsafeFileError, match=r"case\.zarr: expected a name inside the store"):
        open_zarr(path, key)


def test_a_level_that_leads_out_is_refused(path):
    write_array(path.with_name("other.zarr"))
    write_group(path, attributes=described("yx", [level([1.0, 1.0], path="../other.zarr")]))
    with pytest.raises(UnsafeFileError, match=r"got '/\.\./other\.zarr', which leads out"):
        open_zarr(path)


@VERSIONS
def test_chunks_that_would_fill_the_memory_are_refused(path, version):
    import zarr

    zarr.create_array(path, shape=(10**6,) * 3, chunks=(10**6,) * 3, dtype="f4", zarr_format=version)
    with pytest.raises(UnsafeFileError, match=r"case\.zarr: expected an array of at most 16 GiB"):
        open_zarr(path)


def test_large_members_of_a_zip_file_are_refused(path, monkeypatch):
    made = packed(write_array(path))
    monkeypatch.setenv("SEGTRUST_MAX_BYTES", "20")
    with pytest.raises(UnsafeFileError, match=r"case\.zarr\.zip: expected an array of at most"):
        open_zarr(made)


@pytest.mark.parametrize("text", ["", "{", "[]", "[" * 10**5, '{"zarr_format": 3}', '{"node_type": "array"}'])
def test_a_broken_description_is_refused(path, text):
    path.mkdir()
    (path / "zarr.json").write_text(text)
    with pytest.raises((DamagedFileError, WrongContentError), match=r"case\.zarr: expected "):
        open_zarr(path)


def test_an_unknown_codec_is_refused(path):
    write_array(path)
    document = json.loads((path / "zarr.json").read_text())
    document["codecs"].append({"name": "nonsense", "configuration": {}})
    (path / "zarr.json").write_text(json.dumps(document))
    with pytest.raises(DamagedFileError, match=r"case\.zarr: expected a Zarr store, .*nonsense"):
        open_zarr(path)


def test_an_empty_folder_is_refused(path):
    path.mkdir()
    with pytest.raises(WrongContentError, match=r"case\.zarr: expected one array, .* got none"):
        open_zarr(path)


@pytest.mark.parametrize("length", [0, 30, 200])
def test_a_truncated_zip_file_is_refused(path, length):
    made = packed(write_array(path))
    made.write_bytes(made.read_bytes()[:length])
    with pytest.raises(DamagedFileError, match=r"case\.zarr\.zip: expected a Zarr store"):
        open_zarr(made)


@VERSIONS
@pytest.mark.parametrize("compressors", [None, "auto"])
def test_a_truncated_chunk_is_refused(path, version, compressors, monkeypatch):
    write_array(path, version=version, compressors=compressors)
    chunks = [each for each in path.rglob("*") if each.is_file() and each.name[0].isdigit()]
    for chunk in chunks:
        os.truncate(chunk, chunk.stat().st_size // 2)
    volume = open_zarr(path)
    with pytest.raises(DamagedFileError, match=r"case\.zarr: expected a part of an array"):
        volume.read()
    monkeypatch.setattr(_common, "_AT_ONCE", 8)
    with pytest.raises(DamagedFileError, match=r"case\.zarr: expected a part of an array"):
        segtrust.score(volume.read())


@pytest.mark.parametrize(("ome", "version"), [("0.4", 2), ("0.5", 3)])
def test_an_image_is_read_with_its_place(path, ome, version):
    from segtrust.io.grid import Grid

    scales = [level([1.0, 3.0, 0.5, 0.25], [0.0, 10.0, 20.0, 30.0]), level([1.0, 6.0, 1.0, 0.5], path="1")]
    channels = {"channels": [{"label": "liver"}, {"label": "spleen"}]}
    attributes = described("czyx", scales, version=ome)
    attributes.get("ome", attributes)["omero"] = channels
    write_group(path, version=version, attributes=attributes, **{"0": P, "1": P[:, ::2, ::2, ::2]})
    volume = open_zarr(path)
    np.testing.assert_array_equal(volume.read(), P)
    assert volume.has_channels
    assert volume.channel_names == ("liver", "spleen")
    assert volume.grid.shape == P.shape[1:]
    assert volume.grid.spacing_mm == (3.0, 0.5, 0.25)
    assert not volume.grid.is_oriented, "nothing tells where in a body it lies"
    assert volume.grid.itk()["origin"] == (30.0, 20.0, 10.0)
    expected = Grid.of_itk(P.shape[1:], spacing=(0.25, 0.5, 3.0), origin=(30.0, 20.0, 10.0))
    np.testing.assert_allclose(volume.grid.affine, expected.affine)


@pytest.mark.parametrize("large", [False, True])
@pytest.mark.parametrize("axes", ["zyxc", "tczyx", "xyzc", "zycx"])
def test_channels_come_first_however_the_image_is_stored(path, axes, large, monkeypatch):
    monkeypatch.setattr(_common, "_AT_ONCE", 8 if large else 2**20)
    values = P.transpose(["czyx".index(name) for name in axes if name != "t"])
    values = values[None] if "t" in axes else values
    attributes = described(axes, [level([{"z": 3.0, "y": 2.0}.get(name, 1.0) for name in axes])])
    volume = open_zarr(write_group(path, attributes=attributes, **{"0": values}))
    assert volume.lazy == large
    assert (volume.shape, volume.grid.spacing_mm) == (P.shape, (3.0, 2.0, 1.0))
    np.testing.assert_array_equal(np.asarray(volume.read()), P)
    np.testing.assert_array_equal(np.asarray(volume.read(1)), P[1])
    assert segtrust.score(volume.read(1), estimators=NAMES) == pytest.approx(
        segtrust.score(P[1], estimators=NAMES)
    )


def test_an_image_without_channels_says_so(path):
    image = P[0, 0]
    volume = open_zarr(write_group(path, attributes=described("yx", [level([2.0, 0.5])]), **{"0": image}))
    assert volume.has_channels is False
    assert (volume.grid.shape, volume.grid.spacing_mm) == (image.shape, (2.0, 0.5))
    np.testing.assert_array_equal(volume.read(), image)


@pytest.mark.parametrize(
    ("unit", "factor"),
    [("micrometer", 0.001), ("millimeter", 1.0), ("centimeter", 10.0), ("nanometer", 1e-6)],
)
def test_units_become_millimetres(path, unit, factor):
    attributes = described("zyx", [level([3.0, 2.0, 1.0])], unit=unit)
    volume = open_zarr(write_group(path, attributes=attributes, **{"0": P[0]}))
    assert volume.grid.spacing_mm == pytest.approx((3.0 * factor, 2.0 * factor, 1.0 * factor))


def test_scales_of_all_levels_are_applied_after_those_of_one(path):
    more = [
        {"type": "scale", "scale": [2.0, 2.0, 2.0]},
        {"type": "translation", "translation": [0.0, 0.0, 5.0]},
    ]
    attributes = described("zyx", [level([3.0, 1.0, 1.0], [1.0, 2.0, 3.0])], coordinateTransformations=more)
    grid = open_zarr(write_group(path, attributes=attributes, **{"0": P[0]})).grid
    assert grid.spacing_mm == (6.0, 2.0, 2.0)
    assert grid.itk()["origin"] == (11.0, 4.0, 2.0)


@pytest.mark.parametrize(
    "attributes",
    [
        described("zyx", [level([3.0, 1.0, 1.0])], unit=None),
        described("zyx", [level([3.0, 1.0, 1.0])], unit="parsec"),
        described("zyx", [{"path": "0"}]),
        described("zyx", [{"path": "0", "coordinateTransformations": [{"type": "scale", "path": "s"}]}]),
        described("zyx", [{"path": "0", "coordinateTransformations": [{"type": "rotation"}]}]),
    ],
)
def test_a_place_that_is_not_known_is_not_guessed(path, attributes):
    volume = open_zarr(write_group(path, attributes=attributes, **{"0": P[0]}))
    assert volume.grid is None
    np.testing.assert_array_equal(volume.read(), P[0])


@pytest.mark.parametrize("scale", [[1.0, 0.0, 1.0], [1.0, -1.0, 1.0]])
def test_steps_that_are_no_lengths_are_refused(path, scale):
    write_group(path, attributes=described("zyx", [level(scale)]), **{"0": P[0]})
    with pytest.raises(GeometryError, match=r"case\.zarr: expected finite steps above 0, got \[1\.0, "):
        open_zarr(path)


@pytest.mark.parametrize(
    ("axes", "message"),
    [
        ("tzyx", "an image of one time, got 2 times"),
        ("zyx", "expected axes of t"),
        ("abyx", "expected axes of t"),
    ],
)
def test_axes_that_do_not_fit_are_refused(path, axes, message):
    write_group(path, attributes=described(axes, [level([1.0] * len(axes))]), **{"0": P})
    with pytest.raises(WrongContentError, match=rf"case\.zarr: .*{message}"):
        open_zarr(path)


@pytest.mark.parametrize(
    "scales", [[], [{}], [{"datasets": []}], "nonsense", [{"datasets": [{"path": "0"}], "axes": 3}]]
)
def test_a_broken_image_is_refused(path, scales):
    write_group(path, attributes={"multiscales": scales}, **{"0": P})
    with pytest.raises(DamagedFileError, match=r"case\.zarr: expected the description of an OME-Zarr image"):
        open_zarr(path)


def test_a_scale_of_another_length_is_refused(path):
    write_group(path, attributes=described("zyx", [level([1.0, 1.0])]), **{"0": P[0]})
    with pytest.raises(DamagedFileError, match=r"case\.zarr: expected a Zarr store"):
        open_zarr(path)


@pytest.mark.parametrize("key", [None, "images/0"])
def test_an_image_below_other_groups_is_found(path, key):
    """As programs that convert many formats write it: an image in the group "0" of a store."""
    image = described("czyx", [level([1.0, 3.0, 2.0, 1.0]), level([1.0, 6.0, 4.0, 2.0], path="1")])
    write_group(path, images__0=image, images__0__0=P, images__0__1=P[..., ::2])
    volume = open_zarr(path, key)
    np.testing.assert_array_equal(volume.read(), P)
    assert volume.grid.spacing_mm == (3.0, 2.0, 1.0)


def test_a_coarser_level_is_chosen_by_its_name(path):
    scales = [level([1.0] * 4), level([2.0] * 4, path="1")]
    write_group(path, attributes=described("czyx", scales), **{"0": P, "1": P[..., ::2]})
    assert open_zarr(path, "1").shape == (2, 3, 4, 3)
