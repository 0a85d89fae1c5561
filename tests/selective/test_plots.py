"""The drawing of a curve."""

import sys

import numpy as np
import pytest

from segtrust.selective.curve import risk_coverage_curve

CURVE = risk_coverage_curve([0.9, 0.8, 0.3, 0.1], [0.1, 0.0, 0.5, 0.9])


@pytest.fixture
def axes():
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib.figure import Figure

    return Figure().subplots()


@pytest.mark.needs("matplotlib")
class TestDrawing:
    def test_three_lines_with_their_areas(self, axes):
        assert CURVE.plot(axes, label="SDC") is axes
        own, oracle, random = axes.get_lines()
        np.testing.assert_array_equal(own.get_xdata(), CURVE.coverages)
        np.testing.assert_array_equal(own.get_ydata(), CURVE.risks)
        np.testing.assert_array_equal(oracle.get_ydata(), CURVE.oracle.risks)
        np.testing.assert_array_equal(random.get_ydata(), CURVE.random.risks)
        names = [text.get_text() for text in axes.get_legend().get_texts()]
        assert names[0] == f"SDC (AURC {CURVE.aurc:.3f})"
        assert [name.split()[0] for name in names[1:]] == ["oracle", "random"]
        assert axes.get_xlabel() == "coverage"
        assert min(line.get_linewidth() for line in axes.get_lines()) > 0

    def test_a_second_estimator_on_the_same_axes(self, axes):
        CURVE.plot(axes, label="a")
        CURVE.plot(axes, label="b", references=False, color="tab:red", linewidth=3)
        assert len(axes.get_lines()) == 4
        assert axes.get_lines()[-1].get_color() == "tab:red"
        assert axes.get_lines()[-1].get_linewidth() == 3

    def test_axes_of_its_own(self):
        import matplotlib as mpl

        mpl.use("Agg")
        from matplotlib import pyplot

        drawn = CURVE.plot()
        assert len(drawn.get_lines()) == 3
        pyplot.close(drawn.figure)


def test_without_matplotlib_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match=r"segtrust\[plots\]"):
        CURVE.plot()


@pytest.mark.needs("matplotlib")
def test_the_second_curve_is_not_cut_off():
    loss = np.linspace(0.0, 0.6, 50)
    ax = risk_coverage_curve(-loss, loss).plot()
    worse = risk_coverage_curve(loss, loss)
    worse.plot(ax, references=False)
    assert ax.get_ylim()[0] == 0.0
    assert ax.get_ylim()[1] >= worse.risks.max()
