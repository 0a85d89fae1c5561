"""Parts are computed once, kept whole, and checked before they are used again."""

import json
import os
import signal
import subprocess
import sys
import textwrap
from functools import partial

import numpy as np
import pytest

from segtrust.errors import ParameterError
from segtrust.evaluation import Part, PartStore, compute_parts
from tests.processes import children, interruptible, is_running, wait_until

pytestmark = pytest.mark.slow

PARAMETERS = {"images": 5, "grid": (0.0, 0.5)}


def square(number):
    return {"square": np.array([number**2])}


def fail(number):
    raise ZeroDivisionError(number)


def parts(count, function=square):
    return [Part(f"part-{number}", partial(function, number), weight=number + 1) for number in range(count)]


def squares(found):
    return [int(found[f"part-{number}"]["square"][0]) for number in range(len(found))]


@pytest.mark.parametrize("workers", [1, 2])
def test_parts_are_computed_and_their_weights_told(tmp_path, workers):
    done = []
    found = compute_parts(parts(4), PartStore(tmp_path, PARAMETERS), workers=workers, advance=done.append)
    assert squares(found) == [0, 1, 4, 9]
    assert sorted(done) == [1, 2, 3, 4]
    assert all(float(arrays["seconds"]) >= 0 for arrays in found.values())
    assert sorted(path.name for path in tmp_path.iterdir()) == [f"part-{number}.npz" for number in range(4)]


def test_kept_parts_are_not_computed_again(tmp_path):
    store = PartStore(tmp_path, PARAMETERS)
    first = compute_parts(parts(3), store)
    done = []
    again = compute_parts(parts(3, fail), store, advance=done.append)
    assert squares(again) == squares(first)
    assert done == [1, 2, 3]
    assert [each["seconds"] for each in again.values()] == [each["seconds"] for each in first.values()]


def test_a_run_that_broke_goes_on_with_what_is_missing(tmp_path):
    store = PartStore(tmp_path, PARAMETERS)
    broken = [*parts(2), Part("part-2", partial(fail, 2))]
    with pytest.raises(ZeroDivisionError):
        compute_parts(broken, store)
    assert sorted(path.stem for path in tmp_path.iterdir()) == ["part-0", "part-1"]
    rest = [Part(part.name, partial(fail, 0)) for part in parts(2)] + parts(3)[2:]
    assert squares(compute_parts(rest, store)) == [0, 1, 4]


def test_an_error_in_another_process_is_raised_here(tmp_path):
    with pytest.raises(ZeroDivisionError):
        compute_parts(parts(3, fail), PartStore(tmp_path, PARAMETERS), workers=2)


@pytest.mark.parametrize(
    ("other", "named"),
    [({"images": 6, "grid": (0.0, 0.5)}, "images 5, not 6"), ({"images": 5}, r"grid \[0.0, 0.5\], not None")],
)
def test_parts_of_other_parameters_are_refused_by_name(tmp_path, other, named):
    compute_parts(parts(1), PartStore(tmp_path, PARAMETERS))
    with pytest.raises(ParameterError, match=f"part-0.npz: expected .* got one with {named}. Choose another"):
        compute_parts(parts(1), PartStore(tmp_path, other))


@pytest.mark.parametrize("damage", [b"", b"PK\x03\x04", b"nonsense"])
def test_a_damaged_part_is_computed_again(tmp_path, damage):
    store = PartStore(tmp_path, PARAMETERS)
    compute_parts(parts(1), store)
    whole = (tmp_path / "part-0.npz").read_bytes()
    (tmp_path / "part-0.npz").write_bytes(damage or whole[: len(whole) // 2])
    assert squares(compute_parts(parts(1), store)) == [0]
    assert store.load("part-0") is not None


def test_nothing_is_kept_without_a_folder():
    store = PartStore(None, PARAMETERS)
    assert squares(compute_parts(parts(2), store)) == [0, 1]
    assert store.load("part-0") is None


@pytest.mark.parametrize("workers", [0, -1, 1.5, "2"])
def test_workers_must_be_a_whole_number(workers):
    with pytest.raises(
        ParameterError, match=f"workers: expected a whole number of at least 1, got {workers!r}"
    ):
        compute_parts([], PartStore(None, {}), workers=workers)


SLOW = """
    import sys, time
    from functools import partial
    from pathlib import Path
    import numpy as np
    from segtrust.evaluation import Part, PartStore, compute_parts

    def slow(number):
        time.sleep(0.2)
        return {"square": np.array([number**2])}

    if __name__ == "__main__":
        parts = [Part(f"part-{number}", partial(slow, number)) for number in range(300)]
        compute_parts(parts, PartStore(Path(sys.argv[1]), {}), workers=int(sys.argv[2]))
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="looks processes up in /proc")
@pytest.mark.parametrize("workers", [1, 2])
def test_killed_between_parts_it_leaves_whole_files_and_no_process(tmp_path, workers):
    script, folder = tmp_path / "slow.py", tmp_path / "parts"
    script.write_text(textwrap.dedent(SLOW))
    running = subprocess.Popen([sys.executable, str(script), str(folder), str(workers)])
    try:
        wait_until(lambda: folder.exists() and len(list(folder.glob("*.npz"))) >= 2)
        below = children(running.pid)
    finally:
        os.kill(running.pid, signal.SIGKILL)
        running.wait()
    assert (len(below) >= 2) == (workers == 2)
    wait_until(lambda: not any(map(is_running, below)))
    kept = sorted(path.stem for path in folder.glob("*.npz"))
    store = PartStore(folder, {})
    times = {name: (folder / f"{name}.npz").stat().st_mtime_ns for name in kept}
    found = compute_parts(parts(300), store)
    assert squares(found) == [number**2 for number in range(300)]
    assert {name: (folder / f"{name}.npz").stat().st_mtime_ns for name in kept} == times


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="looks processes up in /proc")
def test_interrupted_it_ends_its_processes_and_only_it_complains(tmp_path):
    script, folder = tmp_path / "slow.py", tmp_path / "parts"
    script.write_text(textwrap.dedent(SLOW).replace("sleep(0.2)", "sleep(0.2 if number < 2 else 600)"))
    command = interruptible(script, folder, "2")
    running = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, start_new_session=True)
    try:
        wait_until(lambda: folder.exists() and len(list(folder.glob("*.npz"))) >= 2)
        below = children(running.pid)
        os.killpg(running.pid, signal.SIGINT)  # as a terminal does: to all of them
        _, complaints = running.communicate(timeout=60)
    finally:
        running.kill()
    assert len(below) >= 2
    wait_until(lambda: not any(map(is_running, below)))
    assert complaints.rstrip().endswith("KeyboardInterrupt")
    assert "Process Spawn" not in complaints
    assert "BrokenProcessPool" not in complaints


def test_what_a_part_was_made_with_is_readable(tmp_path):
    compute_parts(parts(1), PartStore(tmp_path, PARAMETERS))
    with np.load(tmp_path / "part-0.npz") as file:
        assert json.loads(str(file["made with"])) == {"images": 5, "grid": [0.0, 0.5]}
