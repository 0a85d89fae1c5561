"""Which tests: those that ran the changed line before, of the mirrored file first, and none that is slow."""

# ruff: noqa: T201

import hashlib
import json
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from tools.reliability.forked_tests import in_fork, measure
from tools.reliability.mutants import SLOW_S, Place

__all__ = ["Tests", "measured_tests"]

ALSO = {
    "kernels": (
        "tests/test_ensembles.py",
        "tests/confidence/test_score.py",
        "tests/confidence/test_soft_dice.py",
        "tests/confidence/test_threshold_level.py",
    ),
    "confidence": ("tests/test_maps.py", "tests/test_params.py"),
    "selective": ("tests/policy/test_policy.py",),
    "policy": (),
}
"""Tests of a package besides those that mirror it."""


def measured_tests(place: Place) -> dict[str, dict]:
    """Give times and lines of each file of tests, by path; measured only where a file has changed."""
    kept = place.file(".tests.json")
    known = json.loads(kept.read_text(encoding="utf-8")) if kept.exists() else {}
    files = test_files(place)
    for path in files:
        stamp = hashlib.sha256((place.tree / path).read_bytes()).hexdigest()
        if is_out_of_date(known.get(path), stamp, place.slow):
            known[path] = {**measured_file(place, path), "stamp": stamp, "limit": place.slow}
            kept.write_text(json.dumps(known), encoding="utf-8")
    return {path: known[path] for path in files}


def is_out_of_date(found: dict | None, stamp: str, slow: float) -> bool:
    """Whether a file of tests has to be measured, also for tests that have been too slow and are no more."""
    return not found or found["stamp"] != stamp or bool(found["failed"] and found.get("limit", SLOW_S) < slow)


def measured_file(place: Place, path: str) -> dict:
    """Measure a file of tests in a fork; one that comes to no end has failed as a whole."""
    work = partial(measure, place.tree, path, place.source, place.slow)
    found = in_fork(work, place.file(".answer"), seconds=300.0)
    found = found or {"seconds": {}, "failed": [path], "skipped": [], "lines": {}}
    print(f"{path}: {len(found['seconds'])} tests, {sum(found['seconds'].values()):.1f} s", flush=True)
    return found


def test_files(place: Place) -> list[str]:
    """Files with tests of a package: those that mirror it, the examples in it, and some besides."""
    folder = place.tree / "tests" / place.package
    roots = [folder, *(place.tree / name for name in ALSO.get(place.package, ()))]
    files = [path for root in roots for path in (root, *sorted(root.rglob("test_*.py"))) if path.is_file()]
    modules = sorted(place.source.rglob("*.py"))
    files += [path for path in modules if ">>> " in path.read_text(encoding="utf-8")]
    return [str(path.relative_to(place.tree)) for path in files]


@dataclass(frozen=True)
class Tests:
    """Which tests run which line, how long they take, and which are left out."""

    seconds: dict[str, float]
    lines: dict[str, dict[str, set[int]]]
    left_out: dict[str, str]

    @classmethod
    def of(cls, files: dict[str, dict]) -> "Tests":
        """Gather what was measured file by file."""
        seconds = {test: took for found in files.values() for test, took in found["seconds"].items()}
        skipped = {test for found in files.values() for test in found["skipped"]}
        failed = {test for found in files.values() for test in found["failed"]}
        limits = {test: found.get("limit", SLOW_S) for found in files.values() for test in found["failed"]}
        left_out = {test: why_left_out(seconds.get(test, 0.0), limits[test]) for test in failed}
        lines: dict[str, dict[str, set[int]]] = {}
        for found in files.values():
            for test, modules in found["lines"].items():
                if test not in failed and test not in skipped:
                    for module, ran in modules.items():
                        lines.setdefault(module, {}).setdefault(test, set()).update(ran)
        return cls(seconds, lines, left_out)

    def running(self, module: str, wanted: set[int]) -> list[str]:
        """Find the tests that run any of these lines; of one that importing runs, those of the module."""
        ran = self.lines.get(module, {})
        tests = [test for test, own in ran.items() if test and own & wanted]
        if not tests and ran.get("", set()) & wanted:
            tests = [test for test in self.seconds if test in ran or mirrors(test, module)]
            tests = [test for test in tests if test not in self.left_out]
        return sorted(tests, key=lambda test: self.seconds[test])

    def stages(self, module: str, wanted: set[int], budget: float) -> list[list[str]]:
        """Choose tests of the mirrored file and the module's examples, then others, each within budget."""
        tests = self.running(module, wanted)
        own = [test for test in tests if mirrors(test, module)]
        others = [test for test in tests if not mirrors(test, module)]
        return [part for part in (self.affordable(own, budget), self.affordable(others, budget)) if part]

    def affordable(self, tests: list[str], budget: float) -> list[str]:
        """Keep as many of the fastest as the budget allows, and one."""
        total, kept = 0.0, []
        for test in tests:
            total += self.seconds[test]
            if kept and total > budget:
                break
            kept.append(test)
        return kept


def why_left_out(seconds: float, limit: float) -> str:
    """Tell a test that was stopped from one that failed; the alarm and the process have two clocks."""
    return "slow" if seconds > 0.8 * limit else "fails"


def mirrors(test: str, module: str) -> bool:
    """Whether a test is one of the file that mirrors a module, or an example in it."""
    path, source = Path(test.partition("::")[0]), Path(module)
    return path == source or path == Path("tests", source.parent.name, f"test_{source.name}")
