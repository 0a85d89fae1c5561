"""TIFF files against tifffile and Pillow."""

import logging
from contextlib import suppress

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from segtrust.errors import (
    DamagedFileError,
    MissingExtraError,
    ReadError,
    UnsafeFileError,
    WrongContentError,
)
from segtrust.io.formats.tiff import open_tiff, open_tiff_labels, recognises_tiff

pytestmark = pytest.mark.needs("tifffile")

in_folder = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
GREY = {"photometric": "minisblack"}


def save(path, array, **options):
    import tifffile

    tifffile.imwrite(path, array, **options)
    return path


def example(shape=(4, 5), dtype="f4"):
    return np.random.default_rng(0).integers(0, 100, shape).astype(dtype)


@given(
    before=st.lists(st.integers(1, 6), max_size=2),
    dtype=st.sampled_from(["u1", "u2", "f2", "f4", "f8", "i2"]),
    byteorder=st.sampled_from("<>"),
    compression=st.sampled_from([None, "zlib"]),
    big=st.booleans(),
)
@in_folder
def test_arrays_are_read_bit_for_bit(tmp_path, before, dtype, byteorder, compression, big):
    array = example((*before, 4, 5), dtype)
    options = {"byteorder": byteorder, "compression": compression, "bigtiff": big, **GREY}
    path = save(tmp_path / "a.tif", array, **options)
    assert recognises_tiff(tmp_path / "other", path.read_bytes()[:512])
    volume = open_tiff(path)
    assert volume.shape == array.shape
    assert volume.read().dtype.newbyteorder("=") == volume.dtype == np.dtype(dtype)
    assert (volume.read() == array).all()


AXES = {
    "YX": ((4, 5), False, "YX"),
    "ZYX": ((3, 4, 5), False, "ZYX"),
    "CYX": ((2, 4, 5), True, "CYX"),
    "CZYX": ((2, 3, 4, 5), True, "CZYX"),
    "ZCYX": ((3, 2, 4, 5), True, "CZYX"),
    "TYX": ((3, 4, 5), None, "TYX"),
    "QYX": ((3, 4, 5), None, "QYX"),
    "ZYXC": ((3, 4, 5, 2), True, "CZYX"),
}


@pytest.mark.parametrize("compression", [None, "zlib"])
@pytest.mark.parametrize("axes", AXES)
def test_channels_come_first(tmp_path, axes, compression):
    shape, has_channels, turned = AXES[axes]
    array = example(shape)
    path = save(tmp_path / "a.tif", array, metadata={"axes": axes}, compression=compression, **GREY)
    volume = open_tiff(path)
    wanted = array.transpose([axes.index(name) for name in turned])
    assert volume.has_channels is has_channels
    assert volume.shape == wanted.shape
    assert (volume.read() == wanted).all()
    if has_channels:
        assert (volume.read(1) == wanted[1]).all()


@pytest.mark.parametrize("kind", ["imagej", "ome"])
@pytest.mark.parametrize("axes", ["ZYX", "CYX", "ZCYX"])
def test_axes_of_microscopes_are_known(tmp_path, kind, axes):
    shape, has_channels, turned = AXES[axes]
    array = example(shape)
    volume = open_tiff(save(tmp_path / "a.ome.tif", array, metadata={"axes": axes}, **{kind: True}, **GREY))
    assert volume.has_channels is has_channels
    assert (volume.read() == array.transpose([axes.index(name) for name in turned])).all()


def test_samples_of_a_pixel_are_channels(tmp_path):
    array = example((4, 5, 3), "u1")
    volume = open_tiff(save(tmp_path / "a.tif", array, photometric="rgb"))
    assert volume.has_channels
    assert (volume.read() == np.moveaxis(array, -1, 0)).all()


def test_planes_taken_for_colours_keep_their_place(tmp_path):
    array = example((2, 3, 4, 5))
    path = save(tmp_path / "a.tif", array, photometric="rgb", planarconfig="separate")
    volume = open_tiff(path)
    assert volume.has_channels is None
    assert (volume.read() == array).all()


@pytest.mark.needs("PIL")
def test_pages_without_names_are_a_stack(tmp_path):
    from PIL import Image

    array = example((3, 4, 5), "u1")
    first, *others = (Image.fromarray(page) for page in array)
    first.save(tmp_path / "a.tif", save_all=True, append_images=others)
    volume = open_tiff(tmp_path / "a.tif")
    assert volume.has_channels is None
    assert (volume.read() == array).all()


def test_pixels_that_are_not_packed_stay_on_the_disk(tmp_path):
    values = open_tiff(save(tmp_path / "a.tif", example((3, 4, 5)), **GREY)).read()
    assert isinstance(values, np.memmap)


def test_bits_are_a_mask(tmp_path):
    mask = example((4, 11), bool)
    volume = open_tiff(save(tmp_path / "a.tif", mask))
    assert volume.dtype == volume.read().dtype == bool
    assert (volume.read() == mask).all()


