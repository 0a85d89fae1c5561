# ruff: noqa: F401, D100, I001, RUF100
from segtrust.policy.scoring import Scoring as Scoring
