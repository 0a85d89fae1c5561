"""Parameters that make no experiment are refused by name."""

import json
import math

import numpy as np
import pytest

from segtrust.errors import ParameterError
from segtrust.paper.synthetic.settings import Beyond, Synthetic


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


@pytest.mark.parametrize(
    ("settings", "name", "value"),
    [
        (Synthetic, "mu_z_grid", -1.0),
        (Synthetic, "rho_eta_grid", np.zeros((2, 2))),
        (Synthetic, "mu_z", (0.0, 1.0)),
        (Synthetic, "n", [10]),
        (Beyond, "sizes", 10),
        (Beyond, "images", "1000"),
        (Beyond, "repeats", (5,)),
        (Beyond, "correlations", 0.1),
        (Beyond, "correlations", ()),
        (Beyond, "lengths", []),
        (Beyond, "map_length", (0.1,)),
        (Beyond, "sizes", (10, 10, 100, 1000)),
        (Beyond, "correlations", (0.1, 0.1)),
    ],
)
def test_a_number_for_a_grid_and_a_grid_for_a_number(settings, name, value):
    with pytest.raises(ParameterError, match=rf"^{name}: expected (?s:.*), got "):
        settings(**{name: value})


def test_numpy_s_numbers_and_arrays_become_python_s():
    ours = Synthetic(
        n=np.int64(5), mu_z=np.float32(-1.5), mu_z_grid=np.linspace(0, 1, 3), rho_eta_grid=[0, 1]
    )
    plain = Synthetic(n=5, mu_z=-1.5, mu_z_grid=(0.0, 0.5, 1.0), rho_eta_grid=(0.0, 1.0))
    assert ours == plain
    assert json.dumps(ours.parameters()) == json.dumps(plain.parameters())
    beyond = Beyond(sizes=np.array([10, 100]), images=[20, 20], draws=(np.int32(5), 5), spread=np.float64(1))
    assert json.loads(json.dumps(beyond.parameters()))["sizes"] == [10, 100]
    assert hash(beyond) == hash(Beyond(sizes=(10, 100), images=(20, 20), draws=(5, 5), spread=1.0))


def test_no_size_at_all():
    with pytest.raises(ParameterError, match="sizes"):
        Beyond(sizes=(), images=(), draws=())
