"""Files that hold many maps at once: ``p_hat``, with ground truth ``y`` and perhaps masks ``y_hat``."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from segtrust.errors import PairingError, ReadError
from segtrust.io.array_ref import ArrayRef
from segtrust.io.case_files import UNPAIRED, CaseFiles, Dataset, Failure, join_id
from segtrust.io.formats.numpy import open_npz, read_members
from segtrust.io.formats.pickle import is_pickle, read_trusted
from segtrust.io.names import stem_of

__all__ = ["cases_of_map", "cases_of_pickle", "may_be_pickled"]

_MOST_CASES = 100_000
"""Cases in a file: a longer array is of another kind, such as one whose first axis are pixels."""


def cases_of_map(path: Path, case: str, folder: str = "") -> Dataset:
    """Return the case of a file, or the many cases of one that holds a stack of maps."""
    lengths: dict[str, int | None] = {}
    if path.suffix.lower() == ".npz":
        try:
            names = [name for name in read_members(path) if name in ("p_hat", "y_hat", "y")]
            lengths = {name: _stack_length(path, name) for name in names} if "p_hat" in names else {}
        except (ReadError, OSError):
            pass  # reported when it is read
    if lengths.get("p_hat") is None:
        key = "p_hat" if "p_hat" in lengths else None
        return Dataset((CaseFiles(case, ArrayRef(path, key), folder=folder),))
    return _cases_of_stack(path, case, lengths, folder=folder)


def _stack_length(path: Path, name: str) -> int | None:
    """Return the number of maps in an array of an archive; ``None`` if it is a single map."""
    try:
        shape = open_npz(path, name).shape
    except ReadError:
        return None
    return shape[0] if len(shape) >= 3 else None


def may_be_pickled(path: Path) -> bool:
    """Return whether a file is a pickle, or an archive with ``p_hat`` that may hold one."""
    if not path.is_file() or is_pickle(path):
        return path.is_file()
    try:
        return path.suffix.lower() == ".npz" and "p_hat" in read_members(path)
    except (ReadError, OSError):
        return False


def cases_of_pickle(path: Path) -> Dataset:
    """Return the cases of a pickle, or of an archive that may hold one, which the user allows to load."""
    arrays = read_trusted(path)
    if "p_hat" not in arrays:
        raise PairingError(f"{path}: expected maps called 'p_hat', got {', '.join(map(str, arrays))}.")
    lengths = {name: len(values) for name, values in arrays.items() if name in ("p_hat", "y_hat", "y")}
    return _cases_of_stack(path, stem_of(path), lengths, is_trusted=True)


def _cases_of_stack(
    path: Path, case: str, lengths: Mapping[str, int | None], *, folder: str = "", is_trusted: bool = False
) -> Dataset:
    """Return the numbered cases of a stack; a failure if its arrays differ in length."""
    count = lengths["p_hat"] or 0
    other = next((name for name in ("y_hat", "y") if lengths.get(name, count) not in (count, None)), None)
    reason = ""
    if count > _MOST_CASES:
        reason = f"expected at most {_MOST_CASES} maps in 'p_hat', got {count}. Save them in several files"
    elif other is not None:
        reason = f"expected as many in {other!r} as in 'p_hat', {count}, got {lengths[other]}"
    if reason:
        return Dataset(failures=(Failure(join_id(folder, case), str(path), UNPAIRED, reason),))

    def ref(key: str, index: int) -> ArrayRef | None:
        return ArrayRef(path, key, index, is_trusted) if key in lengths else None

    return Dataset(
        tuple(
            CaseFiles(
                f"{case}[{index}]",
                ArrayRef(path, "p_hat", index, is_trusted),
                mask=ref("y_hat", index),
                truth=ref("y", index),
                folder=folder,
            )
            for index in range(count)
        )
    )
