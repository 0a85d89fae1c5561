"""What is known about the calibration cases of a policy, in a file beside it.

The policy itself holds no confidences: they may tell more about patients than a policy should that is passed
on. With the file, new cases are compared with the calibration cases, and are read in the same way.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from segtrust._files import (
    atomic_write_all,
    check_format,
    format_json,
    naming_errors,
    read_json,
    remove_stale_drafts_of,
)
from segtrust.errors import ParameterError, SavedStateError

__all__ = ["Reference", "read_references", "reference_path", "write_with_references"]

_FORMAT = "segtrust-reference-1"
_KINDS = {"digests": dict, "confidences": dict, "read": dict, "masks": list, "members": list}


@dataclass(frozen=True)
class Reference:
    """The calibration cases of a policy, without their names.

    Attributes
    ----------
    confidences
        One per case, sorted.
    read
        Options with which the files were read, as plain values; empty if unknown.
    masks
        Kinds of masks that were scored.
    members
        Numbers of maps that cases were fused of.
    """

    confidences: tuple[float, ...]
    read: Mapping[str, Any] = field(default_factory=dict)
    masks: tuple[str, ...] = ()
    members: tuple[int, ...] = (1,)


def reference_path(policy: Path) -> Path:
    """Return the path of the file beside a policy."""
    return policy.with_name(f"{policy.stem}.reference.json")


def write_with_references(
    path: Path, policy: Mapping[str, Any], references: Mapping[str, tuple[str, Reference]]
) -> None:
    """Write a policy and the file beside it in one step.

    Parameters
    ----------
    path
        Path of the policy.
    policy
        The policy as plain values.
    references
        Checksum of the calibration table and reference, by structure.
    """
    first = next(iter(references.values()))[1]
    values = {
        "format": _FORMAT,
        "digests": {name: digest for name, (digest, _) in references.items()},
        "confidences": {name: list(reference.confidences) for name, (_, reference) in references.items()},
        "read": first.read,
        "masks": list(first.masks),
        "members": list(first.members),
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    remove_stale_drafts_of(path)
    with atomic_write_all(path, reference_path(path)) as (policy_draft, reference_draft):
        policy_draft.write_text(format_json(policy), encoding="utf-8")
        reference_draft.write_text(format_json(values), encoding="utf-8")


def read_references(policy: Path, digests: Mapping[str, str]) -> dict[str, Reference]:
    """Read the file beside a policy, by structure; nothing if there is none.

    Parameters
    ----------
    policy
        Path of the policy.
    digests
        Checksums of its calibration tables by structure; the file must have the same.
    """
    path = reference_path(policy)
    if not path.exists():
        return {}
    saved = read_json(path)
    check_format(saved, _FORMAT, str(path))
    for name, kind in _KINDS.items():
        value = saved.get(name) or kind()
        is_plain = kind is dict or (
            isinstance(value, list) and all(isinstance(item, str | int) for item in value)
        )
        if not (isinstance(value, kind) and is_plain):
            raise SavedStateError(f"{path}: expected a {kind.__name__} of {name}, got {saved[name]!r}.")
    known = saved.get("digests") or {}
    if any(known.get(name) != digest for name, digest in digests.items()):
        raise ParameterError(
            f"{path}: expected the confidences that the policy was made with, got those of another. Keep "
            "both files together, or calibrate again."
        )
    with naming_errors(str(path)):
        return {
            name: Reference(
                tuple(map(float, (saved.get("confidences") or {}).get(name, ()))),
                saved.get("read") or {},
                tuple(saved.get("masks") or ()),
                tuple(saved.get("members") or (1,)),
            )
            for name in digests
        }
