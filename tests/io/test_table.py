"""Tables: what is written is read again, in every format."""

import csv
import io
import json
import math
import random
import re
import tracemalloc
from contextlib import suppress

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from segtrust._files import format_json
from segtrust.errors import ParameterError, UnsafeFileError, WrongContentError
from segtrust.io.columns import SCORES_FORMAT
from segtrust.io.manifest import read_manifest
from segtrust.io.table import (
    TABLE_ENDINGS,
    Stream,
    Table,
    check_table_path,
    map_rows,
    read_parquet_rows,
    read_table,
    row_groups,
    write_table,
)

in_folder = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


ROWS = [
    {"case": "007", "structure": "1e5", "sdc": 0.1, "k": 3, "group": "", "reason": "no finding"},
    {"case": 'Ärzte, "quoted"\nsecond line; tab\t', "structure": "nan", "sdc": None, "k": 0, "group": "inf"},
    {"case": " spaces ", "structure": "脳", "sdc": 1 / 3, "k": 2**40, "group": "1_000", "reason": "0"},
]


ABOUT = {"estimators": {"sdc": {"threshold": 0.5}}, "note": "Müller, 脳", "numbers": [1, 2.5, None]}


@pytest.fixture(params=TABLE_ENDINGS)
def path(request, tmp_path):
    return tmp_path / f"table{request.param}"


def again(path, table):
    write_table(path, table)
    return read_table(path)


@pytest.mark.needs("pyarrow")
def test_tables_are_read_as_they_were_written(path):
    table = Table.of(ROWS, ABOUT)
    found = again(path, table)
    assert (found.columns, found.about) == (table.columns, ABOUT)
    for one, other in zip(found.rows, table.rows, strict=True):
        assert {name: value or None for name, value in one.items() if name == "reason"} == {
            "reason": other["reason"]
        }
        assert [one[name] for name in one if name != "reason"] == [
            other[name] for name in one if name != "reason"
        ]


texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\r\0"))


@pytest.mark.needs("pyarrow")
@given(
    rows=st.lists(
        st.fixed_dictionaries(
            {
                "case": texts,
                "sdc": st.none() | st.floats(allow_nan=False, allow_infinity=False),
                "k": st.integers(0, 2**53),
            }
        ),
        min_size=1,
        max_size=5,
    )
)
@in_folder
def test_all_numbers_and_names_come_back(path, rows):
    assert again(path, Table.of(rows)).rows == tuple(rows)


@pytest.mark.needs("pyarrow")
def test_nan_is_nothing(path):
    (row,) = again(
        path, Table.of([{"case": "a", "sdc": math.nan, "dice": np.float32("nan"), "k": None}])
    ).rows
    assert row == {"case": "a", "sdc": None, "dice": None, "k": None}


@pytest.mark.needs("pyarrow")
def test_numbers_of_numpy_are_numbers(path):
    values = {
        "case": np.str_("a"),
        "sdc": np.float32(0.5),
        "k": np.int64(3),
        "dice": np.float64(0.25),
        "x": np.bool_(1),
    }
    (row,) = again(path, Table.of([values])).rows
    assert row == {"case": "a", "sdc": 0.5, "k": 3, "dice": 0.25, "x": 1}
    assert type(row["k"]) is int


@pytest.mark.needs("pyarrow")
def test_whole_numbers_stay_whole(path):
    (row,) = again(path, Table.of([{"case": "a", "k": 3.0}])).rows
    assert row["k"] == 3
    assert type(row["k"]) is int


@pytest.mark.needs("pyarrow")
def test_ids_are_text(path):
    (row,) = again(path, Table.of([{"case": 7, "group": 1.5}])).rows
    assert row == {"case": "7", "group": "1.5"}


@pytest.mark.needs("pyarrow")
def test_a_column_of_text_and_numbers_is_kept(path):
    rows = again(path, Table.of([{"case": "a", "x": 0.5}, {"case": "b", "x": "none"}])).rows
    assert [str(row["x"]) for row in rows] == ["0.5", "none"]


