"""Certificates and policies: ``segtrust calibrate`` on exact tables, and the same from Python."""

import json

import numpy as np
import pytest

import segtrust as st
from tests.behaviour.decision_data import MODEL, SETTINGS, make_case, score_rows, write_rows
from tests.behaviour.helpers import assert_golden, assert_same, read_csv
from tests.commands import segtrust


def calibrate(table, out, *options, code=0):
    done = segtrust("calibrate", table, "-o", out, *options, "--json")
    assert done.returncode == code, done.stderr
    told = json.loads(done.stdout)
    for each in told.values():
        assert each.pop("text")
    return told


def policy_values(path):
    """Return what a policy file says, without time, versions and checksums that depend on them."""
    content = json.loads(path.read_text())
    if "policies" in content:
        assert len(content.pop("checksum")) == 64
    for policy in content.get("policies", {"": content}).values():
        assert policy.pop("made")[:2] == "20"
        assert {"segtrust", "numpy", "python"} <= set(policy.pop("versions"))
        assert len(policy.pop("checksum")) == 64
        hashes = policy["used_ids"]["hashes"]
        assert len(set(hashes)) == len(hashes)
        policy["used_ids"]["hashes"] = [len(hashes), min(hashes)]
    return content


@pytest.fixture
def table(tmp_path_factory):
    """A new table for each test: what was asked of its cases is remembered beside it."""
    folder = tmp_path_factory.mktemp("table")
    return write_rows(folder / "scores.csv", score_rows(160), SETTINGS)


@pytest.fixture(scope="module")
def reference(tmp_path_factory):
    """Confidences of cases without ground truth."""
    rows = [{**row, "case": f"other {row['case']}"} for row in score_rows(150, seed=9)]
    for row in rows:
        del row["dice"]
    return write_rows(tmp_path_factory.mktemp("reference") / "reference.csv", rows, SETTINGS)


OPTIONS = {
    "mean": ("--target-risk", 0.3, "--predictor", MODEL),
    "strict": ("--target-risk", 0.24, "--delta", 0.1),
    "failures": ("--target-risk", 0.3, "--below-dice", 0.6),
    "patients": ("--target-risk", 0.35, "--patients"),
    "start": ("--target-risk", 0.22, "--start-coverage", 0.3),
}


@pytest.mark.parametrize("name", OPTIONS)
def test_policies(table, tmp_path, name):
    told = calibrate(table, tmp_path / "policy.json", *OPTIONS[name])
    assert_golden(
        f"decisions/policy_{name}", {"printed": told, "policy": policy_values(tmp_path / "policy.json")}
    )


def test_reference_cases(table, reference, tmp_path):
    told = calibrate(table, tmp_path / "policy.json", "--target-risk", 0.3, "--reference", reference)
    policy = policy_values(tmp_path / "policy.json")
    assert (policy["evidence"]["set_aside"], policy["evidence"]["references"]) == (0, 150)
    assert_golden("decisions/policy_reference", {"printed": told, "policy": policy})


def test_structures(tmp_path):
    rows = [
        row
        for structure, seed in (("organ", 3), ("lesion", 4))
        for row in score_rows(120, structure=structure, seed=seed)
    ]
    table = write_rows(tmp_path / "scores.csv", rows, SETTINGS)
    told = calibrate(table, tmp_path / "policy.json", "--target-risk", 0.33)
    policy = policy_values(tmp_path / "policy.json")
    assert_golden("decisions/policy_structures", {"printed": told, "policy": policy})
    loaded = st.StructurePolicies.load(tmp_path / "policy.json")
    assert {name: each.operation.threshold for name, each in loaded.policies.items()} == {
        name: each["operation"]["threshold"] for name, each in policy["policies"].items()
    }


