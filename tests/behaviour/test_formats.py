"""Score tables of every format that is read: the same maps have the same scores, whatever holds them.

Each file is written by the library that usually writes the format.
"""

import hashlib
import json
import pickle
import shutil
from pathlib import Path

import numpy as np
import pytest

import segtrust as st
from tests.behaviour.helpers import assert_golden, assert_golden_table, assert_same, golden, read_csv
from tests.behaviour.maps import CONTENTS, FLAT, VOLUME, blob, softmax_like, truth_of, write_cases
from tests.commands import segtrust

NNUNET = Path(__file__).parents[1] / "fixtures/nnunet"
RELEASE = Path(__file__).parents[1] / "fixtures/release-0.1.0"
FILES = ("file", "mask_file", "truth_file", "image_file", "member_files")
ABOUT = ("case", "structure", "mask", "shape", "spacing_mm", "checksum", "mask_checksum")
"""Columns that depend on the file, not on the numbers in it."""


def score_rows(*arguments, out, code=0):
    """Run ``score`` and return its rows, with names instead of paths and without times."""
    done = segtrust("score", *arguments, "-o", out, "--details")
    assert done.returncode == code, done.stdout + done.stderr
    return table_rows(out)


def table_rows(path):
    rows = read_csv(path, without=("seconds",))
    for row in rows:
        for column in FILES:
            if row.get(column):
                row[column] = ";".join(Path(each.partition("::")[0]).name for each in row[column].split(";"))
    return rows


# Writers: each puts maps into a folder, and returns the content of each file by its case.


def write_npy(folder):
    for content, values in CONTENTS.items():
        np.save(folder / f"{content.replace(' ', '-')}.npy", values)
    np.save(folder / "fortran.npy", np.asfortranarray(CONTENTS["volume f4"]))
    np.save(folder / "big-endian.npy", CONTENTS["volume f4"].astype(">f4"))
    return {content.replace(" ", "-"): content for content in CONTENTS} | {
        "fortran": "volume f4",
        "big-endian": "volume f4",
    }


def write_npz(folder):
    np.savez_compressed(folder / "packed.npz", probabilities=CONTENTS["volume f4"])
    np.savez(folder / "stored.npz", p=CONTENTS["flat f4"])
    return {"packed": "volume f4", "stored": "flat f4"}


def write_nnunet(folder):
    p = CONTENTS["volume f4"]
    np.savez_compressed(folder / "liver_01.npz", probabilities=np.stack([1 - p, p]))
    geometry = {"spacing": (0.5, 0.75, 3.0), "origin": (1.0, 2.0, 3.0), "direction": tuple(np.eye(3).ravel())}
    (folder / "liver_01.pkl").write_bytes(pickle.dumps({"sitk_stuff": geometry, "spacing": [3.0, 0.75, 0.5]}))
    (folder / "dataset.json").write_text(json.dumps({"labels": {"background": 0, "liver": 1}}))
    return {"liver_01": "volume f4"}


def write_nifti(folder):
    import nibabel

    affine = np.diag([0.5, 0.75, 3.0, 1.0])
    affine[:3, 3] = (-20, 30, 5)
    written = {"plain.nii": "volume f4", "packed.nii.gz": "volume f4", "levels.nii.gz": "volume u1"}
    for name, content in written.items():
        nibabel.save(nibabel.Nifti1Image(CONTENTS[content].T, affine), folder / name)
    nibabel.save(nibabel.Nifti2Image(CONTENTS["volume f8"].T, affine), folder / "second.nii")
    return {name.partition(".")[0]: content for name, content in written.items()} | {"second": "volume f8"}


def write_itk(folder, endings, packed):
    import SimpleITK

    written = {}
    for ending in endings:
        for content in ("volume f4", "volume u2", "flat u1"):
            image = SimpleITK.GetImageFromArray(CONTENTS[content])
            image.SetSpacing((0.5, 0.75, 3.0)[: image.GetDimension()])
            case = f"{content.replace(' ', '-')}-{ending}"
            SimpleITK.WriteImage(image, folder / f"{case}.{ending}", useCompression=packed)
            written[case] = content
    return written


