"""ArrayRefs, written down and read again."""

from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from segtrust.io.array_ref import ArrayRef

names = st.text("abc0.-_ ()/é", min_size=1, max_size=12).filter(lambda text: text.strip("/. "))


@given(
    path=names,
    key=st.none() | st.text("abc/:. ", min_size=1, max_size=8),
    index=st.none() | st.integers(0, 10**6),
)
def test_what_is_written_is_read_again(path, key, index):
    place = ArrayRef(Path(path), key, index)
    assert ArrayRef.parse(str(place)) == place


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("a.npz", ArrayRef(Path("a.npz"))),
        ("a.npz::p", ArrayRef(Path("a.npz"), "p")),
        ("a.npz::p[0]", ArrayRef(Path("a.npz"), "p", 0)),
        ("a.npz[12]", ArrayRef(Path("a.npz"), None, 12)),
        ("a.npz::[3]", ArrayRef(Path("a.npz"), None, 3)),
        ("a.h5::group/x::y", ArrayRef(Path("a.h5"), "group/x::y")),
        ("benign (1).png", ArrayRef(Path("benign (1).png"))),
        ("case[1].npy", ArrayRef(Path("case[1].npy"))),
        ("a.npz::", ArrayRef(Path("a.npz::"))),
        ("a.npz[-1]", ArrayRef(Path("a.npz[-1]"))),
    ],
)
def test_texts_are_places(text, place):
    assert ArrayRef.parse(text) == place


def test_a_file_that_is_called_so_is_meant_itself(tmp_path, monkeypatch):
    (tmp_path / "map[3]").touch()
    assert ArrayRef.parse("map[3]", tmp_path) == ArrayRef(tmp_path / "map[3]")
    assert ArrayRef.parse("map[4]", tmp_path) == ArrayRef(tmp_path / "map", None, 4)
    assert ArrayRef.parse(tmp_path / "map[3]") == ArrayRef(tmp_path / "map[3]")
    monkeypatch.chdir(tmp_path)
    assert ArrayRef.parse("map[3]") == ArrayRef(Path("map[3]"))
    assert ArrayRef.parse("map[3]", tmp_path / "elsewhere").index == 3


def test_paths_are_taken_from_a_folder_on():
    assert ArrayRef.parse("a.npz::p[1]", Path("runs")) == ArrayRef(Path("runs/a.npz"), "p", 1)
    assert ArrayRef.parse("/data/a.npz", Path("runs")) == ArrayRef(Path("/data/a.npz"))
