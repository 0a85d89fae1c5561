"""NIfTI files against nibabel and SimpleITK."""

import gzip
import os
import struct
from contextlib import suppress

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from segtrust.errors import DamagedFileError, ReadError, UnsafeFileError, WrongContentError
from segtrust.io.formats.nifti import open_nifti, recognises_nifti
from segtrust.io.grid import Grid

pytestmark = pytest.mark.needs("nibabel")

AFFINE = np.array([[0.6, -0.8, 0, 5], [1.2, 1.6, 0, -7], [0, 0, -3, 11], [0, 0, 0, 1.0]]) * [
    [1],
    [0.5],
    [1],
    [1],
]
DTYPES = ("u1", "i1", "u2", "i2", "i4", "f4", "f8", ">f4", ">u2", ">i4")
in_folder = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


def save(path, array, *, affine=AFFINE, version=1, **fields):
    """Write an array of nibabel's axes, (x, y, z, …), as it is."""
    import nibabel

    made = {1: nibabel.Nifti1Image, 2: nibabel.Nifti2Image}[version]
    header = made.header_class(endianness=array.dtype.newbyteorder("=").byteorder.replace("=", "<"))
    if not array.dtype.isnative:
        header = header.as_byteswapped(">")
    image = made(array, affine, header, dtype=array.dtype.newbyteorder("="))
    for name, value in fields.items():
        image.header[name] = value
    nibabel.save(image, path)
    return path


def example(shape, dtype="f4"):
    return np.arange(np.prod(shape)).reshape(shape).astype(dtype)


def patched(path, place, kind, *values):
    """Change bytes of the header."""
    content = bytearray(path.read_bytes())
    struct.pack_into(kind, content, place, *values)
    path.write_bytes(content)
    return path


@pytest.mark.parametrize("suffix", [".nii", ".nii.gz"])
@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("dtype", DTYPES)
def test_axes_are_turned_and_types_kept(tmp_path, suffix, version, dtype):
    array = example((3, 4, 5), dtype)
    volume = open_nifti(save(tmp_path / f"a{suffix}", array, version=version))
    assert volume.shape == (5, 4, 3)
    assert volume.has_channels is False
    values = volume.read()
    assert values.dtype == volume.dtype == np.dtype(dtype)
    assert values.flags.c_contiguous
    assert (values == array.T).all()
    assert np.allclose(volume.grid.affine, AFFINE)


@given(
    shape=st.lists(st.integers(1, 5), min_size=2, max_size=4),
    dtype=st.sampled_from(DTYPES),
    packed=st.booleans(),
)
@in_folder
def test_whatever_nibabel_writes_is_read_bit_for_bit(tmp_path, shape, dtype, packed):
    array = np.random.default_rng(0).integers(0, 100, shape).astype(dtype)
    volume = open_nifti(save(tmp_path / f"a.nii{'.gz' * packed}", array))
    wanted = array.T if len(shape) < 4 or shape[3] > 1 else array[..., 0].T
    assert volume.shape == wanted.shape
    assert (volume.read() == wanted).all()


@pytest.mark.needs("SimpleITK")
@pytest.mark.parametrize("shape", [(4, 5), (4, 5, 1), (4, 5, 1, 1), (3, 4, 5), (3, 4, 5, 2), (3, 4, 1, 2)])
def test_arrays_are_those_of_itk(tmp_path, shape):
    import SimpleITK

    path = save(tmp_path / "a.nii.gz", example(shape))
    assert (open_nifti(path).read() == SimpleITK.GetArrayFromImage(SimpleITK.ReadImage(str(path)))).all()


def turned(flip):
    """A rotation about all three axes, with or without a flip."""
    a, b, c = 0.3, -1.1, 2.0
    first = np.array([[np.cos(a), -np.sin(a), 0], [np.sin(a), np.cos(a), 0], [0, 0, 1]])
    second = np.array([[1, 0, 0], [0, np.cos(b), -np.sin(b)], [0, np.sin(b), np.cos(b)]])
    third = np.array([[np.cos(c), 0, np.sin(c)], [0, 1, 0], [-np.sin(c), 0, np.cos(c)]])
    affine = np.eye(4)
    affine[:3, :3] = first @ second @ third @ np.diag([0.7, 1.3, -2.9 if flip else 2.9])
    affine[:3, 3] = -31, 17, 101
    return affine


