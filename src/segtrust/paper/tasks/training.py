"""Training: one checkpoint an epoch, from which it goes on as if it had never stopped."""

from __future__ import annotations

import hashlib
import json
import math
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812 - its usual name

from segtrust._files import atomic_write, checksum, remove_stale_drafts
from segtrust.errors import ParameterError, TooFewCasesError
from segtrust.paper.networks.checkpoints import TRAINING, WEIGHTS
from segtrust.paper.networks.losses import cross_entropy_dice_loss
from segtrust.paper.networks.network import Network
from segtrust.paper.networks.registry import create, training_loss
from segtrust.paper.tasks.batches import Batches
from segtrust.paper.tasks.logs import write_log
from segtrust.paper.tasks.mapping import as_input, map_cases
from segtrust.paper.tasks.optimisers import clip_gradients, new_optimiser, rate_at
from segtrust.paper.tasks.preparing import Prepared, note_training, source_of
from segtrust.paper.tasks.task import Recipe, Task
from segtrust.risks import dice

try:
    import fcntl
except ModuleNotFoundError:  # Windows
    fcntl = None  # type: ignore[assignment]

__all__ = ["BEST", "LAST", "LOG", "Trainer", "TrainingOptions", "device_of"]

LAST, BEST, LOG = "last.pt", "best.pt", "log.csv"
_DIGEST = "digest of "
_BEGUN_WITH = ("--from", "--backbone")

Epoch = dict[str, Any]
"""A row of the log."""


@dataclass(frozen=True)
class TrainingOptions:
    """What is not part of a recipe.

    Attributes
    ----------
    seed
        Of weights, order and augmentation.
    device
        ``"auto"``, ``"cpu"``, ``"cuda"``, … Mixed precision on CUDA only.
    threads
        Of torch on the CPU; 0 for its own choice.
    patience
        Epochs without a better validation Dice after which it stops; 0: never.
    until
        Epoch after which it stops, to go on some other time; 0: the last.
    resume
        Whether it goes on from the checkpoint in its folder.
    weights, backbone
        Checkpoints to begin with: of the whole network, or of its backbone.
    """

    seed: int = 0
    device: str = "auto"
    threads: int = 0
    patience: int = 0
    until: int = 0
    resume: bool = True
    weights: Path | None = None
    backbone: Path | None = None


def device_of(name: str) -> torch.device:
    """Give the device of a name; ``"auto"`` is CUDA where there is any."""
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    try:
        device = torch.device(name)
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as error:
        said = str(error).partition("\n")[0]
        raise ParameterError(
            f"device: expected one that torch can use here, got {name!r} ({said})."
        ) from None
    return device


