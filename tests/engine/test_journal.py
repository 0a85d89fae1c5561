"""A diary is gone on with after any break, and only by the run that it belongs to."""

import json
import os
import shutil
import signal
import subprocess
import sys
import textwrap
import tracemalloc
from pathlib import Path
from socket import gethostname

import pytest
from hypothesis import given, strategies as st

from segtrust.engine.journal import Journal, read_journal
from segtrust.engine.outcomes import Outcome
from segtrust.engine.sealed_lines import seal
from segtrust.errors import ParameterError, SavedStateError
from segtrust.io import Failure

SETTINGS = {"threshold": 0.5, "estimators": {"sdc": {"empty": "paper"}}}
NAMES = ("plain", "mit Ümlaut", "strange \udcff name", "7")
OUTCOMES = {name: Outcome(name, ({"case": name, "sdc": 1 / (3 + i)},)) for i, name in enumerate(NAMES)}
ALL = tuple(OUTCOMES.values())
FAILED = Outcome("failed", failure=Failure("failed", "f.npy", "OSError", "it is gone"))


def written(path, outcomes=ALL, settings=SETTINGS):
    with Journal(path, settings) as journal:
        for outcome in outcomes:
            journal.add(outcome, stamp=[outcome.case, (1, 2)])
    return path.read_bytes()


def found(path, settings=SETTINGS):
    with Journal(path, settings) as journal:
        return {name: journal.find(name, [name, (1, 2)]) for name in (*NAMES, "failed")}


def test_what_was_written_is_found(tmp_path):
    written(tmp_path / "diary")
    assert found(tmp_path / "diary") == {**OUTCOMES, "failed": None}


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    folder = tmp_path_factory.mktemp("journal")
    return folder, written(folder / "whole")


@given(data=st.data())
def test_cut_at_any_byte_it_goes_on_with_the_whole_lines(whole, data):
    folder, content = whole
    path = folder / "cut"
    path.write_bytes(content[: data.draw(st.integers(0, len(content)))])
    kept = {json.loads(line).get("case") for line in path.read_bytes().split(b"\n")[:-1]}
    with Journal(path, SETTINGS) as journal:
        for name, outcome in OUTCOMES.items():
            known = journal.find(name, [name, (1, 2)])
            assert known == (outcome if name in kept else None)
            if known is None:
                journal.add(outcome, [name, (1, 2)])
    assert {**found(path), "failed": None} == {**OUTCOMES, "failed": None}


@pytest.mark.parametrize("noise", [b"\x00\x00\x00\n", b"[1, 2]\n", b'{"case": "000"\n'])
def test_of_a_line_of_noise_only_its_own_case_is_lost(tmp_path, noise):
    path = tmp_path / "diary"
    lines = written(path).splitlines(keepends=True)
    path.write_bytes(b"".join([*lines[:3], noise, *lines[4:]]))
    assert [name for name, outcome in found(path).items() if outcome] == [NAMES[0], *NAMES[2:]]
    assert [outcome.case for outcome in read_journal(path).outcomes] == [NAMES[0], *NAMES[2:]]
    assert path.read_bytes().startswith(b"".join([*lines[:3], noise, *lines[4:]]))


@given(data=st.data())
def test_whatever_bit_flips_no_number_is_taken_for_another(whole, data):
    folder, content = whole
    path, flipped = folder / "flipped", bytearray(content)
    at = data.draw(st.integers(0, len(content) - 1))
    flipped[at] ^= 1 << data.draw(st.integers(0, 7))
    path.write_bytes(flipped)
    try:
        known = found(path)
    except (SavedStateError, ParameterError):
        assert at <= content.index(b"\n")  # in what the run was made with
        return
    assert all(outcome in (None, OUTCOMES.get(name)) for name, outcome in known.items())
    lost = [name for name, outcome in known.items() if outcome is None]
    assert len(lost) <= 3  # the one that failed, and two where the end of a line is gone


def test_a_damaged_line_is_told_until_its_case_is_written_down_again(tmp_path, caplog):
    path = tmp_path / "diary"
    lines = written(path).splitlines(keepends=True)
    path.write_bytes(b"".join([*lines[:2], lines[2].replace(b'"case"', b'"cbse"', 1), *lines[3:]]))
    with Journal(path, SETTINGS) as journal:
        assert [each.case for each in journal.damage()] == ["plain"]
        assert f"{path}, line 3: expected what became of a case" in caplog.text
        journal.add(OUTCOMES["plain"], [1])
        assert journal.damage() == []
    caplog.clear()
    assert found(path)["7"] == OUTCOMES["7"]
    assert not caplog.records


