"""What a task promises: it finds its cases, the same ones each time, and says what is wrong with the rest."""

from __future__ import annotations

import re
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from segtrust.paper.tasks.checking import check_data, find_samples
from segtrust.paper.tasks.task import ID, Sample, Task

__all__ = ["TaskContract"]

_NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")


class TaskContract:
    """What a task promises. Set ``task``, and say how a small data set of it is written."""

    task: Task

    def write(self, folder: Path) -> None:
        """Write a good data set of a few small cases, in the layout of the task."""
        raise NotImplementedError

    def test_says_where_its_data_come_from(self) -> None:
        """Name, title and source are there, and the first set is the one in distribution."""
        assert _NAME.fullmatch(self.task.name), "expected small letters, digits and hyphens"
        assert self.task.title
        source = self.task.source
        assert all((source.url, source.licence, source.citation, source.layout))
        assert next(iter(self.task.sets)) == ID
        assert all(recipe.epochs >= 1 for recipe in self.task.recipes.values())

    def test_finds_its_cases_in_good_data(self) -> None:
        """Each case has an image, a mask and a name of its own; nothing is wrong."""
        with _Folder() as folder:
            self.write(folder)
            checked = check_data(self.task, folder)
            assert not checked.problems, checked.problems[0].reason
            names = [sample.id for sample in checked.samples]
            assert len(set(names)) == len(names), "two cases of one name"
            assert {sample.set for sample in checked.samples} <= {*self.task.sets}

    def test_finds_the_same_again_and_changes_nothing(self) -> None:
        """The order is that of names, not that of the disk, and no file is written."""
        with _Folder() as folder:
            self.write(folder)
            before = _state(folder)
            assert find_samples(self.task, folder) == find_samples(self.task, folder)
            assert _state(folder) == before

    def test_a_folder_without_its_data_is_told(self) -> None:
        """One that is empty, and one with files of others: a problem each, and no exception."""
        with _Folder() as folder:
            assert check_data(self.task, folder).problems
            (folder / "notes.txt").write_text("nothing of yours", encoding="utf-8")
            (folder / "other").mkdir()
            (folder / "other" / "é 1.bin").write_bytes(bytes(8))
            assert check_data(self.task, folder).problems

    def test_files_of_others_beside_good_ones_do_no_harm(self) -> None:
        """Notes, hidden files and thumbnails lie in most folders."""
        with _Folder() as folder:
            self.write(folder)
            count = len(find_samples(self.task, folder))
            for place in [folder, *(each for each in folder.rglob("*") if each.is_dir())]:
                (place / ".DS_Store").write_bytes(bytes(8))
                (place / "notes.txt").write_text("of a person", encoding="utf-8")
            assert len(find_samples(self.task, folder)) == count

    def test_a_broken_file_is_told_with_its_case(self) -> None:
        """Empty, cut off or garbled, image or mask: a problem of this case, and no exception."""
        for harm in (lambda data: b"", lambda data: data[: len(data) // 2], lambda data: data[::-1]):
            for role in ("images", "masks"):
                with _Folder() as folder:
                    self.write(folder)
                    sample, path = self._file(folder, role)
                    path.write_bytes(harm(path.read_bytes()))
                    told = [problem.case for problem in check_data(self.task, folder).problems]
                    assert told == [sample.id], f"{role}: expected a problem of {sample.id}, got {told}"

    def test_a_case_without_its_mask_is_told(self) -> None:
        """It is given all the same, so that somebody can see to it."""
        with _Folder() as folder:
            self.write(folder)
            sample, path = self._file(folder, "masks")
            path.unlink()
            found = {each.id: each for each in find_samples(self.task, folder)}
            assert sample.id in found, "the case is gone without a word"
            assert sample.id in [problem.case for problem in check_data(self.task, folder).problems]

    def _file(self, folder: Path, role: str) -> tuple[Sample, Path]:
        """Give a case with one file of this role, and that file."""
        one = [each for each in find_samples(self.task, folder) if len(getattr(each, role)) == 1]
        assert one, f"expected a case with one of {role} in the data set of the test"
        return one[0], getattr(one[0], role)[0]


class _Folder(TemporaryDirectory[str]):
    """A folder that is gone afterwards."""

    def __enter__(self) -> Any:
        return Path(super().__enter__())


def _state(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}
