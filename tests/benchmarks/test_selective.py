"""The selective benchmark gives its lines, small; how fast they are is not tested."""

from benchmarks.selective import compare_bootstrap, compare_curve


def test_curve_lines():
    lines = list(compare_curve(1000, rounds=1))
    assert [line.target for line in lines] == ["<= 1.5"] * 2
    assert all(line.ratio > 0 and line.seconds > 0 for line in lines)


def test_bootstrap_lines():
    lines = list(compare_bootstrap(20, rounds=1))
    assert [line.target for line in lines] == [">= 50"] * 2
    assert all(line.ratio > 0 and line.seconds > 0 for line in lines)
