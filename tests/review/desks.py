"""Runs to be reviewed, and desks on them that really listen."""

import json
import threading
import time
from contextlib import contextmanager
from dataclasses import replace

import httpx
import nibabel
import numpy as np
from PIL import Image

from segtrust.confidence import get_estimators
from segtrust.engine import (
    Calibration,
    LossSource,
    ScoreJob,
    ScoreRun,
    calibrate_table,
    make_executor,
    make_policy,
    score_cases,
)
from segtrust.io import ArrayRef, CaseFiles, Dataset, Table, read_table, write_table
from segtrust.review.access import Access
from segtrust.review.desk import Opening, open_desk
from segtrust.review.limits import RateLimit
from segtrust.review.server import Serving, server_of
from segtrust.selective import Target

HOSTILE = ("<script>alert(1)</script>", "../../etc/passwd", "quo\"te's", "new\nline", "=1+1", "%2e%2e%2f")
PREDICTOR = "net"
READING = {"read": {"mask": None, "threshold": 0.5, "channel": None, "labels": None}}
"""What a table says of how its cases were read; without it nothing is certified."""


def blob(shape, seed):
    """A map with a bright middle, and noise."""
    rng = np.random.default_rng(seed)
    axes = np.ogrid[tuple(slice(-1, 1, length * 1j) for length in shape)]
    logits = 3.0 - 8.0 * np.sqrt(sum(axis**2 for axis in axes)) + rng.normal(0, 1, shape)
    return (1 / (1 + np.exp(-logits))).astype(np.float32)


def picture_case(folder, name, number, shape=(300, 280)):
    """A 2-D case with truth and colours."""
    p = blob(shape, number)
    np.save(folder / f"{number}.npy", p)
    np.save(folder / f"{number}_truth.npy", (blob(shape, number + 100) >= 0.5).astype(np.uint8))
    colours = np.random.default_rng(number).integers(0, 256, (*shape, 3), np.uint8)
    Image.fromarray(colours).save(folder / f"{number}.png")
    places = {
        key: ArrayRef(folder / f"{number}{end}") for key, end in (("truth", "_truth.npy"), ("image", ".png"))
    }
    return CaseFiles(
        name, ArrayRef(folder / f"{number}.npy"), group=f"patient {number % 3}", set="ID", **places
    )


def volume_case(folder, name, number, shape=(9, 20, 24)):
    """A 3-D case in NIfTI, with an image and a delivered mask."""
    p, affine = blob(shape, number), np.diag([-0.5, -0.7, 3.0, 1.0])
    image = np.random.default_rng(number).normal(40.0, 100.0, shape).astype(np.float32)
    for end, values in (("map", p), ("image", image), ("mask", (p >= 0.4).astype(np.uint8))):
        nibabel.save(nibabel.Nifti1Image(values.T, affine), folder / f"{number}_{end}.nii.gz")
    places = {role: ArrayRef(folder / f"{number}_{role}.nii.gz") for role in ("image", "mask")}
    return CaseFiles(name, ArrayRef(folder / f"{number}_map.nii.gz"), set="volumes", **places)


def make_run(folder, names=HOSTILE):
    """Score pictures under these names, and two volumes."""
    files = folder / "files"
    files.mkdir(parents=True)
    cases = [picture_case(files, name, number) for number, name in enumerate(names)]
    cases += [volume_case(files, f"volume {number}", 50 + number) for number in range(2)]
    return score_run(folder, cases)


def score_run(folder, cases):
    """Score cases into a folder that can be reviewed."""
    judge, job = LossSource(), ScoreJob(tuple(get_estimators(["sdc", "amsp"])))
    run = ScoreRun(folder / "scores.csv", make_executor(), overwrite=True)
    score_cases(Dataset(tuple(cases)), job, run, finish=judge.add_to, more=judge.about)
    return folder


def rows_of(count, seed=0, ties=True):
    """Rows of a score table without files: confidences that know something of the losses."""
    rng = np.random.default_rng(seed)
    confidence = rng.beta(5, 2, count)
    confidence = confidence.round(3) if ties else confidence
    dice = np.clip(0.2 + 0.8 * confidence + rng.normal(0, 0.1, count), 0, 1)
    return [
        {
            "case": f"case {number:05d}",
            "structure": "foreground",
            "set": ("ID", "other")[number % 5 == 4],
            "group": f"patient {number % 97}",
            "sdc": float(confidence[number]),
            "k": max(1, int(rng.integers(0, 20))),
            "mask": "threshold",
            "dice": float(dice[number]),
            "file": f"maps/{number}.npy",
        }
        for number in range(count)
    ]


def write_scores(path, count, seed=0, ties=True):
    """Write a table of so many rows, all but the first 400 unknown to `write_policy`."""
    write_table(path, Table.of(rows_of(count, seed, ties)))
    return read_table(path)


def write_policy(path, table, rows=400, risk=0.35, targets=()):
    """Certify a threshold on the first rows of a table; its only target is a risk unless others are given."""
    known = replace(table, rows=table.rows[:rows], about={**READING, **table.about})
    found = calibrate_table(
        known, Calibration("sdc", targets or (Target(risk),), predictor=PREDICTOR, seed=0)
    )
    make_policy(found, known).save(path)
    return path


@contextmanager
def serving(server, where):
    """Run a server in a thread, on a socket that listens."""
    with where as listening:
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        while not server.started:
            time.sleep(0.005)
        try:
            yield
        finally:
            server.should_exit = True
            thread.join()


@contextmanager
def desk_on(path, *, token="", rate=None, static=None, port=0, **opening):
    """Open a desk and serve it; give it, with a client that does as the page does."""
    desk = open_desk(Opening(path, **opening), minutes=6.0)
    listening = Serving(port=port).listen()
    access = Access("127.0.0.1", listening.getsockname()[1], token, rate=rate or RateLimit())
    base = f"http://127.0.0.1:{access.port}"
    headers = {"X-Segtrust": "1", "Origin": base}
    with (
        serving(server_of(desk, access, static), listening),
        httpx.Client(base_url=base, headers=headers, timeout=60) as client,
    ):
        yield desk, client


def said(client, number, verdict="accept", reviewer="ann", **more):
    """Give a verdict, and its entry."""
    answer = client.post(
        "/api/verdicts", json={"number": number, "verdict": verdict, "reviewer": reviewer, **more}
    )
    assert answer.status_code == 200, answer.text
    return answer.json()


def detail(answer):
    """Why a request was refused."""
    assert answer.headers["content-type"].startswith("application/json")
    found = json.loads(answer.text)["detail"]
    assert isinstance(found, str)
    return found