class Trainer:
    """Trains the network of a task in a folder.

    Parameters
    ----------
    task, recipe
        What, and how.
    prepared
        Its cases: those of ``train`` are trained on, those of ``val`` tell which epoch is kept.
    folder
        Of ``last.pt`` (to go on from), ``best.pt`` (weights of the best epoch) and ``log.csv``.
    options
        See `TrainingOptions`.
    """

    def __init__(
        self, task: Task, recipe: Recipe, prepared: Prepared, folder: Path, options: TrainingOptions
    ) -> None:
        self.task, self.recipe, self.folder, self.options = task, recipe, folder, options
        self._goes_on = options.resume and (folder / LAST).exists()
        self._digests = {
            "--from": _digest(options.weights, absent=self._goes_on),
            "--backbone": _digest(options.backbone, absent=self._goes_on),
        }
        cases = prepared.of("train")
        if not cases:
            raise TooFewCasesError(f"{task.name}: expected cases to train on, got none. Look at split.csv.")
        self.validation = prepared.of("val")
        if options.threads:
            torch.set_num_threads(options.threads)
        self.device = device_of(options.device)
        self.model = self._new_model()
        self.batches = Batches(task, recipe, cases, self.model.channels, options.seed)
        self.epochs = math.ceil(recipe.iterations / self._steps) if recipe.iterations else recipe.epochs
        self.optimiser = new_optimiser(recipe, self.model)
        self.scaler = torch.amp.GradScaler(enabled=self.device.type == "cuda")
        self.loss_of = _loss(task, recipe)
        self.history: list[Epoch] = []

    def _new_model(self) -> Network:
        torch.manual_seed(self.options.seed)
        start: dict[str, Any] = {"weights": self.options.weights, "backbone": self.options.backbone}
        if self._goes_on:  # from its own checkpoint: what it began with may be gone
            start = {}
        model = create(self.task.network, **start, **self.task.options).to(self.device)
        if model.dimensions == 2:
            model.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        return model

    @property
    def _steps(self) -> int:
        return len(self.batches) * len(self.recipe.scales)

    @property
    def best(self) -> Epoch | None:
        """The epoch of the highest validation Dice; the last where there is no validation."""
        if not self.history:
            return None
        return max(self.history, key=_rank)

    @property
    def is_finished(self) -> bool:
        """Whether there is nothing left to do."""
        done = len(self.history)
        limit = min(self.epochs, self.options.until or self.epochs)
        stale = self.best is not None and done - self.best["epoch"] >= (self.options.patience or math.inf)
        return done >= limit or stale

    def run(
        self,
        *,
        on_epoch: Callable[[Epoch], object] = lambda row: None,
        on_batch: Callable[[int], object] = lambda done: None,
    ) -> list[Epoch]:
        """Train to the end, or as far as the options say; give the log."""
        self.folder.mkdir(parents=True, exist_ok=True)
        with _only_here(self.folder):
            remove_stale_drafts(self.folder)
            if self.options.resume:
                self._load()
                on_batch(len(self.history) * len(self.batches))
            parts = {"train": self.batches.cases, "val": self.validation}
            note_training(
                self.folder, self.task, {name: [each.case for each in part] for name, part in parts.items()}
            )
            while not self.is_finished:
                row = self._train_epoch(len(self.history) + 1, on_batch)
                self.history.append(row)
                self._save()
                on_epoch(row)
            if self.history:
                write_log(self.folder / LOG, self.history)
        return self.history

    def _train_epoch(self, number: int, on_batch: Callable[[int], object]) -> Epoch:
        begin = time.perf_counter()
        torch.manual_seed(int(np.random.SeedSequence([self.options.seed, number]).generate_state(1)[0]))
        losses = []
        rate = 0.0
        for at, (images, target) in enumerate(self.batches.epoch(number)):
            for place, scale in enumerate(self.recipe.scales):
                step = (number - 1) * self._steps + at * len(self.recipe.scales) + place
                rate = rate_at(self.recipe, step, steps=self._steps, epochs=self.epochs)
                losses.append(self._step(images, target, rate, scale))
            on_batch(1)
        loss = float(np.mean(losses))
        if not math.isfinite(loss):
            raise ParameterError(
                f"{self.task.name}: the loss is {loss} in epoch {number}. Try a lower learning rate."
            )
        dice_found = self._validate()
        seconds = round(time.perf_counter() - begin, 2)
        return {"epoch": number, "rate": rate, "loss": loss, "val_dice": dice_found, "seconds": seconds}

    def _step(self, images: Any, target: Any, rate: float, scale: float) -> float:
        for group in self.optimiser.param_groups:
            group["lr"] = rate
        inputs = as_input(self.task, images, self.device)
        wanted = torch.from_numpy(target).to(self.device)
        if scale != 1.0:
            inputs, wanted = (_scaled(each, self.task.size, scale) for each in (inputs, wanted))
        self.model.train()
        self.optimiser.zero_grad(set_to_none=True)
        with torch.autocast(self.device.type, enabled=self.device.type == "cuda"):
            outputs = self.model(inputs)
        loss = self.loss_of(_as_float(outputs), wanted)
        self.scaler.scale(loss).backward()  # type: ignore[no-untyped-call]
        self.scaler.unscale_(self.optimiser)
        clip_gradients(self.recipe, self.model)
        self.scaler.step(self.optimiser)
        self.scaler.update()
        return float(loss.detach())

    def _validate(self) -> float | None:
        """Give the mean Dice of the validation cases, cut at the task's threshold; None without any."""
        found = [
            dice(self.task.truth(each.labels), each.probabilities >= self.task.threshold, empty="agree")
            for each in map_cases(self.task, self.model, self.validation, channels=self.model.channels)
        ]
        return float(np.mean(found)) if found else None

    def _save(self) -> None:
        """Write the checkpoints; the best first: a run that is killed in between makes it again."""
        weights = self.model.state_dict()
        if self.best is self.history[-1]:
            about = {"format": WEIGHTS, "epoch": len(self.history), "task": self.task.name}
            self._write(BEST, {**about, "state_dict": weights})
        self._write(
            LAST,
            {
                "format": TRAINING,
                "made_with": self._made_with(),
                "state_dict": weights,
                "optimiser": self.optimiser.state_dict(),
                "scaler": self.scaler.state_dict(),
                "history": self.history,
            },
        )
        write_log(self.folder / LOG, self.history)

    def _write(self, name: str, content: Mapping[str, Any]) -> None:
        with atomic_write(self.folder / name) as draft, draft.open("wb") as file, _telling_full_disks():
            torch.save(dict(content), file)

    def _made_with(self) -> dict[str, Any]:
        return {
            "task": self.task.name,
            "network": self.task.network,
            "seed": self.options.seed,
            "cases": len(self.batches.cases),
            "digest of the training cases": checksum(sorted(each.case for each in self.batches.cases)),
            "digest of the validation cases": checksum(sorted(each.case for each in self.validation)),
            "size": list(self.task.size),
            "options": json.loads(json.dumps(dict(self.task.options), default=str)),
            "input size": list(self.task.input_size or ()),
            "foreground": self.task.foreground,
            "digest of normalise": source_of(self.task.normalise),
            "digest of target": source_of(self.task.target),
            **self._digests,
            **self.recipe.described(),
        }

    def _load(self) -> None:
        path = self.folder / LAST
        if not path.exists():
            return
        saved = _read(path, self.device)
        _check_same(path, saved.get("made_with", {}), self._made_with())
        self.model.load_state_dict(saved["state_dict"])
        self.optimiser.load_state_dict(saved["optimiser"])
        if saved["scaler"] and self.scaler.is_enabled():  # nothing where it was begun on another device
            self.scaler.load_state_dict(saved["scaler"])
        self.history = saved["history"]


