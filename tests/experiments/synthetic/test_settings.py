"""Parameters that make no experiment are refused by name."""

import math

import pytest

from segtrust.errors import ParameterError
from segtrust.experiments.synthetic.settings import Beyond, Synthetic


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("n", 0),
        ("n", 257),
        ("n", 10.0),
        ("images", 1),
        ("images", True),
        ("images", "5000"),
        ("repeats", 0),
        ("mu_z", math.nan),
        ("mu_z", -101.0),
        ("mu_z", "low"),
        ("rho_z", -1.0),
        ("rho_z", math.inf),
        ("rho_eta", -0.5),
        ("mu_z_grid", ()),
        ("mu_z_grid", (0.0, math.inf)),
        ("rho_eta_grid", (0.0, -1.0)),
    ],
)
def test_bad_parameters_of_the_paper_s_experiments(name, value):
    with pytest.raises(ParameterError, match=rf"^{name}: expected .*, got "):
        Synthetic(**{name: value})


def test_more_images_than_seeds():
    with pytest.raises(ParameterError, match="each has its own seed"):
        Synthetic(images=10**9, repeats=5)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("sizes", (10, 0, 100, 1000)),
        ("images", (10, 10)),
        ("images", (1, 10, 10, 10)),
        ("draws", (1, 1, 1, 1)),
        ("draws", ()),
        ("repeats", 0),
        ("correlations", (0.0, 0.6)),
        ("correlations", (-0.1,)),
        ("lengths", (2.0,)),
        ("sharpness", (0.0,)),
        ("spread", -1.0),
        ("map_length", math.nan),
    ],
)
def test_bad_parameters_of_the_studies(name, value):
    with pytest.raises(ParameterError, match=rf"^{name}: expected .*, got "):
        Beyond(**{name: value})


def test_no_size_at_all():
    with pytest.raises(ParameterError, match="sizes"):
        Beyond(sizes=(), images=(), draws=())
