"""Maps and truths of small tasks, in the layouts in which they may come."""

import csv
import pickle
from pathlib import Path

import numpy as np


def maps_and_truths(n, shape=(24, 20), seed=0, noise=1.0):
    """Blobs with a border that is more or less sure, and a truth that is shifted more the less sure it is."""
    rng = np.random.default_rng(seed)
    grid = np.indices(shape).astype(float)
    maps, truths = [], []
    for _ in range(n):
        centre = [side / 2 + rng.uniform(-2, 2) for side in shape]
        softness = rng.uniform(0.3, 2.5)
        distance = np.sqrt(sum((axis - at) ** 2 for axis, at in zip(grid, centre, strict=True)))
        maps.append((1 / (1 + np.exp((distance - 6) / softness))).astype(np.float32))
        shift = rng.normal(0, noise * softness)
        truths.append(distance < 6 + shift)
    return np.array(maps), np.array(truths)


def write_manifest(folder: Path, name: str, n: int, *, empty: int = 0, **how) -> Path:
    maps, truths = maps_and_truths(n, **how)
    rows = []
    for at, (p, truth) in enumerate(zip(maps, truths, strict=True)):
        case = f"{name}-{at:02}"
        for kind, values in (("maps", p), ("truths", truth & (at >= empty))):
            (folder / kind).mkdir(parents=True, exist_ok=True)
            np.save(folder / kind / f"{case}.npy", values)
        rows.append({"case": case, "probabilities": f"maps/{case}.npy", "truth": f"truths/{case}.npy"})
    path = folder / f"{name}.csv"
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return path


def write_run(folder: Path, task: str, *, n: int = 14, ood: int = 0, empty: int = 0) -> None:
    """What ``segtrust tasks predict`` leaves."""
    place = folder / task / "predictions"
    write_manifest(place, "id", n, empty=empty)
    if ood:
        write_manifest(place, "ood-other", ood, seed=1, noise=2.0)


def write_archive(path: Path, n: int = 8, *, with_masks: bool = False, **how) -> None:
    """The authors' archive: (N, 1, H, W) of float32."""
    maps, truths = maps_and_truths(n, **how)
    masks = {"y_hat": (maps[:, None] > 0.6).astype(np.float32)} if with_masks else {}
    np.savez(path, p_hat=maps[:, None], y=truths[:, None].astype(np.float32), **masks)


def write_lists(folder: Path, name: str, sizes=(9, 10, 8, 9)) -> None:
    """The authors' pickles of MSWML: lists of volumes of different size."""
    folder.mkdir(parents=True, exist_ok=True)
    found = [maps_and_truths(1, shape=(side, 12, 11), seed=side) for side in sizes]
    lists = {
        "predictions": [maps[0][None] for maps, _ in found],
        "gt": [truths[0][None].astype(np.float32) for _, truths in found],
    }
    for kind, values in lists.items():
        (folder / f"{name}_{kind}.pkl").write_bytes(pickle.dumps(values))
