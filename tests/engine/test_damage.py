"""What can still be told of a line that cannot be read."""

import json

import pytest

from segtrust.engine.damage import DamagedLine
from segtrust.engine.outcomes import Outcome
from segtrust.io import Failure


def line_of(case, failure=None):
    outcome = Outcome(case, () if failure else ({"case": case, "sdc": 0.5},), failure)
    return json.dumps({"stamp": {"files": [[f"{case}.npy", 1, 2]]}, **outcome.to_dict()}).encode() + b"\n"


A, B = line_of("a"), line_of("b")


@pytest.mark.parametrize(
    ("line", "cases"),
    [
        (A.replace(b"0.5}", b"0.5|"), ("a",)),
        (A.replace(b'"rows"', b'"r\x00ws\xff'), ("a",)),
        (A[:-1] + b"\x0b" + B, ("a", "b")),  # the end of a line was hit
        (A[:-8] + bytes(16) + B[8:], ("a", "b")),
        (line_of("mit Ümlaut \udcff").replace(b"}", b"]"), ("mit Ümlaut \udcff",)),
        (line_of("f", Failure("f", "f.npy", "OSError", 'said "case": "x"')).replace(b"}", b"]"), ("f",)),
        (b'{"pid": 7, "folder": "/data", "comm\x02nd": [}\n', ()),
    ],
)
def test_names_are_read_and_nothing_else_can_be_in_it(line, cases):
    found = DamagedLine.of(line, 3, at=100)
    assert (found.cases, found.may_hide_more) == (cases, False)
    assert found.is_made_good(dict.fromkeys(cases, 101))
    assert found.is_made_good(dict.fromkeys(cases, 99)) is not bool(cases)  # which came before it
    assert found.is_made_good({}) is not bool(cases)


@pytest.mark.parametrize(
    "line",
    [
        bytes(4096) + b"\n",
        A[:-20] + bytes(200) + B[20:],  # a whole line may have stood between
        b"[1, 2]\n",
        b"\n",
        A.replace(b'"case": "a"', b'"case": "\\u12"'),
    ],
)
def test_a_line_that_may_hide_a_case_is_never_made_good(line):
    assert not DamagedLine.of(line, 3, at=100).is_made_good({"a": 101, "b": 101})


def test_it_is_told_by_file_line_and_case():
    failure = DamagedLine.of(A.replace(b"}", b"]"), 3, at=100).failure("out/.scores.csv.journal")
    assert (failure.case, failure.file, failure.kind) == ("a", "out/.scores.csv.journal", "DamagedLine")
    assert failure.reason.startswith(
        "out/.scores.csv.journal, line 3: expected what became of a case, got a "
    )
    assert "damaged line of a. Where its files" in failure.reason
    assert DamagedLine.of(b"\n", 9, at=1).failure("diary").case == "line 9"
