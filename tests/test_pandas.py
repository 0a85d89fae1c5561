"""Score tables and vectors in pandas: columns are taken in their order, whatever their index."""

import numpy as np
import pytest

import segtrust as st
from segtrust.errors import CaseValueError, ParameterError
from segtrust.io import Table, read_table, write_table

pytestmark = pytest.mark.needs("pandas")


@pytest.fixture
def frame():
    """Cases in an order, and with an index, that is not that of their rows."""
    import pandas

    rng = np.random.default_rng(0)
    made = pandas.DataFrame({"case": [f"{i:03d}" for i in range(200)], "sdc": rng.random(200)})
    made["amsp"] = rng.random(200)
    made["dice"] = np.clip(made.sdc + rng.normal(0, 0.1, 200), 0, 1)
    made["loss"] = 1 - made.dice
    made["group"] = [f"site {i % 3}" for i in range(200)]
    return made.sample(frac=1, random_state=1).query("sdc > 0.1")


USES = {
    "curve": lambda d: st.risk_coverage_curve(d["sdc"], d["loss"]).risks.tolist(),
    "weights": lambda d: st.risk_coverage_curve(d["sdc"], d["loss"], weights=d["amsp"]).aurc,
    "failures": lambda d: st.failure_detection(d["sdc"], d["loss"], cutoff=0.3),
    "certificate": lambda d: st.certify_threshold(d["sdc"], d["loss"], target_risk=0.4),
    "comparison": lambda d: st.compare_estimators(d["sdc"], d["amsp"], d["loss"]),
    "bootstrap": lambda d: st.bootstrap_interval(d["sdc"], d["loss"]),
    "drift": lambda d: st.drift_test(reference=d["sdc"], new=d["amsp"]),
    "intervals": lambda d: (
        st.ConformalDice()
        .fit(d["sdc"], d["dice"], ids=d["case"], groups=d["group"])
        .interval(d["amsp"], d["group"])
        .lower.tolist()
    ),
    "seen": lambda d: sorted(st.MeanDiceEstimator().fit(d["sdc"], d["dice"], ids=d["case"]).used_ids),
}


@pytest.mark.parametrize("use", USES)
def test_columns_count_in_their_order(use, frame):
    arrays = {name: frame[name].to_numpy() for name in frame}
    assert USES[use](frame) == USES[use](arrays)


def test_missing_numbers_are_named_by_their_case(frame):
    frame = frame.copy()
    frame.iloc[5, 1] = float("nan")
    for column in (frame["sdc"], frame["sdc"].astype("Float64")):
        with pytest.raises(CaseValueError, match=f"got nan for case '{frame['case'].iloc[5]}'"):
            st.ConformalDice().fit(column, frame["dice"], ids=frame["case"])


def test_curves_and_intervals_become_tables(frame):
    points = st.risk_coverage_curve(frame["sdc"], frame["loss"]).to_dataframe()
    assert list(points) == ["coverage", "risk", "threshold"]
    bounds = st.ConformalDice().fit(frame["sdc"], frame["dice"]).interval(frame["sdc"])
    joined = frame.join(bounds.to_dataframe(frame.index))
    assert joined["lower"].to_numpy().tolist() == bounds.lower.tolist()
    assert (joined["lower"] <= joined["predicted"]).all()


class TestScoreTables:
    ROWS = (
        {"case": "007", "structure": "liver", "sdc": 0.25, "k": 12, "dice": None, "group": ""},
        {"case": "008", "structure": "liver", "sdc": 0.1 + 0.2, "k": 3, "dice": 0.5, "group": ""},
    )

    @pytest.fixture(params=[".csv", pytest.param(".parquet", marks=pytest.mark.needs("pyarrow"))])
    def path(self, request, tmp_path):
        path = tmp_path / f"scores{request.param}"
        write_table(path, Table.of(self.ROWS, {"threshold": 0.5}))
        return path

    def test_pandas_reads_them(self, path):
        import pandas

        names = {"case": str, "group": str}
        csv = path.suffix == ".csv"
        frame = pandas.read_csv(path, dtype=names) if csv else pandas.read_parquet(path)
        assert frame["case"].tolist() == ["007", "008"]
        assert frame["sdc"].tolist() == [0.25, 0.1 + 0.2]
        assert frame["dice"].isna().tolist() == [True, False]

    def test_there_and_back(self, path):
        table = read_table(path)
        frame = table.to_dataframe()
        assert frame["case"].tolist() == ["007", "008"]
        assert frame["dice"].dtype == frame["sdc"].dtype == float
        assert frame.attrs["segtrust"] == {"threshold": 0.5}
        back = Table.of_dataframe(frame)
        assert (back.columns, back.rows, back.about) == (table.columns, table.rows, table.about)
        write_table(path, Table.of_dataframe(frame[frame.sdc > 0.26]))
        assert [row["case"] for row in read_table(path).rows] == ["008"]

    def test_tables_of_pandas_own_kinds(self):
        import pandas

        frame = Table.of(self.ROWS).to_dataframe().convert_dtypes()
        frame["site"] = pandas.array(["a", None], "string")
        back = Table.of_dataframe(frame, {"by": "hand"})
        assert back.rows[0] == {**self.ROWS[0], "site": "a"}
        assert back.rows[1]["site"] is None
        assert back.about == {"by": "hand"}

    @pytest.mark.parametrize(
        ("columns", "said"),
        [(["a", "a"], "'a' twice"), ([("a", 1), ("b", 2)], r"\('a', 1\)"), (["a", 0], "0")],
    )
    def test_columns_that_cannot_be_told_apart_are_refused(self, columns, said):
        import pandas

        frame = pandas.DataFrame([[1, 2]])
        frame.columns = pandas.Index(columns, tupleize_cols=False)
        with pytest.raises(ParameterError, match=f"columns: expected .*{said}"):
            Table.of_dataframe(frame)

    @pytest.mark.parametrize("ending", ["csv", "parquet", "json"])
    def test_times_become_text_that_pandas_reads(self, tmp_path, ending):
        import pandas

        times = pandas.to_datetime(["2026-11-17 08:30", None])
        path = tmp_path / f"times.{ending}"
        write_table(path, Table.of_dataframe(pandas.DataFrame({"case": ["a", "b"], "scanned": times})))
        kept = read_table(path).to_dataframe()["scanned"]
        assert pandas.to_datetime(kept.tolist()).tolist() == times.tolist()

    def test_empty_tables(self):
        frame = Table(("case", "sdc"), ()).to_dataframe()
        assert frame.shape == (0, 2)
        assert Table.of_dataframe(frame).columns == ("case", "sdc")
