"""Flat images against Pillow."""

import struct
import warnings
import zlib
from contextlib import suppress

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from segtrust.errors import DamagedFileError, ReadError, UnsafeFileError, WrongContentError
from segtrust.io.formats.image import open_image, open_image_labels, recognises_image

pytestmark = pytest.mark.needs("PIL")

in_folder = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


def save(path, array, mode=None, **options):
    from PIL import Image

    image = Image.fromarray(array)
    (image.convert(mode) if mode else image).save(path, **options)
    return path


def example(shape=(4, 5), dtype="u1"):
    return np.random.default_rng(0).integers(0, 256, shape).astype(dtype)


def with_palette(path, array, colours):
    from PIL import Image

    image = Image.fromarray(array, mode=None).convert("L")
    image.putpalette(colours)
    image.save(path)
    return path


def png(width, height, *, depth=8, kind=0, content=b""):
    """A PNG file made by hand, of any announced size."""
    header = struct.pack(">IIBBBBB", width, height, depth, kind, 0, 0, 0)
    parts = ((b"IHDR", header), (b"IDAT", zlib.compress(content)), (b"IEND", b""))
    chunks = (
        struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))
        for name, body in parts
    )
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunks)


@pytest.mark.parametrize("suffix", [".png", ".bmp", ".webp"])
def test_grey_levels_come_back(tmp_path, suffix):
    path = save(tmp_path / f"a{suffix}", example(), lossless=True)
    assert recognises_image(tmp_path / "other", path.read_bytes()[:512])
    volume = open_image(path)
    assert volume.shape == (4, 5)
    assert volume.has_channels is False
    assert volume.grid is None
    assert volume.dtype == volume.read().dtype == np.uint8
    assert (volume.read() == example()).all()


@given(
    shape=st.tuples(st.integers(1, 9), st.integers(1, 9)),
    dtype=st.sampled_from([np.uint8, np.uint16, bool]),
    suffix=st.sampled_from([".png", ".bmp"]),
)
@in_folder
def test_grey_images_are_read_bit_for_bit(tmp_path, shape, dtype, suffix):
    array = np.random.default_rng(0).integers(0, 2 if dtype is bool else 65536, shape).astype(dtype)
    suffix = ".png" if dtype is np.uint16 else suffix
    volume = open_image(save(tmp_path / f"a{suffix}", array))
    assert volume.dtype == volume.read().dtype == dtype
    assert (volume.read() == array).all()


def test_16_bits_are_kept(tmp_path):
    array = np.arange(20, dtype=np.uint16).reshape(4, 5) * 3000
    volume = open_image(save(tmp_path / "a.png", array))
    assert volume.dtype == np.uint16
    assert (volume.read() == array).all()


@pytest.mark.parametrize("mode", ["RGB", "RGBA", "LA"])
def test_three_equal_channels_are_one(tmp_path, mode):
    volume = open_image(save(tmp_path / "a.png", example(), mode))
    assert volume.shape == volume.read().shape == (4, 5)
    assert (volume.read() == example()).all()


def test_colours_are_refused(tmp_path):
    path = save(tmp_path / "a.png", example((4, 5, 3)))
    with pytest.raises(WrongContentError, match=r"a\.png: .* got one in colours\. Save one channel"):
        open_image(path).read()
    path.write_bytes(png(1, 1, depth=16, kind=2, content=bytes(7)))
    with pytest.raises(
        WrongContentError, match="colours of 16 bits per channel, of which Pillow keeps only 8"
    ):
        open_image(path)


def test_a_partly_transparent_image_is_refused(tmp_path):
    array = np.zeros((4, 5, 4), np.uint8)
    array[1, 2, 3] = 1
    with pytest.raises(WrongContentError, match="partly transparent"):
        open_image(save(tmp_path / "a.png", array)).read()


def test_a_palette_of_colours_numbers_labels(tmp_path):
    labels = np.arange(20, dtype=np.uint8).reshape(4, 5) % 3
    volume = open_image_labels(with_palette(tmp_path / "a.png", labels, [0, 0, 0, 255, 0, 0, 0, 255, 0]))
    assert volume.dtype == np.uint8
    assert (volume.read() == labels).all()