def test_rows_that_are_used(table, tmp_path):
    """Without rows that have no loss, of one split, of another set."""
    rows = score_rows(160)
    half = [{**row, "dice": row["dice"] if at % 4 else ""} for at, row in enumerate(rows)]
    splits = [{**row, "split": "test" if at % 4 else "train"} for at, row in enumerate(rows)]
    sets = [{**row, "set": "ID" if at % 4 else "other"} for at, row in enumerate(rows)]
    others = [{**row, "set": "other"} for row in rows]
    target, out = ("--target-risk", 0.35), tmp_path / "policy.json"
    found = {}
    for name, kind, rejected, option in (
        ("unjudged", half, True, ("--drop-unjudged",)),
        ("split", splits, True, ("--split", "test")),
        ("sets", sets, False, ()),
        ("other", others, True, ("--set", "other")),
    ):
        path = write_rows(tmp_path / f"{name}.csv", kind, SETTINGS)
        if rejected:
            assert segtrust("calibrate", path, "-o", out, *target).returncode == 2
            assert not out.exists()
        found[name] = calibrate(path, out, *target, *option)
        out.unlink()
    assert_golden("decisions/policy_rows", found)


def test_not_certifiable(table, tmp_path):
    done = segtrust("calibrate", table, "-o", tmp_path / "policy.json", "--target-risk", 0.19, "--json")
    assert done.returncode == 1
    (told,) = json.loads(done.stdout).values()
    assert told["certified"] is False
    assert not (tmp_path / "policy.json").exists()
    said = segtrust("calibrate", table, "-o", tmp_path / "policy.json", "--target-risk", 0.19)
    assert (said.returncode, said.stdout) == (1, "")
    cases = st.CalibrationCases(*columns(score_rows(160)))
    need = st.certify(cases, [st.Target(0.19)]).need
    assert str(need.without_reference) in said.stderr
    assert_golden("decisions/policy_need", {"printed": {**told, "text": ""}, "need": need_values(need)})


def test_a_refusal_names_limits_that_as_many_new_cases_would_certify(table, tmp_path):
    command = ("calibrate", table, "-o", tmp_path / "policy.json", "--target-risk", "19%")
    done = segtrust(*command)
    assert done.returncode == 1
    assert "With a chance of 90 %, 160 new cases like these would certify:" in done.stderr
    told = json.loads(segtrust(*command, "--json").stdout)["foreground"]["within_reach"]
    for each in told:
        below = "" if each["below_dice"] is None else f" --below-dice {each['below_dice']:g}"
        assert f"(--target-risk {each['risk']:g}{below})" in done.stderr
    cases = st.CalibrationCases(*columns(score_rows(160)))
    assert st.certify(cases, [st.Target(told[0]["risk"])]).certified


def test_a_limit_above_the_risk_of_accepting_everything_is_named(table, tmp_path):
    done = segtrust("calibrate", table, "-o", tmp_path / "policy.json", "--target-risk", "0.9")
    assert done.returncode == 0
    assert "foreground: the limit 0.9 is not below the risk of accepting every case (0." in done.stderr
    done = segtrust("calibrate", table, "-o", tmp_path / "policy.json", "--target-risk", "0.3")
    assert "risk of accepting every case" not in done.stderr


def test_a_share_of_the_cases(tmp_path):
    """The cases that are not used are written next to the policy, whatever the order of the rows."""
    rows = [{**row, "checksum": f"crc32:{at // 2:08x}"} for at, row in enumerate(score_rows(160))]
    for at in range(1, 160, 2):  # pairs of copies
        rows[at] = {**rows[at - 1], "case": rows[at]["case"]}
    parts = []
    for name, content in (("a", rows), ("b", rows[::-1])):
        (tmp_path / name).mkdir()
        table = write_rows(tmp_path / name / "scores.csv", content, SETTINGS)
        out = tmp_path / name / "policy.json"
        done = segtrust("calibrate", table, "-o", out, "--target-risk", 0.4, "--fraction", "50%", "--seed", 7)
        assert done.returncode == 0, done.stderr
        assert "Tested on 40 of 80 cases: 40 are copies." in done.stdout
        assert f"80 cases that were not used: {out.with_name('policy.rest.csv')}" in done.stdout
        rest = {row["case"] for row in read_csv(out.with_name("policy.rest.csv"))}
        assert len(rest) == 80
        assert all((rows[at]["case"] in rest) == (rows[at + 1]["case"] in rest) for at in range(0, 160, 2))
        parts.append(rest)
        check = segtrust(
            "triage", out.with_name("policy.rest.csv"), "--policy", out, "-o", out.with_name("check")
        )
        assert "calibration case" not in check.stderr
        check = segtrust("triage", table, "--policy", out, "-o", out.with_name("all"))
        assert "80 of 160 cases are calibration cases of the policy" in check.stderr
    assert parts[0] == parts[1]
    done = segtrust("calibrate", table, "-o", out, "--target-risk", 0.4, "--seed", 7)
    assert (done.returncode, "seed: expected with --fraction only" in done.stderr) == (2, True)


