"""What a reader promises: it gives back what was written, and refuses the rest by name."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest import mock

import numpy as np

from segtrust.errors import ReadError, UnsafeFileError
from segtrust.io.volume import Reader, Volume

__all__ = ["ReaderContract"]

_HEAD = 512
_CUTS = (0.02, 0.2, 0.5, 0.8, 0.99)
_FLIPS = 60
_STRANGERS = {
    "text": b"case,probabilities\na,0.5\n" * 30,
    "zeros": bytes(900),
    "PNG": b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 3,
    "noise": np.random.default_rng(1).bytes(2000),
    "one byte": b"\x00",
}


class ReaderContract:
    """What a reader promises. Set ``reader`` and ``ending``, and say how a file is written."""

    reader: Reader
    ending: str
    """Of its files, such as ``".raw7"``."""

    def write(self, path: Path, values: Any) -> None:
        """Write a map, an array of float32 in [0, 1] with two or three axes, as a good file."""
        raise NotImplementedError

    def hostile(self, folder: Path) -> Iterator[Path]:
        """Write files that were made to do harm, each refused by a `ReadError`; override if you know some."""
        yield from ()

    def test_gives_back_what_was_written(self) -> None:
        """Shape and type are known before a pixel is read, and the pixels are the same."""
        with _folder() as folder:
            for values in _maps():
                volume = self._volume(self._written(folder, values))
                assert tuple(volume.shape) == values.shape
                found = np.asarray(volume.read())
                assert found.dtype == np.dtype(volume.dtype)
                assert found.shape == values.shape
                assert np.allclose(found, values, atol=1e-6), "other pixels than were written"

    def test_gives_the_same_again_and_leaves_the_file_alone(self) -> None:
        """To read changes nothing: not the file, not its neighbours, not the next reading."""
        with _folder() as folder:
            path = self._written(folder, _maps()[0])
            before = _state(folder)
            first, second = (np.asarray(self._volume(path).read()) for _ in range(2))
            assert np.array_equal(first, second)
            assert _state(folder) == before

    def test_leaves_files_of_others_alone(self) -> None:
        """A file of another format under this ending is not recognised, or refused by a `ReadError`."""
        with _folder() as folder:
            for name, data in _STRANGERS.items():
                path = folder / f"strange{self.ending}"
                path.write_bytes(data)
                assert self._outcome(path) is None, f"read {name} as a map"

    def test_a_file_that_ends_too_early_is_refused(self) -> None:
        """A copy that was broken off must not pass for a map, not even with zeros at its end."""
        with _folder() as folder:
            for values in _maps():
                whole = self._written(folder, values).read_bytes()
                for share in _CUTS:
                    path = folder / f"cut{self.ending}"
                    path.write_bytes(whole[: int(share * len(whole))])
                    found = self._outcome(path)
                    assert found is None or np.allclose(found, values, atol=1e-6), (
                        f"read {share:.0%} of a file"
                    )

    def test_a_garbled_file_is_an_error_or_a_map_of_its_shape(self) -> None:
        """Whatever a flipped byte does, it ends in a `ReadError` or in an array as large as was announced."""
        with _folder() as folder:
            whole = self._written(folder, _maps()[0]).read_bytes()
            places = np.random.default_rng(2).integers(0, len(whole), _FLIPS)
            for at in dict.fromkeys([*range(min(24, len(whole))), *map(int, places)]):
                path = folder / f"garbled{self.ending}"
                path.write_bytes(whole[:at] + bytes([whole[at] ^ 255]) + whole[at + 1 :])
                self._outcome(path)

    def test_a_map_beyond_the_limit_is_refused(self) -> None:
        """``SEGTRUST_MAX_BYTES`` holds before memory is taken, unless pixels are read as they are needed."""
        with _folder() as folder, mock.patch.dict(os.environ, {"SEGTRUST_MAX_BYTES": "16"}):
            path = self._written(folder, _maps()[0])
            try:
                volume = self._volume(path)
                is_lazy, _ = volume.lazy, volume.read()
            except UnsafeFileError:
                return
            assert is_lazy, "read more than is allowed"

    def test_hostile_files_are_refused(self) -> None:
        """Those that were made to do harm."""
        with _folder() as folder:
            for path in self.hostile(folder):
                assert self._outcome(path) is None, f"read {path.name}"

    def _written(self, folder: Path, values: Any) -> Path:
        path = folder / f"good{self.ending}"
        self.write(path, values)
        return path

    def _volume(self, path: Path) -> Volume:
        assert self.reader.recognises(path, path.read_bytes()[:_HEAD]), "does not know its own file"
        volume = self.reader.open(path, None)
        assert isinstance(volume, Volume), f"gave {type(volume).__name__}, not a Volume"
        return volume

    def _outcome(self, path: Path) -> Any:
        """Give the pixels, or ``None`` where they are refused as they should be."""
        if not self.reader.recognises(path, path.read_bytes()[:_HEAD]):
            return None
        said, found = "", None
        shape: tuple[int, ...] = ()
        try:
            volume = self.reader.open(path, None)
            found, shape = np.asarray(volume.read()), tuple(volume.shape)
        except ReadError as error:
            said = str(error)
        assert path.name in said or found is not None, f"an error that does not name the file: {said}"
        assert found is None or found.shape == shape, "another shape than was announced"
        return found


def _maps() -> list[Any]:
    rng = np.random.default_rng(0)
    return [rng.random(shape).astype(np.float32) for shape in ((9, 13), (5, 7, 6))]


def _folder() -> Any:
    return _Folder(prefix="segtrust-contract-")


class _Folder(TemporaryDirectory[str]):
    """A folder that is gone afterwards."""

    def __enter__(self) -> Any:
        return Path(super().__enter__())


def _state(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}
