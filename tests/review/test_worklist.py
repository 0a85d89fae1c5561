"""The worklist is filtered and sorted as an obvious loop would do it."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, strategies as st

from segtrust.engine import decide_rows, load_policies
from segtrust.io import Table
from segtrust.policy import Decision
from segtrust.review.deciding import decide
from segtrust.review.rows import Rows
from segtrust.review.worklist import Query, Sort, VerdictFilter, Verdicts, select
from tests.review import desks

TEXTS = st.sampled_from(["", "a", "B", "<b>", "ä", "a b"])
NUMBERS = st.sampled_from([None, 0.0, 0.25, 0.5, 0.5, 0.75, 1.0])
ROW = st.fixed_dictionaries(
    {
        "case": st.text(st.sampled_from("aAbß<."), max_size=3),
        "structure": st.sampled_from(["organ", "lesion"]),
        "set": TEXTS,
        "group": TEXTS,
        "sdc": NUMBERS,
        "dice": NUMBERS,
        "k": st.sampled_from([0, 3]),
        "verdict": st.sampled_from(["", "accept", "reject", "correct"]),
        "mine": st.booleans(),
    }
)
QUERY = st.builds(
    Query,
    sort=st.sampled_from(Sort),
    descending=st.booleans(),
    set=st.none() | TEXTS,
    group=st.none() | TEXTS,
    structure=st.none() | st.sampled_from(["organ", "lesion", "none"]),
    decision=st.none() | st.sampled_from(Decision),
    verdict=st.none() | st.sampled_from(VerdictFilter),
    search=st.sampled_from(["", "a", "A", "b<", "SS"]),
)


def obvious_decision(row, threshold, empty):
    if row["sdc"] is None or row["sdc"] < threshold:
        return "defer"
    if row["k"] == 0:
        return "no finding" if empty == "agree" else "defer"
    return "accept"


def is_wanted(row, decision, query):
    verdict = {
        "undecided": row["verdict"] == "",
        "decided": row["verdict"] != "",
        "mine": row["mine"],
    }.get(str(query.verdict), row["verdict"] == str(query.verdict))
    return (
        all(getattr(query, name) in (None, row[name]) for name in ("set", "group", "structure"))
        and query.decision in (None, decision)
        and (query.verdict is None or verdict)
        and query.search.casefold() in row["case"].casefold()
    )


def sort_key(row, decision, query):
    """A tuple that sorts upwards, whatever the direction."""
    sign = -1 if query.descending else 1
    if query.sort is Sort.WORKLIST:
        urgent = -math.inf if row["sdc"] is None else row["sdc"]
        return sign * (decision != "defer"), sign * urgent
    if query.sort in (Sort.CONFIDENCE, Sort.DICE):
        value = row["sdc" if query.sort is Sort.CONFIDENCE else "dice"]
        return value is None, sign * (value or 0.0)
    if query.sort is Sort.VERDICT:
        return row["verdict"] == "", sign * ["accept", "correct", "reject", ""].index(row["verdict"])
    text = row[str(query.sort)]
    return text == "", [sign * ord(each) for each in text] + ([math.inf] if sign < 0 else [])


@given(
    st.lists(ROW, max_size=12), QUERY, st.sampled_from([0.0, 0.5, 2.0]), st.sampled_from(["paper", "agree"])
)
def test_rows_are_chosen_and_sorted_as_by_a_loop(made, query, threshold, empty):
    columns = ("case", "structure", "set", "group", "sdc", "dice", "k")
    told = tuple({name: row[name] for name in columns} for row in made)
    rows = Rows(Table(columns, told, {"empty": empty}), "sdc", np.arange(len(made)))
    verdicts = Verdicts(
        np.array([row["verdict"] for row in made], object), np.array([row["mine"] for row in made], bool)
    )
    decisions = [obvious_decision(row, threshold, empty) for row in made]
    wanted = [i for i, row in enumerate(made) if is_wanted(row, decisions[i], query)]
    expected = sorted(wanted, key=lambda i: sort_key(made[i], decisions[i], query))
    found = decide(rows, {}, threshold)
    assert found.names.tolist() == decisions
    assert select(rows, found, verdicts, query).tolist() == expected


@pytest.mark.parametrize("empty", ["paper", "agree"])
def test_policies_decide_as_in_triage(tmp_path, empty):
    table = desks.write_scores(tmp_path / "scores.csv", 600)
    rows = tuple({**row, "k": 0} if number % 20 == 0 else row for number, row in enumerate(table.rows))
    table = replace(table, rows=rows, about={"empty": empty})
    policies = load_policies(desks.write_policy(tmp_path / "policy.json", table))
    rows = Rows(table, "sdc", np.arange(600))
    expected = decide_rows(policies)(table.rows)
    found = decide(rows, policies)
    assert found.names.tolist() == [row["decision"] for row in expected]
    assert found.margins.tolist() == [row["margin"] for row in expected]
    assert (empty == "agree") == ("no finding" in found.names.tolist())


def test_a_table_that_was_triaged_decides_itself():
    told = {"case": "a", "structure": "organ", "sdc": 0.5, "decision": "accept", "margin": 0.1}
    rows = Rows(Table.of([told, {**told, "case": "b", "decision": ""}]), "sdc", np.arange(2))
    found = decide(rows, {})
    assert found.names.tolist() == ["accept", ""]
    assert found.margins[0] == 0.1
