"""Moved to `segtrust.engine.triage`; ``parameters_of`` to `segtrust.engine.scoring`."""

from segtrust.engine.triage import (
    DECISION_COLUMNS as DECIDED,
    Policies,
    check_structures as refuse_other_structures,
    decide_rows,
    load_policies,
)
from segtrust.engine.scoring import parameters_of

__all__ = ["DECIDED", "Policies", "decide_rows", "load_policies", "parameters_of", "refuse_other_structures"]
