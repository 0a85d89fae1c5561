"""Run chosen tests in forks of a process that has imported everything but the package under test.

To start Python and import NumPy, SciPy and pytest takes longer than most tests. A fork has them already, and
imports only the package, which may have been changed in between. A fork that runs away is stopped by the
processor's time it has used, not by the clock: the machine may be busy.
"""

import gc
import importlib
import json
import os
import resource
import signal
import sys
import time
from collections.abc import Callable, Generator, Iterable
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from types import FrameType

import pytest
from hypothesis import HealthCheck, Phase, settings

WARM = ("numpy", "scipy.stats", "scipy.ndimage", "scipy.optimize", "numba", "torch", "sklearn.ensemble")
PROFILE = "mutants"
EXAMPLES = 10
MEMORY = 12 << 30
PATIENCE = 20
"""Seconds by the clock for each second of the processor: the machine may be busy."""
BROKEN = (pytest.ExitCode.TESTS_FAILED, pytest.ExitCode.INTERRUPTED)
WRAPS = ":overflow encountered:RuntimeWarning"
_IMPORTING = ""
"""What coverage calls the time before the first test."""


class TooSlow(BaseException):
    """A test has used more than its time; of a kind that no test, and not Hypothesis, would catch."""


def warm_up(modules: Iterable[str] = WARM) -> None:
    """Import what all forks need, and say how Hypothesis is to search: briefly, the same way each time.

    Loops are not compiled from here on, and each library has one thread.
    """
    os.environ |= {"NUMBA_DISABLE_JIT": "1", "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    for name in modules:
        if find_spec(name.partition(".")[0]):
            importlib.import_module(name)
    settings.register_profile(
        PROFILE,
        max_examples=EXAMPLES,
        derandomize=True,
        database=None,
        deadline=None,
        phases=(Phase.explicit, Phase.generate),
        suppress_health_check=list(HealthCheck),
    )
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"  # some import half of the environment, in each fork
    gc.freeze()


def in_fork(work: Callable[[], object], answer: Path, seconds: float) -> object | None:
    """Run some work in a fork; what it gave, or None where it died, ran away or raised."""
    answer.unlink(missing_ok=True)
    pid = os.fork()
    if pid == 0:
        _be_the_fork(work, answer, seconds)
    if not _has_ended(pid, PATIENCE * seconds):
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    return json.loads(answer.read_text(encoding="utf-8")) if answer.exists() else None


def _be_the_fork(work: Callable[[], object], answer: Path, seconds: float) -> None:
    """Work, write down what came of it, and end at once, whatever the parent has to tidy up."""
    try:
        used = sum(resource.getrusage(resource.RUSAGE_SELF)[:2])
        resource.setrlimit(resource.RLIMIT_CPU, (int(used + seconds) + 1,) * 2)
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        silent = os.open(os.devnull, os.O_WRONLY)
        os.dup2(silent, 1)
        os.dup2(silent, 2)
        found = json.dumps(work())
        draft = answer.with_suffix(".draft")
        draft.write_text(found, encoding="utf-8")
        draft.replace(answer)
    finally:
        os._exit(0)


def _has_ended(pid: int, patience: float) -> bool:
    end = time.monotonic() + patience
    while time.monotonic() < end:
        if os.waitpid(pid, os.WNOHANG)[0]:
            return True
        time.sleep(0.02)
    return False


@dataclass(eq=False)
class Watch:
    """A plug-in of pytest: runs the chosen tests in the order given, stops slow ones, and keeps what came."""

    limit: float
    chosen: list[str] | None = None
    enter: Callable[[str], None] | None = None
    seconds: dict[str, float] = field(default_factory=dict)
    failed: list[str] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Keep what was chosen."""
        if self.chosen is not None:
            place = {name: at for at, name in enumerate(self.chosen)}
            items[:] = [each for each in items if each.nodeid in place]
            items.sort(key=lambda each: place[each.nodeid])

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        """Let a test have its time, and no more."""
        if self.enter:
            self.enter(item.nodeid)
        begin = time.process_time()
        signal.signal(signal.SIGPROF, _stop)
        signal.setitimer(signal.ITIMER_PROF, self.limit, 1.0)
        try:
            return (yield)
        except TooSlow:  # between the stages of a test, where pytest would not catch it
            self.failed.append(item.nodeid)
            return True
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0.0)
            self.seconds[item.nodeid] = time.process_time() - begin

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Keep what failed and what was skipped."""
        if report.failed:
            self.failed.append(report.nodeid)
        elif report.skipped:
            self.skipped.append(report.nodeid)


def _stop(_: int, frame: FrameType | None) -> None:
    """Stop a test; not within coverage, which would keep its lock for ever: soon after."""
    while frame:
        if frame.f_globals.get("__name__", "").startswith("coverage."):
            signal.setitimer(signal.ITIMER_PROF, 0.01, 1.0)
            return
        frame = frame.f_back
    raise TooSlow


def run_pytest(tree: Path, paths: list[str], watch: Watch, *more: str) -> int:
    """Run pytest in this process on a tree of the source; its exit code."""
    os.chdir(tree)
    os.environ["PYTHONPATH"] = os.pathsep.join((str(tree / "src"), str(tree)))
    sys.path[:0] = [str(tree / "src"), str(tree)]
    without = [f"-pno:{name}" for name in ("cacheprovider", "unraisableexception", "threadexception")]
    fixed = ["-q", "--tb=no", *without, "-p_hypothesis_pytestplugin", f"--hypothesis-profile={PROFILE}"]
    # Loops that are not compiled warn where a hash wraps round, and forks of what was imported before.
    quiet = [f"-Wignore{which}" for which in ("::pytest.PytestAssertRewriteWarning", WRAPS)]
    where = [f"--rootdir={tree}", f"--basetemp={tree.parent / 'tmp'}"]
    return int(pytest.main([*fixed, *quiet, *where, *more, *paths], plugins=[watch]))


def measure(tree: Path, path: str, package: Path, slow: float) -> dict[str, object]:
    """Run a file of tests; give their times, the lines that each ran, and what fails or takes too long."""
    from coverage import Coverage

    coverage = Coverage(data_file=None, config_file=False, include=[f"{package}/*"])
    coverage.start()
    watch = Watch(slow, enter=coverage.switch_context)
    run_pytest(tree, [path], watch)
    coverage.stop()
    data = coverage.get_data()
    lines: dict[str, dict[str, list[int]]] = {}
    for file in data.measured_files():
        for line, tests in data.contexts_by_lineno(file).items():
            for test in tests:
                own = lines.setdefault(test or _IMPORTING, {})
                own.setdefault(str(Path(file).relative_to(tree)), []).append(line)
    return {"seconds": watch.seconds, "failed": watch.failed, "skipped": watch.skipped, "lines": lines}


def kill(tree: Path, tests: list[str], limit: float) -> str | None:
    """Run tests until one fails; its name, or None where all hold. Nothing compiled of a mutant is kept.

    A file that cannot be imported has no tests to name. Where pytest itself has failed nothing is known of
    the mutant, which is one to look at.
    """
    sys.dont_write_bytecode = True
    os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
    watch = Watch(limit, chosen=tests)
    paths = list(dict.fromkeys(test.partition("::")[0] for test in tests))
    code = run_pytest(tree, paths, watch, "-x")
    return next(iter(watch.failed), None) or ("not to be imported" if code in BROKEN else None)
