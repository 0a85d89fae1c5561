"""Files made to harm: small on the disk and huge in memory, or without an end, or leading elsewhere.

Sizes are chosen for ``SEGTRUST_MAX_BYTES`` of 16 MiB, under which readers are tested; what is announced is a
hundred times as much at least, so that whoever believes it is found out.
"""

from __future__ import annotations

import gzip
import io
import json
import pickle
import struct
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

__all__ = ["TRAPS"]

_MIB = 1 << 20
_LARGE = 32 * _MIB
"""Zeros that a trap unpacks to: twice what is allowed, and quick to pack."""
_BEYOND = 10**9


def _deflated(count: int, wbits: int = 15) -> bytes:
    packer, zeros = zlib.compressobj(1, wbits=wbits), bytes(_MIB)
    return b"".join([*(packer.compress(zeros) for _ in range(count // _MIB)), packer.flush()])


def _npy_header(shape: object) -> bytes:
    header = f"{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}, }}".ljust(117) + "\n"
    return b"\x93NUMPY\x01\0" + struct.pack("<H", len(header)) + header.encode()


def _npy(shape: object) -> Callable[[Path], Path]:
    def write(folder: Path) -> Path:
        (folder / "a.npy").write_bytes(_npy_header(shape) + bytes(64))
        return folder / "a.npy"

    return write


def _packed_npz(folder: Path) -> Path:
    """Write an array that is as large as it says."""
    packing = {"compression": zipfile.ZIP_DEFLATED, "compresslevel": 1}
    with zipfile.ZipFile(folder / "a.npz", "w", **packing) as archive, archive.open("p.npy", "w") as member:
        member.write(_npy_header((_LARGE // 4096, 1024)))
        for _ in range(_LARGE // _MIB):
            member.write(bytes(_MIB))
    return folder / "a.npz"


def _slipping_npz(folder: Path) -> Path:
    with zipfile.ZipFile(folder / "a.npz", "w") as archive:
        archive.writestr("../../evil.npy", _npy_header((4, 4)) + bytes(64))
    return folder / "a.npz"


def _many_npz(folder: Path) -> Path:
    """Write an archive of many arrays, by its directory alone, which is all that is looked at."""
    names = [f"{number}.npy".encode() for number in range(100_000)]
    entries = b"".join(
        b"PK\1\2" + struct.pack("<6H3L5H2L", *[0] * 9, len(name), *[0] * 6) + name for name in names
    )
    end = b"PK\5\6" + struct.pack("<4H2LH", 0, 0, 0xFFFF, 0xFFFF, len(entries), 4, 0)
    (folder / "a.npz").write_bytes(b"PK\3\4" + entries + end)
    return folder / "a.npz"


def _many_classes(folder: Path) -> Path:
    np.savez_compressed(folder / "a.npz", probabilities=np.zeros((100_000, 1, 1, 2), np.float32))
    return folder / "a.npz"


def _many_cases(folder: Path) -> Path:
    np.savez_compressed(folder / "a.npz", p_hat=np.zeros((1_000_000, 1, 1), np.float32))
    return folder / "a.npz"


def _nifti(lengths: tuple[int, ...], offset: float = 352.0, unpacked: int = 64) -> Callable[[Path], Path]:
    def write(folder: Path) -> Path:
        header = bytearray(348)
        struct.pack_into("<i", header, 0, 348)
        struct.pack_into("<8h", header, 40, len(lengths), *lengths, *[1] * (7 - len(lengths)))
        struct.pack_into("<2h", header, 70, 16, 32)
        struct.pack_into("<9f", header, 76, *[1.0] * 8, offset)
        header[344:348] = b"n+1\0"
        name = "a.nii" if unpacked < _MIB else "a.nii.gz"
        content = bytes(header) + bytes(4)
        packed = gzip.compress(content) + _deflated(unpacked, 31) if unpacked >= _MIB else content + bytes(64)
        (folder / name).write_bytes(packed)
        return folder / name

    return write


def _png(width: int, height: int, unpacked: int, *, name: bytes = b"IDAT") -> Callable[[Path], Path]:
    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    def write(folder: Path) -> Path:
        header = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0))
        note = b"" if name == b"IDAT" else b"a\0\0"
        pixels = b"" if name == b"IDAT" else chunk(b"IDAT", zlib.compress(bytes((width + 1) * height)))
        packed = chunk(name, note + _deflated(unpacked))
        (folder / "a.png").write_bytes(b"\x89PNG\r\n\x1a\n" + header + packed + pixels + chunk(b"IEND", b""))
        return folder / "a.png"

    return write


def _bmp(folder: Path) -> Path:
    header = struct.pack("<IiiHHIIiiII", 40, 60_000, 60_000, 1, 8, 1, 0, 0, 0, 256, 0)
    (folder / "a.bmp").write_bytes(
        b"BM" + struct.pack("<IHHI", 200, 0, 0, 1078) + header + bytes(1024) + b"\0\1"
    )
    return folder / "a.bmp"


def _webp(folder: Path) -> Path:
    """Write a lossless image that announces 16384 × 16384 pixels."""
    data = b"\x2f" + b"\xff\xff\xff\x0f" + bytes(11)
    content = b"WEBPVP8L" + struct.pack("<I", len(data)) + data
    (folder / "a.webp").write_bytes(b"RIFF" + struct.pack("<I", len(content)) + content)
    return folder / "a.webp"


def _directory(tags: dict[int, int], following: int = 0) -> bytes:
    """Give the directory of a page of TIFF, with one number for each tag."""
    usual = {256: 16, 257: 16, 258: 8, 259: 1, 262: 1, 273: 8, 277: 1, 278: 16, 279: 256}
    wanted = sorted(
        ({**usual, **tags} if 322 not in tags else {**usual, **tags, 273: -1, 278: -1, 279: -1}).items()
    )
    kept = [(tag, value) for tag, value in wanted if value >= 0]
    entries = b"".join(struct.pack("<HHII", tag, 4, 1, value) for tag, value in kept)
    return struct.pack("<H", len(kept)) + entries + struct.pack("<I", following)


def _tiff(tags: dict[int, int], data: Callable[[], bytes] = lambda: bytes(256)) -> Callable[[Path], Path]:
    def write(folder: Path) -> Path:
        pixels = data()
        directory = _directory({279: len(pixels), **tags})
        content = b"II*\0" + struct.pack("<I", 8 + len(pixels)) + pixels + directory
        (folder / "a.tif").write_bytes(content)
        return folder / "a.tif"

    return write


def _circular_tiff(folder: Path) -> Path:
    length = len(_directory({}))
    pages = _directory({}, 264 + length) + _directory({}, 264)
    (folder / "a.tif").write_bytes(b"II*\0" + struct.pack("<I", 264) + bytes(256) + pages)
    return folder / "a.tif"


def _long_tiff(folder: Path) -> Path:
    length = len(_directory({}))
    pages = b"".join(_directory({}, 264 + (number + 1) * length) for number in range(100_000))
    (folder / "a.tif").write_bytes(b"II*\0" + struct.pack("<I", 264) + bytes(256) + pages)
    return folder / "a.tif"


def _hdf5(**how: Any) -> Callable[[Path], Path]:
    def write(folder: Path) -> Path:
        import h5py

        with h5py.File(folder / "a.h5", "w") as file:
            file.create_dataset("p", **how)
        return folder / "a.h5"

    return write


def _packed_hdf5(folder: Path) -> Path:
    """Write a chunk that unpacks to far more than its pixels."""
    import h5py

    with h5py.File(folder / "a.h5", "w") as file:
        made = file.create_dataset("p", shape=(64, 64), chunks=(64, 64), compression="gzip", dtype="u1")
        made.id.write_direct_chunk((0, 0), _deflated(_LARGE))
    return folder / "a.h5"


def _crowded_hdf5(folder: Path) -> Path:
    import h5py

    with h5py.File(folder / "a.h5", "w") as file:
        for number in range(5000):
            file.create_group(str(number))
        file["p"] = np.zeros((4, 4), np.float32)
    return folder / "a.h5"


def _outward_hdf5(folder: Path) -> Path:
    import h5py

    with h5py.File(folder / "a.h5", "w") as file:
        kept = [("/etc/passwd", 0, 256)]
        file.create_dataset("p", shape=(16, 16), dtype="u1", external=kept)
    return folder / "a.h5"


def _zarr(
    shape: list[int], chunks: list[int], codec: str | None = None, chunk: Callable[[], bytes] | None = None
) -> Callable[[Path], Path]:
    def write(folder: Path) -> Path:
        about = {"zarr_format": 2, "shape": shape, "chunks": chunks, "dtype": "|u1", "fill_value": 0}
        packing = {"id": codec} if codec else None
        place = folder / "a.zarr"
        place.mkdir()
        (place / ".zarray").write_text(
            json.dumps({**about, "compressor": packing, "order": "C", "filters": None})
        )
        if chunk is not None:
            (place / "0.0").write_bytes(chunk())
        return place

    return write


def _encoded(codec: str, count: int = _LARGE) -> Callable[[], bytes]:
    def make() -> bytes:
        import numcodecs

        return bytes(numcodecs.get_codec({"id": codec}).encode(bytes(count)))

    return make


def _lying_blosc() -> bytes:
    packed = bytearray(_encoded("blosc", 4096)())
    struct.pack_into("<I", packed, 4, 0x7FFFFF00)
    return bytes(packed)


def _sharded_zarr(folder: Path) -> Path:
    """Write a shard whose only chunk is packed by gzip and unpacks to far more than its pixels."""
    import zarr

    codecs = {"shards": (64, 64), "chunks": (32, 32), "compressors": zarr.codecs.GzipCodec(level=1)}
    array = zarr.create_array(folder / "a.zarr", shape=(64, 64), dtype="u1", **codecs)
    array[:32, :32] = 1
    (shard,) = (
        path for path in (folder / "a.zarr").rglob("*") if path.is_file() and path.name != "zarr.json"
    )
    packed, absent = _deflated(_LARGE, 31), struct.pack("<2Q", 2**64 - 1, 2**64 - 1)
    index = struct.pack("<2Q", 0, len(packed)) + 3 * absent
    from numcodecs.checksum32 import CRC32C

    shard.write_bytes(packed + bytes(CRC32C(location="end").encode(index)))
    return folder / "a.zarr"


def _linked_pixels(name: str) -> Callable[[Path], Path]:
    def write(folder: Path) -> Path:
        place = folder / name
        place.parent.mkdir(exist_ok=True)
        place.symlink_to("/etc/passwd")
        return _nrrd(f"dimension: 2\nsizes: 2 2\nencoding: raw\ndata file: {name}\n")(folder)

    return write


def _linked_zarr(folder: Path) -> Path:
    place = _zarr([64, 64], [64, 64])(folder)
    (place / "0.0").symlink_to("/etc/passwd")
    return place


def _zipped_zarr(folder: Path) -> Path:
    with zipfile.ZipFile(folder / "a.zarr.zip", "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        archive.writestr("zarr.json", b" " * _LARGE)
    return folder / "a.zarr.zip"


def _pickling_zarr(folder: Path) -> Path:
    return _zarr([64, 64], [64, 64], "pickle", lambda: b"cos\ngetcwd\n(tR.")(folder)


def _dicom(rows: int, pixels: int, syntax: str) -> Callable[[Path], Path]:
    def write(folder: Path) -> Path:
        from tests.io.dicom_files import save, segmentation

        made = segmentation(np.ones((4, 5, 7, 1), bool), "BINARY", names=("liver",))
        made.Rows, made.Columns = rows, rows
        made.file_meta.TransferSyntaxUID = syntax
        made.PixelData = bytes(pixels)
        return save(made, folder / "a.dcm")

    return write


def _meta_image(header: str, data: Callable[[], bytes] = lambda: bytes(64)) -> Callable[[Path], Path]:
    def write(folder: Path) -> Path:
        usual = "ObjectType = Image\nNDims = 3\nBinaryData = True\nElementType = MET_UCHAR\n"
        (folder / "a.mha").write_bytes(f"{usual}{header}ElementDataFile = LOCAL\n".encode() + data())
        return folder / "a.mha"

    return write


def _named(files: str) -> Callable[[Path], Path]:
    """Write a MetaImage whose pixels are in files of these names."""
    fields = f"NDims = 2\nDimSize = 2 2\nElementType = MET_UCHAR\nElementDataFile = {files}\n"
    return _text("a.mhd", fields.encode)


def _nrrd(fields: str) -> Callable[[Path], Path]:
    def write(folder: Path) -> Path:
        (folder / "a.nrrd").write_bytes(f"NRRD0004\ntype: uint8\n{fields}\n".encode() + bytes(64))
        return folder / "a.nrrd"

    return write


def _text(name: str, content: Callable[[], bytes]) -> Callable[[Path], Path]:
    def write(folder: Path) -> Path:
        (folder / name).write_bytes(content())
        return folder / name

    return write


def _parquet(rows: int, text: str) -> Callable[[Path], Path]:
    """Write one text many times, which takes a few bytes each."""

    def write(folder: Path) -> Path:
        import pyarrow
        import pyarrow.parquet

        column = pyarrow.array([text]).take(pyarrow.array(np.zeros(rows, np.int64)))
        table = pyarrow.table({"case": column, "probabilities": column})
        pyarrow.parquet.write_table(table, folder / "a.parquet", compression="zstd")
        return folder / "a.parquet"

    return write


def _harmful_pickle() -> bytes:
    return b"cos\nmkdir\n(Vevil\ntR."


_DEEP = b"[" * 200_000
_TRAPS: dict[str, dict[str, Callable[[Path], Path]]] = {
    "npy": {"10¹⁸ pixels": _npy((10**18,)), "70 axes": _npy((9,) * 70)},
    "npz": {
        "deflate bomb": _packed_npz,
        "path out of the archive": _slipping_npz,
        "100,000 arrays": _many_npz,
        "1,000,000 cases": _many_cases,
    },
    "nnunet": {"100,000 classes": _many_classes},
    "nifti": {
        "32767⁷ pixels": _nifti((32767,) * 7),
        "gzip bomb": _nifti((3000, 2700, 1), unpacked=_LARGE),
        "pixels far behind": _nifti((20, 20, 1), 1e9, unpacked=_LARGE),
    },
    "image": {
        "2³¹ × 2³¹ pixels": _png(2**31 - 1, 2**31 - 1, _MIB),
        "deflate bomb": _png(5000, 6000, _LARGE),
        "bomb in a note": _png(4, 4, _LARGE, name=b"zTXt"),
        "bomb in a profile": _png(4, 4, _LARGE, name=b"iCCP"),
        "BMP of 3.6 · 10⁹ pixels": _bmp,
        "WebP of 2.7 · 10⁸ pixels": _webp,
    },
    "picture": {
        "2³¹ × 2³¹ pixels": _png(2**31 - 1, 2**31 - 1, _MIB),
        "deflate bomb": _png(5000, 6000, _LARGE),
    },
    "tiff": {
        "2³² × 2³² pixels": _tiff({256: 2**32 - 1, 257: 2**32 - 1, 259: 8}),
        "deflate bomb": _tiff({259: 8}, lambda: _deflated(_LARGE)),
        "tile of 4 GiB": _tiff({259: 8, 322: 65520, 323: 65520, 324: 8, 325: 256}),
        "pages in a circle": _circular_tiff,
        "100,000 pages": _long_tiff,
    },
    "hdf5": {
        "10¹⁸ pixels": _hdf5(shape=(_BEYOND, _BEYOND), chunks=(64, 64), dtype="u1"),
        "chunks of a pixel": _hdf5(shape=(3000, 3000), chunks=(1, 1), dtype="u1"),
        "chunk of 1 GiB": _hdf5(shape=(1 << 15, 1 << 15), chunks=(1 << 15, 1 << 15), dtype="u1"),
        "deflate bomb": _packed_hdf5,
        "5,000 groups": _crowded_hdf5,
        "pixels in another file": _outward_hdf5,
    },
    "zarr": {
        "10¹⁸ pixels": _zarr([_BEYOND, _BEYOND], [64, 64]),
        "chunk of 10¹⁸ pixels": _zarr([_BEYOND, _BEYOND], [_BEYOND, _BEYOND]),
        "chunks of a pixel": _zarr([3000, 3000], [1, 1]),
        **{
            f"{codec} bomb": _zarr([64, 64], [64, 64], codec, _encoded(codec))
            for codec in ("zlib", "gzip", "bz2", "lzma", "zstd", "lz4")
        },
        "blosc that announces 2 GiB": _zarr([64, 64], [64, 64], "blosc", _lying_blosc),
        "gzip bomb in a shard": _sharded_zarr,
        "chunk that is a link": _linked_zarr,
        "zip bomb": _zipped_zarr,
        "pickle": _pickling_zarr,
        "nesting": lambda folder: _text("a.zarr/.zarray", lambda: _DEEP)(_made(folder)).parent,
    },
    "dicomseg": {
        "32767 × 32767 pixels": _dicom(32767, 64, "1.2.840.10008.1.2.1"),
        "deflate bomb": _dicom(5, _LARGE, "1.2.840.10008.1.2.1.99"),
    },
    "itk": {
        "10¹⁵ pixels": _meta_image("DimSize = 100000 100000 100000\n"),
        "deflate bomb": _meta_image(
            "CompressedData = True\nDimSize = 3000 2500 4\n", lambda: _deflated(_LARGE)
        ),
        "10⁸ axes": _meta_image("NDims = 100000000\nDimSize = 4 4 4\n"),
        "NRRD of 10¹⁵ pixels": _nrrd("dimension: 3\nsizes: 100000 100000 100000\nencoding: raw\n"),
        "names that divide by zero": _named("a%d.raw 1 2 0"),
        "names that read from anywhere": _named("a%s.raw 1 2 1"),
        "names that are too long": _named("a" * 90 + "%d.raw 1 2 1"),
        "matrix without end": _meta_image("TransformMatrix = 1 0 0 0 1 0 1e308 0 1\nDimSize = 4 4 4\n"),
        "10⁹ lines to skip": _nrrd("dimension: 2\nsizes: 2 2\nencoding: raw\nline skip: 999999999\n"),
        "pixels elsewhere": _nrrd("dimension: 2\nsizes: 2 2\nencoding: raw\ndata file: /etc/passwd\n"),
        "a link to pixels elsewhere": _linked_pixels("a.raw"),
        "pixels elsewhere that look like a list": _linked_pixels("list/a.raw"),
    },
    "pickle": {
        "code": _text("a.pkl", _harmful_pickle),
        "steps without end": _text("a.pkl", lambda: b"\x80\x04" + b"(" * 4_000_000),
        "2⁶⁰ bytes": _text("a.pkl", lambda: b"\x80\x05\x96" + struct.pack("<Q", 1 << 60)),
        "10⁵ digits": _text("a.pkl", lambda: b"L" + b"9" * 100_000 + b"L\n."),
        "objects": _text("a.pkl", lambda: pickle.dumps(io.BytesIO(b"code"))),
    },
    "manifest": {
        "Parquet of 10⁸ characters": _parquet(20_000, "x" * 5000),
        "300,000 rows": _text("a.csv", lambda: b"case,probabilities\n" + b"a,b\n" * 300_000),
        "a row of 2,000,000 cells": _text("a.csv", lambda: b"case,probabilities\n" + b"," * 2_000_000),
    },
    "table": {
        "Parquet of 10⁸ characters": _parquet(20_000, "x" * 5000),
        "100,000 columns": _text("a.csv", lambda: b"," * 100_000 + b"\n" + b"a\n" * 1000),
        "nesting": _text("a.json", lambda: _DEEP),
    },
    "losses": {"nesting": _text("a.json", lambda: _DEEP)},
    "policy": {"nesting": _text("a.json", lambda: _DEEP)},
    "state": {"nesting": _text("a.json", lambda: _DEEP)},
    "dataset": {
        "700,000 labels": _text(
            "dataset.json", lambda: b'{"labels": {' + b'"abcdef": 1, ' * 700_000 + b'"b": 2}}'
        ),
        "10⁴ digits": _text("dataset.json", lambda: b'{"labels": {"a": 1' + b"0" * 10_000 + b"}}"),
    },
}
TRAPS = {(reader, name): write for reader, traps in _TRAPS.items() for name, write in traps.items()}
"""By reader and by what they are: writes a trap into a folder, and gives the path that is read."""


def _made(folder: Path) -> Path:
    (folder / "a.zarr").mkdir()
    return folder
