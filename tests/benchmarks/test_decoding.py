"""The benchmark of decoding gives its lines, small; how fast they are is not tested."""

from benchmarks.decoding import compare_decoding_times


def test_lines():
    lines = list(compare_decoding_times([1000], rounds=1))
    assert [line.map for line in lines] == ["n = 1,000, float32", "n = 1,000, uint8"]
    assert all(line.ratio > 0 and line.seconds > 0 for line in lines)