def write_mha(folder):
    return write_itk(folder, ["mha"], packed=False)


def write_mhd(folder):
    return write_itk(folder, ["mhd"], packed=True)


def write_nrrd(folder):
    return write_itk(folder, ["nrrd"], packed=True)


def write_nhdr(folder):
    return write_itk(folder, ["nhdr"], packed=False)


def write_hdf5(folder):
    import h5py

    for name, content, options in (
        ("plain.h5", "volume f4", {}),
        ("chunks.hdf5", "volume f8", {"chunks": (2, 4, 5), "compression": "gzip", "shuffle": True}),
        ("levels.h5", "flat u2", {}),
    ):
        with h5py.File(folder / name, "w") as file:
            file.create_dataset("maps/probabilities", data=CONTENTS[content], **options)
            file.create_dataset("label", data=np.zeros(3, np.uint8))
    return {"plain": "volume f4", "chunks": "volume f8", "levels": "flat u2"}


def write_zarr(folder):
    import zarr

    written = {}
    for version in (2, 3):
        for content in ("volume f4", "flat u1"):
            values = CONTENTS[content]
            chunks = (2, 4, 5)[-values.ndim :]
            case = f"{content.replace(' ', '-')}-v{version}"
            zarr.create_array(folder / f"{case}.zarr", data=values, zarr_format=version, chunks=chunks)
            written[case] = content
    zarr.create_array(folder.parent / "whole.zarr", data=CONTENTS["volume f8"], chunks=(2, 4, 5))
    shutil.make_archive(str(folder / "zipped.zarr"), "zip", folder.parent / "whole.zarr")
    return written | {"zipped": "volume f8"}


def write_omezarr(folder):
    import zarr

    for name, version, ome in (("old", 2, "0.4"), ("new", 3, "0.5")):
        axes = [{"name": axis, "type": "space", "unit": "millimeter"} for axis in "zyx"]
        levels = [
            {
                "path": path,
                "coordinateTransformations": [
                    {"type": "scale", "scale": [3.0 * step, 0.75 * step, 0.5 * step]}
                ],
            }
            for path, step in (("0", 1), ("1", 2))
        ]
        about = {"multiscales": [{"axes": axes, "datasets": levels, "version": ome}]}
        attributes = about if ome == "0.4" else {"ome": {"version": ome, **about}}
        group = zarr.create_group(folder / f"{name}.ome.zarr", zarr_format=version, attributes=attributes)
        group.create_array("0", data=CONTENTS["volume f4"], chunks=(2, 4, 5))
        group.create_array("1", data=CONTENTS["volume f4"][::2, ::2, ::2])
    return {"old": "volume f4", "new": "volume f4"}


def write_png(folder):
    from PIL import Image

    Image.fromarray(CONTENTS["flat u1"]).save(folder / "grey.png")
    Image.fromarray(CONTENTS["flat u2"]).save(folder / "deep.png")
    Image.fromarray(np.repeat(CONTENTS["flat u1"][..., np.newaxis], 3, axis=-1)).save(folder / "equal.png")
    return {"grey": "flat u1", "deep": "flat u2", "equal": "flat u1"}


def write_bmp(folder):
    from PIL import Image

    Image.fromarray(CONTENTS["flat u1"]).save(folder / "grey.bmp")
    return {"grey": "flat u1"}


def write_webp(folder):
    from PIL import Image

    Image.fromarray(CONTENTS["flat u1"]).convert("RGB").save(folder / "grey.webp", lossless=True, exact=True)
    return {"grey": "flat u1"}