@pytest.mark.parametrize("suffix", [".png", ".bmp"])
def test_a_palette_of_greys_is_a_grey_image(tmp_path, suffix):
    indices = np.arange(20, dtype=np.uint8).reshape(4, 5) % 3
    path = with_palette(tmp_path / f"a{suffix}", indices, [255, 255, 255, 0, 0, 0, 99, 99, 99])
    assert (open_image(path).read() == np.array([255, 0, 99])[indices]).all()


@pytest.mark.parametrize("opened", [open_image, open_image_labels])
@pytest.mark.parametrize("suffix", [".png", ".bmp"])
@pytest.mark.parametrize("levels", [[255, 0], range(255, -1, -1)])
@pytest.mark.parametrize("highest", [0, 1])
def test_an_inverted_palette_is_rejected(tmp_path, opened, suffix, levels, highest):
    indices = np.arange(20, dtype=np.uint8).reshape(4, 5) % (highest + 1)
    path = with_palette(tmp_path / f"a{suffix}", indices, [each for grey in levels for each in [grey] * 3])
    with pytest.raises(WrongContentError, match=r"inverted palette.* without a palette"):
        opened(path).read()


@pytest.mark.parametrize("levels", [[0, 255], range(256), [0, 255, 0, 0, 0]])
def test_an_ascending_palette_is_that_of_the_greys(tmp_path, levels):
    mask = np.arange(20, dtype=np.uint8).reshape(4, 5) % 2
    path = with_palette(tmp_path / "a.png", mask, [each for grey in levels for each in [grey] * 3])
    assert (open_image(path).read() == np.array(levels)[mask]).all()
    assert (open_image_labels(path).read() == mask).all()  # black and white are labels 0 and 1


@pytest.mark.parametrize("levels", [[0, 100], [0, 85, 170, 255], [0, 17, 200]])
def test_labels_of_other_palettes_of_greys(tmp_path, levels):
    """Greys of 2 bits are labels; other greys may be those of soft edges."""
    indices = np.arange(20, dtype=np.uint8).reshape(4, 5) % len(levels)
    path = with_palette(tmp_path / "a.png", indices, [each for grey in levels for each in [grey] * 3])
    greys = np.array(levels)[indices]
    assert (open_image_labels(path).read() == (indices if len(levels) == 4 else greys)).all()


@pytest.mark.parametrize("suffix", [".png", ".bmp"])
def test_images_of_one_bit_are_labels_0_and_1(tmp_path, suffix):
    """Pillow stores True as 255, so label 1 used to occur nowhere."""
    from PIL import Image

    mask = np.arange(20).reshape(4, 5) % 3 == 0
    Image.fromarray(mask).save(tmp_path / f"a{suffix}")
    for opened in (open_image, open_image_labels):
        values = opened(tmp_path / f"a{suffix}").read()
        assert (values.view(np.uint8) == mask).all()


def test_lossy_images_are_refused_with_the_reason(tmp_path):
    array = example((16, 16))
    for name in ("a.jpg", "a.webp", "a.gif"):
        path = save(tmp_path / name, array)
        assert recognises_image(path, path.read_bytes()[:512])
        with pytest.raises(WrongContentError, match="which changes probabilities and labels"):
            open_image(path)
    save(tmp_path / "a.png", array).rename(tmp_path / "a.jpg")
    assert (open_image(tmp_path / "a.jpg").read() == array).all()


def test_several_images_in_one_are_refused(tmp_path):
    from PIL import Image

    frames = [Image.fromarray(example() + np.uint8(step)) for step in range(2)]
    frames[0].save(tmp_path / "a.png", save_all=True, append_images=frames[1:])
    with pytest.raises(WrongContentError, match="got several in one"):
        open_image(tmp_path / "a.png")


@pytest.mark.parametrize("suffix", [".png", ".bmp", ".webp"])
def test_a_truncated_image_is_never_read_wrongly(tmp_path, suffix):
    content = save(tmp_path / f"a{suffix}", example(), lossless=True).read_bytes()
    path = tmp_path / f"b{suffix}"
    for length in range(0, len(content), 1 if len(content) < 200 else 11):
        path.write_bytes(content[:length])
        with suppress(ReadError):
            assert (open_image(path).read() == example()).all()