def test_a_damaged_line_is_told_whatever_the_name_of_its_case(tmp_path, caplog):
    path = tmp_path / "diary"
    path.write_bytes(written(path, [OUTCOMES["strange \udcff name"]]).replace(b"0.2", b"0.3"))
    found(path)
    assert "got a damaged line of strange \\xff name." in caplog.text


def test_a_diary_whose_only_result_is_damaged_is_not_begun_anew(tmp_path):
    path = tmp_path / "diary"
    content = written(path, [OUTCOMES["7"]]).replace(b'"rows"', b'"rows')
    path.write_bytes(content)
    with Journal(path, SETTINGS) as journal:
        assert [each.case for each in journal.damage()] == ["7"]
    assert path.read_bytes().startswith(content)
    with pytest.raises(ParameterError, match="begun with threshold"):
        found(path, {"threshold": 0.1})


def test_a_diary_that_does_not_say_what_it_was_made_with_is_refused(tmp_path):
    path = tmp_path / "diary"
    content = written(path).replace(b'"threshold": 0.5', b'"threshold": 0.1')
    path.write_bytes(content)
    with pytest.raises(
        SavedStateError, match="diary, line 1: expected what the run was made with, got a dam"
    ):
        found(path, {"threshold": 0.1})
    assert path.read_bytes() == content


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({**SETTINGS, "threshold": 0.4}, r"begun with threshold 0.5, not 0.4\. Go on"),
        ({**SETTINGS, "scaling": None, "empty": "agree"}, r"empty None, not 'agree'\. Go on"),
        (
            {**SETTINGS, "estimators": {"sdc": {"empty": "agree"}, "idc": {"forest": list(range(99))}}},
            r"estimators.sdc.empty 'paper', not 'agree'; estimators.idc None, not \{'forest.{51}…\. Go on",
        ),
    ],
)
def test_other_settings_are_refused_by_name(tmp_path, settings, said):
    before = written(tmp_path / "diary")
    with pytest.raises(ParameterError, match=said):
        found(tmp_path / "diary", settings)
    assert (tmp_path / "diary").read_bytes() == before


def test_begun_anew_nothing_counts_and_other_settings_are_welcome(tmp_path):
    path = tmp_path / "diary"
    written(path)
    with Journal(path, {"threshold": 0.1}, resume=False) as journal:
        assert journal.find(NAMES[0], [NAMES[0], (1, 2)]) is None
    assert not any(found(path, {"threshold": 0.1}).values())


def test_changed_files_and_failures_are_not_found(tmp_path):
    written(tmp_path / "diary", [OUTCOMES["7"], FAILED])
    with Journal(tmp_path / "diary", SETTINGS) as journal:
        assert journal.find("7", ["7", (1, 3)]) is None
        assert journal.find("7", ["7", (1, 2)]) == OUTCOMES["7"]
        assert journal.find("failed", ["failed", (1, 2)]) is None


def test_of_two_outcomes_the_later_counts(tmp_path):
    again = Outcome("7", ({"case": "7", "sdc": 0.5},))
    written(tmp_path / "diary", [OUTCOMES["7"], again])
    assert found(tmp_path / "diary")["7"] == again


@pytest.mark.parametrize(
    "content", [b"case,sdc\na,0.5\n", b"PK\x03\x04", b'{"format": "segtrust-policy-1"}\n', b"[1]\n", b"\n"]
)
def test_another_file_is_refused_and_left_as_it_was(tmp_path, content):
    (tmp_path / "diary").write_bytes(content)
    with pytest.raises(SavedStateError, match="diary: expected the diary of a run, got another file"):
        found(tmp_path / "diary")
    assert (tmp_path / "diary").read_bytes() == content


def test_a_diary_of_another_version_is_named(tmp_path):
    line = b'{"case": "a", "rows": [{"sdc": 0.5}]}\n'
    (tmp_path / "diary").write_bytes(b'{"format": "segtrust-journal-0", "made_with": {}}\n' + line)
    with pytest.raises(SavedStateError, match="of another version of segtrust"):
        found(tmp_path / "diary")


