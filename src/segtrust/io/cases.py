"""Moved to `segtrust.io.case_files`."""

from segtrust.io.case_files import UNPAIRED, CaseFiles, Dataset, Failure, join_id

__all__ = ["CaseFiles", "DataSet", "Unpaired"]

DataSet = Dataset


def Unpaired(name: str, file: str, reason: str, folder: str = "", prefix: str = "") -> Failure:  # noqa: N802
    """Return a failure."""
    return Failure(join_id(prefix, folder, name), file, UNPAIRED, reason)
