"""Every estimator has a look of its own, in colours that can be told apart."""

import pytest

from segtrust.confidence import ESTIMATORS
from segtrust.errors import UnknownNameError
from segtrust.paper.synthetic.ranking import ESTIMATORS as SYNTHETIC
from segtrust.report.styles import STYLES, style_of


def test_all_estimators_have_a_style():
    assert {*ESTIMATORS, *SYNTHETIC, "oracle", "random"} <= set(STYLES)


def test_no_two_look_the_same():
    looks = [(style.colour, str(style.dashes)) for name, style in STYLES.items() if name != "idc"]
    assert len(set(looks)) == len(looks)
    assert len({style.label for style in STYLES.values()}) == len(STYLES)


def test_idc_of_a_map_is_that_of_the_model_s_marginals():
    assert (STYLES["idc"].colour, STYLES["idc"].dashes) == (
        STYLES["idc(p_hat)"].colour,
        STYLES["idc(p_hat)"].dashes,
    )


def test_unknown_name_lists_the_known_ones():
    with pytest.raises(UnknownNameError, match=r"'dice'; available: .*sdc"):
        style_of("dice")


def test_line_options():
    assert style_of("amsp").line() == {
        "label": "aMSP",
        "color": "#0072b2",
        "linestyle": "-",
        "linewidth": 1.4,
    }
