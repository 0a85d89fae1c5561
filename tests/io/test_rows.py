"""Rows of tables: as many as fit, or never all at once."""

import pytest

from segtrust.errors import UnsafeFileError, WrongContentError
from segtrust.io.manifest import read_manifest
from segtrust.io.rows import Stream, changed, pieces_of, read_parquet
from segtrust.io.tables import Table, read_table, write_table


def csv_of(path, rows, columns=2):
    names = ["case", "probabilities", *map(str, range(columns - 2))]
    path.write_text(",".join(names) + "\n" + "a,b\n" * rows)
    return path


@pytest.mark.parametrize("read", [read_table, read_manifest])
def test_rows_of_text_are_counted_as_they_come(tmp_path, monkeypatch, read):
    path = csv_of(tmp_path / "a.csv", 100)
    monkeypatch.setenv("SEGTRUST_MAX_BYTES", str(64 * 2 * 100))
    read(path)
    monkeypatch.setenv("SEGTRUST_MAX_BYTES", str(64 * 2 * 100 - 1))
    with pytest.raises(UnsafeFileError, match=rf"^{path}: expected a table of at most .* SEGTRUST_MAX_BYTES"):
        read(path)


def test_columns_without_cells_count(tmp_path, monkeypatch):
    monkeypatch.setenv("SEGTRUST_MAX_BYTES", "100000")
    with pytest.raises(UnsafeFileError):
        read_table(csv_of(tmp_path / "a.csv", 10, columns=1000), keep=lambda row: False)


@pytest.mark.parametrize("read", [read_table, read_manifest])
def test_long_texts_count_as_what_they_take(tmp_path, monkeypatch, read):
    path = tmp_path / "a.csv"
    path.write_text("case,probabilities\n" + f"a,{'x' * 10_000}\n" * 20)
    monkeypatch.setenv("SEGTRUST_MAX_BYTES", str(20 * (10_000 + 200)))
    read(path)
    monkeypatch.setenv("SEGTRUST_MAX_BYTES", str(20 * 10_000 + 400))  # which the file itself does not exceed
    with pytest.raises(UnsafeFileError, match=rf"^{path}: expected a table of at most .* SEGTRUST_MAX_BYTES"):
        read(path)


@pytest.mark.parametrize("read", [read_table, read_manifest])
@pytest.mark.parametrize("row", ["," * 10_000, 'a,"\n' + '","\n' * 3_000, ",".join("x" * 9_000)])
def test_a_row_of_many_cells_is_not_read(tmp_path, monkeypatch, read, row):
    """Cells of a few bytes each, perhaps over many lines, before any row is whole."""
    path = tmp_path / "a.csv"
    path.write_text(f"case,probabilities\n{row}\n")
    monkeypatch.setenv("SEGTRUST_MAX_BYTES", "100000")
    with pytest.raises(UnsafeFileError, match=rf"^{path}: expected a row of a table .*, now 100000"):
        read(path)


def test_a_file_of_more_bytes_than_are_allowed_is_not_begun(tmp_path, monkeypatch):
    path = csv_of(tmp_path / "a.csv", 100)
    size = path.stat().st_size
    monkeypatch.setenv("SEGTRUST_MAX_BYTES", str(size - 1))
    with pytest.raises(UnsafeFileError, match=rf"expected a table of at most .* SEGTRUST_MAX_BYTES={size}\."):
        read_table(path)


@pytest.mark.needs("pyarrow")
@pytest.mark.parametrize("read", [read_table, read_manifest])
def test_a_text_that_stands_for_many_is_counted_as_often_as_it_stands(tmp_path, monkeypatch, read):
    import pyarrow
    import pyarrow.parquet

    column = ["x" * 1000] * 500
    path = tmp_path / "a.parquet"
    pyarrow.parquet.write_table(pyarrow.table({"case": column, "probabilities": column}), path)
    assert path.stat().st_size < 10_000
    monkeypatch.setenv("SEGTRUST_MAX_BYTES", "1200000")
    read(path)
    monkeypatch.setenv("SEGTRUST_MAX_BYTES", "900000")
    with pytest.raises(UnsafeFileError, match=rf"^{path}"):
        read(path)


@pytest.mark.needs("pyarrow")
def test_a_note_that_is_nested_without_end_is_refused(tmp_path):
    import pyarrow
    import pyarrow.parquet

    table = pyarrow.table({"case": ["a"]}).replace_schema_metadata({b"segtrust": b"[" * 100_000})
    pyarrow.parquet.write_table(table, tmp_path / "a.parquet")
    with pytest.raises(WrongContentError, match=r"a\.parquet: expected a table, got one that cannot be read"):
        read_table(tmp_path / "a.parquet")


@pytest.mark.needs("pyarrow")
def test_a_parquet_file_is_read_whole(tmp_path):
    rows = [{"case": str(number), "sdc": number / 7} for number in range(10_000)]
    write_table(tmp_path / "a.parquet", Table.of(rows, {"threshold": 0.5}))
    columns, found, said = read_parquet(tmp_path / "a.parquet")
    assert (columns, found) == (("case", "sdc"), rows)
    assert b"segtrust" in said
    assert read_table(tmp_path / "a.parquet").about == {"threshold": 0.5}


def test_json_swells(tmp_path, monkeypatch):
    write_table(tmp_path / "a.json", Table.of([{"case": "a", "sdc": 0.5}] * 50))
    size = (tmp_path / "a.json").stat().st_size
    monkeypatch.setenv("SEGTRUST_MAX_BYTES", str(16 * size))
    assert len(read_table(tmp_path / "a.json").rows) == 50
    monkeypatch.setenv("SEGTRUST_MAX_BYTES", str(16 * size - 1))
    with pytest.raises(UnsafeFileError):
        read_table(tmp_path / "a.json")


def counting(count, begun):
    """A stream of numbers that notes when it is begun, and each that is made."""

    def make():
        begun.append("begun")
        for number in range(count):
            begun.append(number)
            yield number

    return Stream(make)


def test_a_stream_is_gone_through_as_often_as_asked_and_not_before():
    begun = []
    stream = counting(3, begun)
    assert begun == []
    assert (list(stream), list(stream), len(stream)) == ([0, 1, 2], [0, 1, 2], 3)
    assert (stream[1], stream[-1], stream[1:], 2 in stream) == (1, 2, (1, 2), True)


def test_whether_a_stream_has_anything_is_told_by_its_first():
    begun = []
    assert counting(1000, begun)
    assert begun == ["begun", 0]
    assert not counting(0, begun)


def test_an_index_beyond_the_end_is_an_error():
    with pytest.raises(IndexError):
        counting(3, [])[3]


def test_a_stream_is_changed_when_it_is_gone_through():
    begun = []
    negative = changed(counting(3, begun), lambda number: -number)
    assert begun == []
    assert list(negative) == list(negative) == [0, -1, -2]


def test_what_is_held_is_one_piece_and_a_stream_many():
    assert list(pieces_of((1, 2))) == [(1, 2)]
    assert list(pieces_of(())) == [()]
    pieces = list(pieces_of(counting(10_000, [])))
    assert [len(piece) for piece in pieces] == [2048, 2048, 2048, 2048, 10_000 - 4 * 2048]
    assert [number for piece in pieces for number in piece] == list(range(10_000))
