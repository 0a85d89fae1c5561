"""Mutate the source, one small change at a time, and see whether the tests notice.

``python -m tools.reliability.mutating kernels --sample 300 --seed 0 --out mutants/`` draws mutants of a
package from all that cosmic-ray can make, puts each into a copy of the source, and runs the tests that ran
the changed line before: those of the mirrored file first, then others. Loops are not compiled. What is
finished is kept in a session of cosmic-ray's, and the same command goes on with it; ``--survivors`` runs
those again that no test noticed, after tests were added. Survivors are written to ``mutants/PACKAGE.md`` and
``.json``.
"""

# ruff: noqa: T201

import argparse
import json
import time
from collections import Counter
from importlib.util import cache_from_source
from pathlib import Path

from cosmic_ray.mutating import use_mutation
from cosmic_ray.plugins import get_operator
from cosmic_ray.work_db import WorkDB, use_db
from cosmic_ray.work_item import MutationSpec, TestOutcome, WorkerOutcome, WorkItem, WorkResult

from tools.reliability.forked_tests import WARM, in_fork, kill, warm_up
from tools.reliability.mutant_tests import Tests, measured_tests
from tools.reliability.mutants import BUDGET_S, SLOW_S, Place, begin, lines_of

ROOT = Path(__file__).parents[2]
HANGS = 6.0
"""A test that takes so many times what is still not slow has noticed the mutant."""


def run(place: Place, *, survivors: bool) -> None:
    """Try each mutant that has no result, or those that have survived, and keep what came of it."""
    tests = Tests.of(measured_tests(place))
    tell_left_out(tests)
    with use_db(place.file(".sqlite"), WorkDB.Mode.open) as session:
        items = pending(session, survivors=survivors)
        began = time.monotonic()
        for at, item in enumerate(items, 1):
            result = try_mutant(place, tests, item.mutations[0])
            session.set_result(item.job_id, result)
            each = (time.monotonic() - began) / at
            spec = item.mutations[0]
            print(
                f"{at}/{len(items)} ({each:.1f} s each) {result.test_outcome.value:8s}"
                f" {spec.module_path.name}:{spec.start_pos[0]} {spec.operator_name} {result.output or ''}",
                flush=True,
            )


def pending(session: WorkDB, *, survivors: bool) -> list[WorkItem]:
    """Mutants to be tried, in no order: what is finished of a broken run is a sample, too."""
    items = list(session.pending_work_items)
    if survivors:
        done = session.completed_work_items
        items += [item for item, result in done if result.test_outcome is TestOutcome.SURVIVED]
    return sorted(items, key=lambda item: item.job_id)


def try_mutant(place: Place, tests: Tests, spec: MutationSpec) -> WorkResult:
    """Put a mutant in place, run the tests that ran its line, and take it away again."""
    module = str(spec.module_path.relative_to(place.tree))
    stages = tests.stages(module, lines_of(spec), place.budget)
    operator = get_operator(spec.operator_name)(**spec.operator_args)
    Path(cache_from_source(str(spec.module_path))).unlink(missing_ok=True)
    with use_mutation(spec.module_path, operator, spec.occurrence) as (before, after):
        killer = next(filter(None, (killed_by(place, tests, stage) for stage in stages)), None)
    note = killer or f"{sum(map(len, stages))} tests"
    outcome = TestOutcome.KILLED if killer else TestOutcome.SURVIVED
    return WorkResult(WorkerOutcome.NORMAL, note, outcome, changed_lines(before, after or before))


def killed_by(place: Place, tests: Tests, stage: list[str]) -> str | None:
    """Name the test that notices a mutant, or say that the run came to no end."""
    limit = 20.0 + 4.0 * sum(tests.seconds[test] for test in stage)
    found = in_fork(lambda: [kill(place.tree, stage, HANGS * place.slow)], place.file(".answer"), limit)
    return "came to no end" if found is None else found[0]


def changed_lines(before: str, after: str) -> str:
    """Give the lines that differ, with the signs of a diff."""
    old, new = before.splitlines(), after.splitlines()
    same = 0
    while same < min(len(old), len(new)) and old[same] == new[same]:
        same += 1
    tail = 0
    while tail < min(len(old), len(new)) - same and old[-1 - tail] == new[-1 - tail]:
        tail += 1
    lost, came = old[same : len(old) - tail], new[same : len(new) - tail]
    return "\n".join([*(f"-{line}" for line in lost), *(f"+{line}" for line in came)])


def tell_left_out(tests: Tests) -> None:
    """Print which tests are not run, and why."""
    for test, why in sorted(tests.left_out.items()):
        print(f"left out ({why}): {test}")
    print(f"{len(tests.seconds)} tests, {Counter(tests.left_out.values())} left out")


def tell(place: Place) -> int:
    """Print the score, and write the survivors; give their number."""
    with use_db(place.file(".sqlite"), WorkDB.Mode.open) as session:
        done = session.completed_work_items
        drawn = session.num_work_items
    about = json.loads(place.file(".about.json").read_text(encoding="utf-8"))
    survivors = [row_of(place, item, result) for item, result in done if not result.is_killed]
    survivors.sort(key=lambda row: (row["file"], row["line"]))
    killed = len(done) - len(survivors)
    print(f"{place.package}: {about['counts']}")
    share = 100 * killed / max(len(done), 1)
    print(f"{place.package}: {killed} of {len(done)} killed, {share:.1f} % ({drawn} drawn)")
    place.file(".json").write_text(json.dumps(survivors, indent=1), encoding="utf-8")
    place.file(".md").write_text("\n".join(map(block_of, survivors)), encoding="utf-8")
    return len(survivors)


def block_of(row: dict[str, object]) -> str:
    """Give a survivor as Markdown."""
    return f"## {row['file']}:{row['line']}\n\n{row['tests']}\n\n```diff\n{row['diff']}\n```\n"


def row_of(place: Place, item: WorkItem, result: WorkResult) -> dict[str, object]:
    """Give a survivor as a row."""
    spec = item.mutations[0]
    return {
        "file": str(spec.module_path.relative_to(place.source)),
        "line": spec.start_pos[0],
        "in": spec.definition_name,
        "operator": spec.operator_name,
        "diff": result.diff,
        "tests": result.output,
    }


def main() -> None:
    """Read the command line, and run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("package", help="a folder of src/segtrust: kernels, confidence, selective")
    parser.add_argument("--sample", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, required=True, help="folder of the session and the survivors")
    parser.add_argument("--survivors", action="store_true", help="run those again that have survived")
    parser.add_argument("--slow", type=float, default=SLOW_S, help="seconds of the slowest test that is run")
    parser.add_argument("--budget", type=float, default=BUDGET_S, help="seconds of all tests of a mutant")
    parser.add_argument("--root", type=Path, default=ROOT, help="folder with src and tests")
    parser.add_argument("--import", dest="warm", nargs="*", default=WARM, help="what forks begin with")
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    place = Place(given.root.resolve(), given.out.resolve(), given.package, given.slow, given.budget)
    warm_up(given.warm)
    begin(place, given.sample, given.seed)
    run(place, survivors=given.survivors)
    tell(place)


if __name__ == "__main__":
    main()
