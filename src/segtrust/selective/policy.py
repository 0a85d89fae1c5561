# ruff: noqa: F401, D100, I001, RUF100
from segtrust.policy.policy import OWN_VERSIONS as OWN_VERSIONS
from segtrust.policy.policy import Decision as Decision
from segtrust.policy.policy import Policy as Policy
from segtrust.policy.policy import Standing as Standing
