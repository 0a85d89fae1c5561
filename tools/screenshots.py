"""Take the pictures of desk and report for the documentation: ``python tools/screenshots.py OUT``.

Each view of the embedded run, and one case of a volume, which is made here, in both themes and at both sizes
that the desk is made for. Needs Chromium, Playwright and the built page (`make web`). Colours are reduced to
a palette, so that each file stays small. The same page gives the same pictures but for times of day. Those of
the documentation are copied there.
"""

from __future__ import annotations

import argparse
import io
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import nibabel
import numpy as np
from PIL import Image

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from segtrust.demo.nuclei import DATA, PREDICTOR, prepare_run  # noqa: E402
from segtrust.io import ArrayRef, CaseFiles  # noqa: E402
from segtrust.review.server import page_files  # noqa: E402
from tests.browser.pages import ARGUMENTS, SIZES, THEMES, open_case  # noqa: E402
from tests.review import desks  # noqa: E402

COLOURS = 256
VERDICTS = (
    *((0, "reject", "Ann", "Two nuclei taken for one"), (2, "correct", "Ann", "An edge is missing")),
    *((5, "accept", "Bob", ""), (9, "accept", "Ann", ""), (14, "reject", "Bob", "Debris")),
)
IN_THE_DOCS = {
    "desk-worklist-light": "worklist-light-1280",
    "desk-case-dark": "case-2d-dark-1280",
    "desk-volume-dark": "case-3d-planes-dark-1280",
    "desk-threshold-light": "threshold-light-1280",
    "desk-monitoring-light": "monitoring-light-1280",
    "report-light": "report-light",
    "report-dark": "report-dark",
}
VIEWS = {
    "worklist": ("#/worklist", "[data-testid=row]"),
    "threshold": ("#/threshold", "[data-testid=certified]"),
    "monitoring": ("#/monitoring", "[data-testid=drift]"),
}


def organ(shape: tuple[int, int, int] = (40, 96, 112)) -> tuple[Any, Any, Any]:
    """Make a volume that looks like a body with an organ: image, probabilities and truth, slices first."""
    rng = np.random.default_rng(7)
    z, y, x = np.meshgrid(*(np.linspace(-1, 1, n) for n in shape), indexing="ij")
    body = np.hypot(x / 0.92, y / 0.78) < 1
    inner = np.hypot(np.hypot((x + 0.3) / 0.42, (y - 0.05) / 0.36), z / 0.8)
    waves = 0.08 * np.sin(7 * x + 3 * z) + 0.06 * np.cos(9 * y - 2 * z)
    spine = np.hypot(x, y + 0.55) < 0.14
    image = np.where(body, 40 + 15 * waves / 0.14, -950.0)
    image = np.where(inner + waves < 1, 110, image) + np.where(spine & body, 420, 0)
    noisy = smooth(rng.normal(0, 1, shape)) * 0.5
    logits = 9 * (1 - inner - waves) + 2.2 * noisy - 1.6 * (z > 0.35) * (x > -0.2)
    noise = np.where(body, rng.normal(0, 14, shape), rng.normal(0, 4, shape))
    return (image + noise).astype(np.float32), 1 / (1 + np.exp(-logits)), inner + waves < 1


def smooth(values: Any, times: int = 4) -> Any:
    """Blur along all axes, and bring to a standard deviation of 1."""
    for _ in range(times):
        for axis in range(values.ndim):
            values = (np.roll(values, 1, axis) + values + np.roll(values, -1, axis)) / 3
    return values / values.std()


def make_volume(folder: Path) -> Path:
    """Score the volume, in a folder that can be reviewed."""
    layers = dict(zip(("image", "probabilities", "truth"), organ(), strict=True))
    places = {}
    for name, values in layers.items():
        stored = values.astype(np.uint8 if name == "truth" else np.float32).T
        nibabel.save(nibabel.Nifti1Image(stored, np.diag([2.5, 2.5, 5.0, 1.0])), folder / f"{name}.nii.gz")
        places[name] = ArrayRef(folder / f"{name}.nii.gz")
    desks.score_run(folder, [CaseFiles("patient 12", **places)])
    return folder