@pytest.mark.needs("pyarrow")
def test_names_that_are_no_text_can_be_written(path):
    """File names may hold any bytes; hours of work must not end at one."""
    rows = again(path, Table.of([{"case": "M\udcfcller\r"}, {"case": "half \ud800"}])).rows
    assert [row["case"] for row in rows] == ["M\\xfcller\\r", "half \\ud800"]


@pytest.mark.needs("pyarrow")
def test_a_table_without_rows(path):
    found = again(path, Table(("case", "sdc"), (), {"a": 1}))
    assert (found.columns, found.rows, found.about) == (("case", "sdc"), (), {"a": 1})


@pytest.mark.needs("pyarrow")
def test_columns_that_some_lack_are_empty_there(path):
    rows = again(path, Table.of([{"case": "a", "sdc": 0.5}, {"case": "b", "idc": 0.25}])).rows
    assert rows == ({"case": "a", "sdc": 0.5, "idc": None}, {"case": "b", "sdc": None, "idc": 0.25})


@pytest.mark.needs("pyarrow")
def test_full_precision_is_kept(path):
    values = [random.Random(0).random() * 10.0**power for power in range(-300, 300, 7)]
    assert again(path, Table.of([{"x": value} for value in values])).column("x") == values


NOTES = ({}, {"note": 0.5}, {"note": "a\u2028b\x85\n"})


LONG = [{"case": f"{at:05d}", "sdc": at / 7, "k": at, **NOTES[at % 3]} for at in range(5000)]


@pytest.mark.needs("pyarrow")
def test_a_stream_gives_the_table_that_its_rows_give(tmp_path, path):
    held, streamed = tmp_path / f"held{path.suffix}", tmp_path / f"streamed{path.suffix}"
    write_table(held, Table.of(LONG, ABOUT))
    write_table(streamed, Table.of(Stream(lambda: iter(LONG)), ABOUT))
    assert read_table(streamed) == read_table(held)
    if path.suffix != ".parquet":  # there a stream is written in pieces
        assert streamed.read_bytes() == held.read_bytes()


@pytest.mark.needs("pyarrow")
def test_a_stream_without_rows(path):
    found = again(path, Table.of(Stream(lambda: iter(())), ABOUT))
    assert (found.columns, found.rows, found.about) == ((), (), ABOUT)


@pytest.mark.needs("pyarrow")
def test_a_long_stream_takes_little_memory(path):
    rows = [{"case": "a", "sdc": 0.5, "idc": 0.25, "k": 3}] * (12_000 if path.suffix == ".parquet" else 2000)
    peaks = []
    for each in (rows, Stream(lambda: iter(rows))):
        tracemalloc.start()
        write_table(path, Table.of(each, ABOUT))
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 0.5 * peaks[0]


@pytest.mark.needs("pyarrow")
def test_parquet_that_is_held_is_one_group_and_a_stream_several(tmp_path):
    from pyarrow import parquet

    write_table(tmp_path / "held.parquet", Table.of(LONG))
    write_table(tmp_path / "streamed.parquet", Table.of(Stream(lambda: iter(LONG))))
    groups = [
        parquet.ParquetFile(tmp_path / name).num_row_groups for name in ("held.parquet", "streamed.parquet")
    ]
    assert groups == [1, 3]


@pytest.mark.needs("pyarrow")
def test_json_is_written_row_by_row_as_the_whole_would_be(tmp_path):
    for rows in (ROWS, LONG[:3], []):
        table = Table.of(rows, ABOUT)
        write_table(tmp_path / "a.json", table)
        whole = {"about": ABOUT, "columns": table.columns, "rows": table.rows}
        assert (tmp_path / "a.json").read_text(encoding="utf-8") == format_json(whole, indent=1)


