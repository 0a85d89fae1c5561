"""Files that release 0.1.0 wrote are read; files of unknown versions are rejected and left alone."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

import segtrust as st
from tests.behaviour.helpers import assert_golden, assert_same, read_csv
from tests.behaviour.maps import write_cases
from tests.commands import segtrust

pytestmark = pytest.mark.needs("pyarrow", "matplotlib")  # tables and figures of evaluate and report
RELEASES = sorted((Path(__file__).parents[1] / "fixtures").glob("release-*"))
VERSIONS = ("0", "99")


@pytest.fixture(params=RELEASES, ids=lambda folder: folder.name)
def release(request, tmp_path):
    """A copy of the files of a release."""
    return Path(shutil.copytree(request.param, tmp_path / "release"))


@pytest.fixture
def numbers(release):
    return json.loads((release / "numbers.json").read_text())


@pytest.mark.parametrize(
    "ending", ["csv", "json", pytest.param("parquet", marks=pytest.mark.needs("pyarrow"))]
)
def test_tables(release, numbers, tmp_path, ending):
    """A table of each kind is evaluated and calibrated, with the same numbers."""
    table = release / f"scores.{ending}"
    done = segtrust("evaluate", table, "-o", tmp_path / "out", "--resamples", "100", "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["sets"][0]["cases"] == numbers["cases"]
    assert found["sets"][0]["mean_loss"] == pytest.approx(1 - numbers["sums"]["dice"] / numbers["cases"])
    # Differences of areas may be rounding alone, around 1e-17.
    kept = {name: found[name] for name in ("sets", "areas", "comparisons", "bounds")}
    assert_golden("files/release", kept, abs_tol=1e-14)
    target = ("--target-risk", "0.45", "--below-dice", "0.1", "--start-coverage", "0.9")
    done = segtrust("calibrate", table, "-o", tmp_path / "policy.json", *target)
    assert done.returncode == 0, done.stderr
    policy = st.Policy.load(tmp_path / "policy.json")
    assert policy.threshold < numbers["threshold"], "testing every rank accepts more cases"
    assert_golden("files/release_threshold", policy.threshold)


def test_sums_of_the_table(release, numbers):
    rows = read_csv(release / "scores.csv")
    sums = {name: float(np.sum([row[name] for row in rows])) for name in numbers["sums"]}
    assert sums == pytest.approx(numbers["sums"], rel=1e-12)


def test_policies(release, numbers):
    policy = st.Policy.load(release / "policy.json")
    assert "(exact binomial test at candidate thresholds, as in release 0.1.0)" in str(policy)
    confidences = [row["sdc"] for row in read_csv(release / "scores.csv")]
    assert policy.threshold == numbers["threshold"]
    decisions = [str(policy.decide(confidence)) for confidence in confidences]
    assert decisions.count("accept") == numbers["accepted"]
    assert set(decisions) == {"accept", "defer"}
    policies = st.StructurePolicies.load(release / "structures.json").policies
    thresholds = {name: each.threshold for name, each in policies.items()}
    assert thresholds == dict.fromkeys(("cup", "disc"), policy.threshold)


def test_policies_are_written_as_they_were_read(release, tmp_path):
    for kind, name in ((st.Policy, "policy.json"), (st.StructurePolicies, "structures.json")):
        kind.load(release / name).save(tmp_path / name)
        assert_same(json.loads((tmp_path / name).read_text()), json.loads((release / name).read_text()))


def test_new_cases_are_decided(release, tmp_path):
    """By the policy and with the confidences that lie beside it, to which new ones are compared."""
    write_cases(tmp_path / "maps", 8)
    done = segtrust(
        "triage", tmp_path / "maps", "--policy", release / "policy.json", "-o", tmp_path / "out", "--json"
    )
    assert done.returncode == 0, done.stderr
    rows = read_csv(tmp_path / "out/scores.csv")
    decided = {row["case"]: [row["decision"], row["sdc"], row["margin"], row["policy"]] for row in rows}
    drift = json.loads(done.stdout)["drift"]
    assert_golden("files/triage", {"decided": decided, "drift": drift}, abs_tol=1e-15)


def test_scalings(release, numbers, tmp_path):
    """A scaled map has the scores that the scaled probabilities have."""
    (tmp_path / "maps").mkdir()
    np.save(tmp_path / "maps/a.npy", np.array([[0.1, 0.5, 0.9]]))
    options = ("--calibrate-maps", release / "scaling.json", "--estimators", "sdc,amsp")
    done = segtrust("score", tmp_path / "maps", "-o", tmp_path / "scores.csv", *options)
    assert done.returncode == 0, done.stderr
    (row,) = read_csv(tmp_path / "scores.csv")
    scaled = np.array([numbers["scaled"]])
    expected = st.score(scaled, np.array([[False, True, True]]), ["sdc", "amsp"])
    assert {name: row[name] for name in expected} == pytest.approx(expected, rel=1e-12)


def test_martingales(release, numbers, tmp_path):
    watch = st.ExchangeabilityMartingale.load(release / "martingale.json")
    watch.save(tmp_path / "again.json")
    assert_same(
        json.loads((tmp_path / "again.json").read_text()),
        json.loads((release / "martingale.json").read_text()),
    )
    for state, name in ((watch.state, "martingale"), (watch.update(0.5), "after one more")):
        assert_same({key: getattr(state, key) for key in numbers[name]}, numbers[name])


def test_reports_of_runs(release, tmp_path):
    done = segtrust("evaluate", release / "scores.csv", "-o", release, "--resamples", "100")
    assert done.returncode == 0, done.stderr
    done = segtrust("report", release, "-o", tmp_path / "report.html")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "report.html").stat().st_size > 1000


def test_every_release_is_kept():
    assert f"release-{st.__version__}" in [folder.name for folder in RELEASES]


# Files of versions that this release does not know.


def change_version(path, version):
    """Write another version of its format into a file, and return its bytes."""
    head, found, rest = path.read_text().partition('"format": "segtrust-')
    assert found
    kind, _, tail = rest.partition('"')
    path.write_text(f'{head}{found}{kind.rpartition("-")[0]}-{version}"{tail}')
    return path.read_bytes()


TABLE = "{release}/scores.csv"
MAPS = "{release}/maps"
COMMANDS = {
    "scores.csv.about.json": [
        ("calibrate", TABLE, "-o", "{out}/policy.json", "--target-risk", "0.4"),
        ("evaluate", TABLE, "-o", "{out}/evaluation"),
        ("report", TABLE, "-o", "{out}/report.html"),
        ("merge", TABLE, "-o", "{out}/merged.csv"),
    ],
    "scores.json": [("evaluate", "{release}/scores.json", "-o", "{out}/evaluation")],
    "policy.json": [("triage", "{release}/maps", "--policy", "{release}/policy.json", "-o", "{out}")],
    "structures.json": [("triage", "{release}/maps", "--policy", "{release}/structures.json", "-o", "{out}")],
    "policy.reference.json": [
        ("triage", "{release}/maps", "--policy", "{release}/policy.json", "-o", "{out}")
    ],
    "scaling.json": [
        ("score", "{release}/maps", "-o", "{out}/s.csv", "--calibrate-maps", "{release}/scaling.json")
    ],
    "run.json": [
        ("evaluate", TABLE, "-o", "{release}"),
        ("report", "{release}", "-o", "{out}/report.html"),
    ],
}


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(
    ("name", "command"),
    [
        pytest.param(name, command, id=f"{command[0]}-{name}")
        for name, commands in COMMANDS.items()
        for command in commands
    ],
)
def test_other_versions_are_rejected_and_left_alone(tmp_path, name, command, version):
    release = Path(shutil.copytree(RELEASES[-1], tmp_path / "release"))
    (release / "maps").mkdir()
    np.save(release / "maps/a.npy", np.eye(8, dtype=np.float32))
    before = change_version(release / name, version)
    done = segtrust(*(word.format(release=release, out=tmp_path / "out") for word in command))
    assert done.returncode == 2, done
    assert done.stderr.startswith(f"error: {release / name.removesuffix('.about.json')}")
    assert f"-{version}'" in done.stderr
    assert (release / name).read_bytes() == before


@pytest.mark.parametrize("version", VERSIONS)
def test_states_of_other_versions(tmp_path, version):
    for kind, name in (
        (st.Policy, "policy.json"),
        (st.StructurePolicies, "structures.json"),
        (st.ExchangeabilityMartingale, "martingale.json"),
    ):
        shutil.copy(RELEASES[-1] / name, tmp_path)
        change_version(tmp_path / name, version)
        with pytest.raises(st.errors.SegtrustError, match=f"-{version}'"):
            kind.load(tmp_path / name)


def test_a_table_without_its_settings_is_still_read(tmp_path):
    """It is said that the file beside it is missing, which tells how the table was made."""
    shutil.copy(RELEASES[-1] / "scores.csv", tmp_path)
    target = ("--target-risk", "0.4")
    done = segtrust("calibrate", tmp_path / "scores.csv", "-o", tmp_path / "policy.json", *target)
    assert_same([done.returncode, "scores.csv.about.json" in done.stderr], [0, True])
