"""Training goes on as if it had never stopped."""

import csv
from dataclasses import replace

import numpy as np
import pytest

from segtrust.errors import ParameterError, TooFewCasesError
from segtrust.paper.tasks import Recipe, get_task
from segtrust.paper.tasks.checking import find_samples
from segtrust.paper.tasks.preparing import Prepared, prepare
from tests.paper.tasks import miniatures

pytestmark = [pytest.mark.slow, pytest.mark.needs("torch", "PIL")]


@pytest.fixture(scope="module")
def task():
    recipe = Recipe(learning_rate=1e-3, weight_decay=1e-4, epochs=4, batch=2)
    split = {"train": 6, "val": 3, "test": 3}
    return replace(get_task("breast-cancer"), size=(32, 32), recipes={"tiny": recipe}, split=split)


@pytest.fixture(scope="module")
def prepared(task, tmp_path_factory):
    folder = tmp_path_factory.mktemp("busi")
    return prepare(task, find_samples(task, miniatures.busi(folder / "data")), folder / "run")


@pytest.fixture
def trainer(task, prepared, tmp_path):
    """Gives a trainer in a folder of this name."""
    from segtrust.paper.tasks.training import Trainer, TrainingOptions

    def make(name: str = "training", recipe: Recipe | None = None, **options):
        how = TrainingOptions(device="cpu", **options)
        return Trainer(task, recipe or task.recipe(), prepared, tmp_path / name, how)

    return make


def saved(folder, name: str = "last.pt") -> dict:
    import torch

    return torch.load(folder / name, weights_only=True)


def assert_same(one, other) -> None:
    """All numbers of two trainings are equal to the last bit; durations are not looked at."""
    import torch

    if isinstance(one, dict):
        assert one.keys() == other.keys()
        for key in one.keys() - {"seconds"}:
            assert_same(one[key], other[key])
    elif isinstance(one, list | tuple):
        assert len(one) == len(other)
        for pair in zip(one, other, strict=True):
            assert_same(*pair)
    else:
        assert torch.equal(one, other) if isinstance(one, torch.Tensor) else one == other


class Killed(BaseException):
    """What ends a training in the middle."""


def test_killed_in_every_epoch_is_the_same_as_unbroken(trainer, tmp_path):
    trainer("unbroken").run()
    for stop in (2, 4, 7, 11):
        seen = 0

        def die(done, stop=stop):
            nonlocal seen
            seen += done == 1
            if seen == stop % 5:
                raise Killed

        with pytest.raises(Killed):
            trainer("broken").run(on_batch=die)
    trainer("broken").run()
    assert_same(saved(tmp_path / "broken"), saved(tmp_path / "unbroken"))
    assert_same(saved(tmp_path / "broken", "best.pt"), saved(tmp_path / "unbroken", "best.pt"))


def test_killed_between_two_files_makes_the_epoch_again(trainer, tmp_path, monkeypatch):
    trainer("unbroken").run()
    broken = trainer("broken", until=1)
    broken.run()
    second = trainer("broken")
    write = second._write

    def die(name, content):
        if name == "last.pt":
            raise Killed
        write(name, content)

    monkeypatch.setattr(second, "_write", die)
    with pytest.raises(Killed):
        second.run()
    trainer("broken").run()
    assert_same(saved(tmp_path / "broken"), saved(tmp_path / "unbroken"))
    assert_same(saved(tmp_path / "broken", "best.pt"), saved(tmp_path / "unbroken", "best.pt"))


def test_seed_decides(trainer, tmp_path):
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        trainer(name, seed=seed, until=1).run()
    a, b, c = (saved(tmp_path / name)["history"][0]["loss"] for name in "abc")
    assert a == b != c


