"""A process that is led by coverage: atheris keeps each input that reaches a line no other has reached.

Started as ``python -m tools.reliability.fuzz.guided READER SECONDS SEED FOLDER``. The lines of segtrust and
of libraries written in Python are counted; what is compiled is run, and not seen. Findings are written into
the folder by what they are, so that the same one is kept once; what ends the process, atheris writes itself.
"""

from __future__ import annotations

import hashlib
import json
import random
import sys
import warnings
from pathlib import Path
from typing import Any

import atheris

from tools.reliability.fuzz.bundles import Bundle, lay_out, pack, unpack
from tools.reliability.fuzz.mutations import mutated

__all__ = ["COUNTED"]

COUNTED = (
    *("segtrust.io", "segtrust._files", "segtrust.engine.run_log", "segtrust.engine.outcomes"),
    *("segtrust.engine.decisions", "segtrust.engine.score_table", "segtrust.engine.calibration"),
    *("segtrust.policy", "segtrust.selective.seen", "segtrust.selective.certify"),
    *("segtrust.selective.drift", "segtrust.selective.conformal", "segtrust.calibration.scaling"),
    *("nibabel", "pydicom", "tifffile", "zarr", "PIL", "pickle", "zipfile", "csv"),
)
_LONGEST = 1 << 20


def _instrumented() -> Any:
    """Give the context in which imported modules are counted: packages as a whole, of segtrust those above.

    What Numba compiles must stay as it is.
    """
    source = Path(__file__).parents[3] / "src"
    files = [path.relative_to(source).with_suffix("") for path in (source / "segtrust").rglob("*.py")]
    modules = {".".join(path.parts).removesuffix(".__init__") for path in files}
    own = tuple(name for name in COUNTED if name.startswith("segtrust."))
    others = [name for name in modules if not name.startswith(own)]
    return atheris.instrument_imports(include=["segtrust", *(set(COUNTED) - set(own))], exclude=others)


def _write_seeds(reader: str, folder: Path) -> list[Bundle]:
    from tools.reliability.fuzz.seeds import SEEDS

    made, corpus = folder / "made", folder / "corpus"
    made.mkdir(parents=True, exist_ok=True)
    corpus.mkdir(exist_ok=True)
    seeds = SEEDS[reader](made)
    for number, bundle in enumerate(seeds):
        (corpus / f"seed-{number}").write_bytes(pack(bundle))
    return seeds


def _keep(folder: Path, data: bytes, kind: str, what: str) -> None:
    name = hashlib.sha256(f"{kind} {what}".encode()).hexdigest()[:12]
    path = folder / "findings" / f"{kind}-{name}"
    if not path.exists() or path.stat().st_size > len(data):
        path.write_bytes(data)
        path.with_suffix(".txt").write_text(f"{kind}: {what}\n")


def _note(path: Path, cost: Any) -> None:
    """Write down what an input took, where it is more than any took before."""
    noted = type(cost)(**json.loads(path.read_text())) if path.exists() else type(cost)()
    if (most := noted.or_more(cost)) != noted:
        path.write_text(json.dumps(vars(most)))


def _fuzz(reader: str, seconds: int, seed: int, folder: Path) -> None:
    warnings.simplefilter("ignore")
    with _instrumented():
        from tools.reliability.fuzz import checks, readers, served  # noqa: F401
    (folder / "findings").mkdir(parents=True, exist_ok=True)
    seeds = _write_seeds(reader, folder)
    with _instrumented():  # what is imported at first use
        served.get_ready([reader])
    checks.bound_memory()
    scratch = folder / "scratch"

    def one_input(data: bytes) -> None:
        bundle = unpack(data)
        if bundle is not None:
            verdict, cost = checks.measured(reader, lay_out(bundle, scratch))
            _note(folder / "cost.json", cost)
            if verdict.is_fault(reader):
                _keep(folder, data, verdict.kind, verdict.what)

    def other_input(data: bytes, longest: int, number: int) -> bytes:
        chance = random.Random(number)  # nosec B311  # to be repeated, not to be secret
        bundle = unpack(data) or chance.choice(seeds)
        return pack(mutated(bundle, chance, chance.choice(seeds)))[:longest]

    options = {
        "max_total_time": seconds,
        "timeout": int(checks.SECONDS),
        "rss_limit_mb": 0,  # the address space is bounded
        "max_len": _LONGEST,
        "len_control": 0,
        "seed": seed,
        "print_final_stats": 1,
        "artifact_prefix": f"{folder}/findings/",
    }
    flags = [f"-{name}={value}" for name, value in options.items()]
    atheris.Setup([sys.argv[0], *flags, str(folder / "corpus")], one_input, custom_mutator=other_input)
    atheris.Fuzz()


if __name__ == "__main__":
    _fuzz(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), Path(sys.argv[4]))
