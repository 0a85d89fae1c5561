"""Files that once led to a wrong number which a certified policy accepted: each is a failure, or deferred."""

import struct
import zipfile
import zlib

import numpy as np
import pytest

import segtrust as st
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


def test_an_empty_mask_is_never_accepted_under_the_policy_paper():
    confidence = np.linspace(0, 1, 400)
    certificate = st.certify_threshold(
        confidence, (1 - confidence) / 2, target_risk=0.2, reference=np.linspace(0, 0.99, 50)
    )
    for empty, decision in (("paper", "defer"), ("agree", "no finding")):
        policy = st.Policy.from_certificate(certificate, st.Scoring("amsp", empty=empty))
        assert policy.decide(1.0, empty_mask=True) == decision
        assert policy.decide(1.0) == "accept"