def test_log_has_a_row_an_epoch_and_the_rate_falls(trainer, tmp_path):
    trainer().run()
    with (tmp_path / "training" / "log.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [int(row["epoch"]) for row in rows] == [1, 2, 3, 4]
    rates = [float(row["rate"]) for row in rows]
    assert rates[0] == 1e-3
    assert rates == sorted(rates, reverse=True)
    assert all(0.0 <= float(row["val_dice"]) <= 1.0 for row in rows)


def test_it_learns(trainer):
    first, *_, last = trainer(recipe=Recipe(learning_rate=3e-3, epochs=12, batch=2)).run()
    assert last["loss"] < 0.8 * first["loss"]


def test_best_epoch_is_kept_and_patience_ends_it(trainer, tmp_path, monkeypatch):
    dices = iter([0.3, 0.5, 0.5, 0.4])
    made = trainer(patience=2)
    monkeypatch.setattr(made, "_validate", lambda: next(dices))
    assert len(made.run()) == 4
    assert made.best["epoch"] == 2
    assert saved(tmp_path / "training", "best.pt")["epoch"] == 2


def test_without_validation_the_last_epoch_is_kept(task, prepared, tmp_path):
    from segtrust.paper.tasks.training import Trainer, TrainingOptions

    cases = Prepared(tuple(case for case in prepared.cases if case.split != "val"))
    made = Trainer(task, task.recipe(), cases, tmp_path, TrainingOptions(device="cpu"))
    made.run()
    assert made.best["epoch"] == saved(tmp_path, "best.pt")["epoch"] == 4


def test_steps_of_several_sizes_are_counted(trainer, monkeypatch):
    recipe = Recipe(schedule="polynomial", epochs=2, batch=2, scales=(1.0, 1.0))
    made, rates = trainer(recipe=recipe), []
    step = made._step
    monkeypatch.setattr(made, "_step", lambda *given: rates.append(given[2]) or step(*given))
    made.run()
    assert len(rates) == 12
    assert len(set(rates)) == 12
    assert rates == sorted(rates, reverse=True)


def test_weights_of_the_best_epoch_load_as_any_checkpoint(trainer, tmp_path):
    from segtrust.paper.networks import create

    trainer(until=1).run()
    loaded = create("unext", weights=tmp_path / "training" / "best.pt").state_dict()
    kept = saved(tmp_path / "training", "best.pt")["state_dict"]
    assert loaded.keys() == kept.keys()
    assert all(value.equal(kept[name]) for name, value in loaded.items())


def test_another_recipe_is_refused_unless_it_begins_anew(trainer):
    trainer(until=1).run()
    other = Recipe(learning_rate=1e-2, weight_decay=1e-4, epochs=4, batch=2)
    with pytest.raises(ParameterError, match=r"learning_rate = 0\.01, got one with 0\.001.*--no-resume"):
        trainer(recipe=other).run()
    assert len(trainer(recipe=other, resume=False, until=1).run()) == 1


def test_second_training_in_a_folder_is_refused(trainer):
    def begin_another(row):
        with pytest.raises(ParameterError, match="another training runs"):
            trainer().run()

    trainer(until=1).run(on_epoch=begin_another)


def test_damaged_checkpoint_says_what_to_do(trainer, tmp_path):
    trainer(until=1).run()
    (tmp_path / "training" / "last.pt").write_bytes(b"nothing")
    with pytest.raises(ParameterError, match="--no-resume"):
        trainer().run()


def test_without_cases_or_with_a_strange_device(task, trainer, tmp_path):
    from segtrust.paper.tasks.training import Trainer, TrainingOptions, device_of

    with pytest.raises(TooFewCasesError, match=r"split\.csv"):
        Trainer(task, task.recipe(), Prepared(()), tmp_path, TrainingOptions())
    with pytest.raises(ParameterError, match="device"):
        device_of("toaster")


def test_loss_that_is_no_number_stops(trainer):
    with pytest.raises(ParameterError, match="lower learning rate"):
        trainer(recipe=Recipe(learning_rate=1e30, schedule="constant", epochs=3, batch=2)).run()


def test_rates():
    from segtrust.paper.tasks.optimisers import rate_at

    at = {"steps": 10, "epochs": 100}
    warm = Recipe(schedule="warmup-linear", learning_rate=1.0)
    assert [rate_at(warm, step, **at) for step in (0, 250, 500, 750)] == [0.0, 0.5, 1.0, 0.5]
    assert rate_at(warm, 999, **at) == pytest.approx(0.002)
    assert rate_at(warm, 499, steps=10, epochs=50) == pytest.approx(0.998)  # never comes to fall
    falling = Recipe(schedule="polynomial", learning_rate=1.0)
    assert rate_at(falling, 500, **at) == pytest.approx(0.5**0.9)
    assert rate_at(Recipe(schedule="constant", learning_rate=1.0), 999, **at) == 1.0


def test_cosine_is_torch_s():
    import torch

    from segtrust.paper.tasks.optimisers import rate_at

    weight = torch.nn.Parameter(torch.zeros(1))
    optimiser = torch.optim.SGD([weight], lr=1e-4)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, T_max=20, eta_min=1e-5)
    recipe = Recipe(learning_rate=1e-4, final_rate=1e-5)
    for epoch in range(20):
        assert rate_at(recipe, 7 * epoch + 3, steps=7, epochs=20) == pytest.approx(schedule.get_last_lr()[0])
        optimiser.step()
        schedule.step()


