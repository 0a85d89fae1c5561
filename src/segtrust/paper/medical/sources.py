"""Where the maps of tasks are: what `segtrust tasks` wrote, folders of sets, or the authors' own archives."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from zipfile import BadZipFile, ZipFile

from segtrust.errors import PairingError, SegtrustError, WrongContentError
from segtrust.io import (
    LISTED,
    ArrayRef,
    CaseFiles,
    Dataset,
    find_cases,
    only_with_truth,
    open_volume,
    read_trusted,
    without_duplicates,
)
from segtrust.paper.tasks.registry import NAMES, get_task

__all__ = ["ID", "OOD", "PAPER_TASKS", "FoundTasks", "TaskMaps", "find_tasks"]

ID, OOD = "ID", "OOD"
"""Names of the two sets of a task; all sets of other distributions are one, as in the paper."""

PAPER_TASKS = {
    "brain-tumor": "Brain tumor",
    "breast-cancer": "Breast cancer",
    "skin-cancer": "Skin cancer",
    "mswml": "MSWML",
    "optic-cup": "Optic cup",
    "polyp": "Polyp",
}
"""The six tasks of the paper, with their titles in its tables."""

_TITLES = {**PAPER_TASKS, "optic-disc": "Optic disc", "nuclei": "Nuclei", "skin": "Skin cut-outs"}
_ARCHIVES = {
    "brain-tumor": ("brats", "brats2020"),
    "breast-cancer": ("busi",),
    "skin-cancer": ("isic", "isic2018"),
    "optic-cup": ("optic_cup", "refuge"),
    "polyp": ("polyp-pvt", "polyp_pvt"),
}
"""Names that the authors gave to archives of maps; ``_ood`` is added for the other set."""
_LISTS = {ID: "eval_in", OOD: "dev_out"}
"""Names of the authors' lists of volumes, of MSWML alone."""
_TRUTHS = "Put it beside the map: folders 'predictions' and 'masks', or a manifest with a column 'truth'"
_WHERE = (
    "expected {name}/predictions/id.csv, as `segtrust tasks` writes it, {name}/id.csv, folders {name}/id and "
    "{name}/ood, or {archives}."
)


@dataclass(frozen=True)
class TaskMaps:
    """The cases of a task.

    Attributes
    ----------
    name, title
        In files, and in tables.
    threshold
        At which maps are cut where no mask was delivered.
    cases
        Of both sets, each with the name of its set.
    """

    name: str
    title: str
    threshold: float
    cases: Dataset

    @property
    def sets(self) -> list[str]:
        """The sets that there are."""
        return [name for name in (ID, OOD) if any(case.set == name for case in self.cases.cases)]


@dataclass(frozen=True)
class FoundTasks:
    """What a folder has.

    Attributes
    ----------
    data
        The folder.
    tasks
        Whose maps are there.
    absent, unusable
        Why others are not: there is nothing of them, or something else than was expected.
    """

    data: Path
    tasks: tuple[TaskMaps, ...]
    absent: Mapping[str, str]
    unusable: Mapping[str, str]


def find_tasks(data: Path, names: Sequence[str] = (), *, allow_pickle: bool = False) -> FoundTasks:
    """Find the maps of tasks in a folder.

    Parameters
    ----------
    data
        Holds a folder or an archive for each task.
    names
        Tasks that are wanted; where none are given, the paper's and whatever else is there.
    allow_pickle
        Load pickles, and with them any code that their author put in.
    """
    if not data.is_dir():
        raise PairingError(f"{data}: expected a folder with maps of tasks, got no folder of this name.")
    wanted = tuple(dict.fromkeys(names)) or (*PAPER_TASKS, *_others(data))
    found, absent, unusable = [], {}, {}
    for name in wanted:
        try:
            sets = _sets(data, name, allow_pickle=allow_pickle)
            if ID in sets:
                found.append(TaskMaps(name, _title(name), _threshold(name), _together(sets)))
            else:
                absent[name] = _why_absent(data, name, sets, allow_pickle=allow_pickle)
        except SegtrustError as error:
            unusable[name] = str(error)
    if not found:
        told = [f"{name}: {why}" for name, why in ({**absent, **unusable} if names else unusable).items()]
        told = told or [_WHERE.format(name="TASK", archives="TASK.npz")]
        raise PairingError(f"{data}: expected the maps of at least one task, got none. {' '.join(told)}")
    return FoundTasks(data, tuple(found), absent, unusable)


def _others(data: Path) -> Iterator[str]:
    """Give folders and archives of tasks that are not the paper's."""
    known = {each for name in PAPER_TASKS for each in _archive_names(name)}
    found = {}
    for path in sorted(data.iterdir()):
        name = path.stem.removesuffix("_ood")
        if path.is_dir() and path.name not in PAPER_TASKS and any(_places(path)):
            found[path.name] = path
        elif path.suffix == ".npz" and name not in known and _may_have_maps(path):
            found[name] = path
    yield from found


