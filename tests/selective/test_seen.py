"""Cases that were used already are refused."""

import numpy as np
import pytest

from segtrust.errors import CaseLengthError, CaseValueError, ParameterError, SeenCasesError
from segtrust.selective.seen import names_of, refuse_seen


def test_unseen_cases_pass():
    assert refuse_seen(["a", "b"], None, 2) == ("a", "b")
    assert refuse_seen(np.array(["a", "b"]), {"c"}, 2) == ("a", "b")
    assert refuse_seen(None, None, 2) == refuse_seen(None, (), 2) == ()


def test_seen_cases_are_named():
    with pytest.raises(SeenCasesError, match=r"2 of 3 cases have been used already \('a', 'c'\)"):
        refuse_seen(["a", "b", "c"], ["c", "a", "x"], 3)
    with pytest.raises(SeenCasesError, match=r"\('0', '1', '2', …\)"):
        refuse_seen(range(9), range(9), 9)


def test_numbers_and_text_are_the_same_name():
    with pytest.raises(SeenCasesError):
        refuse_seen([7], ["7"], 1)
    with pytest.raises(SeenCasesError):
        refuse_seen(np.array([7]), [7], 1)


def test_used_ids_need_ids():
    with pytest.raises(ParameterError, match="ids: expected the id of each case"):
        refuse_seen(None, ["a"], 2)


def test_each_case_has_one_name():
    with pytest.raises(CaseLengthError, match="ids: expected 3 values"):
        names_of(["a"], 3)
    with pytest.raises(CaseValueError, match="'b' 2 times"):
        names_of(["a", "b", "b"], 3)
    assert names_of([], 0) == ()