def write_tiff(folder):
    import tifffile

    written = {"plain": "flat f4", "packed": "flat u2", "levels": "flat u1", "pages": "volume f4"}
    for case, content in written.items():
        compression = "zlib" if case == "packed" else None
        tifffile.imwrite(
            folder / f"{case}.tif", CONTENTS[content], compression=compression, photometric="minisblack"
        )
    about = {
        "axes": "ZYX",
        "PhysicalSizeX": 500.0,
        "PhysicalSizeY": 750.0,
        "PhysicalSizeZ": 3000.0,
        **{f"PhysicalSize{axis}Unit": "µm" for axis in "XYZ"},
    }
    tifffile.imwrite(
        folder / "microscope.ome.tif", CONTENTS["volume u1"], metadata=about, photometric="minisblack"
    )
    return written | {"microscope": "volume u1"}


def write_dicom(folder):
    from tests.behaviour.dicom import write_probability_segmentation

    write_probability_segmentation(folder / "liver.dcm", CONTENTS["volume u1"])
    return {"liver": "volume u1 as f4"}  # highdicom's 8 bits are divided in single precision


WRITERS = {
    "npy": (write_npy, ()),
    "npz": (write_npz, ()),
    "nnunet": (write_nnunet, ()),
    "nifti": (write_nifti, ("nibabel",)),
    "mha": (write_mha, ("SimpleITK",)),
    "mhd": (write_mhd, ("SimpleITK",)),
    "nrrd": (write_nrrd, ("SimpleITK",)),
    "nhdr": (write_nhdr, ("SimpleITK",)),
    "hdf5": (write_hdf5, ("h5py",)),
    "zarr": (write_zarr, ("zarr",)),
    "omezarr": (write_omezarr, ("zarr",)),
    "png": (write_png, ("PIL",)),
    "bmp": (write_bmp, ("PIL",)),
    "webp": (write_webp, ("PIL",)),
    "tiff": (write_tiff, ("tifffile",)),
    "dicom": (write_dicom, ("highdicom", "pydicom")),
}
SAME_BYTES = ("npy", "mha", "bmp")
"""Formats whose writers leave the same bytes every time and in every version."""


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.needs(*needs)) for name, (_, needs) in WRITERS.items()]
)
def test_maps_of_every_format(tmp_path, name):
    folder = tmp_path / "maps"
    folder.mkdir()
    contents = WRITERS[name][0](folder)
    rows = score_rows(folder, "--estimators", "all", out=tmp_path / "scores.csv")
    assert sorted(row["case"] for row in rows) == sorted(contents)
    for row in rows:
        numbers = {column: value for column, value in row.items() if column not in (*ABOUT, "file")}
        assert row["checksum"]
        assert_golden_table("files/contents", [numbers], key=contents[row["case"]])
    about = [{column: row[column] for column in (*ABOUT, "file")} for row in rows]
    if name not in SAME_BYTES:
        about = [{**row, "checksum": ""} for row in about]
    assert_golden_table("files/formats", about, key=name)


def test_every_content_is_in_some_format():
    assert set(golden("files/contents")) == {*CONTENTS, "volume u1 as f4"}
    assert set(golden("files/formats")) == set(WRITERS)


# What else is read, and how.


@pytest.fixture
def cases(tmp_path):
    """Maps, delivered masks, truth masks and images of four cases, and maps of two more models."""
    write_cases(tmp_path / "maps", 4, truths=tmp_path / "truth")
    for number, member in enumerate(("second", "third"), 1):
        write_cases(tmp_path / member, 4, first=0)
        for path in (tmp_path / member).iterdir():
            np.save(path, np.clip(np.load(path) * (1 - 0.1 * number), 0, 1))
    for folder in ("masks", "images"):
        (tmp_path / folder).mkdir()
    for path in (tmp_path / "maps").iterdir():
        p = np.load(path)
        np.save(tmp_path / "masks" / path.name, np.uint8(p >= 0.6))
        np.save(tmp_path / "images" / path.name, np.uint8(np.round(200 * p)))
    return tmp_path


