"""The figures of docs/results/neighbours.md: segtrust beside its neighbours, on the same numbers.

``python -m docs.results.scripts.neighbours own`` prints segtrust's side; nothing else has to be installed; a
minute or two. ``python -m docs.results.scripts.neighbours all FOLDER`` makes an environment for each
neighbour below the folder, runs both sides in it and prints every table; several GB and an hour. An
environment that is there is used as it is. ``... weights FOLDER`` then prints what each pulls in, and ``...
one NAME`` runs one in this environment. Where a neighbour fails, the end of its error stands in place of its
tables.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tomllib
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from time import perf_counter
from typing import Any

from docs.results.scripts.peers.tables import Table

ROOT = Path(__file__).parents[3]
TORCH = "torch==2.13.0"  # first and pinned, so that no other build of it comes along


@dataclass(frozen=True)
class Neighbour:
    """A package that is compared.

    Attributes
    ----------
    requirement
        What pip installs.
    module
        What is imported.
    torch
        Whether it needs torch, which is then installed first.
    also
        What it imports but does not list.
    """

    requirement: str
    module: str
    torch: bool = False
    also: str | None = None


NEIGHBOURS = {
    "segtrust": Neighbour(str(ROOT), "segtrust"),
    "mapie": Neighbour("MAPIE==1.6.0", "mapie.risk_control"),
    "cleanlab": Neighbour("cleanlab==2.9.0", "cleanlab.segmentation.rank"),
    "torch_uncertainty": Neighbour(
        "torch-uncertainty[cpu]==0.13.0",
        "docs.results.scripts.peers.vision, torch_uncertainty.metrics.classification",
        torch=True,
    ),
    "aggrigator": Neighbour("aggrigator==0.1.0rc1", "aggrigator", torch=True),
    "rankseg": Neighbour("rankseg==0.0.8", "rankseg", torch=True),
    "crepes": Neighbour("crepes==0.9.1", "crepes", also="scikit-learn"),
    "torchmetrics": Neighbour("torchmetrics==1.9.0", "torchmetrics.segmentation", torch=True),
    "monai": Neighbour("monai==1.6.1", "monai.metrics", torch=True),
    "fiftyone": Neighbour("fiftyone==1.22.1", "fiftyone"),
}
FIRST_AREA = {
    "segtrust": "import segtrust; segtrust.risk_coverage_curve([0.9, 0.1], [0, 1]).aurc",
    "mapie": "from mapie.metrics.uncertainty import auarc; auarc([1, 0], [0.9, 0.1])",
    "torch_uncertainty": (
        "import docs.results.scripts.peers.vision, torch; "
        "from torch_uncertainty.metrics.classification import AURC; "
        "AURC()(torch.tensor([[0.9, 0.1], [0.6, 0.4]]), torch.tensor([0, 1]))"
    ),
}
"""Code that imports what it takes and works out one area."""
IMPORT_RUNS = 5


def pip(python: Path, *arguments: str) -> None:
    """Run pip of an environment; its last lines are the message where it fails."""
    command = [str(python), "-m", "pip", "install", "--quiet", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(" ".join(done.stderr.splitlines()[-3:]))


def prepare(folder: Path, name: str) -> Path:
    """Make an environment with one neighbour, note what it weighs, and add what segtrust needs."""
    neighbour, home = NEIGHBOURS[name], folder / name
    python, weight = home / "bin" / "python", home / "footprint.json"
    if not weight.exists():
        subprocess.run([sys.executable, "-m", "venv", str(home)], check=True)
        if neighbour.torch:
            pip(python, TORCH)
        also = [each for each in (neighbour.torch and TORCH, neighbour.also) if each]
        pip(python, *also, neighbour.requirement)
        weight.write_text(json.dumps(footprint(python)))
        project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
        pip(python, *([TORCH] if neighbour.torch else []), *project["dependencies"], "pillow")
    return python


def footprint(python: Path) -> dict[str, Any]:
    """Count packages beside pip and setuptools, and megabytes of them all."""
    command = [str(python), "-m", "pip", "list", "--format=json"]
    listed = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)
    packages = [each["name"] for each in listed if each["name"] not in {"pip", "setuptools"}]
    (site,) = (python.parents[1] / "lib").glob("python*/site-packages")
    kept = [path for path in site.iterdir() if not path.name.startswith(("pip", "setuptools"))]
    size = sum(file.stat().st_size for top in kept for file in [top, *top.rglob("*")] if file.is_file())
    return {"packages": len(packages), "megabytes": size / 1e6}


def seconds_of(folder: Path, codes: list[tuple[str, str]]) -> dict[tuple[str, str], float]:
    """Give the shortest time of a process of each environment that runs each code.

    All take turns, so that a burst of other load does not hit one of them alone.
    """
    best, environment = dict.fromkeys(codes, float("inf")), os.environ | {"PYTHONPATH": str(ROOT)}
    for _ in range(IMPORT_RUNS):
        for name, code in best:
            command = [str(folder / name / "bin" / "python"), "-c", code]
            begin = perf_counter()
            subprocess.run(command, env=environment, capture_output=True, check=True)
            best[name, code] = min(best[name, code], perf_counter() - begin)
    return best


def weights(folder: Path) -> Table:
    """Give what each neighbour pulls in, how long it takes to import, and to a first area if it has one."""
    ready = [name for name in NEIGHBOURS if (folder / name / "footprint.json").exists()]
    imports = {name: f"import {NEIGHBOURS[name].module}" for name in ready}
    codes = [(name, code) for name in ready for code in ("pass", imports[name], FIRST_AREA.get(name)) if code]
    best, rows = seconds_of(folder, codes), []
    for name in ready:
        found = json.loads((folder / name / "footprint.json").read_text())
        took, empty = best[name, imports[name]], best[name, "pass"]
        area = f"{best[name, FIRST_AREA[name]] - empty:.2f}" if name in FIRST_AREA else "–"
        counted = (str(found["packages"]), f"{found['megabytes']:.0f}", f"{took - empty:.2f}", area)
        rows.append((NEIGHBOURS[name].module.split(", ")[-1], *counted))
    return Table("weights", ("import", "packages", "MB", "seconds", "to a first area"), tuple(rows))


def compared(folder: Path, name: str) -> str:
    """Give the tables of one neighbour from its own environment, or why there are none."""
    try:
        python = prepare(folder, name)
    except RuntimeError as error:
        return f"## {name}\n\n{error}\n"
    if name == "segtrust":
        return ""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)])}
    command = [str(python), "-m", "docs.results.scripts.neighbours", "one", name]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    return f"## {name}\n\n{done.stderr[-2000:] if done.returncode else done.stdout}\n"


def tables_of(name: str) -> str:
    """Give the tables of one neighbour, which has to be installed here, as Markdown."""
    module = "docs.results.scripts.peers.own" if name == "own" else f"docs.results.scripts.peers.with_{name}"
    return "\n".join(table.markdown() for table in import_module(module).tables())


def main(arguments: list[str]) -> None:
    """Print what is asked for."""
    match arguments:
        case ["own"]:
            sys.stdout.write(tables_of("own"))
        case ["one", name]:
            sys.stdout.write(tables_of(name))
        case ["all", folder, *names]:
            Path(folder).mkdir(parents=True, exist_ok=True)
            for name in names or NEIGHBOURS:
                sys.stdout.write(compared(Path(folder).resolve(), name))
                sys.stdout.flush()
        case ["weights", folder]:
            sys.stdout.write(weights(Path(folder).resolve()).markdown())
        case _:
            raise SystemExit("Expected own, one NAME, all FOLDER [NAME ...], or weights FOLDER.")


if __name__ == "__main__":
    main(sys.argv[1:])
