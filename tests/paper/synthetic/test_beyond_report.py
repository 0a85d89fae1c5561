"""Tables and figures of the studies past ten pixels and past independence."""

import numpy as np
import pytest

from segtrust.paper.synthetic.beyond import run_beyond
from segtrust.paper.synthetic.beyond_report import draw_study, reproduce_beyond, summarise_study
from segtrust.paper.synthetic.settings import Beyond
from segtrust.paper.synthetic.studies import STUDIES

pytestmark = [pytest.mark.slow, pytest.mark.needs("matplotlib")]
FEW = Beyond(sizes=(10, 64), images=(30, 30), draws=(30, 30), repeats=2, lengths=(0.0, 0.1))


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    return reproduce_beyond(tmp_path_factory.mktemp("beyond"), FEW)


@pytest.mark.parametrize("name", list(STUDIES))
def test_a_row_for_each_size_and_point(results, name):
    rows = summarise_study(results, name)
    study = STUDIES[name]
    assert len(rows) == len(study.sizes(FEW)) * len(study.points(FEW))
    assert len({tuple(row) for row in map(tuple, rows)}) == 1  # the same columns in every row


def test_differences_are_those_of_the_images(results):
    row = next(
        row
        for row in summarise_study(results, "copula")
        if (row["n"], row["sharpness"], row["correlation"]) == (64, 0.25, 0.5)
    )
    images = [
        row
        for row in results.image_rows("copula")
        if (row["n"], row["sharpness"], row["correlation"]) == (64, 0.25, 0.5) and row["k"] > 0
    ]
    differences = np.array([image["idc_p"] - image["idc_x"] for image in images])
    assert row["bias"] == pytest.approx(differences.mean())
    assert row["IDC(p) off"] == pytest.approx(np.sqrt((differences**2).mean()))
    to_posterior = np.array([image["sdc"] - image["idc_x"] for image in images])
    assert row["SDC to IDC(x)"] == pytest.approx(np.sqrt((to_posterior**2).mean()))
    to_marginals = np.array([image["sdc"] - image["idc_p"] for image in images])
    assert row["SDC off"] == pytest.approx(np.sqrt((to_marginals**2).mean()))
    assert row["standard error"] == 0.0
    assert row["swing"] == pytest.approx(np.mean([image["swing"] for image in images]))


def test_sampling_has_a_standard_error_and_its_share_is_left_out(results):
    exact, sampled = (
        row for row in summarise_study(results, "smooth") if (row["n"], row["sharpness"]) == (64, 1.0)
    )
    assert exact["standard error"] == exact["IDC(p) off"] == 0.0
    assert exact["SDC to IDC(x)"] == pytest.approx(exact["SDC off"], rel=1e-9)
    assert 0 < sampled["standard error"] < 0.02
    images = [
        row
        for row in results.image_rows("smooth")
        if (row["n"], row["sharpness"], row["length"]) == (64, 1.0, 0.1) and row["k"] > 0
    ]
    whole = np.mean([(image["sdc"] - image["idc_x"]) ** 2 for image in images])
    sampling = np.mean([image["standard_error"] ** 2 for image in images])
    assert sampled["SDC to IDC(x)"] == pytest.approx(np.sqrt(max(0.0, whole - sampling)))
    assert sampled["IDC(x), halves above"] >= 0.0


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("bad", [{}, {"mu_z": -50.0, "rho_z": 0.0, "spread": 0.0}, {"sizes": (1,)}])
def test_studies_without_square_images_or_masks_or_risk(tmp_path, bad):
    settings = {"sizes": (10,), "images": (10,), "draws": (5,), "repeats": 1, **bad}
    reproduce_beyond(str(tmp_path), Beyond(**settings))
    assert {path.stem for path in (tmp_path / "figures").iterdir()} == {"size", "copula"}


def test_every_strength_has_a_line_and_an_entry():
    many = Beyond(sizes=(10,), images=(5,), draws=(2,), repeats=1, correlations=(0, 0.1, 0.2, 0.3, 0.4, 0.5))
    figure = draw_study(run_beyond(many), "copula")
    (legend,) = figure.legends
    names = [f"correlation {each:g}" for each in many.correlations]
    assert [text.get_text() for text in legend.get_texts()] == names
    lines = figure.axes[1].lines
    assert [line.get_label() for line in lines] == names
    assert len({line.get_color() for line in lines}) == 6


def test_figures(results):
    left, right = draw_study(results, "size").axes
    assert [line.get_label() for line in left.lines] == [
        "SDC − IDC(p)",
        "IDC(p) − IDC(x)",
        "bound ε, relative",
    ]
    assert [line.get_label() for line in right.lines] == ["IDC(p)", "SDC", "aMSP", "random"]
    for name, count in (("copula", 4), ("smooth", 2)):
        axes = draw_study(results, name).axes
        assert len(axes) == 6
        assert [len(ax.lines) for ax in axes] == [count + 1, count, count] * 2  # and a line at 0