def test_nothing_is_kept_without_a_path():
    with Journal(None, {}) as journal:
        journal.add(OUTCOMES["7"], [])
        assert journal.find("7", []) is None


def test_rows_and_failures_are_those_of_the_last_outcomes_in_the_order_of_the_first(tmp_path):
    again = Outcome("plain", ({"case": "plain", "sdc": 0.5}, {"case": "plain", "sdc": 0.6}))
    with Journal(tmp_path / "diary", SETTINGS) as journal:
        for outcome in (*ALL, FAILED, again):
            journal.add(outcome, [outcome.case])
        read = [list(journal.rows()), journal.failures(), journal.counts()]
    expected = [*again.rows, *(row for outcome in ALL[1:] for row in outcome.rows)]
    assert read == [expected, [FAILED.failure], (4, 1)]
    assert [list(journal.rows()), journal.failures(), journal.counts()] == read  # closed, it is opened again


def test_what_failed_in_an_earlier_run_is_told_but_not_known_and_what_failed_in_this_one_is(tmp_path):
    written(tmp_path / "diary", [FAILED, OUTCOMES["7"]])
    with Journal(tmp_path / "diary", SETTINGS) as journal:
        stamp = ["failed", (1, 2)]
        assert (journal.knows("failed", stamp), journal.knows("7", ["7", (1, 2)])) == (False, True)
        assert (journal.failures(), journal.counts()) == ([FAILED.failure], (1, 1))
        journal.add(FAILED, stamp)
        assert (journal.failures(), journal.counts()) == ([FAILED.failure], (1, 1))
        assert journal.knows("failed", stamp)
        assert not journal.knows("failed", ["failed", (1, 3)])
        assert journal.find("failed", stamp) is None
    assert [row["case"] for row in journal.rows()] == ["7"]


def test_a_diary_that_is_changed_during_the_run_is_told(tmp_path):
    path = tmp_path / "diary"
    with Journal(path, SETTINGS) as journal:
        journal.add(OUTCOMES["7"], [1])
        path.write_bytes(path.read_bytes()[:-3])
        with pytest.raises(SavedStateError, match="diary: expected what was written down at byte"):
            journal.find("7", [1])


def test_another_run_that_no_lock_keeps_out_is_told_before_it_does_harm(tmp_path):
    """Some network drives keep locks to the machine that has them."""
    path = tmp_path / "diary"
    with Journal(path, SETTINGS) as journal:
        journal.add(OUTCOMES["7"], [1])
        with path.open("ab") as file:
            file.write(b'{"case": "b"}\n')
        before = path.read_bytes()
        with pytest.raises(SavedStateError, match=rf"got one of {len(before)} bytes: another run writes it"):
            journal.add(OUTCOMES["plain"], [1])
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    ("change", "found"),
    [
        (lambda path: path.unlink(), "none"),
        (lambda path: shutil.rmtree(path.parent), "none"),
        (lambda path: Path(shutil.copy(path, f"{path}.new")).replace(path), "another file"),
    ],
    ids=["deleted", "with its folder", "replaced"],
)
def test_a_diary_that_no_longer_has_its_name_is_told(tmp_path, change, found):
    path = tmp_path / "results/diary"
    path.parent.mkdir()
    with Journal(path, SETTINGS) as journal:
        journal.add(OUTCOMES["7"], [1])
        journal.check_place()
        change(path)
        for check in (journal.check_place, journal.bring_to_disk):
            with pytest.raises(SavedStateError, match=f"diary: expected the diary of this run, got {found}"):
                check()


def test_a_diary_that_is_deleted_after_the_run_is_told(tmp_path):
    path = tmp_path / "diary"
    with Journal(path, SETTINGS) as journal:
        journal.add(OUTCOMES["7"], [1])
    path.unlink()
    with pytest.raises(SavedStateError, match="Give the same command again"):
        list(journal.rows())


def test_a_case_takes_little_memory_however_long_its_rows(tmp_path):
    long = {f"column {at}": at / 7 for at in range(50)}
    with Journal(tmp_path / "diary", SETTINGS) as journal:
        journal.add(Outcome("first", (long,)), ["first.npy", 1])
        tracemalloc.start()
        for number in range(1000):
            journal.add(Outcome(f"case {number}", (dict(long),)), [f"{number}.npy", number])
        taken, _ = tracemalloc.get_traced_memory()
        tracemalloc.reset_peak()
        assert sum(1 for _ in journal.rows()) == 1001
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert taken / 1000 < 500
    assert peak - taken < 100_000


