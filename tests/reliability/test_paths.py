"""The same maps on every way: libraries, chunks, threads, workers, compilers."""

import pytest

from tools.reliability import paths
from tools.reliability.paths import Compared, compare_compilers, compare_libraries, compare_threads


@pytest.mark.parametrize(
    "library",
    [
        "NumPy by the array API",
        pytest.param("torch", marks=pytest.mark.needs("torch")),
        pytest.param("Dask", marks=pytest.mark.needs("dask")),
        pytest.param("Zarr", marks=pytest.mark.needs("zarr")),
    ],
)
def test_libraries_agree(library, tmp_path):
    found = compare_libraries(library, tmp_path, count=15)
    assert found.values > 200
    assert found.faults == ()


@pytest.mark.slow
@pytest.mark.needs("jax")
def test_jax_agrees(tmp_path):
    import jax

    try:
        assert compare_libraries("JAX", tmp_path, count=3).faults == ()
    finally:
        jax.config.update("jax_enable_x64", False)


@pytest.mark.parametrize("threads", paths.THREADS)
def test_threads_change_no_bit(threads):
    found = compare_threads(threads, {"image": (1100, 1000)})
    assert (found.faults, found.error, found.equal) == ((), 0.0, found.values)


def test_estimators_beside_others_give_what_they_give_alone():
    found = paths.compare_alone({"image": (1100, 1000)})
    assert found.faults == ()
    assert found.values == 30


@pytest.mark.slow
@pytest.mark.needs("zarr", "distributed")
def test_workers_change_no_bit(tmp_path):
    for found in paths.compare_workers(tmp_path, (20, 41, 39)):
        assert (found.faults, found.equal) == ((), found.values)


@pytest.mark.slow
def test_loops_that_are_not_vectorised_give_the_same_numbers(tmp_path):
    found = compare_compilers("vectoriser off", tmp_path, "one")
    assert found.faults == ()
    assert 0 < found.equal < found.values  # sums in another order


@pytest.mark.slow
def test_loops_that_are_not_compiled_give_the_same_numbers(tmp_path):
    found = compare_compilers("not compiled", tmp_path, "small")
    assert found.faults == ()
    assert 0 < found.equal < found.values  # sums in another order


def test_a_difference_is_told():
    usual, found = {"sdc of a": 0.5, "idc of a": 0.25}, {"sdc of a": 0.5, "idc of a": 0.25 * (1 + 1e-9)}
    compared = Compared.of("way", usual, found, lambda _: 1e-12)
    assert (compared.equal, compared.at) == (1, "idc of a")
    assert compared.faults == ("idc of a: 1.00e-09",)
    assert compared.row().startswith("| way | 2 | 1 | 1.0e-09 | idc of a | 1 |")