@contextmanager
def _telling_full_disks() -> Iterator[None]:
    """Raise what the system said of a disk; torch says only that it is not where it should be in a file."""
    try:
        yield
    except RuntimeError as error:
        if isinstance(error.__context__, OSError):
            raise error.__context__ from None
        raise


def _digest(path: Path | None, *, absent: bool) -> str:
    """Tell weights apart by what is in them; nothing where there are none, or they may be absent and are."""
    if path is None or (absent and not path.exists()):
        return ""
    if not path.is_file():
        raise ParameterError(f"{path}: expected a checkpoint to begin with, got no such file.")
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _rank(row: Epoch) -> tuple[float, int]:
    """Order epochs by their validation Dice, the earlier before the later; without any the last is best."""
    number = int(row["epoch"])
    return (0.0, number) if row["val_dice"] is None else (row["val_dice"], -number)


def _read(path: Path, device: torch.device) -> Any:
    try:
        saved = torch.load(path, map_location=device, weights_only=True)
    except Exception as error:  # noqa: BLE001 - damaged archives raise nearly everything
        said = str(error).partition("\n")[0]
        raise ParameterError(
            f"{path}: expected a checkpoint to go on from, got one that cannot be read ({said}). Begin anew: "
            "--no-resume."
        ) from None
    found = saved.get("format") if isinstance(saved, dict) else None
    if found != TRAINING:
        raise ParameterError(
            f"{path}: expected a checkpoint of the format {TRAINING!r}, got {found!r}: it is of another "
            "version, or weights alone. Begin anew: --no-resume, with weights as --from."
        )
    return saved


def _check_same(path: Path, before: Mapping[str, Any], now: Mapping[str, Any]) -> None:
    """Refuse to go on with another recipe; what an older version did not know was as usual."""
    for name, value in now.items():
        is_left_away = name in _BEGUN_WITH and not value
        if name in before and before[name] != value and not is_left_away:
            if name.startswith(_DIGEST):
                raise ParameterError(
                    f"{path}: expected a training with {name.removeprefix(_DIGEST)} as now, got one with "
                    "others. Give the same, choose another folder, or begin anew: --no-resume."
                )
            raise ParameterError(
                f"{path}: expected a training with {name} = {value!r}, got one with {before[name]!r}. Give "
                "the same, choose another folder, or begin anew: --no-resume."
            )


def _loss(task: Task, recipe: Recipe) -> Callable[[Any, Tensor], Tensor]:
    """Give what a network is trained with: its own loss, or that of the recipe."""
    return cross_entropy_dice_loss if recipe.loss else training_loss(task.network)


def _as_float(outputs: Any) -> Any:
    if isinstance(outputs, Tensor):
        return outputs.float()
    return tuple(each.float() for each in outputs)


def _scaled(images: Tensor, size: tuple[int, ...], scale: float) -> Tensor:
    """Resize a batch to a share of its size, in multiples of 32, corner to corner."""
    sides = [max(32, round(side * scale / 32) * 32) for side in size]
    return F.interpolate(images, size=sides, mode="bilinear", align_corners=True)


@contextmanager
def _only_here(folder: Path) -> Iterator[None]:
    """Raise an error for a second training in the same folder, where the system and the drive have locks."""
    with (folder / ".lock").open("ab") as file:
        if fcntl is not None:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise ParameterError(
                    f"{folder}: expected a folder of its own, got one in which another training runs."
                ) from None
            except OSError:  # a drive without locks
                pass
        yield
