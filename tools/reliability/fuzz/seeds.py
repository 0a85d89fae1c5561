"""Real files to begin with: small, and of every kind that a reader knows."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from tools.reliability.fuzz.bundles import Bundle

__all__ = ["SEEDS"]

_NNUNET = Path(__file__).parents[3] / "tests/fixtures/nnunet"
_GEOMETRY = {"spacing": (1.0, 0.5, 0.5), "origin": (3.0, 2.0, 1.0), "direction": tuple(np.eye(3).ravel())}


def _p(*shape: int, dtype: Any = np.float32) -> Any:
    return np.random.default_rng(len(shape)).random(shape).astype(dtype)


def _labels(*shape: int) -> Any:
    return (_p(*shape) * 3).astype(np.uint8)


def _bundle(path: Path, first: str) -> Bundle:
    """Take in what was written into a folder; the file of this name, or the first below it, leads."""
    files = sorted(each for each in path.rglob("*") if each.is_file())
    found = {each.relative_to(path).as_posix(): each.read_bytes() for each in files}
    leader = first if first in found else next(name for name in found if name.startswith(first))
    return {leader: found.pop(leader), **found}


def _npy(folder: Path) -> list[Bundle]:
    arrays = {
        "a.npy": _p(12, 14),
        "b.npy": np.asfortranarray(_p(3, 6, 7, dtype=np.float64)),
        "c.npy": _labels(9, 8),
        "d.npy": _p(5, 4, dtype=np.float16).astype(">f2"),
    }
    for name, values in arrays.items():
        np.save(folder / name, values)
    return _each(folder)


def _npz(folder: Path) -> list[Bundle]:
    np.savez_compressed(folder / "a.npz", p=_p(12, 14))
    np.savez(folder / "b.npz", p=_p(3, 6, 7))
    np.savez_compressed(folder / "c.npz", p_hat=_p(3, 8, 8), y=_labels(3, 8, 8))
    return _each(folder)


def _nnunet(folder: Path) -> list[Bundle]:
    """Give what nnU-Net wrote, and the same in the way of its first version."""
    found = []
    for kind in ("plain", "regions"):
        there = _NNUNET / kind / "predictions"
        names = ("test_0.npz", "test_0.pkl", "dataset.json")
        found.append({name: (there / name).read_bytes() for name in names})
    np.savez_compressed(folder / "a.npz", softmax=np.full((2, 3, 4, 5), 0.5, np.float16))
    noted = {
        **{f"itk_{name}": value for name, value in _GEOMETRY.items()},
        "crop_bbox": [[1, 4], [0, 4], [2, 7]],
        "original_size_of_raw_data": np.array([5, 6, 8]),
    }
    return [*found, {"a.npz": (folder / "a.npz").read_bytes(), "a.pkl": pickle.dumps(noted, protocol=2)}]


def _pickle(folder: Path) -> list[Bundle]:
    noted = {
        "spacing": (1.0, 0.5),
        "box": np.array([[1, 2]]),
        "size": np.float32(3),
        "text": "é",
        "none": None,
    }
    return [{"a.pkl": pickle.dumps(noted, protocol)} for protocol in (0, 2, 4, 5)]


def _nifti(folder: Path) -> list[Bundle]:
    import nibabel

    volume, affine = _p(6, 5, 4), np.diag([0.5, 0.7, 2.0, 1.0])
    nibabel.save(nibabel.Nifti1Image(volume, affine), folder / "a.nii")
    nibabel.save(nibabel.Nifti1Image(_p(6, 5, 4, 2), affine), folder / "b.nii.gz")
    nibabel.save(nibabel.Nifti2Image(volume, affine), folder / "c.nii")
    labelled = nibabel.Nifti1Image(_labels(6, 5, 4), affine)
    table = b'<CaretExtension><LabelTable><Label Key="1">liver</Label></LabelTable></CaretExtension>'
    labelled.header.extensions.append(nibabel.nifti1.Nifti1Extension(30, table))
    nibabel.save(labelled, folder / "d.nii.gz")
    scaled = nibabel.Nifti1Image((volume * 100).astype(np.int16), affine)
    scaled.header.set_slope_inter(0.01, 0.0)
    nibabel.save(scaled, folder / "e.nii")
    nibabel.save(nibabel.Nifti1Pair(volume, affine), folder / "f.img")
    alone = ("a.nii", "b.nii.gz", "c.nii", "d.nii.gz", "e.nii")
    pair = {name: (folder / name).read_bytes() for name in ("f.img", "f.hdr")}
    return [*({name: (folder / name).read_bytes()} for name in alone), pair]


def _itk(folder: Path) -> list[Bundle]:
    import SimpleITK

    image = SimpleITK.GetImageFromArray(_p(4, 5, 6))
    image.SetSpacing((0.5, 0.7, 2.0))
    channels = SimpleITK.GetImageFromArray(_p(4, 5, 6, 2), isVector=True)
    SimpleITK.WriteImage(image, folder / "a.mha")
    SimpleITK.WriteImage(image, folder / "b.mha", useCompression=True)
    SimpleITK.WriteImage(image, folder / "c.mhd")
    SimpleITK.WriteImage(image, folder / "d.nrrd", useCompression=True)
    SimpleITK.WriteImage(channels, folder / "e.nrrd")
    SimpleITK.WriteImage(SimpleITK.GetImageFromArray(_labels(7, 8)), folder / "f.nhdr")
    alone = ({name: (folder / name).read_bytes()} for name in ("a.mha", "b.mha", "d.nrrd", "e.nrrd"))
    pairs = (("c.mhd", "c.raw"), ("f.nhdr", "f.raw"))
    return [*alone, *({name: (folder / name).read_bytes() for name in pair} for pair in pairs)]


def _image(folder: Path) -> list[Bundle]:
    from PIL import Image

    grey, deep = (_p(12, 14) * 255).astype(np.uint8), (_p(9, 8) * 65535).astype(np.uint16)
    Image.fromarray(grey).save(folder / "a.png")
    Image.fromarray(deep).save(folder / "b.png")
    Image.fromarray(grey > 128).save(folder / "c.png")
    Image.fromarray(grey).convert("P").save(folder / "d.png")
    Image.fromarray(np.repeat(grey[..., None], 4, -1)).save(folder / "e.png")
    Image.fromarray(grey).save(folder / "f.bmp")
    Image.fromarray(grey > 128).save(folder / "g.bmp")
    Image.fromarray(grey).save(folder / "h.webp", lossless=True)
    return _each(folder)


def _each(folder: Path) -> list[Bundle]:
    return [{path.name: path.read_bytes()} for path in sorted(folder.iterdir())]


def _picture(folder: Path) -> list[Bundle]:
    from PIL import Image

    colours = (_p(12, 14, 3) * 255).astype(np.uint8)
    for name in ("a.png", "b.jpg", "c.bmp", "d.tif", "e.webp"):
        Image.fromarray(colours).save(folder / name)
    Image.fromarray((_p(9, 8) * 65535).astype(np.uint16)).save(folder / "f.png")
    Image.fromarray(colours[..., 0]).save(folder / "g.tif", compression="tiff_lzw")
    return _each(folder)


def _tiff(folder: Path) -> list[Bundle]:
    import tifffile

    grey, stack = (_p(16, 16) * 255).astype(np.uint8), _p(3, 16, 16)
    plain = {"photometric": "minisblack"}
    tifffile.imwrite(folder / "a.tif", stack, **plain)
    tifffile.imwrite(folder / "b.tif", grey, compression="zlib")
    tifffile.imwrite(folder / "c.tif", grey, compression="lzw", tile=(16, 16))
    tifffile.imwrite(folder / "d.ome.tif", stack, metadata={"axes": "CYX"}, **plain)
    tifffile.imwrite(folder / "e.tif", stack, imagej=True, **plain)
    tifffile.imwrite(folder / "f.tif", grey, bigtiff=True, compression="packbits")
    tifffile.imwrite(folder / "g.tif", grey > 128)
    tifffile.imwrite(folder / "h.tif", stack, compression="zlib", predictor=True, **plain)
    tifffile.imwrite(folder / "i.tif", grey, compression="zstd", byteorder=">")
    return _each(folder)


def _hdf5(folder: Path) -> list[Bundle]:
    import h5py

    with h5py.File(folder / "a.h5", "w") as file:
        file["probabilities"] = _p(12, 14)
    with h5py.File(folder / "b.h5", "w") as file:
        file.create_dataset("x/softmax", data=_p(2, 8, 8), chunks=(1, 4, 4), compression="gzip", shuffle=True)
        file["x/link"] = h5py.SoftLink("/x/softmax")
        file["x/far"] = h5py.ExternalLink("a.h5", "/probabilities")
    with h5py.File(folder / "c.h5", "w", libver="latest") as file:
        file.create_dataset("mask", data=_labels(8, 8), chunks=(4, 4), compression="lzf", fletcher32=True)
    return _each(folder)


def _zarr(folder: Path) -> list[Bundle]:
    import zarr

    stores = [folder / str(number) / f"{name}.zarr" for number, name in enumerate("abcd")]
    zarr.save_array(stores[0], _p(12, 14), zarr_format=2)
    array = zarr.create_array(stores[1], shape=(2, 8, 8), chunks=(1, 4, 4), dtype="f4", zarr_format=3)
    array[:] = _p(2, 8, 8)
    sharded = zarr.create_array(stores[2], shape=(8, 8), chunks=(2, 2), shards=(4, 4), dtype="u1")
    sharded[:] = _labels(8, 8)
    _ome_zarr(zarr, stores[3])
    (folder / "4").mkdir()
    with zarr.storage.ZipStore(folder / "4/e.zarr.zip", mode="w") as store:
        zarr.create_array(store, shape=(6, 6), chunks=(3, 3), dtype="f8")[:] = _p(6, 6)
    firsts = ("a.zarr/.zarray", "b.zarr/zarr.json", "c.zarr/zarr.json", "d.zarr/zarr.json", "e.zarr.zip")
    return [_bundle(folder / str(number), first) for number, first in enumerate(firsts)]


def _ome_zarr(zarr: Any, path: Path) -> None:
    axes = [{"name": name, "type": "space", "unit": "micrometer"} for name in "yx"]
    level = {"path": "0", "coordinateTransformations": [{"type": "scale", "scale": [2.0, 0.5]}]}
    image = {"version": "0.5", "multiscales": [{"axes": axes, "datasets": [level]}]}
    group = zarr.create_group(path, attributes={"ome": image})
    group.create_array("0", shape=(6, 6), chunks=(3, 3), dtype="f4")[:] = _p(6, 6)


def _dicomseg(folder: Path) -> list[Bundle]:
    from tests.io.dicom_files import save, segmentation

    shape = (4, 5, 7)
    save(segmentation(_p(*shape, 2) > 0.5, "BINARY"), folder / "a.dcm")
    fractions = {"max_fractional_value": 255}
    save(segmentation(_p(*shape, 2), "FRACTIONAL", **fractions), folder / "b.dcm")
    deflated, rle = "1.2.840.10008.1.2.1.99", "1.2.840.10008.1.2.5"
    save(segmentation(_p(*shape, 2), "FRACTIONAL", transfer_syntax_uid=rle, **fractions), folder / "c.dcm")
    save(segmentation(_labels(*shape) > 0, "LABELMAP", names=("liver",)), folder / "d.dcm")
    made = segmentation(_p(*shape, 2) > 0.5, "BINARY")
    made.file_meta.TransferSyntaxUID = deflated
    save(made, folder / "e.dcm")
    return _each(folder)


def _manifest(folder: Path) -> list[Bundle]:
    import pandas

    rows = pandas.DataFrame(
        {
            "case": ["a", "007"],
            "probabilities": ["maps/a.npy", "maps/b.npz::p_hat[3]"],
            "members": ["", "m/b.npy;n/b.npy"],
            "truth": ["a.png", None],
            "group": ["x", "y"],
        }
    )
    rows.to_csv(folder / "a.csv", index=False)
    rows.to_csv(folder / "b.tsv", index=False, sep="\t")
    rows.to_parquet(folder / "c.parquet")
    return _each(folder)


def _rows() -> list[dict[str, Any]]:
    rng = np.random.default_rng(0)
    confidence = rng.beta(5, 2, 200)
    return [
        {
            "case": f"{number:03d}",
            "structure": "foreground",
            "set": "ID",
            "sdc": float(confidence[number]),
            "k": number,
            "mask": "threshold",
            "dice": float(np.clip(confidence[number] + rng.normal(0, 0.05), 0, 1)),
            "file": f"maps/{number}.npy",
        }
        for number in range(200)
    ]


def _tables(folder: Path) -> list[Bundle]:
    from segtrust.io import Table, write_table

    table = Table.of(_rows()[:6], {"format": "segtrust-scores-1", "threshold": 0.5})
    for name in ("a.csv", "b.json", "c.parquet"):
        write_table(folder / name, table)
    beside = {name: (folder / name).read_bytes() for name in ("a.csv", "a.csv.about.json")}
    return [beside, *({name: (folder / name).read_bytes()} for name in ("b.json", "c.parquet"))]


def _losses(folder: Path) -> list[Bundle]:
    summary = (_NNUNET / "plain/validation/summary.json").read_bytes()
    return [{"summary.json": summary}, {"a.csv": b"case,structure,Dice\na,organ,0.5\nb,organ,nan\n"}]


def _policy(folder: Path) -> list[Bundle]:
    from segtrust.engine import Calibration, calibrate_table, save_policies
    from segtrust.io import Table
    from segtrust.selective import Target

    reading = {"read": {"mask": None, "threshold": 0.5, "channel": None, "labels": None}}
    several = [row | {"structure": name} for name in ("liver", "spleen") for row in _rows()]
    for name, rows in (("a.json", _rows()), ("b.json", several)):
        table = Table.of(rows, reading)
        save_policies(folder / name, calibrate_table(table, Calibration("sdc", (Target(0.4),))), table)
    return [
        {name: (folder / name).read_bytes() for name in (f"{stem}.json", f"{stem}.reference.json")}
        for stem in "ab"
    ]


def _state(folder: Path) -> list[Bundle]:
    from segtrust._files import write_json
    from segtrust.calibration import TemperatureScaling
    from segtrust.maps import Case, Prediction
    from segtrust.selective import ExchangeabilityMartingale

    scaling = TemperatureScaling().fit([Case(Prediction(_p(9, 9), id="a"), _labels(9, 9) > 0)])
    write_json(folder / "a.json", scaling.to_dict())
    watch = ExchangeabilityMartingale([row["sdc"] for row in _rows()[:30]])
    for row in _rows()[30:40]:
        watch.update(row["sdc"])
    watch.save(folder / "b.json")
    return _each(folder)


def _log(folder: Path) -> list[Bundle]:
    from segtrust.engine import Outcome
    from segtrust.engine.run_log import RunLog, mark_of
    from segtrust.io import Failure

    path = folder / ".scores.csv.log"
    with RunLog(path, {"format": "segtrust-scores-1", "estimators": {"sdc": {}}, "read": {}}) as log:
        for row in _rows()[:3]:
            log.add(Outcome(row["case"], (row,)), mark_of([row["file"], 12]))
        log.add(Outcome("d", failure=Failure("d", "d.npy", "DamagedFileError", "truncated")), b"")
    return [{"scores.csv": b"", path.name: path.read_bytes()}]


def _described(folder: Path) -> list[Bundle]:
    """Give what nnU-Net writes about a data set and its predictions."""
    names = ("dataset.json", "plans.json", "predict_from_raw_data_args.json")
    kinds = ("plain", "regions")
    there = [{name: (_NNUNET / kind / "predictions" / name).read_bytes() for name in names} for kind in kinds]
    note = {"segtrust_predictor.json": b'{"predictor": "net"}'}
    splits = {"splits_final.json": b'[{"train": ["a", "b"], "val": ["c"]}]'}
    return [{**each, **note, **splits} for each in there]


SEEDS: dict[str, Callable[[Path], list[Bundle]]] = {
    "nnunet": _nnunet,
    "npz": _npz,
    "npy": _npy,
    "nifti": _nifti,
    "itk": _itk,
    "image": _image,
    "tiff": _tiff,
    "hdf5": _hdf5,
    "zarr": _zarr,
    "dicomseg": _dicomseg,
    "pickle": _pickle,
    "picture": _picture,
    "manifest": _manifest,
    "table": _tables,
    "losses": _losses,
    "policy": _policy,
    "state": _state,
    "log": _log,
    "dataset": _described,
}
"""By reader: writes files into a folder and gives them."""
