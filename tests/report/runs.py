"""Small runs to report on, made by the commands themselves."""

import csv
import json
import re
from pathlib import Path

import numpy as np

from tests.commands import segtrust
from tests.paper.medical.folders import maps_and_truths, write_manifest

HOSTILE = "<script>alert(1)</script>"
QUICK = ("--resamples", 100)


def run(*arguments, code=0):
    done = segtrust(*arguments)
    assert done.returncode == code, done.stderr
    return done


def write_evaluation(folder: Path, *options, n=40, ood=20, **how) -> Path:
    """Evaluate flat maps of two sets."""
    known = write_manifest(folder / "data", "id", n, **how)
    other = write_manifest(folder / "data", "far", ood, seed=1, noise=2.0)
    out = folder / "run"
    run("evaluate", known, "--ood", f"far={other}", "-o", out, *QUICK, *options)
    return out


def write_volumes(folder: Path, n=6) -> Path:
    maps, truths = maps_and_truths(n, shape=(9, 14, 12))
    for at, (p, truth) in enumerate(zip(maps, truths, strict=True)):
        for kind, values in (("predictions", p), ("masks", truth.astype(np.uint8))):
            (folder / kind).mkdir(parents=True, exist_ok=True)
            np.save(folder / kind / f"volume_{at}.npy", values)
    return folder


def rename_cases(manifest: Path, names) -> Path:
    """Give the cases of a manifest other names."""
    with manifest.open(newline="") as file:
        rows = list(csv.DictReader(file))
    for row, name in zip(rows, names, strict=False):
        row["case"] = name
    with manifest.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return manifest


def charts_of(page: str) -> list[dict]:
    """What the charts of a page hold for the script."""
    found = re.findall(r'<script type="application/json">(.*?)</script>', page, re.DOTALL)
    return [json.loads(each) for each in found]


def section(page: str, name: str) -> str:
    """The text of a part of the page."""
    return re.search(rf'<section id="{name}".*?(?=<section id="|<footer>)', page, re.DOTALL).group()


def words(html: str) -> str:
    """What a reader sees of it."""
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", re.sub(r"<script.*?</script>", "", html, flags=re.S)))
