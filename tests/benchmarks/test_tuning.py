"""The candidates of the benchmark compute the same; how fast they are is not tested."""

import numpy as np
import pytest

from benchmarks.tuning import compare_sides, convolved, filtered, patch_maps, time_tuning
from segtrust.confidence import SIDES
from segtrust.kernels import largest_box_sums
from tests.tuning_cases import blob


@pytest.mark.parametrize("name", ["lesion, 60×60", "noise, 60×60"])
def test_candidates_agree(name):
    entropies = patch_maps(60)[name]
    ours = largest_box_sums(entropies, SIDES)
    np.testing.assert_allclose(convolved(entropies), ours, rtol=1e-9)
    np.testing.assert_allclose(filtered(entropies), ours, rtol=1e-9)


def test_lines():
    lines = list(compare_sides(40, rounds=1))
    assert [line.target for line in lines] == [">= 30", "", ">= 30", ""]
    assert all(line.ratio > 0 and line.seconds > 0 for line in lines)


@pytest.mark.slow
@pytest.mark.needs("PIL", "sklearn")
def test_a_tuning_curve_is_timed(tmp_path):
    from PIL import Image

    for seed in range(6):
        case = blob(seed, kind=np.uint8)
        images = {"predictions": case.prediction.probabilities, "masks": np.uint8(255) * case.truth}
        for name, array in images.items():
            (tmp_path / name).mkdir(exist_ok=True)
            Image.fromarray(array).save(tmp_path / name / f"{seed}.png")
    (reading,) = time_tuning([tmp_path], repeats=1)
    assert reading.value > 0
    assert "1 repeats, 6 cases" in reading.what
