"""``--decode dice-optimal`` in the commands that score, and what is made of it later."""

import json

import numpy as np
import pytest

import segtrust as st
from segtrust._files import write_json
from segtrust.calibration import PlattScaling
from segtrust.engine import reopen_case
from segtrust.io import read_table
from tests.commands import segtrust
from tests.engine.files import write_maps

DECODE = ("--decode", "dice-optimal")


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """Maps with truths, scored with both kinds of masks, and a policy made of the sought ones."""
    folder = tmp_path_factory.mktemp("decoding")
    made = write_maps(folder / "maps", 120, truths=folder / "truths")
    for name, options in (("usual", ()), ("decoded", DECODE)):
        done = segtrust(
            *("score", folder / "maps", "--truth", folder / "truths", "-o", folder / f"{name}.csv", *options)
        )
        assert done.returncode == 0, done.stderr
    done = segtrust(
        *("calibrate", folder / "decoded.csv", "-o", folder / "policy.json", "--estimator", "sdc"),
        *("--target-risk", "0.9", "--predictor", "fold 0"),
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return folder, made


def test_rows_tell_the_mask_and_where_the_map_was_cut(data):
    folder, made = data
    rows = read_table(folder / "decoded.csv").rows
    assert {row["mask"] for row in rows} == {"dice-optimal"}
    for row, case in zip(rows[:20], made, strict=False):
        best = st.dice_optimal_mask(case.prediction.probabilities)
        assert row["mask_threshold"] == best.threshold
        assert row["k"] == best.k
        assert row["idc"] == pytest.approx(best.confidence, rel=1e-12)
        assert row["dice"] == pytest.approx(st.dice(case.truth, best.mask))
    assert "mask_threshold" not in read_table(folder / "usual.csv").columns


def test_a_row_is_opened_again_with_its_mask(data):
    folder, _ = data
    table = read_table(folder / "decoded.csv")
    prediction = reopen_case(table.rows[3], table.about).prediction
    assert (prediction.mask, prediction.threshold) == (None, table.rows[3]["mask_threshold"])


def test_members_are_fused_before_the_map_is_decoded(data, tmp_path):
    folder, made = data
    write_maps(tmp_path / "second", 120, first=300)
    done = segtrust(
        *("score", folder / "maps", "--member", tmp_path / "second", "-o", tmp_path / "fused.csv", *DECODE),
        *("--estimators", "sdc,idc,pairwise-dice"),
    )
    assert done.returncode == 0, done.stdout + done.stderr
    row = read_table(tmp_path / "fused.csv").rows[4]
    second = np.load(next(path for path in (tmp_path / "second").iterdir() if path.stem == row["case"]))
    best = st.dice_optimal_mask(st.fuse([made[4].prediction.probabilities, second]))
    assert (row["mask"], row["k"]) == ("dice-optimal", best.k)
    assert row["idc"] == pytest.approx(best.confidence, rel=1e-12)


def test_recalibrated_maps_are_decoded_after_that(data, tmp_path):
    folder, made = data
    scaling = PlattScaling(0.5, -0.2, n_cases=1)
    write_json(tmp_path / "scaling.json", scaling.to_dict())
    done = segtrust(
        *("score", folder / "maps", "-o", tmp_path / "scores.csv", *DECODE),
        *("--calibrate-maps", tmp_path / "scaling.json"),
    )
    assert done.returncode == 0, done.stderr
    table = read_table(tmp_path / "scores.csv")
    best = st.dice_optimal_mask(scaling.apply(made[0].prediction.probabilities))
    assert (table.rows[0]["mask"], table.rows[0]["k"]) == ("dice-optimal", best.k)
    assert reopen_case(table.rows[0], table.about).prediction.threshold == best.threshold


def test_a_delivered_mask_wins(data, tmp_path):
    folder, made = data
    np.save(tmp_path / "mask.npy", (made[0].prediction.probabilities > 0.9).astype(np.uint8))
    lines = [f"{i},{folder / 'maps' / f'case_{i:03d}.npy'},{'' if i else 'mask.npy'}" for i in range(3)]
    (tmp_path / "cases.csv").write_text("\n".join(["case,probabilities,mask", *lines]))
    done = segtrust("score", tmp_path / "cases.csv", "-o", tmp_path / "s.csv", *DECODE)
    rows = read_table(tmp_path / "s.csv").rows
    assert [row["mask"] for row in rows[:2]] == ["delivered", "dice-optimal"]
    assert rows[0]["mask_threshold"] is None
    assert "2 of 3 have no delivered mask: their maps were decoded." in done.stderr


def test_masks_are_written_and_score_as_they_did(data, tmp_path):
    folder, _ = data
    done = segtrust(
        *("score", folder / "maps", "-o", tmp_path / "a.csv", *DECODE, "--write-masks", tmp_path / "masks")
    )
    assert done.returncode == 0, done.stderr
    done = segtrust("score", folder / "maps", "-o", tmp_path / "b.csv", "--mask-dir", tmp_path / "masks")
    assert done.returncode == 0, done.stderr
    first, again = (read_table(tmp_path / name) for name in ("a.csv", "b.csv"))
    assert set(again.column("mask")) == {"delivered"}
    assert again.column("k") == first.column("k")
    np.testing.assert_allclose(again.column("idc"), first.column("idc"), rtol=1e-12)


def test_masks_that_cannot_be_written_fail_alone(data, tmp_path):
    folder, _ = data
    (tmp_path / "masks").mkdir()
    (tmp_path / "masks/case_001.npy").mkdir()  # a folder is where the file should go
    done = segtrust(
        *("score", folder / "maps", "-o", tmp_path / "a.csv", *DECODE, "--write-masks", tmp_path / "masks")
    )
    assert done.returncode == 1
    assert len(list((tmp_path / "masks").glob("*.npy"))) == 120
    assert "case_001" in (tmp_path / "failures.csv").read_text()


def test_triage_decodes_as_the_policy_says(data, tmp_path):
    folder, _ = data
    scoring = json.loads((folder / "policy.json").read_text())["scoring"]
    assert scoring["decode"] == "dice-optimal"
    policy = ("--policy", folder / "policy.json", "--predictor", "fold 0")
    done = segtrust("triage", folder / "maps", *policy, "-o", tmp_path / "out")
    assert done.returncode == 0, done.stderr
    assert "Guarantee (95 % confidence)" in done.stdout
    assert set(read_table(tmp_path / "out/scores.csv").column("mask")) == {"dice-optimal"}
    refused = segtrust("triage", folder / "maps", *policy, "-o", tmp_path / "no", "--decode", "threshold")
    assert refused.returncode == 2
    assert "the policy was made with 'dice-optimal' masks" in refused.stderr


def test_a_policy_of_usual_masks_refuses_to_decode(data, tmp_path):
    folder, _ = data
    done = segtrust(
        *("calibrate", folder / "usual.csv", "-o", tmp_path / "policy.json", "--estimator", "sdc"),
        *("--target-risk", "0.9"),
    )
    assert done.returncode == 0
    assert "decode" not in json.loads((tmp_path / "policy.json").read_text())["scoring"]
    done = segtrust(
        *("triage", folder / "maps", "--policy", tmp_path / "policy.json", "-o", tmp_path / "o", *DECODE)
    )
    assert done.returncode == 2
    assert "the policy was made with 'threshold' masks" in done.stderr


def test_an_unknown_way_is_refused(data, tmp_path):
    done = segtrust("score", data[0] / "maps", "-o", tmp_path / "s.csv", "--decode", "best")
    assert done.returncode == 2
    assert "decode: expected threshold or dice-optimal, got 'best'" in done.stderr


@pytest.mark.needs("pyarrow", "matplotlib")
def test_an_evaluation_is_of_the_sought_masks(data, tmp_path):
    folder, _ = data
    done = segtrust(
        *("evaluate", folder / "maps", "--truth", folder / "truths", "-o", tmp_path / "run", *DECODE),
        *("--resamples", "100", "--estimators", "sdc,tla"),
    )
    assert done.returncode == 0, done.stderr
    rows = read_table(tmp_path / "run/scores.parquet").rows
    assert [row["k"] for row in rows] == read_table(folder / "decoded.csv").column("k")
    assert "dice-optimal" in (tmp_path / "run/report.html").read_text(encoding="utf-8")


def test_both_masks_are_compared(data, tmp_path):
    folder, _ = data
    tables = ("--usual", folder / "usual.csv", "--decoded", folder / "decoded.csv")
    done = segtrust("reproduce", "decoding", *tables, "--out", tmp_path / "out", "--resamples", "200")
    assert done.returncode == 0, done.stderr
    (row,) = read_table(tmp_path / "out/tables/decoding.csv").rows
    usual, decoded = (np.array(read_table(path).column("dice")) for path in tables[1::2])
    assert row["gain"] == pytest.approx((decoded - usual).mean())
    assert row["gain_low"] <= row["gain"] <= row["gain_high"]
    assert row["expected_gain"] > 0.0