@contextmanager
def both_desks(folder: Path) -> Iterator[tuple[Any, Any]]:
    """Serve the embedded run, with a few verdicts, and the volume."""
    demo, volume = folder / "demo", folder / "volume"
    demo.mkdir()
    volume.mkdir()
    how = {"policy": prepare_run(demo), "predictor": PREDICTOR, "static": page_files()}
    with (
        desks.desk_on(demo, **how) as (_, first),
        desks.desk_on(make_volume(volume), static=page_files()) as (_, second),
    ):
        for number, verdict, reviewer, comment in VERDICTS:
            desks.said(first, number, verdict, reviewer, comment=comment)
        yield first, second


def views_of(page: Any, demo: Any, volume: Any) -> Iterator[str]:
    """Show one view after the other; give their names."""
    page.goto(str(demo.base_url))
    page.evaluate("localStorage.setItem('segtrust.desk', JSON.stringify({ reviewer: 'Ann' }))")
    page.reload()
    for name, (place, ready) in VIEWS.items():
        page.evaluate("(hash) => { location.hash = hash }", place)
        page.locator(ready).first.wait_for()
        yield name
    open_case(page, 0)
    yield "case-2d"
    page.goto(str(volume.base_url))
    open_case(page, 0)
    yield "case-3d"
    page.get_by_test_id("multiplanar").click()
    yield "case-3d-planes"


def make_report(folder: Path, policy: Path) -> Path:
    """Evaluate the embedded cases, and report on what a policy makes of them."""
    for words in (
        ("evaluate", DATA / "id.csv", "--ood", f"bright={DATA / 'ood-bright.csv'}", "-o", folder),
        ("report", folder, "--policy", policy, "--predictor", PREDICTOR),
    ):
        subprocess.run([sys.executable, "-m", "segtrust", *map(str, words)], check=True, capture_output=True)
    return folder / "report.html"


def take_report(browser: Any, report: Path, out: Path) -> None:
    """Take the top of a report in light colours, and its cases in dark ones."""
    for theme, part in (("light", "summary"), ("dark", "cases")):
        page = browser.new_page(
            viewport={"width": SIZES[0][0], "height": SIZES[0][1]},
            color_scheme=theme,
            reduced_motion="reduce",
        )
        page.goto(f"{report.as_uri()}#{part}" if part == "cases" else report.as_uri())
        page.wait_for_load_state("networkidle")
        path = out / f"report-{theme}.png"
        sys.stdout.write(f"{path.name}: {save_small(page.screenshot(), path) / 1000:.0f} kB\n")
        page.close()


def save_small(png: bytes, path: Path) -> int:
    """Save a picture in as many colours as it needs; give its size in bytes."""
    image = Image.open(io.BytesIO(png)).convert("RGB")
    image.quantize(COLOURS, method=Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE).save(
        path, optimize=True
    )
    return path.stat().st_size


def take_all(browser: Any, demo: Any, volume: Any, out: Path) -> None:
    """Take all pictures: ``worklist-dark-1280.png`` and so on."""
    for theme in THEMES:
        for width, height in SIZES:
            how = {"color_scheme": theme, "reduced_motion": "reduce"}
            page = browser.new_page(viewport={"width": width, "height": height}, **how)
            for name in views_of(page, demo, volume):
                page.wait_for_load_state("networkidle")
                page.evaluate("document.activeElement?.blur()")
                path = out / f"{name}-{theme}-{width}.png"
                sys.stdout.write(f"{path.name}: {save_small(page.screenshot(), path) / 1000:.0f} kB\n")
            page.close()


def main() -> None:
    """Take the pictures."""
    from playwright.sync_api import sync_playwright

    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("out", type=Path, help="folder for the pictures")
    out = parser.parse_args().out
    out.mkdir(parents=True, exist_ok=True)
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    with (
        tempfile.TemporaryDirectory() as folder,
        both_desks(Path(folder)) as (demo, volume),
        sync_playwright() as play,
    ):
        browser = play.chromium.launch(executable_path=chromium, args=list(ARGUMENTS))
        take_all(browser, demo, volume, out)
        take_report(browser, make_report(Path(folder) / "evaluation", Path(folder) / "demo/policy.json"), out)
        browser.close()
    for name, taken in IN_THE_DOCS.items():
        shutil.copy(out / f"{taken}.png", ROOT / f"docs/how-to/{name}.png")


if __name__ == "__main__":
    main()