def test_bert_adam_is_its_formula():
    import torch

    from segtrust.paper.tasks.optimisers import BertAdam

    weight = torch.nn.Parameter(torch.tensor([2.0]))
    optimiser = BertAdam([weight], lr=0.1, weight_decay=0.5)
    mean = square = 0.0
    expected = 2.0
    for gradient in (1.0, -3.0):
        weight.grad = torch.tensor([gradient])
        optimiser.step()
        mean, square = 0.9 * mean + 0.1 * gradient, 0.999 * square + 0.001 * gradient**2
        expected -= 0.1 * (mean / (np.sqrt(square) + 1e-6) + 0.5 * expected)
    assert weight.item() == pytest.approx(expected, rel=1e-5)


def test_gradients_are_clipped():
    import torch

    from segtrust.paper.tasks.optimisers import clip_gradients

    model = torch.nn.Linear(2, 1)
    for weight in model.parameters():
        weight.grad = torch.full_like(weight, 4.0)
    clip_gradients(Recipe(clip_value=0.5, clip_norm=0.6, clip_tensor_norm=0.1), model)
    assert all(weight.grad.norm() <= 0.1 + 1e-6 for weight in model.parameters())


def test_scales_are_multiples_of_32():
    import torch

    from segtrust.paper.tasks.training import _scaled

    images = torch.zeros(1, 3, 352, 352)
    assert [_scaled(images, (352, 352), scale).shape[-1] for scale in (0.75, 1.25)] == [256, 448]


def test_going_on_with_other_cases_is_refused(task, prepared, tmp_path):
    """Cases that were trained on must not become test cases."""
    from segtrust.paper.tasks.training import Trainer, TrainingOptions

    def made(cases, size=(32, 32)):
        options = TrainingOptions(device="cpu", until=1)
        return Trainer(replace(task, size=size), task.recipe(), Prepared(cases), tmp_path, options)

    made(prepared.cases).run()
    turned = {"train": "test", "test": "train", "val": "val"}
    others = [replace(each, split=turned[each.split]) for each in prepared.of("train")[:3]]
    swapped = [replace(each, split=turned[each.split]) for each in prepared.of("test")]
    rest = [*prepared.of("train")[3:], *prepared.of("val")]
    with pytest.raises(ParameterError, match="a training with the training cases as now"):
        made((*others, *swapped, *rest)).run()
    with pytest.raises(ParameterError, match="size = "):
        made(prepared.cases, size=(64, 64)).run()


def test_checkpoints_of_another_kind_are_refused(trainer):
    import torch

    first = trainer(until=1)
    first.run()
    for content in ({"state_dict": {}}, [1, 2], {"format": "segtrust-training-0"}):
        torch.save(content, first.folder / "last.pt")
        with pytest.raises(ParameterError, match="expected a checkpoint of the format"):
            trainer(until=2).run()


def test_what_began_on_a_cpu_goes_on_with_mixed_precision(trainer):
    import torch

    trainer(until=1).run()
    second = trainer(until=2)
    second.scaler = torch.amp.GradScaler("cpu", enabled=True)
    assert len(second.run()) == 2


def test_trainer_clips_and_takes_the_loss_of_the_recipe(task, prepared, tmp_path, monkeypatch):
    from segtrust.paper.networks.losses import cross_entropy_dice_loss
    from segtrust.paper.tasks import training

    clipped = []
    monkeypatch.setattr(training, "clip_gradients", lambda recipe, model: clipped.append(recipe.clip_norm))
    recipe = replace(task.recipe(), clip_norm=0.1, epochs=1)
    training.Trainer(task, recipe, prepared, tmp_path, training.TrainingOptions(device="cpu")).run()
    assert clipped == [0.1] * 3
    own = training.Trainer(
        task, replace(recipe, loss="cross-entropy-dice"), prepared, tmp_path, training.TrainingOptions()
    )
    assert own.loss_of is cross_entropy_dice_loss