@pytest.mark.needs("pyarrow")
def test_a_stream_that_breaks_off_leaves_the_table_that_was_there(path):
    write_table(path, Table.of(ROWS, ABOUT))
    before = {each.name: each.read_bytes() for each in path.parent.iterdir()}
    times = []

    def breaking():
        times.append("begun")
        yield from ROWS
        if len(times) > 1:
            raise OSError("the drive is gone")

    with pytest.raises(OSError, match="the drive is gone"):
        write_table(path, Table.of(Stream(breaking)))
    assert {each.name: each.read_bytes() for each in path.parent.iterdir()} == before


@pytest.mark.needs("pyarrow")
def test_endings_in_capitals(tmp_path):
    assert again(tmp_path / "A.CSV", Table.of([{"case": "a"}], ABOUT)).about == ABOUT


@pytest.mark.needs("pyarrow")
def test_folders_are_made(tmp_path, path):
    assert again(tmp_path / "a/b" / path.name, Table.of(ROWS)).rows


@pytest.mark.needs("pyarrow")
def test_what_another_table_was_made_with_does_not_stay(path):
    again(path, Table.of(ROWS, ABOUT))
    assert again(path, Table.of(ROWS)).about == {}


@pytest.mark.needs("pyarrow")
def test_another_ending_is_refused(tmp_path):
    for name in ("a.xlsx", "a", "a.csv.gz"):
        for call in (check_table_path, read_table, lambda path: write_table(path, Table.of(ROWS))):
            with pytest.raises(ParameterError, match=f"^{tmp_path}/{name}: expected a table ending in"):
                call(tmp_path / name)


@pytest.mark.needs("pyarrow")
def test_an_absent_table_is_told(path):
    with pytest.raises(ParameterError, match=f"^{path}: expected a table, got no such file"):
        read_table(path)


@pytest.mark.needs("pyarrow")
def test_an_absent_column_lists_those_that_are_there(path):
    with pytest.raises(WrongContentError, match=f"^{path}: expected a column 'loss', got case, sdc"):
        again(path, Table.of([{"case": "a", "sdc": 1.0}])).column("loss")
    with pytest.raises(WrongContentError, match=r"^table: expected a column 'loss', got none\."):
        Table((), ()).column("loss")


@pytest.mark.needs("pyarrow")
@pytest.mark.parametrize("about", [{"a": math.nan}, {"a": object()}, {"a": math.inf}])
def test_what_is_no_plain_value_is_refused_before_anything_is_written(path, about):
    with pytest.raises(ParameterError, match=f"^{path}: about: expected plain values"):
        write_table(path, Table.of(ROWS, about))
    assert list(path.parent.iterdir()) == []


@pytest.mark.needs("pyarrow")
def test_a_failure_leaves_the_table_that_was_there(tmp_path):
    path = tmp_path / "a.json"
    write_table(path, Table.of(ROWS))
    before = path.read_bytes()
    with pytest.raises(ParameterError, match="finite numbers"):
        write_table(path, Table.of([{"x": math.inf}]))
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.needs("pyarrow")
@pytest.mark.needs("pandas")
def test_pandas_opens_them(path):
    import pandas

    write_table(path, Table.of(ROWS, ABOUT))
    if path.suffix == ".json":
        frame = pandas.DataFrame(json.loads(path.read_text())["rows"])
    else:
        kinds = {"case": str, "structure": str}
        frame = pandas.read_csv(path, dtype=kinds) if path.suffix == ".csv" else pandas.read_parquet(path)
    assert list(frame["case"]) == [row["case"] for row in ROWS]
    assert list(frame["k"]) == [3, 0, 2**40]
    assert frame["sdc"].isna().tolist() == [False, True, False]


@pytest.mark.needs("pyarrow")
@pytest.mark.needs("pandas")
def test_what_pandas_wrote_is_read(path):
    import pandas

    if path.suffix == ".json":
        pytest.skip("pandas writes other JSON")
    frame = pandas.DataFrame({"case": [7, 8], "k": [3.0, np.nan], "loss": [0.5, np.nan]})
    frame.to_csv(path, index=False) if path.suffix == ".csv" else frame.to_parquet(path)
    rows = read_table(path).rows
    assert rows == ({"case": "7", "k": 3, "loss": 0.5}, {"case": "8", "k": None, "loss": None})