def test_few_cases_are_not_certifiable(tmp_path):
    table = write_rows(tmp_path / "scores.csv", score_rows(8), SETTINGS)
    done = segtrust("calibrate", table, "-o", tmp_path / "policy.json", "--target-risk", 0.3)
    assert (done.returncode, done.stdout) == (1, "")
    assert "Not certifiable with these 8 cases" in done.stderr


def test_every_look_is_remembered_beside_the_table(table, tmp_path):
    out = tmp_path / "policy.json"
    calibrate(table, out, "--target-risk", 0.3)
    assert "(95 % confidence)" in str(st.Policy.load(out))
    calibrate(table, out, "--target-risk", 0.3)
    assert "(95 % confidence)" in str(st.Policy.load(out)), "the same question again"
    calibrate(table, out, "--target-risk", 0.35)
    calibrate(table, out, "--target-risk", 0.35, "--start-coverage", 0.4)
    assert "(85 % confidence, third look at these cases)" in str(st.Policy.load(out))
    record = table.with_name("calibration-looks.json")
    assert len(json.loads(record.read_text())["structures"]["foreground"]["looks"]) == 3
    assert "case" not in record.read_text().replace('"cases"', "").replace("accepted cases", "")
    record.write_text("{}")
    done = segtrust("calibrate", table, "-o", out, "--target-risk", 0.3)
    assert (done.returncode, record.read_text()) == (2, "{}")
    assert str(record) in done.stderr


def test_copies_count_as_one_case(table, tmp_path):
    rows = [{**row, "checksum": f"crc32:{at:08x}"} for at, row in enumerate(score_rows(160))]
    copies = [{**row, "case": f"copy of {row['case']}"} for row in rows]
    once, twice = (
        write_rows(tmp_path / f"{name}.csv", content, SETTINGS)
        for name, content in (("once", rows), ("twice", [*rows, *copies]))
    )
    option, out = ("--target-risk", 0.3), tmp_path / "policy.json"
    of_once, of_twice = (calibrate(each, out, *option)["foreground"] for each in (once, twice))
    assert (of_once.pop("of"), of_twice.pop("of")) == (160, 320)
    assert of_once == of_twice
    assert "160 copies counted once" in str(st.Policy.load(out))
    copies[7]["dice"] = copies[7]["dice"] / 2
    other = write_rows(tmp_path / "other.csv", [*rows, *copies], SETTINGS)
    done = segtrust("calibrate", other, "-o", out, *option)
    assert done.returncode == 2
    assert rows[7]["case"] in done.stderr
    assert copies[7]["case"] in done.stderr


@pytest.mark.parametrize(
    "options",
    [
        ("--target-risk", "1.5"),
        ("--target-risk", "0.3", "--delta", "0"),
        ("--target-risk", "0.3", "--estimator", "ane"),
        ("--target-risk", "0.3", "--loss-column", "surface"),
        ("--target-risk", "0.3", "--set", "elsewhere"),
        ("--target-risk", "0.3", "--start-coverage", "0"),
        ("--target-risk", "0.3", "--below-dice", "2"),
        (),
    ],
)
def test_wrong_options(table, tmp_path, options):
    done = segtrust("calibrate", table, "-o", tmp_path / "policy.json", *options)
    assert done.returncode == 2
    assert done.stderr
    assert not (tmp_path / "policy.json").exists()


def with_value(name, value):
    def change(rows):
        rows[3] = {**rows[3], name: value}
        return rows

    return change


@pytest.mark.parametrize(
    "change",
    [
        lambda rows: [*rows, rows[3]],
        with_value("sdc", "high"),
        with_value("sdc", ""),
        with_value("dice", "inf"),
        with_value("dice", ""),
        with_value("dice", "1.2"),
        lambda rows: [{key: row[key] for key in row if key != "case"} for row in rows],
    ],
)
def test_tables_that_are_rejected(tmp_path, change):
    table = write_rows(tmp_path / "scores.csv", change(score_rows(160)), SETTINGS)
    done = segtrust("calibrate", table, "-o", tmp_path / "policy.json", "--target-risk", 0.3)
    assert done.returncode == 2
    assert "scores.csv" in done.stderr or "case" in done.stderr
    assert not (tmp_path / "policy.json").exists()