def _may_have_maps(path: Path) -> bool:
    """Tell archives of maps, and those that are damaged: nobody knows what they held."""
    try:
        with ZipFile(path) as archive:
            return "p_hat.npy" in archive.namelist()
    except (BadZipFile, OSError):
        return True


def _why_absent(data: Path, name: str, sets: Mapping[str, Dataset], *, allow_pickle: bool) -> str:
    """Tell what is there, and what should be."""
    where = _in_distribution(name, [f"{each}.npz" for each in _archive_names(name)])
    if sets:
        return f"there is a set out of distribution, but none in distribution: {where}"
    lists = [path for each in _LISTS.values() for path in sorted((data / name).glob(f"{each}_*.pkl"))]
    if lists and not allow_pickle:
        return (
            f"{data / name}: expected to be allowed to load its pickles. They run whatever code is in them: "
            "if you trust them, give --allow-pickle."
        )
    if lists:
        first = _LISTS[ID]
        named = ", ".join(path.name for path in lists)
        return f"{data / name}: expected {first}_predictions.pkl and {first}_gt.pkl, got {named}."
    return where


def _in_distribution(name: str, archives: Sequence[str]) -> str:
    return _WHERE.format(name=name, archives=", ".join(archives))


def _title(name: str) -> str:
    return _TITLES.get(name, name.replace("-", " ").replace("_", " ").capitalize())


def _threshold(name: str) -> float:
    return get_task(name).threshold if name in NAMES else 0.5


def _together(sets: Mapping[str, Dataset]) -> Dataset:
    """Take the sets of a task together; names of cases begin with that of a set other than the first."""
    named = [
        replace(
            (only := only_with_truth(found if name == ID else found.with_prefix(name), _TRUTHS)),
            cases=tuple(replace(case, set=name) for case in only.cases),
        )
        for name, found in sets.items()
    ]
    return without_duplicates(sum(named, Dataset()))


def _sets(data: Path, name: str, *, allow_pickle: bool) -> dict[str, Dataset]:
    """Give the sets of a task in the first form in which they are there."""
    places = _places(data / name) or _archives(data, name)
    if places:
        found = {key: find_cases(paths, allow_pickle=allow_pickle) for key, paths in places.items()}
        for each in found.values():
            _refuse_unreadable(each)
        return found
    return _lists(data / name) if allow_pickle else {}


def _refuse_unreadable(found: Dataset) -> None:
    """Tell why no case of a set has a truth: an archive that is damaged, or has none."""
    if any(case.truth is not None for case in found.cases) or not found.cases:
        return
    place = found.cases[0].probabilities
    open_volume(place)
    if place.path.suffix.lower() == ".npz":
        raise WrongContentError(f"{place.path}: expected arrays p_hat and y of the same length, got no y.")


def _places(folder: Path) -> dict[str, list[Path]]:
    """Find manifests, or else folders, of the two sets."""
    for place in (folder / "predictions", folder):
        if (place / "id.csv").is_file():
            return _without_empty({ID: [place / "id.csv"], OOD: sorted(place.glob("ood*.csv"))})
        if (place / "id").is_dir():
            others = [path for path in sorted(place.glob("ood*")) if path.is_dir()]
            return _without_empty({ID: [place / "id"], OOD: others})
    return {}


def _archive_names(name: str) -> list[str]:
    return list(dict.fromkeys((name, name.replace("-", "_"), *_ARCHIVES.get(name, ()))))


def _archives(data: Path, name: str) -> dict[str, list[Path]]:
    names = _archive_names(name)
    found = {
        key: [path for each in names if (path := data / f"{each}{ending}.npz").is_file()][:1]
        for key, ending in ((ID, ""), (OOD, "_ood"))
    }
    return _without_empty(found)


def _without_empty(places: Mapping[str, list[Path]]) -> dict[str, list[Path]]:
    return {key: paths for key, paths in places.items() if paths}


def _lists(folder: Path) -> dict[str, Dataset]:
    """Give the volumes of the authors' pickled lists, of maps and of truths."""
    found = {}
    for key, name in _LISTS.items():
        files = [folder / f"{name}_{kind}.pkl" for kind in ("predictions", "gt")]
        if all(path.is_file() for path in files):
            found[key] = _paired_lists(name, *files)
    return found


def _paired_lists(name: str, maps: Path, truths: Path) -> Dataset:
    lengths = [len(read_trusted(path).get(LISTED, ())) for path in (maps, truths)]
    if lengths[0] != lengths[1] or not lengths[0]:
        raise PairingError(
            f"{maps}: expected a list of volumes, and as many truths in {truths.name}, got {lengths[0]} and "
            f"{lengths[1]}."
        )
    return Dataset(
        tuple(
            CaseFiles(
                f"{name}[{i}]",
                ArrayRef(maps, LISTED, i, is_trusted=True),
                truth=ArrayRef(truths, LISTED, i, is_trusted=True),
            )
            for i in range(lengths[0])
        )
    )
