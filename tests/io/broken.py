"""Files that are broken in every way we could think of, each beside the words that must name its fault."""

import json
import os
import pickle
import struct
import zipfile
from pathlib import Path

import numpy as np

SHAPE = (12, 14)


def good_map():
    return np.random.default_rng(0).random(SHAPE).astype(np.float32)


def npz(path, **arrays):
    np.savez_compressed(path, **arrays or {"probabilities": good_map()[np.newaxis]})
    return path


def png(path, values, mode=None):
    from PIL import Image

    Image.fromarray(values, mode).save(path)
    return path


def nifti(path, values, affine=None):
    import nibabel

    nibabel.save(nibabel.Nifti1Image(values, np.eye(4) if affine is None else affine), path)
    return path


def cut(path, share=0.6):
    whole = path.read_bytes()
    path.write_bytes(whole[: int(share * len(whole))])
    return path


def change(path, at, new):
    whole = bytearray(path.read_bytes())
    whole[at : at + len(new)] = new
    path.write_bytes(whole)
    return path


def announcing(path, shape):
    """An array whose header promises far more than there is."""
    header = f"{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}, }}".ljust(117) + "\n"
    data = b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + b"\0" * 64
    path.write_bytes(data)
    return data


def bomb(path):
    """An archive of a few kilobytes that says it holds 100 GB, and has the header to go with it."""
    inside = announcing(path.with_suffix(".npy"), (25_000_000_000,))
    path.with_suffix(".npy").unlink()
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("probabilities.npy", inside)
    true, false = (struct.pack("<I", size) for size in (len(inside), 0xFFFFFFF0))
    path.write_bytes(path.read_bytes().replace(true, false))
    return path


def flipped_checksum(path):
    npz(path)
    whole = path.read_bytes()
    at = whole.index(b"PK\x01\x02") + 16  # the checksum in the directory
    return change(path, at, bytes(byte ^ 255 for byte in whole[at : at + 4]))


def saved(path, values):
    np.save(path, values, allow_pickle=True)
    return path


class Harm:
    """What a pickle may do when it is loaded."""

    def __init__(self, canary):
        self.canary = canary

    def __reduce__(self):
        return os.mkdir, (str(self.canary),)


def nnunet(folder, name, *, channels=2, geometry=None, labels=("background", "organ")):
    folder = folder / name
    folder.mkdir()
    p = np.full((channels, 4, 5, 6), 1 / channels, np.float32)
    np.savez_compressed(folder / f"{name}.npz", probabilities=p)
    if geometry is not None:
        (folder / f"{name}.pkl").write_bytes(geometry)
    (folder / "dataset.json").write_text(json.dumps({"labels": {each: i for i, each in enumerate(labels)}}))
    return folder / f"{name}.npz"


def hdf5(path, **arrays):
    import h5py

    with h5py.File(path, "w") as file:
        for name, values in arrays.items():
            file[name] = values
    return path


def dicom(path):
    from pydicom.dataset import Dataset, FileMetaDataset
    from pydicom.uid import ExplicitVRLittleEndian

    found = Dataset()
    found.file_meta = FileMetaDataset()
    found.file_meta.TransferSyntaxUID = ExplicitVRLittleEndian
    found.SOPClassUID = "1.2.840.10008.5.1.4.1.1.2"
    found.SOPInstanceUID = "1.2.3"
    found.Modality = "CT"
    found.save_as(path, enforce_file_format=True)
    return path


def tiff(path):
    import tifffile

    tifffile.imwrite(path, good_map())
    return path


def text(path, words="this is no image"):
    path.write_text(words)
    return path


def link(path, to):
    path.symlink_to(to)
    return path


def pipe(path):
    os.mkfifo(path)
    return path


def pickled(path, values):
    path.write_bytes(pickle.dumps(values))
    return path