def columns(rows):
    return [row["sdc"] for row in rows], [1 - row["dice"] for row in rows]


def need_values(need):
    return {
        "cases": need.cases,
        "without_reference": need.without_reference,
        "power": need.power,
        "unit": need.unit,
    }


def certificate_values(found):
    """Return everything that a certificate says except words and hashed ids."""
    return {
        "certified": found.certified,
        "threshold": found.threshold,
        "coverage": found.coverage,
        "operation": found.operation,
        "need": None if found.need is None else need_values(found.need),
        "targets": found.targets,
        "delta": found.delta,
        "evidence": {
            name: getattr(found.evidence, name)
            for name in ("n", "units", "patients", "references", "set_aside", "digest")
        },
        "procedure": found.procedure,
        "steps": [[step.threshold, step.accepted, step.p_value, step.level] for step in found.steps],
    }


def calibration_cases(**more):
    rows = score_rows(160)
    confidence, loss = columns(rows)
    return st.CalibrationCases(confidence, loss, ids=[row["case"] for row in rows], **more)


def certificates():
    cases = calibration_cases()
    referenced = calibration_cases(reference=[row["sdc"] for row in score_rows(60, seed=9)])
    patients = calibration_cases(patients=[row["group"] for row in score_rows(160)])
    failure = st.Target(0.3, below_dice=0.6)
    confidence, loss = columns(score_rows(160))
    tied = st.CalibrationCases([round(each, 1) for each in confidence], loss)
    strict, lax = st.certify_each(cases, [st.Target(0.27), failure])
    return {
        "threshold": st.certify_threshold(confidence, loss, target_risk=0.3),
        "both": st.certify(referenced, [st.Target(0.3), failure], delta=0.1),
        "each, mean": strict,
        "each, failures": lax,
        "hoeffding-bentkus": st.certify(
            referenced, [st.Target(0.33)], procedure=st.Procedure(p_value="hoeffding-bentkus")
        ),
        "starts": st.certify(
            cases, [st.Target(0.3)], procedure=st.Procedure(start_coverages=(0.3, 0.7), step=0.05, seed=7)
        ),
        "patients": st.certify(patients, [st.Target(0.4)]),
        "ties": st.certify(tied, [st.Target(0.3)], procedure=st.Procedure(seed=3)),
        "impossible": st.certify(cases, [st.Target(0.05)]),
    }


def test_certificates():
    assert_golden(
        "decisions/certificates", {name: certificate_values(each) for name, each in certificates().items()}
    )


def test_structures_share_the_level():
    cases = {"organ": calibration_cases(), "lesion": calibration_cases()}
    found = st.certify_structures(cases, [st.Target(0.3)], delta=0.1)
    assert {name: each.delta for name, each in found.items()} == {"organ": 0.05, "lesion": 0.05}
    assert_same(found["organ"].threshold, found["lesion"].threshold)


def test_seen_cases_are_rejected():
    cases = calibration_cases()
    with pytest.raises(st.errors.SegtrustError) as caught:
        st.certify(cases, [st.Target(0.3)], used_ids=["case_007"])
    assert "case_007" in str(caught.value)
    policy = st.Policy.from_certificate(st.certify(cases, [st.Target(0.3)]), st.Scoring("sdc"))
    with pytest.raises(st.errors.SegtrustError, match="case_011"):
        policy.reject_seen(["new", "case_011"])
    policy.reject_seen(["new", "case_999"])
    with pytest.raises(st.errors.SegtrustError):
        st.certify(st.CalibrationCases(*columns(score_rows(160))), [st.Target(0.3)], used_ids=["case_007"])


def test_plans():
    found = {
        "mean": st.plan_calibration(0.1, 0.05),
        "failures": st.plan_calibration(st.Target(0.1, below_dice=0.8), 0.03),
        "impossible": st.plan_calibration(0.1, 0.2),
    }
    assert_golden("decisions/plans", {name: need_values(each) for name, each in found.items()})


