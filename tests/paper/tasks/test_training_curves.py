import pytest

from segtrust.paper.tasks.training_curves import draw_training
from segtrust.report.figures import save_figure


@pytest.mark.needs("matplotlib")
@pytest.mark.parametrize("dices", [(0.1, 0.6, 0.5), (None, None, None)])
def test_curves_of_a_training(tmp_path, dices):
    rows = [{"epoch": at, "loss": 1.0 / at, "val_dice": dice} for at, dice in enumerate(dices, 1)]
    figure = draw_training(rows, title="Lesions")
    loss, dice = figure.axes
    assert loss.lines[0].get_ydata().tolist() == [1.0, 0.5, 1.0 / 3.0]
    marks = [line.get_xdata()[0] for line in dice.lines[1:]]
    assert marks == ([2] if dices[0] else [])
    assert all(path.stat().st_size for path in save_figure(figure, tmp_path / "curves"))