@pytest.mark.needs("SimpleITK")
@pytest.mark.parametrize("unit", ["mm", "micron", "meter"])
@pytest.mark.parametrize("form", ["sform", "qform"])
@pytest.mark.parametrize("flip", [True, False])
def test_pixels_lie_where_itk_puts_them(tmp_path, flip, form, unit):
    import nibabel
    import SimpleITK

    image = nibabel.Nifti1Image(example((3, 4, 5)), None)
    (image.set_sform if form == "sform" else image.set_qform)(turned(flip), code=1)
    image.header.set_zooms((0.7, 1.3, 2.9))  # where ITK takes the spacing from
    image.header.set_xyzt_units(unit)
    nibabel.save(image, tmp_path / "a.nii")
    read = SimpleITK.ReadImage(str(tmp_path / "a.nii"))
    itk = Grid.of_itk(
        read.GetSize()[::-1],
        spacing=read.GetSpacing(),
        origin=read.GetOrigin(),
        direction=read.GetDirection(),
    )
    grid = open_nifti(tmp_path / "a.nii").grid
    assert grid.shape == itk.shape == (5, 4, 3)
    assert grid.distance_to(itk) < 1e-3
    assert np.allclose(grid.spacing_mm, itk.spacing_mm)


@pytest.mark.parametrize("suffix", [".nii", ".nii.gz"])
@pytest.mark.parametrize("shape", [(3, 4, 5, 2), (3, 4, 5, 1, 2)])
def test_the_last_axis_are_channels(tmp_path, suffix, shape):
    array = example(shape)
    volume = open_nifti(save(tmp_path / f"a{suffix}", array))
    wanted = array.reshape(3, 4, 5, 2).T
    assert volume.shape == wanted.shape == (2, 5, 4, 3)
    assert volume.has_channels
    assert volume.grid.shape == (5, 4, 3)
    assert (volume.read() == wanted).all()
    assert (volume.read(1) == wanted[1]).all()


def test_times_of_vectors_are_refused(tmp_path):
    with pytest.raises(
        WrongContentError, match=r"one axis besides x, y and z, got lengths \(2, 3, 4, 2, 3\)"
    ):
        open_nifti(save(tmp_path / "a.nii", example((2, 3, 4, 2, 3))))


@pytest.mark.parametrize("dtype", ["u1", "i2", ">i2", "f8"])
@pytest.mark.parametrize("suffix", [".nii", ".nii.gz"])
def test_scaled_numbers_are_scaled(tmp_path, dtype, suffix):
    import nibabel

    path = save(tmp_path / "a.nii", example((3, 4, 5, 2), dtype))
    order = ">" if dtype.startswith(">") else "<"
    patched(path, 112, order + "ff", 1 / 255, 0.25)
    if suffix == ".nii.gz":
        (tmp_path / "a.nii.gz").write_bytes(gzip.compress(path.read_bytes()))
    volume = open_nifti(tmp_path / f"a{suffix}")
    assert volume.dtype == volume.read().dtype == np.float32
    wanted = nibabel.load(path).get_fdata(dtype=np.float64).T
    assert (volume.read() == wanted.astype(np.float32)).all()
    assert (volume.read(1) == wanted[1].astype(np.float32)).all()


@pytest.mark.parametrize("scale", [(1, 0), (0, 0), (0, 5), (np.nan, np.nan)])
def test_a_scale_that_says_nothing_leaves_the_type(tmp_path, scale):
    path = patched(save(tmp_path / "a.nii", example((3, 4, 5), "u1")), 112, "<ff", *scale)
    assert open_nifti(path).dtype == np.uint8


def test_numbers_that_are_not_packed_stay_on_the_disk(tmp_path):
    values = open_nifti(save(tmp_path / "a.nii", example((3, 4, 5)))).read()
    assert isinstance(values, np.memmap)


def test_several_members_are_one_file(tmp_path):
    plain = save(tmp_path / "a.nii", example((3, 4, 5))).read_bytes()
    parts = b"".join(gzip.compress(part) for part in (plain[:100], plain[100:353], plain[353:], b""))
    (tmp_path / "a.nii.gz").write_bytes(parts)
    assert recognises_nifti(tmp_path / "a.nii.gz", parts[:512])
    assert (open_nifti(tmp_path / "a.nii.gz").read() == example((3, 4, 5)).T).all()


