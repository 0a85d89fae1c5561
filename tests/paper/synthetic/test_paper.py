"""Section 6 of the paper: its values, its sentences, and a twin that enumerates."""

import numpy as np
import pytest

from segtrust.paper.synthetic import EXPERIMENTS, Synthetic, run_synthetic
from segtrust.paper.synthetic.paper import run_repeat
from tests.paper.synthetic import facts, twin

PAPER = Synthetic()


def areas(arrays, name, at=0):
    return dict(zip(EXPERIMENTS[name].estimators, arrays["aurc"][at], strict=True))


@pytest.fixture(scope="module")
def ideal():
    return [run_repeat(PAPER, "ideal_model", repeat) for repeat in range(10)]


def test_repeat_0_to_the_last_digit(ideal):
    found = areas(ideal[0], "ideal_model")
    for name, value in facts.REPEAT_0.items():
        assert abs(found[name] - value) < 1e-12, name
    assert abs(np.nanmean(ideal[0]["epsilon"]) - facts.MEAN_EPSILON) < 1e-12


def test_further_values_of_repeat_0(ideal):
    k, idc_x, idc_p, sdc = (ideal[0][name] for name in ("k", "idc_x", "idc_p", "sdc"))
    some = k > 0
    assert np.count_nonzero(~some) == 76
    assert np.isnan(ideal[0]["epsilon"]).tolist() == (~some).tolist()
    to_full = np.abs(sdc - idc_x)[some] / idc_x[some]
    to_marginal = np.abs(sdc - idc_p)[some] / idc_p[some]
    spread = [to_full.mean(), np.median(to_full), np.quantile(to_full, 0.95), to_full.max()]
    assert np.round(spread, 6).tolist() == [0.015814, 0.010037, 0.054888, 0.087113]
    assert np.round([to_marginal.mean(), to_marginal.max()], 6).tolist() == [0.020558, 0.170938]
    epsilon = ideal[0]["epsilon"][some]
    assert np.round([np.median(epsilon), epsilon.max()], 6).tolist() == [0.033306, 0.241523]
    assert round(float(ideal[0]["alpha"][0]), 7) == 0.2495975
    assert round(float(ideal[0]["risk"][0]), 7) == 0.1974259


def test_ten_blocks(ideal):
    found = [areas(arrays, "ideal_model") for arrays in ideal]
    listed = [tuple(each[name] for name in ("idc(x)", "sdc", "amsp")) for each in found]
    np.testing.assert_allclose(listed, facts.blocks(), rtol=0, atol=5.1e-7)


def test_sentences_of_the_paper(ideal):
    mean = {
        name: np.mean([areas(arrays, "ideal_model")[name] for arrays in ideal])
        for name in ("idc(x)", "sdc", "amsp")
    }
    assert mean["idc(x)"] < mean["sdc"] < 1.01 * mean["idc(x)"]  # less than 1 % larger
    assert round(100 * (mean["amsp"] / mean["idc(x)"] - 1), 1) == 16.8  # 17 % larger


def test_bounds_hold_for_every_image(ideal):
    for arrays in ideal:
        some = arrays["k"] > 0
        error = np.abs(arrays["sdc"] - arrays["idc_p"])[some] / arrays["idc_p"][some]
        assert np.all(error <= arrays["epsilon"][some] * (1 + 1e-9))


def test_full_posterior_is_never_beaten(ideal):
    for arrays in ideal:
        found = areas(arrays, "ideal_model")
        assert found["idc(x)"] == min(found.values())


def test_perturbed_model():
    found = areas(run_repeat(PAPER, "perturbed_model", 0), "perturbed_model")
    assert {name: round(value, 7) for name, value in found.items()} == facts.PERTURBED


def test_prevalence_grid():
    arrays = run_repeat(PAPER, "prevalence", 0)
    grid = facts.grid(facts.PREVALENCE)
    assert tuple(grid) == PAPER.mu_z_grid
    for at, wanted in enumerate(grid.values()):
        found = areas(arrays, "prevalence", at)
        assert round(float(arrays["alpha"][at]), 5) == wanted[0]
        numbers = [float(arrays["risk"][at]), *(found[name] for name in ("idc(x)", "idc(p)", "sdc", "amsp"))]
        np.testing.assert_allclose(numbers, wanted[1:], rtol=0, atol=5.1e-7)


