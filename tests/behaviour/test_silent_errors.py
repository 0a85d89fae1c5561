"""Files that once led to a wrong number which a certified policy accepted: each is a failure, or deferred."""

import shutil
import struct
import zipfile
import zlib

import numpy as np
import pytest

import segtrust as st
from tests.behaviour.decision_data import write_cases
from tests.behaviour.helpers import read_csv
from tests.commands import segtrust


def disc(side=32):
    y, x = np.ogrid[-1 : 1 : side * 1j, -1 : 1 : side * 1j]
    return (1 / (1 + np.exp(12 * (np.hypot(y, x) - 0.6)))).astype(np.float32)


def write_stored_npz(folder):
    """The second half of the pixels is zeros, as in a copy that stopped inside a preallocated file."""
    path = folder / "case.npz"
    np.savez(path, probabilities=disc()[None])
    content = bytearray(path.read_bytes())
    with zipfile.ZipFile(path) as archive:
        end = archive.start_dir
    content[end - disc().nbytes // 2 : end] = bytes(disc().nbytes // 2)
    path.write_bytes(content)


def write_short_png(folder):
    """The compressed stream is intact, but holds only half of the rows that the header announces."""
    rows = (disc() * 255).astype(np.uint8)[:16]
    parts = {
        b"IHDR": struct.pack(">IIBBBBB", 32, 32, 8, 0, 0, 0, 0),
        b"IDAT": zlib.compress(b"".join(b"\0" + row.tobytes() for row in rows)),
        b"IEND": b"",
    }
    chunks = [
        struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))
        for name, body in parts.items()
    ]
    (folder / "case.png").write_bytes(b"\x89PNG\r\n\x1a\n" + b"".join(chunks))


def write_empty_zarr(folder):
    """An array that was described, and of which not one chunk was written; a file manager left a note."""
    import zarr

    zarr.create_array(folder / "case.zarr", shape=(32, 32), chunks=(16, 16), dtype="f4", fill_value=0.9)
    (folder / "case.zarr/.DS_Store").write_bytes(b"x")


@pytest.mark.parametrize(
    ("write", "reason"),
    [
        (write_stored_npz, "checksum"),
        pytest.param(write_short_png, "truncated", marks=pytest.mark.needs("PIL")),
        pytest.param(write_empty_zarr, "chunks", marks=pytest.mark.needs("zarr")),
    ],
)
def test_truncated_files_are_failures(tmp_path, write, reason):
    maps = tmp_path / "maps"
    maps.mkdir()
    np.save(maps / "whole.npy", disc())
    write(maps)
    done = segtrust("score", maps, "-o", tmp_path / "scores.csv", "--estimators", "sdc,amsp")
    assert done.returncode == 1
    assert [row["case"] for row in read_csv(tmp_path / "scores.csv")] == ["whole"]
    (failure,) = read_csv(tmp_path / "failures.csv")
    assert failure["case"] == "case"
    assert reason in failure["reason"]


def write_one_channel_npz(path):
    """A byte was changed on the way, in pixels behind the channel that is scored."""
    p = np.stack([disc(), disc() / 2, disc() / 4])[:, None]
    np.savez_compressed(path, probabilities=p)
    with zipfile.ZipFile(path) as archive:
        content = bytearray(archive.read("probabilities.npy"))
        crc = archive.getinfo("probabilities.npy").CRC
    content[-1] ^= 1
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("probabilities.npy", bytes(content))
    changed = zlib.crc32(content).to_bytes(4, "little")
    path.write_bytes(path.read_bytes().replace(changed, crc.to_bytes(4, "little")))


def write_hdf5(path, chunks=None, **attributes):
    """Only the upper half is written if there are chunks."""
    import h5py

    with h5py.File(path, "w") as file:
        if chunks is None:
            file["p"] = (disc() * 254).astype(np.uint8)
        else:
            file.create_dataset("p", (32, 32), "f4", chunks=chunks, fillvalue=0.99)[:16] = disc()[:16]
        file["p"].attrs.update(attributes)


def write_zarr(path, values, count, **attributes):
    import zarr

    options = {"shape": (32, 32), "chunks": (16, 16), "dtype": values.dtype, "fill_value": 0}
    array = zarr.create_array(path, attributes=attributes, **options)
    array[:count] = values[:count]


def write_tiff(path, *, sparse=False, **options):
    import tifffile

    values = (disc() * 255).astype(np.uint8)
    tifffile.imwrite(path, values, compression="zlib", rowsperstrip=16, **options)
    if sparse:
        with tifffile.TiffFile(path, mode="r+") as file:
            tags = file.pages[0].tags
            for name in ("StripOffsets", "StripByteCounts"):
                tags[name].overwrite((tags[name].value[0], 0))


