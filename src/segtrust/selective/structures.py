# ruff: noqa: F401, D100, I001, RUF100
from segtrust.policy.structures import StructurePolicies as StructurePolicies
from segtrust.policy.structures import certify_structures as certify_structures
