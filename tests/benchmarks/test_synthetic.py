"""Both candidates of the benchmark compute the same; how fast they are is not tested."""

import pytest

from benchmarks.synthetic import compare_experiment, enumerated_areas, quick_areas
from segtrust.paper.synthetic.images import draw_images


def test_candidates_agree():
    images = draw_images(range(150), n=10, mu_z=-3.698, rho_z=5.0)
    assert quick_areas(images) == pytest.approx(enumerated_areas(images.q), rel=1e-10)


def test_lines():
    lines = list(compare_experiment(100, rounds=1))
    assert [line.target for line in lines] == [">= 100"] * 2
    assert all(line.ratio > 0 and line.seconds > 0 for line in lines)