@pytest.mark.needs("pyarrow")
def test_tables_of_spreadsheets_are_read(tmp_path):
    path = tmp_path / "a.csv"
    path.write_bytes("\ufeffcase,loss\r\n007,0.25\r\nb,\r\n".encode())
    assert read_table(path).rows == ({"case": "007", "loss": 0.25}, {"case": "b", "loss": None})


@pytest.mark.needs("pyarrow")
@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.csv", b"case,sdc\na,1,2,3\n"),
        ("a.csv", b"case\n\xff\xfe\n"),
        ("a.csv", b'case\n"' + b"x" * 200_000),
        ("a.json", b""),
        ("a.json", b"words"),
        ("a.json", b"[1, 2]"),
        ("a.json", b"[" * 100_000),
        ("a.json", b'{"columns": ["a"]}'),
        ("a.json", b'{"columns": "abc", "rows": [], "about": {}}'),
        ("a.json", b'{"columns": ["a"], "rows": [1], "about": {}}'),
        ("a.json", b'{"columns": ["a"], "rows": {}, "about": {}}'),
        ("a.json", b'{"columns": ["a"], "rows": [], "about": []}'),
        ("a.parquet", b""),
        ("a.parquet", b"words"),
        ("a.parquet", b"PAR1\0\0\0\0PAR1"),
    ],
)
def test_what_is_no_table_is_told(tmp_path, name, content):
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(WrongContentError, match=f"^{path}: expected"):
        read_table(path)


@pytest.mark.needs("pyarrow")
def test_notes_beside_a_table_that_are_damaged_are_told(tmp_path):
    path = tmp_path / "a.csv"
    write_table(path, Table.of(ROWS, ABOUT))
    (tmp_path / "a.csv.about.json").write_text("words")
    with pytest.raises(WrongContentError, match=r"a\.csv\.about\.json: expected JSON"):
        read_table(path)


@pytest.mark.needs("pyarrow")
def test_a_folder_is_no_table(path):
    path.mkdir()
    with pytest.raises(ParameterError, match=f"^{path}: expected a table, got no such file"):
        read_table(path)


@pytest.mark.needs("pyarrow")
def test_garbled_tables_are_an_error_or_a_table(path):
    write_table(path, Table.of(ROWS, ABOUT))
    content, draw = path.read_bytes(), random.Random(0)
    for _ in range(300):
        garbled = bytearray(content)
        for _ in range(draw.randint(1, 4)):
            garbled[draw.randrange(len(garbled))] = draw.randrange(256)
        path.write_bytes(garbled[: draw.choice((len(garbled), draw.randrange(len(garbled))))])
        with suppress(WrongContentError):
            read_table(path)


def cut_to(path, end):
    path.write_bytes(path.read_bytes()[:end])


@pytest.mark.needs("pyarrow")
@pytest.mark.parametrize(
    ("end", "told"),
    [
        (-1, "a last row without an end"),
        (-2, "a last row without an end"),
        (-5, "without a value"),
        (-18, "got 2"),
    ],
)
def test_a_table_that_was_cut_off_is_no_shorter_one(tmp_path, end, told):
    path = tmp_path / "scores.csv"
    rows = [{"case": f"case {at}", "sdc": 0.25, "dice": 0.5} for at in range(3)]
    write_table(path, Table.of(rows, {"format": SCORES_FORMAT}))
    assert read_table(path).about == {"format": SCORES_FORMAT}
    lines = path.read_bytes()
    cut_to(path, end if end > -10 else lines.rstrip(b"\n").rindex(b"\n") + 1)
    with pytest.raises(WrongContentError, match=told):
        read_table(path)
    other = tmp_path / "ours.csv"
    other.write_bytes(lines[: lines.rindex(b"case 2")])
    assert len(read_table(other).rows) == 2  # a table from elsewhere, which says nothing