def test_a_policy_decides(table, tmp_path):
    calibrate(table, tmp_path / "policy.json", *OPTIONS["strict"])
    policy = st.Policy.load(tmp_path / "policy.json")
    threshold = policy.operation.threshold
    below = np.nextafter(threshold, 0)
    assert [str(policy.decide(value)) for value in (1.0, threshold, below, 0.0)] == [
        *("accept", "accept", "defer", "defer")
    ]
    maps = [make_case(seed) for seed in range(8)]
    confidences = [st.soft_dice_confidence(p) for p, _ in maps]
    assert [policy.decide(value) for value in confidences] == [
        "accept" if value >= threshold else "defer" for value in confidences
    ]
    assert_golden("decisions/policy_decisions", [str(policy.decide(value)) for value in confidences])
    policy.save(tmp_path / "copy.json")
    assert policy_values(tmp_path / "copy.json") == policy_values(tmp_path / "policy.json")
    other = policy.estimated("made with another model")
    assert (str(policy.status), str(other.status)) == ("certified", "estimated")


def test_a_policy_that_was_edited_is_rejected(table, tmp_path):
    calibrate(table, tmp_path / "policy.json", *OPTIONS["mean"])
    content = json.loads((tmp_path / "policy.json").read_text())
    for change in (
        {"operation": {**content["operation"], "threshold": 0.0}},
        {"delta": 0.01},
        {"format": "x"},
    ):
        (tmp_path / "policy.json").write_text(json.dumps({**content, **change}))
        with pytest.raises(st.errors.SegtrustError, match=r"policy\.json"):
            st.Policy.load(tmp_path / "policy.json")


def test_guaranteed_coverage():
    confidence, _ = columns(score_rows(160))
    found = {
        "guaranteed": st.threshold_for_coverage(confidence, target_coverage=0.8),
        "on average": st.threshold_for_coverage(confidence, target_coverage=0.8, delta=None),
        "too few": st.threshold_for_coverage(confidence[:10], target_coverage=0.9),
    }
    assert found["guaranteed"].possible
    assert not found["too few"].possible
    assert_golden("decisions/coverage_guarantee", {name: each.to_dict() for name, each in found.items()})


def test_dice_intervals_of_a_policy(tmp_path):
    rows = score_rows(60, seed=21)
    confidence, loss = columns(rows)
    names = [f"interval {row['case']}" for row in rows]
    policy = st.Policy.from_certificate(
        st.certify(calibration_cases(), [st.Target(0.3)]), st.Scoring("sdc", predictor=MODEL)
    )
    unfit = st.ConformalDice(level=0.8, threshold=policy.threshold, predictor="isotonic", scale="none")
    intervals = unfit.fit(confidence, [1 - each for each in loss], ids=names)
    policy.with_intervals(intervals).save(tmp_path / "policy.json")
    loaded = st.Policy.load(tmp_path / "policy.json")
    values = policy_values(tmp_path / "policy.json")
    values["intervals"]["used_ids"]["hashes"] = len(values["intervals"]["used_ids"]["hashes"])
    new = [0.2, 0.55, 0.9]
    found = loaded.intervals.interval(new)
    bounds = {"lower": found.lower, "upper": found.upper}
    recalibration = st.Recalibration.fit(confidence, [1 - each for each in loss])
    assert_golden(
        "decisions/policy_intervals",
        {"policy": values, "bounds": bounds, "recalibrated": recalibration.predict(new)},
    )


def test_recalibrated_maps_and_other_masks_are_part_of_a_policy(tmp_path):
    """What the settings beside a table say of maps and masks is kept in the policy, and must be met later."""
    settings = {
        **SETTINGS,
        "read": {**SETTINGS["read"], "decode": "dice-optimal"},
        "empty": "agree",
        "estimators": {"sdc": {"empty": "agree"}},
        "predictor": MODEL,
    }
    table = write_rows(tmp_path / "scores.csv", score_rows(160), settings)
    calibrate(table, tmp_path / "policy.json", "--target-risk", 0.3)
    assert_golden("decisions/policy_settings", policy_values(tmp_path / "policy.json")["scoring"])
    policy = st.Policy.load(tmp_path / "policy.json")
    decisions = [policy.decide(value, empty_mask=empty) for value in (0.9, 0.1) for empty in (True, False)]
    assert decisions == ["no finding", "accept", "defer", "defer"]
    with pytest.raises(st.errors.SegtrustError):
        policy.check_scoring(st.Scoring("sdc", predictor=MODEL))