def test_backbones_have_a_weight_decay_of_their_own():
    import torch

    from segtrust.paper.tasks.optimisers import new_optimiser

    model = torch.nn.ModuleDict({"backbone": torch.nn.Linear(2, 2), "head": torch.nn.Linear(2, 1)})
    groups = new_optimiser(Recipe(weight_decay=1e-4, backbone_decay=1e-5), model).param_groups
    decays = {tuple(weight.shape): group["weight_decay"] for group in groups for weight in group["params"]}
    assert decays == {(2, 2): 1e-5, (2,): 1e-5, (1, 2): 1e-4, (1,): 1e-4}


APPENDIX = {
    ("breast-cancer", "paper"): ("adam", 1e-4, 1e-4, "cosine", 1e-5, 400, 0, 8),
    ("skin-cancer", "paper"): ("adam", 1e-4, 1e-4, "cosine", 1e-5, 400, 0, 8),
    ("mswml", "paper"): ("adam", 1e-3, 0.0, "polynomial", None, None, 15_000, 2),
    ("mswml", "code"): ("adam", 1e-5, 0.0, "constant", None, 300, 0, 2),
    ("optic-cup", "paper"): ("adamw", 2e-4, 1e-4, "warmup-linear", None, None, 10_000, 4),
    ("optic-cup", "code"): ("bert-adam", 2e-4, 1e-4, "warmup-linear", None, None, 10_000, 6),
    ("polyp", "code"): ("adamw", 1e-4, 1e-4, "constant", None, 99, 0, 16),
}
"""Optimiser, rate, decay, schedule, last rate, epochs, iterations, batch, as in appendix C and the code."""


@pytest.mark.parametrize("key", APPENDIX, ids="-".join)
def test_recipes_are_those_of_the_appendix(key):
    name, recipe_name = key
    recipe = get_task(name).recipe(recipe_name)
    columns = ("optimiser", "learning_rate", "weight_decay", "schedule", "final_rate", "epochs", "iterations")
    for column, value in zip((*columns, "batch"), APPENDIX[key], strict=True):
        assert value is None or getattr(recipe, column) == value, column


def test_what_else_recipes_say():
    assert get_task("polyp").recipe().scales == (0.75, 1.0, 1.25)
    assert get_task("polyp").recipe().clip_value == 0.5
    cup = get_task("optic-cup").recipe()
    assert (cup.backbone_decay, cup.clip_norm, cup.clip_tensor_norm) == (1e-5, 0.1, 0.05)
    assert get_task("mswml").recipe().loss == "cross-entropy-dice"
    assert get_task("mswml").recipe("code").loss == ""


@pytest.mark.parametrize(
    "wrong",
    [
        {"scales": ()},
        {"scales": (0.0,)},
        {"weight_decay": -1.0},
        {"iterations": -5},
        {"epochs": 1.5},
        {"batch": 0},
        {"learning_rate": 0.0},
    ],
    ids=str,
)
def test_recipes_that_mean_nothing(wrong):
    with pytest.raises(ParameterError, match=f"{next(iter(wrong))}: expected"):
        Recipe(**wrong)


def test_what_it_began_with_may_be_gone_when_it_goes_on(trainer, tmp_path):
    import torch

    from segtrust.paper.networks import create

    torch.save(create("unext").state_dict(), tmp_path / "start.pth")
    trainer(until=1, weights=tmp_path / "start.pth").run()
    (tmp_path / "start.pth").unlink()
    assert len(trainer(until=2, weights=tmp_path / "start.pth").run()) == 2
    assert len(trainer(until=3).run()) == 3
    with pytest.raises(ParameterError, match=r"start\.pth: expected a checkpoint to begin with"):
        trainer("other", weights=tmp_path / "start.pth")


def test_another_normalisation_does_not_go_on(task, prepared, tmp_path):
    from segtrust.paper.tasks.training import Trainer, TrainingOptions

    def halved(images):
        return images.astype(np.float32) / 2

    options = TrainingOptions(device="cpu", until=1)
    Trainer(task, task.recipe(), prepared, tmp_path, options).run()
    with pytest.raises(ParameterError, match="a training with normalise as now"):
        Trainer(replace(task, normalise=halved), task.recipe(), prepared, tmp_path, options).run()
