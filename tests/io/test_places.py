"""Places, written down and read again."""

from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from segtrust.io.places import Place

names = st.text("abc0.-_ ()/é", min_size=1, max_size=12).filter(lambda text: text.strip("/. "))


@given(
    path=names,
    key=st.none() | st.text("abc/:. ", min_size=1, max_size=8),
    index=st.none() | st.integers(0, 10**6),
)
def test_what_is_written_is_read_again(path, key, index):
    place = Place(Path(path), key, index)
    assert Place.of(str(place)) == place


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("a.npz", Place(Path("a.npz"))),
        ("a.npz::p", Place(Path("a.npz"), "p")),
        ("a.npz::p[0]", Place(Path("a.npz"), "p", 0)),
        ("a.npz[12]", Place(Path("a.npz"), None, 12)),
        ("a.npz::[3]", Place(Path("a.npz"), None, 3)),
        ("a.h5::group/x::y", Place(Path("a.h5"), "group/x::y")),
        ("benign (1).png", Place(Path("benign (1).png"))),
        ("case[1].npy", Place(Path("case[1].npy"))),
        ("a.npz::", Place(Path("a.npz::"))),
        ("a.npz[-1]", Place(Path("a.npz[-1]"))),
    ],
)
def test_texts_are_places(text, place):
    assert Place.of(text) == place


def test_a_file_that_is_called_so_is_meant_itself(tmp_path, monkeypatch):
    (tmp_path / "map[3]").touch()
    assert Place.of("map[3]", tmp_path) == Place(tmp_path / "map[3]")
    assert Place.of("map[4]", tmp_path) == Place(tmp_path / "map", None, 4)
    assert Place.of(tmp_path / "map[3]") == Place(tmp_path / "map[3]")
    monkeypatch.chdir(tmp_path)
    assert Place.of("map[3]") == Place(Path("map[3]"))
    assert Place.of("map[3]", tmp_path / "elsewhere").index == 3


def test_paths_are_taken_from_a_folder_on():
    assert Place.of("a.npz::p[1]", Path("runs")) == Place(Path("runs/a.npz"), "p", 1)
    assert Place.of("/data/a.npz", Path("runs")) == Place(Path("/data/a.npz"))