OPTIONS = {
    "bare": (),
    "truth": ("--truth", "truth"),
    "delivered masks": ("--mask-dir", "masks", "--truth", "truth"),
    "threshold instead of masks": ("--mask-dir", "masks", "--mask", "threshold", "--threshold", "0.3"),
    "threshold": ("--threshold", "0.7", "--truth", "truth"),
    "images": ("--image-dir", "images"),
    "dice-optimal masks": ("--decode", "dice-optimal", "--truth", "truth"),
    "members": (
        *("--member", "second", "--member", "third", "--truth", "truth"),
        *("--estimators", "sdc,pairwise-dice"),
    ),
    "mean logit": ("--member", "second", "--fuse", "mean-logit"),
    "no mask reaches it": ("--threshold", "1.0", "--truth", "truth"),
    "empty masks agree": ("--threshold", "1.0", "--truth", "truth", "--empty", "agree"),
    "one estimator": ("--estimators", "ane"),
    "recalibrated": ("--calibrate-maps", "scaling.json"),
}


@pytest.mark.parametrize("name", OPTIONS)
def test_options(cases, name):
    shutil.copy(RELEASE / "scaling.json", cases)
    options = [cases / word if (cases / word).exists() else word for word in OPTIONS[name]]
    rows = score_rows(cases / "maps", *options, out=cases / "scores.csv")
    assert_golden_table("files/options", rows, key=name)


def test_masks_are_written(cases):
    options = ("--write-masks", cases / "written", "--threshold", "0.4", "--estimators", "sdc")
    score_rows(cases / "maps", *options, out=cases / "scores.csv")
    (name, *more) = sorted(path.name for path in (cases / "written").iterdir())
    assert len(more) == 3
    assert name.startswith("case_000.")
    again = score_rows(
        *(cases / "maps", "--mask-dir", cases / "written", "--estimators", "sdc"), out=cases / "again.csv"
    )
    expected = [int((np.load(path) >= 0.4).sum()) for path in sorted((cases / "maps").iterdir())]
    assert [row["k"] for row in again] == expected
    assert {row["mask"] for row in again} == {"delivered"}


@pytest.mark.parametrize(
    "ending", ["json", pytest.param("parquet", marks=pytest.mark.needs("pyarrow")), "tsv"]
)
def test_manifests_and_tables_of_every_kind(cases, ending):
    """A manifest names the files of each case, and a table has the same rows in every format."""
    lines = ["case,probabilities,mask,truth,image,group,split,members"]
    for number in range(3):
        file = f"case_{number:03d}.npy"
        mask = f"masks/{file}" if number else ""
        paths = f"maps/{file},{mask},truth/{file},images/{file}"
        lines.append(f"patient {number},{paths},site {number % 2},test,second/{file}")
    (cases / "cases.csv").write_text("\n".join(lines))
    rows = score_rows(cases / "cases.csv", out=cases / "scores.csv")
    assert_golden_table("files/manifest", rows)
    if ending == "tsv":  # read, not written
        (cases / "cases.tsv").write_text("\n".join(lines).replace(",", "\t"))
        assert_same(score_rows(cases / "cases.tsv", out=cases / "again.csv"), rows)
        return
    done = segtrust("score", cases / "cases.csv", "-o", cases / f"scores.{ending}", "--details")
    assert done.returncode == 0, done.stderr
    if ending == "json":
        found = json.loads((cases / "scores.json").read_text())["rows"]
    else:
        import pyarrow.parquet

        found = pyarrow.parquet.read_table(cases / "scores.parquet").to_pylist()
    csv_rows = read_csv(cases / "scores.csv", without=("seconds",))
    kept = [
        {key: "" if value is None else value for key, value in row.items() if key != "seconds"}
        for row in found
    ]
    assert_same(kept, csv_rows)


def test_tables_by_pipes(cases):
    done = segtrust("score", cases / "maps", "-o", "-", "--details")
    assert done.returncode == 0, done.stderr
    (cases / "printed.csv").write_text(done.stdout)
    assert_same(table_rows(cases / "printed.csv"), score_rows(cases / "maps", out=cases / "scores.csv"))


