"""Moved to `segtrust.engine.triage`."""

from segtrust.engine.triage import are_calibration_cases, checksum_of

__all__ = ["are_calibration_cases", "checksum_of"]