def write_imagej(path):
    import tifffile

    tifffile.imwrite(path, (disc() * 255).astype(np.uint8), imagej=True)
    with tifffile.TiffFile(path, mode="r+") as file:
        file.pages[0].tags["PhotometricInterpretation"].overwrite(0)


def write_turned_png(path):
    from PIL import Image

    exif = Image.Exif()
    exif[0x0112] = 6
    Image.fromarray((disc() * 255).astype(np.uint8)).save(path, exif=exif)


def write_palette_png(path):
    from PIL import Image

    image = Image.fromarray((disc() * 255).astype(np.uint8))
    image.putpalette(np.random.default_rng(0).integers(0, 256, 768).astype(np.uint8).tobytes())
    image.save(path)


def write_nifti(path):
    import nibabel

    nibabel.save(nibabel.Nifti1Image(disc()[..., None], np.eye(4)), path)
    content = bytearray(path.read_bytes())
    content[108:112] = bytes(4)
    path.write_bytes(content)


def write_mha(path):
    import SimpleITK

    SimpleITK.WriteImage(SimpleITK.GetImageFromArray(disc()), str(path))
    path.write_bytes(path.read_bytes().replace(b"DimSize = 32 32", b"DimSize = 32 16"))


RAMP = np.tile(np.arange(256, dtype=np.uint16) * 257, (3, 1))
MISREAD = {
    "scaled.h5": (lambda path: write_hdf5(path, scale_factor=1 / 254), "scale_factor"),
    "half.h5": (lambda path: write_hdf5(path, chunks=(8, 32)), "2 of 4 chunks"),
    "scaled.zarr": (
        lambda path: write_zarr(path, (disc() * 254).astype(np.uint8) + 1, 32, add_offset=-1),
        "add_offset",
    ),
    "half.zarr": (lambda path: write_zarr(path, disc() + np.float32(0.1), 16), "2 of 4 chunks"),
    "sparse.tif": (lambda path: write_tiff(path, sparse=True), "1 of 2 strips"),
    "palette.tif": (
        lambda path: write_tiff(path, photometric="palette", colormap=RAMP[:, ::-1] * [[1], [0], [1]]),
        "palette",
    ),
    "turned.tif": (lambda path: write_tiff(path, extratags=[(274, "H", 1, 3, True)]), "orientation"),
    "imagej.tif": (write_imagej, "lookup table"),
    "turned.png": (write_turned_png, "orientation"),
    "palette.png": (write_palette_png, "palette"),
    "offset.nii": (write_nifti, "vox_offset"),
    "surplus.mha": (write_mha, "4096"),
}


@pytest.mark.needs("PIL", "SimpleITK", "h5py", "nibabel", "tifffile", "zarr")
def test_files_that_were_misread_are_failures(tmp_path):
    maps = tmp_path / "maps"
    maps.mkdir()
    np.save(maps / "whole.npy", disc())
    with (tmp_path / "cases.csv").open("w") as manifest:
        manifest.write("case,probabilities\nwhole,maps/whole.npy\n")
        for name, (write, _) in MISREAD.items():
            write(maps / name)
            manifest.write(f"{name},maps/{name}\n")
    done = segtrust("score", tmp_path / "cases.csv", "-o", tmp_path / "scores.csv", "--estimators", "sdc")
    assert done.returncode == 1
    assert [row["case"] for row in read_csv(tmp_path / "scores.csv")] == ["whole"]
    reasons = {row["case"]: row["reason"] for row in read_csv(tmp_path / "failures.csv")}
    assert reasons.keys() == MISREAD.keys()
    assert [name for name, (_, reason) in MISREAD.items() if reason not in reasons[name]] == []


def test_one_channel_of_an_archive_is_compared_with_the_checksum(tmp_path):
    write_one_channel_npz(tmp_path / "case.npz")
    done = segtrust("score", tmp_path / "case.npz", "-o", tmp_path / "scores.csv", "--channel", "0")
    assert done.returncode != 0
    assert "checksum" in read_csv(tmp_path / "failures.csv")[0]["reason"]


@pytest.mark.needs("h5py")
def test_a_file_that_hdf5_links_to_is_part_of_the_case(tmp_path):
    import h5py

    def score(p):
        with h5py.File(tmp_path / "pixels.data", "w") as file:
            file["p"] = p
        done = segtrust("score", tmp_path / "cases.csv", "-o", tmp_path / "scores.csv")
        assert done.returncode == 0, done.stderr
        (row,) = read_csv(tmp_path / "scores.csv")
        return row["sdc"]

    with h5py.File(tmp_path / "case.h5", "w") as file:
        file["p"] = h5py.ExternalLink("pixels.data", "p")
    (tmp_path / "cases.csv").write_text("case,probabilities\ncase,case.h5::p\n")
    assert score(disc()) != score(disc() ** 2)