def maps(folder: Path, canary: Path) -> dict[str, tuple[Path, str]]:
    """Maps by case, with a pattern that the reason must match."""
    rng = np.random.default_rng(1)
    nan = good_map()
    nan[3, 4] = np.nan
    spacing = pickle.dumps({"sitk_stuff": {"spacing": (1.0,) * 3}})
    return {
        "empty file": (text(folder / "a.npz", ""), "got an empty file"),
        "truncated archive": (cut(npz(folder / "b.npz")), "truncated|cannot be read"),
        "text called npz": (text(folder / "c.npz"), "none of them"),
        "garbage in the stream": (change(npz(folder / "d.npz"), 150, rng.bytes(80)), "expected"),
        "wrong checksum": (flipped_checksum(folder / "e.npz"), "checksum|expected"),
        "zip bomb": (bomb(folder / "f.npz"), "truncated|by the archive's directory|GiB"),
        "pickled array": (
            npz(folder / "h.npz", p=np.array([Harm(canary)], object)),
            "Python objects, which is a pickle",
        ),
        "two arrays": (npz(folder / "i.npz", one=good_map(), two=good_map()), "got one, two"),
        "NaN inside": (saved(folder / "j.npy", nan), r"nan.*at index \(3, 4\)|NaN"),
        "logits": (saved(folder / "k.npy", 8 * good_map() - 4), r"probabilities in \[0, 1\]"),
        "signed integers": (saved(folder / "l.npy", np.ones(SHAPE, np.int32)), "got int32"),
        "complex numbers": (saved(folder / "m.npy", good_map().astype(complex)), "got complex128"),
        "truncated npy": (cut(saved(folder / "n.npy", good_map())), "truncated"),
        "npy that announces more": (_announced(folder / "o.npy"), "truncated"),
        "no pixel": (saved(folder / "p.npy", np.zeros((0, 5), np.float32)), "at least one pixel"),
        "npy header": (change(saved(folder / "q.npy", good_map()), 10, b"{{{"), "header of a NumPy array"),
        "truncated NIfTI": (cut(nifti(folder / "r.nii.gz", good_map())), "expected"),
        "text called NIfTI": (text(folder / "s.nii.gz"), "none of them|expected"),
        "truncated PNG": (cut(png(folder / "t.png", np.uint8(255 * good_map()))), "expected"),
        "colours": (png(folder / "u.png", rng.integers(0, 255, (*SHAPE, 3)).astype(np.uint8)), "one channel"),
        "JPEG": (png(folder / "v.jpg", np.uint8(255 * good_map())), "JPEG|lossy|changes"),
        "truncated TIFF": (cut(tiff(folder / "w.tif"), 0.3), "expected"),
        "truncated HDF5": (cut(hdf5(folder / "x.h5", p=good_map())), "expected"),
        "two data sets": (hdf5(folder / "y.h5", one=good_map(), two=good_map()), "one.*two"),
        "empty Zarr": (_folder(folder / "z.zarr"), "expected"),
        "DICOM of an image": (dicom(folder / "aa.dcm"), "CT"),
        "pickle": (pickled(folder / "ab.pkl", {"p_hat": Harm(canary)}), "can run any code"),
        "pipe": (pipe(folder / "ac.npy"), "got a pipe"),
        "link to itself": (link(folder / "ad.npy", folder / "ad.npy"), "can be read|symbolic links|link"),
        "link to nothing": (link(folder / "ae.npy", folder / "gone.npy"), "no such file"),
        "folder": (_folder(folder / "af.npy"), "none of them"),
        "channels of another model": (nnunet(folder, "ag", channels=3), "expected 2 channels.*got 3"),
        "geometry that harms": (nnunet(folder, "ah", geometry=pickle.dumps(Harm(canary))), "plain data"),
        "geometry that is cut": (nnunet(folder, "ai", geometry=spacing[:-9]), "cannot be read"),
    }


def _announced(path):
    announcing(path, (4000, 4000))
    return path


def _folder(path):
    path.mkdir()
    return path


def masks(folder: Path) -> dict[str, tuple[Path, Path, str]]:
    """Maps with masks that do not go with them."""
    p = saved(folder / "map.npy", good_map())
    labels = np.zeros(SHAPE, np.uint8)
    volume = nifti(folder / "volume.nii.gz", np.full((6, 5, 4), 0.3, np.float32))
    moved = np.diag([1.0, 1.0, 2.0, 1.0])
    return {
        "mask of another shape": (
            p,
            saved(folder / "m1.npy", labels[:5]),
            r"shape of the map.*got \(5, 14\)",
        ),
        "labels": (p, saved(folder / "m2.npy", labels + np.arange(14, dtype=np.uint8)), "values from 0 to"),
        "probabilities as a mask": (p, saved(folder / "m3.npy", good_map()), "whole numbers"),
        "mask that is cut": (p, cut(saved(folder / "m4.npy", labels)), "truncated"),
        "mask elsewhere": (
            volume,
            nifti(folder / "m5.nii.gz", np.ones((6, 5, 4), np.uint8), moved),
            "spacing 1×1×1 mm.*got spacing 2×1×1 mm",
        ),
        "no mask": (p, folder / "nowhere.npy", "no such file"),
    }
