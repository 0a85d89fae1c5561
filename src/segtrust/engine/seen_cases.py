"""Which cases a policy was made with: they tell nothing of how it does on new ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from segtrust._arguments import checksum_name
from segtrust.io.places import Place
from segtrust.policy import Policy

__all__ = ["are_calibration_cases", "checksum_of"]

_SAME = 1e-9
"""Relative difference up to which two confidences are the same; files keep them in full."""


def checksum_of(row: Mapping[str, Any]) -> str:
    """Return the checksum by which the case of a row is recognised; empty for an empty mask.

    Many images have the same map if there is nothing in it, and they are different cases. The checksum in
    a table is that of the file; of a file with several maps, the place of the map is added.

    Examples
    --------
    >>> checksum_of({"digest": "crc32:352441c2", "k": 7}), checksum_of({"digest": "crc32:352441c2", "k": 0})
    ('crc32:352441c2', '')
    >>> checksum_of({"digest": "zip-crc32:352441c2", "k": 7, "file": "maps/stack.npz::p_hat[3]"})
    'zip-crc32:352441c2::p_hat[3]'
    """
    if row.get("k") == 0 or not row.get("digest"):
        return ""
    place = Place.of(str(row.get("file") or ""))
    return str(row["digest"]) + str(replace(place, path=Path()))[len(str(Path())) :]


def are_calibration_cases(
    names: Sequence[Any],
    confidence: Any,
    policy: Policy,
    reference: Sequence[float] = (),
    *,
    checksums: Sequence[str] = (),
) -> Any:
    """Return for each case whether the policy was calibrated with it.

    A checksum that is known to the policy is enough. A name alone is not: ``1`` or ``case_001`` are in many
    data sets. So the confidence must be one of the calibration cases too, if these are known. A new case with
    the name of one calibration case and the confidence of another, such as that of all empty masks, is still
    taken for a calibration case.

    Parameters
    ----------
    names, confidence
        Of each case; a confidence that is NaN is nowhere among those of the calibration.
    policy
        With the names of its cases, hashed. One without names recognises nobody.
    reference
        Confidences of its cases, as they are kept beside it; where there are none names alone are compared.

    checksums
        Checksums of the maps, if they are known; empty for a case without one.

    Returns
    -------
    array of bool
        One value per case.

    Examples
    --------
    >>> from segtrust.selective import CalibrationCases
    >>> from segtrust.selective import certify
    >>> from segtrust.policy import Scoring
    >>> from segtrust.selective import Target
    >>> c = np.linspace(0, 1, 400)
    >>> cases = CalibrationCases(c, (1 - c) / 2, ids=range(400), reference=np.linspace(0, 0.99, 50))
    >>> policy = Policy.from_certificate(certify(cases, [Target(0.2)]), Scoring("sdc"))
    >>> are_calibration_cases(["399", "399", "400"], [1.0, 0.1234, 1.0], policy, c).tolist()
    [True, False, False]
    >>> are_calibration_cases(["399", "400"], [0.1234, 1.0], policy).tolist()
    [True, False]
    """
    values = np.asarray(confidence, np.float64)
    found = np.ones(values.size, bool)
    if len(reference):
        found = _among(values, np.sort(np.asarray(reference, np.float64)))
    for place in map(int, np.flatnonzero(found)):
        found[place] = names[place] in policy.used_ids
    for place, checksum in enumerate(checksums):
        found[place] |= bool(checksum) and checksum_name(checksum) in policy.used_ids
    return found


def _among(values: Any, known: Any) -> Any:
    """Tell of each value whether it is one of others, which are sorted: the nearest are on its sides."""
    at = np.searchsorted(known, values)
    below, above = (known[np.clip(each, 0, known.size - 1)] for each in (at - 1, at))
    return np.isclose(values, below, rtol=_SAME, atol=0.0) | np.isclose(values, above, rtol=_SAME, atol=0.0)