@pytest.mark.needs("PIL")
@pytest.mark.parametrize("dtype", [bool, "u1"])
def test_an_image_with_white_zeros_is_turned(tmp_path, dtype):
    from PIL import Image

    path = save(
        tmp_path / "a.tif", example(dtype=dtype), photometric="miniswhite", software="scanner", metadata=None
    )
    with Image.open(path) as image:
        assert (open_tiff(path).read() == np.array(image)).all()
    with pytest.raises(WrongContentError, match="with 0 as white"):
        open_tiff(save(path, example(), photometric="miniswhite")).read()


def test_what_cannot_be_a_map_is_refused(tmp_path):
    import tifffile

    path = tmp_path / "a.tif"
    with pytest.raises(WrongContentError, match="got the axes TCZYX"):
        open_tiff(save(path, example((2, 2, 3, 4, 5)), metadata={"axes": "TCZYX"}, **GREY))
    with pytest.raises(WrongContentError, match="expected one real number per pixel, got complex64"):
        open_tiff(save(path, example(dtype="c8")))
    with tifffile.TiffWriter(path) as writer:
        writer.write(example((4, 5)))
        writer.write(example((6, 7)))
    with pytest.raises(WrongContentError, match=r"one image or stack, got \(4, 5\), \(6, 7\)"):
        open_tiff(path)


@pytest.mark.needs("imagecodecs")
def test_lossy_pixels_are_refused(tmp_path):
    path = save(tmp_path / "a.tif", example((16, 16), "u1"), compression="jpeg")
    with pytest.raises(WrongContentError, match="got JPEG, which changes probabilities and labels"):
        open_tiff(path)


def test_depths_between_types_are_refused(tmp_path):
    path = save(tmp_path / "a.tif", example(dtype="u1"))
    depth = bytes.fromhex("0201 0300 01000000")  # tag 258, one short
    content = path.read_bytes()
    assert content.count(depth + b"\x08") == 1
    path.write_bytes(content.replace(depth + b"\x08", depth + b"\x04"))
    with pytest.raises(WrongContentError, match="got 4 bits"):
        open_tiff(path)


@pytest.mark.needs("imagecodecs")
def test_a_missing_decoder_is_named(tmp_path, monkeypatch):
    import tifffile

    path = save(tmp_path / "a.tif", example(), compression="zstd")
    assert (open_tiff(path).read() == example()).all()

    def missing(*_):
        raise KeyError("<COMPRESSION.ZSTD: 50000> requires the 'imagecodecs' package")

    monkeypatch.setattr(type(tifffile.TIFF.DECOMPRESSORS), "__getitem__", missing)
    with pytest.raises(MissingExtraError, match=r"a\.tif: .* Run pip install imagecodecs, or save"):
        open_tiff(path).read()


@pytest.mark.parametrize("options", [{}, {"compression": "zlib"}, {"metadata": None}, {"rowsperstrip": 2}])
def test_a_truncated_file_is_never_read_wrongly(tmp_path, options, caplog, capfd):
    array = example((3, 4, 5))
    content = save(tmp_path / "a.tif", array, **options, **GREY).read_bytes()
    path = tmp_path / "b.tif"
    read = 0
    for length in range(0, len(content), 3):
        path.write_bytes(content[:length])
        with suppress(ReadError):
            assert (open_tiff(path).read() == array).all(), length
            read += 1
    assert read < len(content) // 10
    assert capfd.readouterr() == ("", "")


@given(place=st.integers(4, 300), garbage=st.binary(min_size=1, max_size=20), packed=st.booleans())
@in_folder
def test_a_garbled_file_is_an_error_or_an_image(tmp_path, place, garbage, packed):
    path = save(tmp_path / "a.tif", example((3, 4, 5)), compression="zlib" if packed else None, **GREY)
    content = bytearray(path.read_bytes())
    content[place : place + len(garbage)] = garbage
    path.write_bytes(content)
    with suppress(ReadError, MissingExtraError):
        volume = open_tiff(path)
        assert volume.read().shape == volume.shape


@pytest.mark.parametrize("content", [b"", b"II*\0", b"II*\0" + b"\xff" * 99, b"MM\0*" + bytes(99)])
def test_what_is_no_image_is_named(tmp_path, content):
    (tmp_path / "a.tif").write_bytes(content)
    with pytest.raises(ReadError, match=r"a\.tif: expected "):
        open_tiff(tmp_path / "a.tif")


def test_an_announced_size_has_a_limit(tmp_path, monkeypatch):
    path = save(tmp_path / "a.tif", np.zeros((400, 500), np.float32), compression="zlib")
    monkeypatch.setenv("SEGTRUST_MAX_BYTES", "799999")
    with pytest.raises(UnsafeFileError, match="SEGTRUST_MAX_BYTES=800000"):
        open_tiff(path).read()