@pytest.mark.needs("PIL")
def test_labels_of_4_bits_keep_their_numbers(tmp_path):
    mask = disc() >= 0.5
    rows = np.packbits(np.where(mask, 3, 0)[..., None].astype(np.uint8) >> np.array([3, 2, 1, 0]) & 1)
    body = b"".join(b"\0" + row.tobytes() for row in rows.reshape(32, 16))
    parts = {
        b"IHDR": struct.pack(">IIBBBBB", 32, 32, 4, 0, 0, 0, 0),
        b"IDAT": zlib.compress(body),
        b"IEND": b"",
    }
    chunks = [
        struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
        for name, data in parts.items()
    ]
    np.save(tmp_path / "map.npy", disc())
    (tmp_path / "truth.png").write_bytes(b"\x89PNG\r\n\x1a\n" + b"".join(chunks))
    (tmp_path / "cases.csv").write_text("case,probabilities,truth\na,map.npy,truth.png\n")
    done = segtrust("score", tmp_path / "cases.csv", "-o", tmp_path / "scores.csv", "--label", "3")
    assert done.returncode == 0, done.stderr
    assert float(read_csv(tmp_path / "scores.csv")[0]["dice"]) == 1.0


def test_an_empty_mask_is_never_accepted_under_the_policy_paper():
    confidence = np.linspace(0, 1, 400)
    certificate = st.certify_threshold(
        confidence, (1 - confidence) / 2, target_risk=0.2, reference=np.linspace(0, 0.99, 50)
    )
    for empty, decision in (("paper", "defer"), ("agree", "no finding")):
        policy = st.Policy.from_certificate(certificate, st.Scoring("amsp", empty=empty))
        assert policy.decide(1.0, empty_mask=True) == decision
        assert policy.decide(1.0) == "accept"


@pytest.mark.needs("PIL")
def test_maps_of_a_wrong_scale_are_never_accepted(tmp_path):
    """A policy on aMSP, and maps of 0 and 1, of 12 bits in 16, and in per cent: all pixels look sure."""
    from PIL import Image

    write_cases(tmp_path / "known", 160, truth_folder=tmp_path / "truth")
    scored = tmp_path / "known.csv"
    options = ("--truth", tmp_path / "truth", "--estimators", "amsp")
    assert segtrust("score", tmp_path / "known", "-o", scored, *options).returncode == 0
    policy = ("calibrate", scored, "-o", tmp_path / "policy.json", "--target-risk", 0.5)
    done = segtrust(*policy, "--estimator", "amsp", "--predictor", "net")
    assert done.returncode == 0, done.stderr
    new = tmp_path / "new"
    new.mkdir()
    shutil.copy(write_cases(tmp_path / "other", 1, first=300) / "case_000.npy", new / "whole.npy")
    scales = {"ones": (1, np.uint8), "bits": (4095, np.uint16), "percent": (100, np.uint8)}
    for name, (most, dtype) in scales.items():
        Image.fromarray(np.round(disc() * most).astype(dtype)).save(new / f"{name}.png")
    out = tmp_path / "triage"
    done = segtrust("triage", new, "--policy", tmp_path / "policy.json", "-o", out, "--predictor", "net")
    assert done.returncode == 0, done.stderr
    decisions = {row["case"]: (row["decision"], float(row["amsp"])) for row in read_csv(out / "scores.csv")}
    assert sorted(decisions) == ["bits", "ones", "percent", "whole"]
    surest = max(float(row["amsp"]) for row in read_csv(scored))
    for name in scales:
        assert decisions[name][0] == "defer"
        assert name == "percent" or decisions[name][1] > surest


@pytest.mark.needs("nibabel")
def test_arrays_in_the_order_of_nibabel_against_nifti(tmp_path):
    """A cubic array (x, y, z) without geometry fits ground truth in NIfTI, and the Dice was 0."""
    import nibabel

    truth = np.zeros((16, 16, 16), np.uint8)
    truth[2:14, 9:14, 1:4] = 1
    np.save(tmp_path / "map.npy", np.where(truth, 0.9, 0.1).astype(np.float32))
    nibabel.save(nibabel.Nifti1Image(truth, np.eye(4)), tmp_path / "truth.nii.gz")
    (tmp_path / "cases.csv").write_text("case,probabilities,truth\na,map.npy,truth.nii.gz\n")
    done = segtrust("score", tmp_path / "cases.csv", "-o", tmp_path / "scores.csv")
    assert done.returncode != 0
    assert "(z, y, x)" in read_csv(tmp_path / "failures.csv")[0]["reason"]


def test_copies_are_reported_by_name(tmp_path):
    """The same map under several names, in one folder."""
    maps = write_cases(tmp_path / "maps", 3)
    for number in range(2):
        shutil.copy(maps / "case_001.npy", maps / f"copy_{number}.npy")
    done = segtrust("score", maps, "-o", tmp_path / "scores.csv")
    assert done.returncode == 0
    assert "copies" in done.stderr
    assert "copy_0" in done.stderr