def test_perturbation_grid():
    arrays = run_repeat(PAPER, "perturbation", 0)
    grid = facts.grid(facts.PERTURBATION)
    assert tuple(grid) == PAPER.rho_eta_grid
    for at, wanted in enumerate(grid.values()):
        found = areas(arrays, "perturbation", at)
        numbers = [
            float(arrays["risk"][at]),
            *(found[name] for name in EXPERIMENTS["perturbation"].estimators[:5]),
        ]
        np.testing.assert_allclose(numbers, wanted, rtol=0, atol=5.1e-7)


def test_all_images_together():
    """Fifty thousand images as one block."""
    settings = Synthetic(images=50_000, repeats=1)
    ideal = areas(run_repeat(settings, "ideal_model", 0), "ideal_model")
    assert [round(ideal[name], 7) for name in ("idc(x)", "idc(p)", "sdc", "amsp", "random")] == [
        0.1048083, 0.1049137, 0.1056974, 0.1224126, 0.1977058,
    ]  # fmt: skip
    perturbed = areas(run_repeat(settings, "perturbed_model", 0), "perturbed_model")
    assert [round(value, 7) for value in perturbed.values()] == [
        0.1455347, 0.1456493, 0.1863171, 0.1886724, 0.2139974, 0.2873128,
    ]  # fmt: skip


SMALL = Synthetic(images=12, repeats=2, mu_z_grid=(0.0, -6.0), rho_eta_grid=(0.0, 3.0))


@pytest.mark.parametrize("name", list(EXPERIMENTS))
def test_whole_experiment_against_enumeration(name):
    results = run_synthetic(SMALL)
    for row in results.rows(name):
        wanted, risk, alpha = twin.experiment(SMALL.seeds(row["repeat"]), row["mu_z"], row["rho_eta"])
        assert row["aurc"] == pytest.approx(float(wanted[row["estimator"]]), rel=1e-11), row
        assert row["risk"] == pytest.approx(float(risk), rel=1e-11)
        assert row["alpha"] == pytest.approx(float(alpha), rel=1e-12)


def test_tables_have_the_columns_of_the_paper_s_questions():
    results = run_synthetic(SMALL)
    columns = ["repeat", "mu_z", "rho_eta", "estimator", "aurc", "risk", "alpha"]
    for name, experiment in EXPERIMENTS.items():
        rows = results.rows(name)
        assert list(rows[0]) == columns
        assert len(rows) == 2 * len(experiment.values(SMALL)) * len(experiment.estimators)
        assert tuple(dict.fromkeys(row["estimator"] for row in rows)) == experiment.estimators
    errors = results.relative_error_rows()
    assert list(errors[0]) == ["repeat", "image", "k", "idc_x", "idc_p", "sdc", "epsilon"]
    assert [row["image"] for row in errors] == list(range(24))


def test_a_perturbation_of_0_is_the_ideal_model():
    results = run_synthetic(Synthetic(images=40, repeats=1))
    ideal = {row["estimator"]: row["aurc"] for row in results.rows("ideal_model")}
    first = {row["estimator"]: row["aurc"] for row in results.rows("perturbation") if row["rho_eta"] == 0.0}
    assert first == ideal | {"idc(p_hat)": ideal["idc(p)"]}


def test_results_do_not_depend_on_the_number_of_processes(tmp_path):
    alone = run_synthetic(SMALL)
    together = run_synthetic(SMALL, folder=tmp_path, workers=2)
    for name in EXPERIMENTS:
        assert alone.rows(name) == together.rows(name)
    assert repr(alone.relative_error_rows()) == repr(together.relative_error_rows())


def test_a_stopped_run_goes_on_where_it_was(tmp_path):
    whole = run_synthetic(SMALL, folder=tmp_path)
    gone = sorted(tmp_path.iterdir())[::3]
    for path in gone:
        path.unlink()
    times = {path: path.stat().st_mtime_ns for path in tmp_path.iterdir()}
    again = run_synthetic(SMALL, folder=tmp_path)
    assert {path: path.stat().st_mtime_ns for path in times} == times
    assert all(path.exists() for path in gone)
    for name in EXPERIMENTS:
        assert again.rows(name) == whole.rows(name)