def test_no_other_file_is_opened(tmp_path):
    """OME lets a file name others that hold its planes, and tifffile opens them."""
    import tifffile

    save(tmp_path / "other.tif", example((4, 5), "u1") + 100, **GREY)
    xml = (
        '<OME xmlns="http://www.openmicroscopy.org/Schemas/OME/2016-06" UUID="urn:uuid:1">'
        '<Image ID="Image:0">'
        '<Pixels ID="Pixels:0" DimensionOrder="XYZCT" Type="uint8" SizeX="5" SizeY="4" SizeZ="2" SizeC="1" '
        'SizeT="1"><TiffData FirstZ="0" IFD="0" PlaneCount="1"><UUID FileName="a.ome.tif">urn:uuid:1</UUID>'
        '</TiffData><TiffData FirstZ="1" IFD="0" PlaneCount="1">'
        '<UUID FileName="other.tif">urn:uuid:2</UUID>'
        "</TiffData></Pixels></Image></OME>"
    )
    path = tmp_path / "a.ome.tif"
    save(path, example((4, 5), "u1"), description=xml, metadata=None, **GREY)
    assert tifffile.imread(path).max() >= 100
    assert (open_tiff(path).read() == example((4, 5), "u1")).all()


@pytest.mark.parametrize("options", [GREY, {"compression": "zlib", **GREY}])
def test_an_axis_of_one_behind_x_is_left_out(tmp_path, options):
    volume = open_tiff(save(tmp_path / "a.tif", example((4, 5, 1)), **options))
    assert volume.shape == (4, 5)
    assert volume.has_channels is False
    assert (volume.read() == example()).all()


def test_the_log_of_others_is_left_alone(tmp_path):
    logger = logging.getLogger("tifffile")
    before = logger.propagate, list(logger.handlers)
    open_tiff(save(tmp_path / "a.tif", example()))
    assert (logger.propagate, logger.handlers) == before


def changed(path, tag, value):
    """Change the value of a tag of the first page."""
    import tifffile

    with tifffile.TiffFile(path, mode="r+") as file:
        file.pages[0].tags[tag].overwrite(value)
    return path


@pytest.mark.parametrize("compression", [None, "zlib"])
def test_strips_that_were_never_written_are_an_error_unless_they_are_to_be_filled(tmp_path, compression):
    array = np.full((8, 6), 200, np.uint8)
    path = save(tmp_path / "a.tif", array, compression=compression, rowsperstrip=4)
    import tifffile

    with tifffile.TiffFile(path) as file:
        offsets, counts = file.pages[0].dataoffsets, file.pages[0].databytecounts
    changed(path, "StripOffsets", (offsets[0], 0))
    changed(path, "StripByteCounts", (counts[0], 0))
    with pytest.raises(DamagedFileError, match=r"a\.tif: expected all parts .* got 1 of 2 strips or tiles"):
        open_tiff(path)
    values = open_tiff(path, fill_missing=True).read()
    assert (values[:4] == 200).all()
    assert (values[4:] == 0).all()


@pytest.mark.parametrize("orientation", [2, 3, 6, 8])
def test_an_image_that_is_to_be_turned_is_rejected(tmp_path, orientation):
    path = save(tmp_path / "a.tif", np.zeros((4, 5), np.uint8), extratags=[(274, "H", 1, orientation, True)])
    with pytest.raises(WrongContentError, match=rf"an upright image, .*orientation tag {orientation}"):
        open_tiff(path)
    save(path, np.zeros((4, 5), np.uint8), extratags=[(274, "H", 1, 1, True)])
    assert open_tiff(path).shape == (4, 5)


def test_the_inverting_lookup_table_of_imagej_is_rejected(tmp_path):
    """A mask of ImageJ has 255 as its object and is shown black on white."""
    path = save(tmp_path / "a.tif", np.full((4, 5), 255, np.uint8), imagej=True)
    assert (open_tiff(path).read() == 255).all()
    changed(path, "PhotometricInterpretation", 0)
    with pytest.raises(WrongContentError, match=r"inverting lookup table, .* Invert LUT"):
        open_tiff(path)


def test_a_palette_of_colours_is_labels_and_no_map(tmp_path):
    labels = np.arange(20, dtype=np.uint8).reshape(4, 5) % 3
    colours = np.random.default_rng(0).integers(0, 1 << 16, (3, 256)).astype(np.uint16)
    path = save(tmp_path / "a.tif", labels, photometric="palette", colormap=colours)
    assert (open_tiff_labels(path).read() == labels).all()
    with pytest.raises(WrongContentError, match="expected a grey image, got a palette of colours"):
        open_tiff(path)


@pytest.mark.parametrize("compression", [None, "zlib"])
@pytest.mark.parametrize("scale", [1, 257])  # some writers use 8 of the 16 bits
def test_a_palette_of_greys_is_a_grey_image_unless_it_is_inverted(tmp_path, compression, scale):
    """As ImageJ writes an inverted image of 8 bits, for example."""
    values = np.arange(20, dtype=np.uint8).reshape(4, 5)
    greys = np.tile(scale * np.arange(256, dtype=np.uint16), (3, 1))
    path = save(tmp_path / "a.tif", values, photometric="palette", colormap=greys, compression=compression)
    assert (open_tiff(path).read() == values).all()
    save(path, values, photometric="palette", colormap=greys[:, ::-1], compression=compression)
    for opened in (open_tiff, open_tiff_labels):
        with pytest.raises(WrongContentError, match="inverted palette"):
            opened(path).read()