HOLDS = """
    import sys, time
    from pathlib import Path
    from segtrust.engine.journal import Journal
    from segtrust.engine.outcomes import Outcome

    with Journal(Path(sys.argv[1]), {}) as journal:
        journal.add(Outcome("a", ({"sdc": 0.5},)), [])
        print("open", flush=True)
        time.sleep(600)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="files are not locked there")
def test_a_second_run_is_refused_until_the_first_is_dead(tmp_path):
    path = tmp_path / "diary"
    command = [sys.executable, "-c", textwrap.dedent(HOLDS), str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as first:
        try:
            assert first.stdout.readline() == b"open\n"
            for resume in (True, False):
                with pytest.raises(
                    ParameterError, match=f"one of the process {first.pid} on {gethostname()}. Wait"
                ):
                    Journal(path, {}, resume).__enter__()
        finally:
            os.kill(first.pid, signal.SIGKILL)
    with Journal(path, {}) as journal:
        assert journal.find("a", []) == Outcome("a", ({"sdc": 0.5},))


def test_a_diary_without_results_may_be_begun_anew(tmp_path):
    """Nothing is lost, and whoever was told to say more can say it."""
    failed = Outcome("a", failure=Failure("a", "a.h5", "WrongContentError", "say which by --key"))
    with Journal(tmp_path / "diary", {"key": None}) as journal:
        journal.add(failed, [1])
    with Journal(tmp_path / "diary", {"key": "p"}) as journal:
        journal.add(Outcome("a", ({"sdc": 0.5},)), [1])
    with pytest.raises(ParameterError, match="begun with key 'p', not None"):
        Journal(tmp_path / "diary", {"key": None}).__enter__()


def test_a_diary_is_read_while_it_is_written(tmp_path):
    path = tmp_path / "diary.jsonl"
    with Journal(path, {"threshold": 0.5}) as journal:
        journal.add(Outcome("a", ({"sdc": 0.1},)), "1")
        journal.add(Outcome("b", failure=Failure("b", "b.npy", "ReadError", "damaged")), "1")
        journal.add(Outcome("a", ({"sdc": 0.2},)), "2")
        with path.open("ab") as file:
            file.write(b'{"case": "c", "rows": [')
        diary = read_journal(path)
    assert (diary.made_with, diary.folder) == ({"threshold": 0.5}, str(Path.cwd()))
    assert {each.case: each.rows for each in diary.outcomes} == {"a": ({"sdc": 0.2},), "b": ()}


def test_a_diary_of_another_release_is_not_read(tmp_path):
    path = tmp_path / "diary.jsonl"
    path.write_text('{"format": "segtrust-journal-9", "made_with": {}}\n')
    with pytest.raises(SavedStateError, match="of another version"):
        read_journal(path)


@pytest.mark.parametrize(
    "line",
    [
        {"case": "a", "rows": 3, "failure": None},
        {"case": "a", "rows": [3], "failure": None},
        {"case": ["a"], "rows": [], "failure": None},
        {"case": "a", "rows": []},
        {"case": "a", "rows": [], "failure": {"case": "a"}},
        {"case": "a", "rows": [], "failure": "broken"},
    ],
)
def test_a_line_that_is_no_outcome_is_told(tmp_path, line):
    path = tmp_path / "diary"
    path.write_bytes(written(path) + seal(line))
    for read in (read_journal, found):
        with pytest.raises(SavedStateError, match=rf"^{path}: "):
            read(path)


@pytest.mark.parametrize("made_with", [3, "all", [1], None])
def test_settings_that_are_none_are_told(tmp_path, made_with):
    path = tmp_path / "diary"
    first = seal({"format": "segtrust-journal-2", "made_with": made_with})
    path.write_bytes(first + b"".join(written(tmp_path / "other").splitlines(keepends=True)[1:]))
    for read in (read_journal, found):
        with pytest.raises(SavedStateError, match=rf"^{path}: expected what the run was made with"):
            read(path)


def test_a_line_without_end_ends_the_reading(tmp_path):
    path = tmp_path / "diary"
    path.write_bytes(written(path) + b"[" * 100_000 + b"\n")
    assert len(read_journal(path).outcomes) == len(ALL)
    assert found(path) == {**OUTCOMES, "failed": None}