def test_checksums(cases):
    options = ("--digest", "sha256", "--mask-dir", cases / "masks", "--estimators", "sdc")
    rows = score_rows(cases / "maps", *options, out=cases / "scores.csv")
    for row in rows:
        for column, folder in (("checksum", "maps"), ("mask_checksum", "masks")):
            content = (cases / folder / f"{row['case']}.npy").read_bytes()
            assert row[column] == f"sha256:{hashlib.sha256(content).hexdigest()}"


def test_what_was_run_stands_beside_the_table(cases):
    score_rows(cases / "maps", "--threshold", "0.25", out=cases / "scores.csv")
    about = json.loads((cases / "scores.csv.about.json").read_text())
    command = about.pop("commands")
    expected = [
        "score",
        str(cases / "maps"),
        "--threshold",
        "0.25",
        "-o",
        str(cases / "scores.csv"),
        "--details",
    ]
    assert command == [expected]
    assert about.pop("folder")
    assert about.pop("segtrust") == st.__version__
    assert_golden("files/about", about)


STRUCTURES = {
    "plain usual": ("plain", ()),
    "plain each": ("plain", ("--region", "each")),
    "plain lesion": ("plain", ("--region", "lesion", "--truth", "labels")),
    "plain channel": ("plain", ("--channel", "1")),
    "plain labels": ("plain", ("--region", "each", "--truth", "labels", "--mask", "threshold")),
    "regions usual": ("regions", ("--truth", "labels")),
    "regions each": ("regions", ("--region", "each", "--truth", "labels")),
}


@pytest.mark.needs("nibabel")
@pytest.mark.parametrize("name", STRUCTURES)
def test_structures_of_nnunet(tmp_path, name):
    """Maps, masks and ground truth that nnU-Net itself has written."""
    dataset, options = STRUCTURES[name]
    options = [NNUNET / dataset / "labels" if word == "labels" else word for word in options]
    rows = score_rows(NNUNET / dataset / "predictions", *options, out=tmp_path / "scores.csv")
    assert_golden_table("files/nnunet", rows, key=name)


@pytest.mark.needs("zarr", "h5py", "nibabel")
def test_channels_and_keys(tmp_path):
    """Files of several channels or arrays, and what is chosen of them."""
    import h5py
    import nibabel
    import zarr

    p = softmax_like(VOLUME)
    for folder in ("npz", "h5", "zarr", "nii", "stack"):
        (tmp_path / folder).mkdir()
    np.savez(tmp_path / "npz/a.npz", first=p[1], second=p[2])
    np.savez(tmp_path / "npz/b.npz", first=p[2], second=p[0])
    with h5py.File(tmp_path / "h5/a.h5", "w") as file:
        file["one/liver"], file["one/spleen"] = p[1], p[2]
    zarr.create_array(tmp_path / "zarr/a.zarr", data=p, chunks=(1, 2, 4, 5))
    nibabel.save(nibabel.Nifti1Image(p.transpose(3, 2, 1, 0), np.eye(4)), tmp_path / "nii/a.nii.gz")
    np.save(tmp_path / "stack/a.npy", p)
    runs = {
        "npz": ("--key", "second"),
        "h5": ("--key", "one/spleen"),
        "zarr": ("--channel", "2"),
        "nii": ("--channel", "2"),
        "stack": ("--channel", "2"),
    }
    found = {}
    for folder, options in runs.items():
        rows = score_rows(tmp_path / folder, *options, out=tmp_path / f"{folder}.csv")
        found[folder] = [{**row, "checksum": ""} for row in rows]
        assert found[folder][0]["sdc"] == pytest.approx(found["npz"][0]["sdc"], rel=1e-12)
    for name, rows in found.items():
        assert_golden_table("files/channels", rows, key=name)