@pytest.mark.parametrize("opened", ["a.hdr", "a.img"])
def test_pairs_are_opened_by_either(tmp_path, opened):
    import nibabel

    nibabel.save(nibabel.Nifti1Pair(example((3, 4, 5)), AFFINE), tmp_path / "a.img")
    path = tmp_path / opened
    assert recognises_nifti(path, path.read_bytes()[:512])
    assert (open_nifti(path).read() == example((3, 4, 5)).T).all()


@pytest.mark.parametrize("other", ["link", "pipe"])
@pytest.mark.parametrize(("opened", "partner"), [("a.hdr", "a.img"), ("a.img", "a.hdr")])
def test_of_a_pair_both_lie_in_one_folder(tmp_path, opened, partner, other):
    import nibabel

    folder = tmp_path / "maps"
    folder.mkdir()
    nibabel.save(nibabel.Nifti1Pair(example((3, 4, 5)), AFFINE), folder / "a.img")
    (folder / partner).rename(tmp_path / partner)
    if other == "pipe":
        os.mkfifo(folder / partner)
    else:
        (folder / partner).symlink_to(tmp_path / partner)
    with pytest.raises(UnsafeFileError, match=rf"^{folder / opened}: expected the other file of the pair"):
        open_nifti(folder / opened)


def test_both_of_a_pair_may_be_links_to_one_folder(tmp_path):
    import nibabel

    (tmp_path / "chosen").mkdir()
    nibabel.save(nibabel.Nifti1Pair(example((3, 4, 5)), AFFINE), tmp_path / "a.img")
    for name in ("a.hdr", "a.img"):
        (tmp_path / "chosen" / name).symlink_to(tmp_path / name)
    for name in ("a.hdr", "a.img"):
        assert open_nifti(tmp_path / "chosen" / name).read().shape == (5, 4, 3)


@pytest.mark.parametrize("suffix", [".nii", ".nii.gz"])
@pytest.mark.parametrize("version", [1, 2])
def test_files_are_known_by_their_content(tmp_path, suffix, version):
    path = save(tmp_path / f"a{suffix}", np.random.default_rng(0).random((9, 9, 9)), version=version)
    head = path.read_bytes()[:512]
    assert recognises_nifti(tmp_path / "other", head)
    assert recognises_nifti(path, b"")
    assert not recognises_nifti(tmp_path / "other", b"")
    assert not recognises_nifti(tmp_path / "other", gzip.compress(b"words"))
    assert not recognises_nifti(tmp_path / "other", b"\x1f\x8bgarbage")
    path.rename(tmp_path / "other")
    assert open_nifti(tmp_path / "other").shape == (9, 9, 9)


@pytest.mark.parametrize("suffix", [".nii", ".nii.gz"])
def test_a_truncated_file_is_never_read(tmp_path, suffix):
    content = save(tmp_path / f"a{suffix}", example((3, 4, 5), "u1")).read_bytes()
    path = tmp_path / f"b{suffix}"
    for length in range(len(content)):
        path.write_bytes(content[:length])
        with pytest.raises(DamagedFileError, match="^" + str(path)):
            open_nifti(path).read()


def test_garbage_after_the_magic_is_named(tmp_path):
    path = tmp_path / "a.nii"
    path.write_bytes(struct.pack("<i340s4s4x", 348, b"\xff" * 340, b"n+1\0"))
    with pytest.raises(
        DamagedFileError, match=r"a\.nii: expected the header of a NIfTI file, got one that cannot be read"
    ):
        open_nifti(path)
    path = tmp_path / "a.nii.gz"
    path.write_bytes(b"\x1f\x8b" + b"\xff" * 600)
    with pytest.raises(DamagedFileError, match=r"a\.nii\.gz: expected compressed data, got something else"):
        open_nifti(path)


@given(place=st.integers(4, 343), garbage=st.binary(min_size=1, max_size=60))
@in_folder
def test_a_garbled_header_is_an_error_or_an_image(tmp_path, place, garbage):
    content = bytearray(save(tmp_path / "a.nii", example((3, 4, 5), "u1")).read_bytes())
    content[place : place + len(garbage)] = garbage
    (tmp_path / "a.nii").write_bytes(content)
    with suppress(ReadError):
        volume = open_nifti(tmp_path / "a.nii")
        assert volume.read().shape == volume.shape