@pytest.mark.needs("pyarrow")
def test_a_table_of_nothing_that_says_it_had_rows_is_told(tmp_path):
    write_table(tmp_path / "scores.csv", Table.of([{"case": "a"}], {"format": SCORES_FORMAT}))
    (tmp_path / "scores.csv").write_bytes(b"")
    with pytest.raises(WrongContentError, match=r"expected 1 rows, as .* says, got 0: it was truncated"):
        read_table(tmp_path / "scores.csv")


@pytest.mark.needs("pyarrow")
def test_a_row_that_lacks_values_is_told(tmp_path):
    (tmp_path / "a.csv").write_text("case,sdc,dice\na,0.5\n")
    with pytest.raises(WrongContentError, match=r"a\.csv: .*without a value of 'dice'"):
        read_table(tmp_path / "a.csv")


@pytest.mark.needs("pyarrow")
def test_a_notebook_shows_the_first_rows():
    html = Table.of([{"case": f"<{i}>", "sdc": i / 3} for i in range(30)])._repr_html_()
    assert "Table of 30 rows, the first 20 shown" in html
    assert "<th>&lt;1&gt;</th><td>0.3333</td>" in html
    assert html.count("<tr>") == 21


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
    columns, found, said = read_parquet_rows(tmp_path / "a.parquet")
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
    negative = map_rows(counting(3, begun), lambda number: -number)
    assert begun == []
    assert list(negative) == list(negative) == [0, -1, -2]


def test_what_is_held_is_one_piece_and_a_stream_many():
    assert list(row_groups((1, 2))) == [(1, 2)]
    assert list(row_groups(())) == [()]
    pieces = list(row_groups(counting(10_000, [])))
    assert [len(piece) for piece in pieces] == [2048, 2048, 2048, 2048, 10_000 - 4 * 2048]
    assert [number for piece in pieces for number in piece] == list(range(10_000))


FORMULAS = ["=1+1", "+1", "-5", "@SUM(A1)", "\t=1", "'=1", "''-x", "'plain", "=cmd|' /C calc'!A0", "'", ""]
FORMULAS += ["a;=1+1", 'a\n "=1', "\uff1d1", "it's", "a;b", "' =1"]


@pytest.mark.parametrize("column", ["case", "note", "=name"])
def test_formulas_are_text_in_a_spreadsheet_and_here(tmp_path, column):
    """Nothing that begins like a formula is written as it is; whoever reads it here sees no difference."""
    texts = [text for text in FORMULAS if column == "case" or text not in ("", "+1", "-5")]  # else numbers
    rows = [{"case": "a", column: text, "sdc": -0.5, "k": 3} for text in texts]
    write_table(tmp_path / "a.csv", Table.of(rows))
    content = (tmp_path / "a.csv").read_text()
    cells = [cell for line in csv.reader(io.StringIO(content)) for cell in line]
    texts_in_file = [part for cell in cells if cell != "-0.5" for part in re.split("[;\n]", cell)]
    assert not [part for part in texts_in_file if part.strip(' "')[:1] in ("=", "+", "-", "@", "\uff1d")]
    table = read_table(tmp_path / "a.csv")
    assert table.column(column) == [row[column] for row in rows]
    assert table.column("sdc") == [-0.5] * len(rows)
    assert table.columns == tuple(rows[0])


@given(st.lists(st.text(st.sampled_from("'=+-@a1\t;\n\" \uff1d"), min_size=1), min_size=1))
def test_any_text_that_looks_like_a_formula_comes_back(tmp_path_factory, texts):
    path = tmp_path_factory.mktemp("table") / "a.csv"
    write_table(path, Table.of([{"case": text} for text in texts]))
    assert read_table(path).column("case") == texts
    seen = []
    read_table(path, keep=lambda row: bool(seen.append(row["case"])))
    assert seen == texts
