"""The embedded example: pictures, maps and truths of nuclei, small enough for the wheel.

Run ``python tools/demo_data.py RUN src/segtrust/demo/data`` on a finished ``segtrust tasks run nuclei -o
RUN``. A picture is a WebP with losses, a map 8-bit (p times 255), a truth 1-bit. What is too large to ship
for all test cases is chosen by an even walk over their names; ``scores.csv`` has all of them, scored from
maps in full precision.
"""

from __future__ import annotations

import argparse
import csv
import json
import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from PIL import Image

from segtrust.paper.tasks.predicting import write_manifests

SHIPPED = {"ID": 60, "bright": 40}
ESTIMATORS = "sdc,idc,amsp,ane,mmmc,pla"
COLUMNS = [
    "case",
    "structure",
    "set",
    "split",
    *ESTIMATORS.split(","),
    "k",
    "mu",
    "lam",
    "s",
    "lower",
    "upper",
]
COLUMNS += ["relative_error", "foreground_ratio", "mask", "shape", "dice", "iou", "truth_ratio"]
QUALITY = 80
ABOUT = """\
100 images of cell nuclei, with true masks, and the probability maps that a UNeXt made of them.

images/ and truths/ are from the image set BBBC038 of the Broad Bioimage Benchmark Collection, that of the
Data Science Bowl 2018 (Caicedo et al., Nucleus segmentation across imaging experiments, Nature Methods 16,
2019). Its licence is CC0 1.0: it is in the public domain. Images are WebP with losses here, truths PNG of 1
bit, with all nuclei of an image in one mask.

maps/ are probabilities times 255, as PNG of 8 bits; scores.csv has the scores of all 204 test images, of maps
in full precision.
"""


def read_rows(predictions):
    """Give the rows of the test cases, by set."""
    with (predictions / "manifest.csv").open(newline="", encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if row["split"] == "test"]
    return {name: sorted((row for row in rows if row["set"] == name), key=by_name) for name in SHIPPED}


def by_name(row):
    """Sort cases by their names."""
    return row["case"]


def evenly(rows, number):
    """Choose some of them at equal distances."""
    places = np.linspace(0, len(rows) - 1, min(number, len(rows))).round().astype(int)
    return [rows[place] for place in places]


def ship(row, predictions, out):
    """Write the three files of a case, and give its row."""
    name = row["case"].rsplit("/", 1)[-1]
    files = {
        "probabilities": f"maps/{name}.png",
        "truth": f"truths/{name}.png",
        "image": f"images/{name}.webp",
    }
    p = np.load(predictions / row["probabilities"])
    Image.fromarray(np.rint(p * 255.0).astype(np.uint8)).save(out / files["probabilities"], optimize=True)
    Image.open(predictions / row["truth"]).convert("1").save(out / files["truth"], optimize=True)
    Image.open(predictions / row["image"]).save(out / files["image"], quality=QUALITY, method=6)
    return row | files


def write_scores(rows, predictions, out):
    """Score the maps of all test cases in full precision, and keep what does not depend on the machine."""
    sets = {row["case"]: row["set"] for row in rows}
    with TemporaryDirectory() as folder:
        table = Path(folder) / "scores.csv"
        command = [sys.executable, "-m", "segtrust", "score", str(predictions / "manifest.csv")]
        subprocess.run(
            [*command, "--estimators", ESTIMATORS, "-o", str(table)], check=True, stdout=sys.stderr
        )
        with table.open(newline="", encoding="utf-8") as file:
            scored = [row for row in csv.DictReader(file) if row["case"] in sets]
    with (out / "scores.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, COLUMNS, extrasaction="ignore", lineterminator="\n")
        writer.writeheader()
        writer.writerows(row | {"set": sets[row["case"]]} for row in sorted(scored, key=by_name))


def main():
    """Make the folder anew."""
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("run", type=Path, help="folder of `segtrust tasks run nuclei`")
    asked.add_argument("out", type=Path, help="folder to make anew")
    given = asked.parse_args()
    predictions = given.run / "predictions"
    shutil.rmtree(given.out, ignore_errors=True)
    for name in ("maps", "truths", "images"):
        (given.out / name).mkdir(parents=True)
    sets = read_rows(predictions)
    chosen = [row for name, rows in sets.items() for row in evenly(rows, SHIPPED[name])]
    write_manifests(given.out, [ship(row, predictions, given.out) for row in chosen])
    write_scores([row for rows in sets.values() for row in rows], predictions, given.out)
    shutil.copyfile(predictions / "made_with.json", given.out / "made_with.json")
    (given.out / "README.txt").write_text(ABOUT, encoding="utf-8")
    size = sum(path.stat().st_size for path in given.out.rglob("*") if path.is_file())
    print(json.dumps({"cases": len(chosen), "bytes": size}))  # noqa: T201


if __name__ == "__main__":
    main()