def test_repairs_are_not_spoken_of(tmp_path, capfd):
    path = patched(save(tmp_path / "a.nii", example((3, 4, 5))), 76, "<f", 7.0)
    open_nifti(path)
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("suffix", [".nii", ".nii.gz"])
def test_an_announced_size_has_a_limit(tmp_path, suffix, monkeypatch):
    path = patched(save(tmp_path / "a.nii", example((3, 4, 5))), 42, "<hhh", 30000, 30000, 30000)
    if suffix == ".nii.gz":
        (tmp_path / "a.nii.gz").write_bytes(gzip.compress(path.read_bytes()))
    volume = open_nifti(tmp_path / f"a{suffix}")
    with pytest.raises(UnsafeFileError, match=r"got one of 1\.01e\+05 GiB"):
        volume.read()
    monkeypatch.setenv("SEGTRUST_MAX_BYTES", "239")
    with pytest.raises(UnsafeFileError, match="SEGTRUST_MAX_BYTES=240"):
        open_nifti(save(tmp_path / f"b{suffix}", example((3, 4, 5)))).read()
    monkeypatch.setenv("SEGTRUST_MAX_BYTES", "240")
    assert open_nifti(tmp_path / f"b{suffix}").read().size == 60


def test_a_bomb_is_unpacked_no_further_than_announced(tmp_path):
    plain = save(tmp_path / "a.nii", example((3, 4, 5))).read_bytes()
    (tmp_path / "a.nii.gz").write_bytes(gzip.compress(plain + bytes(1 << 26)))
    assert (open_nifti(tmp_path / "a.nii.gz").read() == example((3, 4, 5)).T).all()


def test_colours_and_complex_numbers_are_refused(tmp_path):
    colours = np.zeros((3, 4, 5), [("R", "u1"), ("G", "u1"), ("B", "u1")])
    for array in (colours, np.zeros((3, 4, 5), np.complex64)):
        with pytest.raises(WrongContentError, match="expected one real number per pixel"):
            open_nifti(save(tmp_path / "a.nii", array))


@pytest.mark.parametrize("worst", [0.0, np.nan])
def test_an_affine_that_places_nothing_is_refused(tmp_path, worst):
    path = save(tmp_path / "a.nii", example((3, 4, 5)))
    patched(path, 280, "<4f", *[worst] * 4)
    with pytest.raises(DamagedFileError, match=r"a\.nii: expected a place in space"):
        open_nifti(path)


@pytest.mark.needs("data:hippocampus")
def test_hippocampi_are_those_of_nibabel(data):
    import nibabel

    for path in sorted(data("hippocampus").glob("*/*.nii.gz"))[::20]:
        image, volume = nibabel.load(path), open_nifti(path)
        assert recognises_nifti(path, path.read_bytes()[:512])
        assert (volume.read() == np.asanyarray(image.dataobj).T).all()
        assert np.allclose(volume.grid.affine, image.affine)


@pytest.mark.parametrize("version", [1, 2])
def test_pixels_that_begin_in_the_header_are_rejected(tmp_path, version):
    path = save(tmp_path / "a.nii", example((3, 4, 5)), version=version)
    patched(path, 108 if version == 1 else 168, "<f" if version == 1 else "<q", 0)
    with pytest.raises(DamagedFileError, match=r"a\.nii: expected pixels between byte \d+ .*vox_offset"):
        open_nifti(path)


def test_one_channel_of_a_compressed_file_is_compared_with_the_checksum(tmp_path):
    path = save(tmp_path / "a.nii.gz", example((3, 4, 5, 2)))
    assert open_nifti(path).read(0).shape == (5, 4, 3)
    content = bytearray(path.read_bytes())
    content[-8] ^= 1
    path.write_bytes(content)
    with pytest.raises(DamagedFileError, match=r"a\.nii\.gz: expected compressed data"):
        open_nifti(path).read(0)


@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_pairs_are_opened_by_either_file(tmp_path, suffix):
    import nibabel

    array = example((3, 4, 5))
    nibabel.save(nibabel.Nifti1Pair(array, AFFINE), tmp_path / f"a.img{suffix}")
    names = sorted(path.name for path in tmp_path.iterdir())
    for path in tmp_path.iterdir():
        assert recognises_nifti(path, path.read_bytes()[:512]), names
        assert (open_nifti(path).read() == array.T).all()
    (tmp_path / names[1]).unlink()
    with pytest.raises(DamagedFileError, match="expected the other file of the pair"):
        open_nifti(tmp_path / names[0]).read()
