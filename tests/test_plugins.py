"""What other packages add is found when it is asked for; what is wrong with them names them."""

import json
import logging
import sys
from dataclasses import replace

import numpy as np
import pytest

import segtrust as st
from segtrust.confidence import ESTIMATORS, estimator_names, usable_names
from segtrust.confidence.registry import RESERVED_NAMES
from segtrust.engine import ScoreJob
from segtrust.errors import DamagedFileError, PluginError, PolicyError, UnknownFormatError, UnknownNameError
from segtrust.io import ArrayRef, open_volume, read_table
from segtrust.paper.tasks import get_task, task_names
from segtrust.report.styles import style_of
from tests.commands import segtrust
from tests.engine.files import files_of, write_maps
from tests.plugged import ESTIMATOR, READER, TASK, installed, package

MODULES = ("share_pkg", "raw7_pkg", "task_pkg", "broken_pkg", "odd_pkg")


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A folder for packages; modules of earlier tests are forgotten."""
    for name in MODULES:
        monkeypatch.delitem(sys.modules, name, raising=False)
    with installed(monkeypatch, tmp_path / "site"):
        yield tmp_path / "site"


def share(place, name="share", version="1.0"):
    modules = {"share_pkg": ESTIMATOR.format(name=name)}
    return package(place, "seg-share", {"estimators": {name: "share_pkg:Share"}}, modules, version)


def odd(place, text, name="odd", group="estimators"):
    return package(place, "seg-odd", {group: {name: "odd_pkg:THING"}}, {"odd_pkg": text})


def test_an_estimator_is_found_by_its_name(place):
    share(place)
    estimator = st.get_estimator("share")
    assert estimator.score(st.Prediction(np.array([0.9, 0.1]))) == 0.5
    assert st.score(np.array([0.9, 0.1]), estimators=["sdc", "share"])["share"] == 0.5
    assert estimator_names() == [*ESTIMATORS, "share"]
    with pytest.raises(UnknownNameError, match="share"):
        st.get_estimator("shore")


def test_nothing_is_imported_or_looked_for_until_it_is_used(place):
    share(place)
    st.get_estimator("sdc")
    from segtrust import plugins

    assert plugins.installed_plugins.cache_info().currsize == 0
    estimator_names()
    assert "share_pkg" not in sys.modules
    assert plugins.installed_plugins.cache_info().misses == 1
    st.get_estimator("share")
    assert plugins.installed_plugins.cache_info().misses == 1
    assert "share_pkg" in sys.modules


def test_own_names_win_and_it_is_said(place, caplog):
    share(place, "sdc")
    assert isinstance(st.get_estimator("sdc"), st.SoftDice)
    with caplog.at_level(logging.WARNING, "segtrust"):
        assert estimator_names() == [*ESTIMATORS]
        estimator_names()
    assert [record.getMessage() for record in caplog.records] == [
        "seg-share 1.0 (estimator 'sdc', share_pkg:Share): segtrust has 'sdc' itself, and its own is used."
    ]
    done = segtrust("plugins", "--json")
    assert done.returncode == 1
    assert "its own is used" in json.loads(done.stdout)["plugins"][0]["problem"]


def test_of_two_with_one_name_none_is_taken(place):
    share(place)
    package(place, "seg-other", {"estimators": {"share": "share_pkg:Share"}}, version="2.0")
    with pytest.raises(PluginError, match=r"expected one package.*seg-other 2\.0.*seg-share 1\.0.*Remove"):
        st.get_estimator("share")
    assert "share" not in usable_names()
    done = segtrust("plugins", "--json")
    assert done.returncode == 1
    assert all("also offered by" in row["problem"] for row in json.loads(done.stdout)["plugins"])


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("import nowhere_at_all", "ModuleNotFoundError: No module named 'nowhere_at_all'"),
        ("x = 1", "AttributeError.*THING"),
        ("import sys; sys.exit(3)", "SystemExit: 3"),
        ("def THING(): raise RuntimeError('no licence')", "RuntimeError: no licence"),
        ("THING = 3", "expected a class of ConfidenceEstimator, got int 3"),
        ("from segtrust import SoftDice as THING", "expected an estimator called 'odd', got 'sdc'"),
        ("from segtrust import ConfidenceEstimator as THING", "TypeError"),
        ("(", "SyntaxError"),
    ],
)
def test_what_cannot_be_used_names_the_package_and_stops_nothing_else(place, tmp_path, text, said):
    odd(place, text)
    with pytest.raises(PluginError, match=rf"seg-odd 1\.0 \(estimator 'odd', odd_pkg:THING\): .*{said}"):
        st.get_estimator("odd")
    assert usable_names() == [*ESTIMATORS]
    write_maps(tmp_path / "maps", 1)
    done = segtrust("score", tmp_path / "maps", "-o", tmp_path / "a.csv")
    assert (done.returncode, done.stderr) == (0, "")
    done = segtrust("score", tmp_path / "maps", "-o", tmp_path / "b.csv", "--estimators", "odd")
    assert done.returncode == 2
    assert "seg-odd 1.0" in done.stderr
    assert (
        segtrust("score", tmp_path / "maps", "-o", tmp_path / "c.csv", "--estimators", "all").returncode == 0
    )


@pytest.mark.parametrize("name", ["dice", "hamming", "Share", "two words", "all"])
def test_names_that_mean_something_else_are_refused(place, name):
    share(place, name)
    with pytest.raises(PluginError, match="no column's name"):
        st.get_estimator(name)


def test_columns_of_the_score_table_are_taken(tmp_path):
    write_maps(tmp_path / "maps", 1, truths=tmp_path / "truths")
    files = files_of(tmp_path / "maps/case_000.npy", truth=tmp_path / "truths/case_000.npy")
    (row,) = ScoreJob(())(files).rows
    assert {name for name in row if "_" not in name} <= RESERVED_NAMES


def test_a_confidence_without_a_rank_is_a_failure(place, tmp_path):
    text = ESTIMATOR.format(name="odd").replace("(counts.k / counts.n) ** self.power", "float('nan')")
    odd(place, text + "\nTHING = Share")
    write_maps(tmp_path / "maps", 1)
    done = segtrust("score", tmp_path / "maps", "-o", tmp_path / "a.csv", "--estimators", "sdc,odd")
    assert done.returncode == 2
    assert "odd: expected a finite confidence from this estimator, got nan" in done.stderr


@pytest.mark.parametrize(
    "how", [("--workers", "2"), pytest.param(("--dask",), marks=pytest.mark.needs("distributed"))]
)
def test_in_processes_and_on_dask(place, tmp_path, monkeypatch, how):
    share(place)
    monkeypatch.setenv("PYTHONPATH", str(place), prepend=":")
    write_maps(tmp_path / "maps", 3)
    one = segtrust("score", tmp_path / "maps", "-o", tmp_path / "a.csv", "--estimators", "sdc,share")
    several = segtrust(
        "score", tmp_path / "maps", "-o", tmp_path / "b.csv", "--estimators", "sdc,share", *how
    )
    assert (one.returncode, several.returncode) == (0, 0), several.stderr
    first, second = (read_table(tmp_path / name) for name in ("a.csv", "b.csv"))
    assert first.column("share") == second.column("share")


@pytest.mark.needs("pandas", "pyarrow", "matplotlib")
def test_from_evaluation_to_a_policy_that_names_the_package(place, tmp_path, monkeypatch):
    share(place)
    write_maps(tmp_path / "maps", 60, truths=tmp_path / "truths")
    run = tmp_path / "run"
    options = ("--truth", tmp_path / "truths", "--estimators", "sdc,share", "--resamples", "100")
    done = segtrust("evaluate", tmp_path / "maps", "-o", run, *options)
    assert done.returncode == 0, done.stderr
    assert "Share" in done.stdout
    assert "Share" in (run / "report.html").read_text()
    table = read_table(run / "scores.parquet")
    assert table.about["packages"] == {"share": {"seg-share": "1.0"}}
    told = ("--estimator", "share", "--target-risk", "0.9", "--predictor", "m")
    done = segtrust("calibrate", run / "scores.parquet", "-o", tmp_path / "policy.json", *told)
    assert done.returncode == 0, done.stdout + done.stderr
    saved = st.Policy.load(tmp_path / "policy.json")
    assert saved.versions["seg-share"] == "1.0"
    assert saved.estimator() == st.get_estimator("share")
    new = ("triage", tmp_path / "maps", "--policy", tmp_path / "policy.json", "-o", tmp_path / "out")
    assert segtrust(*new, "--predictor", "m").returncode == 0

    monkeypatch.undo()  # the package is gone
    from tests.plugged import forget

    forget()
    with pytest.raises(PolicyError, match=r"'share' is from seg-share 1\.0, which is not installed.*pip"):
        st.Policy.load(tmp_path / "policy.json").estimator()
    done = segtrust(*new)
    assert done.returncode == 2
    assert "pip install seg-share==1.0" in done.stderr
    done = segtrust("report", run)  # needs nothing of the package
    assert done.returncode == 0, done.stderr


def test_another_version_than_the_policy_s_is_told(place, caplog):
    from tests.policy.certified import policy

    share(place, version="2.0")
    made = replace(policy(), scoring=st.Scoring("share"), versions={"segtrust": "0", "seg-share": "1.0"})
    with caplog.at_level(logging.WARNING, "segtrust"):
        made.estimator()
    assert "was that of seg-share 1.0; here it is that of seg-share 2.0" in caplog.text


def test_style_of_an_estimator_that_is_not_installed_is_its_name(place):
    share(place)
    assert style_of("not-here").label == "not-here"
    assert style_of("share").label == "Share"


def test_a_reader_goes_by_the_ending(place, tmp_path):
    package(place, "seg-raw7", {"readers": {"raw7": "raw7_pkg:READER"}}, {"raw7_pkg": READER})
    import raw7_pkg

    p = np.random.default_rng(0).random((8, 9)).astype(np.float32)
    (tmp_path / "maps").mkdir()
    raw7_pkg.write(tmp_path / "maps/a_prob.raw7", p)
    (tmp_path / "maps/b_prob.raw7").write_bytes(b"RAW7")
    (tmp_path / "maps/c_prob.raw7").write_bytes(b"other")
    assert np.array_equal(open_volume(ArrayRef(tmp_path / "maps/a_prob.raw7")).read(), p)
    done = segtrust("score", tmp_path / "maps", "-o", tmp_path / "a.csv", "--estimators", "sdc")
    assert done.returncode == 1
    (row,) = read_table(tmp_path / "a.csv").rows
    assert (row["case"], row["sdc"]) == ("a", st.soft_dice_confidence(p))
    assert "b_prob.raw7: expected 4 bytes of pixels" in done.stderr
    assert "c_prob.raw7" in done.stderr
    assert "RAW7; got a file that is none of them" in done.stderr


@pytest.mark.parametrize(
    ("text", "error", "said"),
    [
        ("import nowhere_at_all", PluginError, "seg-odd 1.0 .*nowhere_at_all"),
        ("THING = 3", PluginError, "expected a segtrust.io.volume.Reader, got int 3"),
        (
            "from segtrust.io import Reader\nTHING = Reader('x', lambda p, h: 1 / 0, None)",
            DamagedFileError,
            "expected a file that seg-odd 1.0 .* can read, got ZeroDivisionError",
        ),
        (
            "from segtrust.io import Reader\nTHING = Reader('x', lambda p, h: True, lambda p, k: 3)",
            PluginError,
            "expected Volume from seg-odd 1.0 .*, got int 3",
        ),
        (
            "from segtrust.io import Reader\nTHING = Reader('x', lambda p, h: False, None)",
            UnknownFormatError,
            "none of them",
        ),
    ],
)
def test_readers_that_are_wrong_hit_their_own_files_alone(place, tmp_path, text, error, said):
    odd(place, text, name="xyz", group="readers")
    np.save(tmp_path / "good.npy", np.full((3, 4), 0.5))
    (tmp_path / "bad.xyz").write_bytes(b"123")
    assert open_volume(ArrayRef(tmp_path / "good.npy")).shape == (3, 4)
    with pytest.raises(error, match=said):
        open_volume(ArrayRef(tmp_path / "bad.xyz"))


def test_a_reader_for_an_ending_of_segtrust_s_own_is_not_used(place, tmp_path):
    odd(place, "import nowhere_at_all", name="npy", group="readers")
    np.save(tmp_path / "good.npy", np.full((3, 4), 0.5))
    assert open_volume(ArrayRef(tmp_path / "good.npy")).shape == (3, 4)
    assert "its own is used" in segtrust("plugins").stderr


def test_a_task_is_found_by_its_name(place):
    package(place, "seg-task", {"tasks": {"lesions": "task_pkg:TASK"}}, {"task_pkg": TASK})
    odd(place, "THING = 3", group="tasks")
    assert get_task("lesions").recipe().epochs == 2
    assert task_names()[-2:] == ["lesions", "odd"]
    done = segtrust("tasks", "list")
    assert done.returncode == 0
    assert "lesions" in done.stdout
    assert "seg-odd 1.0 (task 'odd', odd_pkg:THING): expected a Task, got int" in done.stderr
    assert segtrust("tasks", "show", "lesions").returncode == 0
    with pytest.raises(PluginError, match="expected a Task, got int"):
        get_task("odd")


def test_plugins_are_listed_with_package_and_version(place):
    assert "No other package" in segtrust("plugins").stdout
    from tests.plugged import forget

    share(place)
    odd(place, "import nowhere_at_all")
    forget()
    done = segtrust("plugins")
    assert done.returncode == 1
    assert "seg-share 1.0" in done.stdout
    assert "2 plug-ins, 1 problem." in done.stdout
    assert "nowhere_at_all" in done.stderr
    found = json.loads(segtrust("plugins", "--json").stdout)
    assert found["failed"] == 1
    assert [row["problem"] == "" for row in found["plugins"]] == [False, True]


def test_a_package_without_a_name_is_no_harm(place):
    about = place / "strange-1.dist-info"
    about.mkdir(parents=True)
    (about / "entry_points.txt").write_text("[segtrust.estimators]\nodd = not an entry point\n")
    with pytest.raises(PluginError, match=r"\(no name\) \(no version\)"):
        st.get_estimator("odd")