@pytest.mark.needs("highdicom", "pydicom")
def test_segments_of_dicom(tmp_path):
    from tests.behaviour.dicom import write_probability_segmentation

    (tmp_path / "maps").mkdir()
    maps = [np.uint8(np.round(255 * blob(VOLUME, at=at))) // 2 for at in (0.4, 0.6)]
    write_probability_segmentation(tmp_path / "maps/a.dcm", *maps)
    found = {
        name: score_rows(tmp_path / "maps", *options, "--threshold", "0.3", out=tmp_path / f"{name}.csv")
        for name, options in {"each": ("--region", "each"), "spleen": ("--region", "spleen")}.items()
    }
    found = {name: [{**row, "checksum": ""} for row in rows] for name, rows in found.items()}
    assert [row["structure"] for row in found["each"]] == ["liver", "spleen"]
    for name, rows in found.items():
        assert_golden_table("files/dicom", rows, key=name)


@pytest.mark.needs("nibabel")
def test_labels_and_other_grids(tmp_path):
    """Masks with several labels, and ground truth on a finer grid that is resampled."""
    import nibabel

    for folder in ("maps", "masks", "truth"):
        (tmp_path / folder).mkdir()
    p = blob(VOLUME).astype(np.float32)
    labels = np.uint8(p >= 0.5) + np.uint8(p >= 0.8)
    fine = truth_of(VOLUME).repeat(2, 0).repeat(2, 1).repeat(2, 2)
    affine = np.diag([0.5, 0.75, 3.0, 1.0])
    half = affine @ np.diag([0.5, 0.5, 0.5, 1.0])
    half[:3, 3] = -np.diag(affine)[:3] / 4
    nibabel.save(nibabel.Nifti1Image(p.T, affine), tmp_path / "maps/a.nii.gz")
    nibabel.save(nibabel.Nifti1Image(labels.T, affine), tmp_path / "masks/a.nii.gz")
    nibabel.save(nibabel.Nifti1Image(fine.T, half), tmp_path / "truth/a.nii.gz")
    found = {
        "two": ("--label", "2"),
        "both": ("--label", "1", "--label", "2"),
    }
    found = {
        name: score_rows(
            *(tmp_path / "maps", "--mask-dir", tmp_path / "masks", *options), out=tmp_path / f"{name}.csv"
        )
        for name, options in found.items()
    }
    found["resampled"] = score_rows(
        *(tmp_path / "maps", "--truth", tmp_path / "truth", "--resample", "truth"),
        out=tmp_path / "resampled.csv",
    )
    found = {
        name: [{**row, "checksum": "", "mask_checksum": ""} for row in rows] for name, rows in found.items()
    }
    for name, rows in found.items():
        assert_golden_table("files/labels", rows, key=name)


def test_names_and_patterns(tmp_path):
    """Maps, masks and ground truth side by side, told apart by their names."""
    folder = tmp_path / "all"
    folder.mkdir()
    for case in ("ann", "bob"):
        np.save(folder / f"{case}_prob.npy", blob(FLAT, at=0.4 if case == "ann" else 0.6).astype(np.float32))
        np.save(folder / f"{case}_gt.npy", truth_of(FLAT))
        np.save(folder / f"{case}_seg.npy", truth_of(FLAT, radius=0.3))
    rows = score_rows(folder, out=tmp_path / "found.csv")
    patterns = (
        "--pattern",
        "{case}_prob.npy",
        "--mask-pattern",
        "{case}_seg.npy",
        "--truth-pattern",
        "{case}_gt.npy",
    )
    asked = score_rows(folder, "--mask-dir", folder, "--truth", folder, *patterns, out=tmp_path / "asked.csv")
    assert_golden_table("files/names", asked)
    unasked = [row["mask"] for row in rows]
    assert unasked == ["threshold"] * 2, "a file that is called a mask is not used unless it is asked for"
    for row, other in zip(rows, asked, strict=True):
        assert (row["case"], row["truth_file"]) == (other["case"], other["truth_file"])
