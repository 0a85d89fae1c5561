"""The studies: what they share with the paper's experiments, and what correlation changes."""

import numpy as np
import pytest

import segtrust as st
from segtrust.paper.synthetic import EXPERIMENTS, Synthetic
from segtrust.paper.synthetic.beyond import parts_of, run_beyond
from segtrust.paper.synthetic.paper import run_repeat
from segtrust.paper.synthetic.settings import Beyond
from segtrust.paper.synthetic.studies import STUDIES, run_part

pytestmark = pytest.mark.slow

FEW = Beyond(sizes=(10, 100, 400), images=(60, 60, 6), draws=(20, 40, 40), repeats=2)


@pytest.fixture(scope="module")
def results():
    return run_beyond(FEW)


def test_ten_pixels_without_spread_are_the_paper_s_experiment():
    """But for the coverages below the first image, which the studies count and the paper's values do not."""
    for rho_eta, name in ((0.0, "ideal_model"), (2.0, "perturbed_model")):
        found = run_part(FEW, "size", 10, (0.0, rho_eta), 1)
        paper = run_repeat(Synthetic(images=60), name, 1)
        estimators = EXPERIMENTS[name].estimators
        areas = dict(zip(STUDIES["size"].estimators, found["aurc"], strict=True))
        for at, estimator in enumerate(estimators[:-1]):
            wanted = paper["aurc"][0, at] + paper["risks"][at, 0] / 60
            assert areas[estimator] == pytest.approx(wanted, rel=1e-14)
        assert areas["random"] == paper["risk"][0]
        if rho_eta == 0.0:
            assert found["idc(x)"].tolist() == paper["idc_x"].tolist()


def test_large_images_are_those_of_the_public_functions():
    rng = np.random.RandomState(0)
    q = 1 / (1 + np.exp(-rng.normal(-3.698, 5.0, size=10_000)))
    found = run_part(
        Beyond(sizes=(10_000,), images=(2,), draws=(2,), repeats=1), "size", 10_000, (0.0, 0.0), 0
    )
    p = q / -np.expm1(np.log1p(-q).sum())
    assert found["idc(x)"][0] == pytest.approx(st.full_posterior_dice(q, p >= 0.5), rel=1e-12)
    assert found["idc(p)"][0] == pytest.approx(st.ideal_dice_confidence(p), rel=1e-12)
    assert found["sdc"][0] == pytest.approx(st.soft_dice_confidence(p), rel=1e-12)
    assert found["epsilon"][0] == pytest.approx(st.dice_bounds(p).relative_error, rel=1e-9)


def test_pieces_do_not_change_a_study(monkeypatch):
    whole = run_part(FEW, "copula", 100, (1.0, 0.25), 0)
    monkeypatch.setattr("segtrust.paper.synthetic.studies._PIXELS_AT_ONCE", 700)
    pieces = run_part(FEW, "copula", 100, (1.0, 0.25), 0)
    assert all(np.array_equal(whole[key], pieces[key], equal_nan=True) for key in whole)


@pytest.mark.parametrize("name", ["copula", "smooth"])
def test_without_correlation_nothing_parts_the_marginals_from_the_posterior(results, name):
    for n in STUDIES[name].sizes(FEW):
        for arrays in results.repeats(name, n, (1.0, 0.0)):
            np.testing.assert_allclose(arrays["idc(p)"], arrays["idc(x)"], rtol=1e-12)


def test_correlation_parts_them_and_makes_the_dice_swing(results):
    off, swings = [], []
    for correlation in FEW.correlations:
        arrays = results.repeats("copula", 100, (0.25, correlation))[0]
        off.append(np.abs(arrays["idc(p)"] - arrays["idc(x)"]).mean())
        swings.append(arrays["swing"].mean())
    assert off == sorted(off)
    assert swings == sorted(swings)
    assert off[-1] > 0.005
    assert swings[-1] > 0.05


def test_sharpness_keeps_the_masks(results):
    sharp, soft = (results.repeats("copula", 100, (each, 0.1))[0] for each in FEW.sharpness)
    assert sharp["k"].tolist() == soft["k"].tolist()
    assert soft["idc(p)"].mean() < sharp["idc(p)"].mean()


def test_sampled_ideal_confidence_is_bracketed(results):
    for n in (100, 400):
        for arrays in results.repeats("smooth", n, (1.0, 0.1)):
            areas = dict(zip(STUDIES["smooth"].estimators, arrays["aurc"], strict=True))
            assert areas["idc(x)"] <= min(areas.values())
            assert np.all(arrays["standard_error"] * np.sqrt(40) == pytest.approx(arrays["swing"]))
            halves = (arrays["first_half"] + arrays["second_half"]) / 2
            np.testing.assert_allclose(halves, arrays["idc(x)"], rtol=1e-12)


def test_smooth_study_takes_square_images_only(results):
    assert STUDIES["smooth"].sizes(FEW) == [100, 400]
    assert {row["n"] for row in results.rows("smooth")} == {100, 400}


def test_tables(results):
    assert len(parts_of(FEW)) == len(results.parts)
    rows = results.rows("size")
    assert list(rows[0]) == ["n", "spread", "rho_eta", "repeat", "estimator", "aurc", "risk", "alpha"]
    assert {row["rho_eta"] for row in rows if row["estimator"] == "idc(p_hat)"} == {2.0}
    images = results.image_rows("smooth")
    columns = ["n", "sharpness", "length", "repeat", "image", "k", "idc_x", "idc_p", "sdc", "epsilon"]
    assert list(images[0]) == [*columns, "standard_error", "swing"]
    assert len(images) == 2 * 8 * (60 + 6)
    assert len(results.image_rows("size")) == 2 * 4 * (60 + 60 + 6)
    assert set(results.seconds()) == set(STUDIES)


def test_results_do_not_depend_on_the_number_of_processes(results, tmp_path):
    again = run_beyond(FEW, folder=tmp_path, workers=2)
    for name in STUDIES:
        assert again.rows(name) == results.rows(name)
        assert repr(again.image_rows(name)) == repr(results.image_rows(name))