@pytest.mark.parametrize(
    ("depth", "kind", "row"), [(8, 0, 5), (16, 0, 10), (1, 0, 1), (2, 3, 2), (8, 2, 15), (8, 6, 20)]
)
@pytest.mark.parametrize("rows", [0, 1, 3])
def test_a_stream_that_ends_early_is_an_error(tmp_path, depth, kind, row, rows):
    """The stream is intact, but has fewer rows than announced; Pillow takes the others for zeros."""
    path = tmp_path / "a.png"
    path.write_bytes(png(5, 4, depth=depth, kind=kind, content=bytes(1 + row) * rows))
    with pytest.raises(
        DamagedFileError, match=rf"expected {4 * (1 + row)} bytes of pixels .* got {rows * (1 + row)}"
    ):
        open_image(path).read()


@pytest.mark.parametrize("side", [1023, 1024, 1025, 2100])
def test_large_images_that_compress_well_are_whole(tmp_path, side):
    values = np.zeros((side, side), np.uint8)
    values[side // 2 :, : side // 3] = 255
    assert (open_image(save(tmp_path / "a.png", values)).read() == values).all()
    assert (open_image(save(tmp_path / "b.png", values > 0)).read() == (values > 0)).all()


def test_a_stream_that_is_no_stream_is_an_error(tmp_path):
    content = png(5, 4, content=bytes(24))
    begin = content.find(b"IDAT")
    body = b"IDAT" + content[begin + 4 : begin + 6] + b"\xff" * 6
    path = tmp_path / "a.png"
    chunk = struct.pack(">I", len(body) - 4) + body + struct.pack(">I", zlib.crc32(body))
    path.write_bytes(content[: begin - 4] + chunk + content[-12:])
    with pytest.raises(DamagedFileError, match="expected compressed data"):
        open_image(path).read()


@pytest.mark.parametrize("shape", [(1, 1), (3, 2), (9, 13), (300, 200)])
def test_interlaced_images_are_whole_or_rejected(tmp_path, shape):
    height, width = shape
    places = [
        (0, 0, 8, 8),
        (0, 4, 8, 8),
        (4, 0, 8, 4),
        (0, 2, 4, 4),
        (2, 0, 4, 2),
        (0, 1, 2, 2),
        (1, 0, 2, 1),
    ]
    values = example(shape)
    parts = [values[top::down, left::right] for top, left, down, right in places]
    content = b"".join(b"\0" + row.tobytes() for part in parts for row in part if part.size)
    path = tmp_path / "a.png"
    for length, is_whole in [(len(content), True), (len(content) - 1, False), (len(content) // 2, False)]:
        whole = bytearray(png(width, height, content=content[:length]))
        whole[28] = 1
        whole[29:33] = zlib.crc32(whole[12:29]).to_bytes(4, "big")
        path.write_bytes(whole)
        if is_whole:
            assert (open_image(path).read() == values).all()
        else:
            with pytest.raises(DamagedFileError, match="truncated"):
                open_image(path).read()


def test_a_changed_byte_changes_no_pixel(tmp_path):
    content = save(tmp_path / "a.png", example()).read_bytes()
    path = tmp_path / "b.png"
    for place in range(len(content)):
        changed = bytearray(content)
        changed[place] ^= 16
        path.write_bytes(changed)
        with suppress(ReadError):
            assert (open_image(path).read() == example()).all()


@given(
    place=st.integers(8, 60),
    garbage=st.binary(min_size=1, max_size=20),
    suffix=st.sampled_from([".png", ".bmp"]),
)
@in_folder
def test_a_garbled_image_is_an_error_or_an_image(tmp_path, place, garbage, suffix):
    path = save(tmp_path / f"a{suffix}", example())
    content = bytearray(path.read_bytes())
    content[place : place + len(garbage)] = garbage
    path.write_bytes(content)
    with suppress(ReadError):
        volume = open_image(path)
        assert volume.read().shape == volume.shape


@pytest.mark.parametrize(
    "content", [b"", b"\x89PNG\r\n\x1a\n", b"\x89PNG\r\n\x1a\n" + b"\xff" * 99, b"words"]
)
def test_what_is_no_image_is_named(tmp_path, content):
    (tmp_path / "a.png").write_bytes(content)
    with pytest.raises(DamagedFileError, match=r"a\.png: expected an image"):
        open_image(tmp_path / "a.png")


def test_bombs_are_refused_before_they_are_unpacked(tmp_path, monkeypatch):
    path = tmp_path / "a.png"
    path.write_bytes(png(1 << 20, 1 << 20, content=bytes(1 << 16)))
    with pytest.raises(
        UnsafeFileError, match=r"a\.png: .* at most 16 GiB in memory, got one of 1\.02e\+03 GiB"
    ):
        open_image(path).read()
    path.write_bytes(png(1 << 16, 1 << 16, content=bytes(1 << 16)))
    with pytest.raises(DamagedFileError, match=r"a\.png: expected \d+ bytes of pixels"):
        open_image(path).read()
    monkeypatch.setenv("SEGTRUST_MAX_BYTES", "59")
    with pytest.raises(UnsafeFileError, match="SEGTRUST_MAX_BYTES=60"):
        open_image(save(path, example(), "RGB")).read()
    with pytest.raises(UnsafeFileError, match="SEGTRUST_MAX_BYTES=80"):
        open_image(save(tmp_path / "a.webp", example(), lossless=True)).read()


@pytest.mark.parametrize("dtype", [bool, "u1"])
def test_images_of_one_value_are_plausible(tmp_path, dtype):
    array = np.zeros((3000, 4000), dtype)
    assert not open_image(save(tmp_path / "a.png", array, optimize=True)).read().any()


def test_large_images_are_read_and_pillow_left_as_it_is(tmp_path, monkeypatch):
    from PIL import Image

    path = save(tmp_path / "a.png", example())
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 5)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert (open_image(path).read() == example()).all()
    assert Image.MAX_IMAGE_PIXELS == 5
    with pytest.raises(Image.DecompressionBombError):
        Image.open(path)


@pytest.mark.needs("data:nuclei")
def test_nuclei_are_those_of_pillow(data):
    from PIL import Image

    for path in sorted(data("nuclei").rglob("*.png"))[::40]:
        assert recognises_image(path, path.read_bytes()[:512])
        with suppress(WrongContentError), Image.open(path) as image:
            assert (open_image(path).read() == np.asarray(image.convert("L"))).all()


def test_a_palette_of_colours_is_no_map(tmp_path):
    path = with_palette(tmp_path / "a.png", np.zeros((4, 5), np.uint8), [0, 0, 0, 255, 0, 0])
    with pytest.raises(WrongContentError, match="expected a grey image, got a palette of colours"):
        open_image(path).read()


@pytest.mark.parametrize("depth", [2, 4])
def test_labels_of_few_bits_are_not_rescaled(tmp_path, depth):
    """Pillow stretches them to 0 … 255, which is right for probabilities only."""
    labels = np.arange(24, dtype=np.uint8).reshape(3, 8) % 2**depth
    bits = (labels[..., None] >> np.arange(depth - 1, -1, -1)) & 1
    rows = np.packbits(bits.reshape(3, -1), axis=1)
    path = tmp_path / "a.png"
    path.write_bytes(png(8, 3, depth=depth, content=b"".join(b"\0" + row.tobytes() for row in rows)))
    assert (open_image_labels(path).read() == labels).all()
    np.testing.assert_array_equal(open_image(path).read() / 255, labels / (2**depth - 1))


@pytest.mark.parametrize("suffix", [".png", ".webp"])
def test_an_image_that_is_to_be_turned_is_rejected(tmp_path, suffix):
    from PIL import Image

    array = example((4, 5))
    for orientation in (1, 6):
        exif = Image.Exif()
        exif[0x0112] = orientation
        Image.fromarray(array).save(tmp_path / f"a{suffix}", exif=exif, lossless=True)
        if orientation == 1 and suffix == ".png":
            assert (open_image(tmp_path / "a.png").read() == array).all()
    with pytest.raises(WrongContentError, match=r"an upright image, .*orientation tag 6|pixels as they"):
        open_image(tmp_path / f"a{suffix}").read()
