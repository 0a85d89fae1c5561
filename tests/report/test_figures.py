"""What is drawn: means as lines, minimum to maximum shaded; files that do not depend on the day."""

import numpy as np
import pytest

from segtrust.report.figures import new_axes, save_figure, shade
from segtrust.report.styles import style_of

REPEATS = np.array([[1.0, 2.0, 3.0], [3.0, 2.0, 5.0]])


@pytest.mark.needs("matplotlib")
def test_line_is_the_mean_and_the_shade_spans_all_repeats():
    _, axes = new_axes(1, 1, width=3.0, height=2.0)
    shade(axes[0, 0], np.arange(3), REPEATS, style_of("sdc"), marker=2.0)
    (line,) = axes[0, 0].lines
    assert line.get_ydata().tolist() == [2.0, 2.0, 4.0]
    assert line.get_color() == style_of("sdc").colour
    (area,) = axes[0, 0].collections
    corners = {tuple(point) for point in area.get_paths()[0].vertices.tolist()}
    assert {(0.0, 1.0), (0.0, 3.0), (2.0, 3.0), (2.0, 5.0)} <= corners


@pytest.mark.needs("matplotlib")
def test_equal_figures_are_equal_files(tmp_path):
    files = []
    for name in ("a", "b"):
        figure, axes = new_axes(1, 1, width=3.0, height=2.0)
        shade(axes[0, 0], np.arange(3), REPEATS, style_of("sdc"))
        (tmp_path / name).mkdir()
        paths = save_figure(figure, tmp_path / name / "figure")
        assert [path.suffix for path in paths] == [".png", ".pdf", ".svg"]
        files.append([path.read_bytes() for path in paths])
    assert files[0] == files[1]
