"""Powers: exact ones are found, the start is taken away once and rightly, and all are told and drawn."""

import pytest

from tools.reliability.powers import Study, draw, fitted, said_of, table_of


def study(power, base_s=3.0, base_mib=100.0):
    """One whose time grows by a power, and whose memory does not grow."""
    sizes = (500, 1000, 2000, 4000)
    found = {n: {"seconds": base_s + 0.002 * n**power, "mib": base_mib + 0.5} for n in sizes}
    return Study("cases of a folder", found, {"seconds": base_s, "mib": base_mib})


def shared(gain, cores=2):
    """One in which more workers gain up to as many as there are cores, and each takes memory."""
    found = {n: {"seconds": 3.0 + 8.0 / min(n, cores) ** gain, "mib": 100.0 * n**0.5} for n in (1, 2, 4)}
    return Study("workers, 8 maps", found, {"seconds": 3.0, "mib": 90.0}, cores)


def test_a_power_and_its_factor_are_found():
    fit = fitted({size: 3.0 * size**1.5 for size in (1, 2, 4, 8)})
    assert (fit.power, fit.factor, fit.error) == pytest.approx((1.5, 3.0, 0.0), abs=1e-6)
    assert fit.at(16) == pytest.approx(3.0 * 64)


def test_the_error_of_a_power_tells_how_far_points_are_from_a_line():
    assert fitted({1: 1.0, 2: 2.3, 4: 3.7, 8: 9.0}).error > 0.05
    assert fitted({1: 1.0, 2: 2.3}).error is None


@pytest.mark.parametrize("power", [0.5, 1.0, 2.0])
def test_what_every_run_costs_does_not_flatten_the_power(power):
    assert study(power).fit("seconds").power == pytest.approx(power)
    naive = fitted({size: each["seconds"] for size, each in study(power).found.items()})
    assert naive.power < power


def test_noise_is_no_growth():
    assert study(1.0).fit("mib") is None
    assert said_of(study(1.0), "mib").startswith("no growth")
    assert said_of(study(1.0), "seconds") == "power 1.00 ± 0.00 of 4 sizes; each more costs 2 ms"


def test_two_sizes_are_no_growth_but_of_workers_on_two_cores():
    two = study(1.0)
    assert Study(two.what, {n: two.found[n] for n in (500, 1000)}, two.base).fit("seconds") is None
    assert shared(0.8).fit("seconds").sizes == (1, 2)


@pytest.mark.parametrize(("gain", "cores"), [(1.0, 2), (0.8, 2), (0.8, 4), (0.0, 4)])
def test_the_time_of_workers_falls_by_a_power_up_to_as_many_as_there_are_cores(gain, cores):
    assert shared(gain, cores).fit("seconds").power == pytest.approx(-gain, abs=1e-9)


def test_of_workers_is_told_what_they_gain():
    said = said_of(shared(1.0), "seconds")
    assert said == (
        "power −1.00 of 2 sizes, up to 2 cores; 2.00 times as fast with 2, 2.00 times as fast with 4"
    )


def test_of_the_memory_of_workers_no_start_is_taken_away():
    assert shared(1.0).fit("mib").power == pytest.approx(0.5)
    assert "each more costs 29.3 MiB" in said_of(shared(1.0), "mib")


def test_all_powers_are_in_the_table():
    lines = table_of([study(1.0), shared(0.8)]).splitlines()
    assert lines[2].startswith("| cases of a folder | 500 to 4,000 | power 1.00 ± 0.00 of 4 sizes; ")
    assert "| power −0.80 of 2 sizes, " in lines[3]
    assert "| power 0.50 ± 0.00 of 3 sizes; " in lines[3]


@pytest.mark.needs("matplotlib")
def test_the_powers_are_in_the_figure_which_is_the_same_each_time(tmp_path, monkeypatch):
    import matplotlib as mpl

    monkeypatch.setitem(mpl.rcParams, "svg.fonttype", "none")  # text that can be looked for
    for name in ("one.svg", "other.svg"):
        draw([study(1.25), shared(0.8)], tmp_path / name)
    figure = (tmp_path / "one.svg").read_text(encoding="utf-8")
    assert figure == (tmp_path / "other.svg").read_text(encoding="utf-8")
    assert all(said in figure for said in ("power 1.25 ± 0.00", "power −0.80", "power 0.50", "no growth"))
