import csv
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from segtrust.errors import PairingError, ParameterError, TooFewCasesError, UnknownFormatError
from segtrust.io.dataset import find_cases
from segtrust.paper.tasks import Labels, Sample, get_task
from segtrust.paper.tasks.checking import find_samples
from segtrust.paper.tasks.predicting import PredictionOptions, predict
from segtrust.paper.tasks.preparing import Prepared, prepare
from segtrust.paper.tasks.published import take_maps
from tests.paper.tasks import miniatures

pytestmark = pytest.mark.needs("torch", "PIL")
CPU = PredictionOptions(device="cpu")


@pytest.fixture(scope="module")
def task():
    return replace(get_task("nuclei"), size=(32, 32))


@pytest.fixture(scope="module")
def prepared(task, tmp_path_factory):
    folder = tmp_path_factory.mktemp("nuclei")
    return prepare(task, find_samples(task, miniatures.nuclei(folder / "data")), folder / "run")


@pytest.fixture(scope="module")
def weights(tmp_path_factory):
    import torch

    from segtrust.paper.networks import create

    paths = [tmp_path_factory.mktemp("weights") / f"{seed}.pth" for seed in (1, 2)]
    for seed, path in enumerate(paths):
        torch.manual_seed(seed)
        torch.save(create("unext").state_dict(), path)
    return paths


def maps(folder: Path) -> dict[str, np.ndarray]:
    return {path.stem: np.load(path) for path in sorted((folder / "predictions" / "maps").glob("*.npy"))}


def test_maps_are_the_network_s_numbers(task, prepared, weights, tmp_path):
    import torch

    from segtrust.paper.networks import create

    predict(task, prepared, weights[:1], tmp_path, CPU)
    network = create("unext", weights=weights[0])
    for case in prepared.of("test"):
        images = torch.from_numpy(task.normalise(np.stack([case.load()[0]])))
        expected = network.probabilities(images)[0].numpy()
        found = maps(tmp_path)[case.case.replace("/", "__")]
        assert np.allclose(found, expected, atol=1e-5)
        assert found.shape == (32, 32)


def test_several_weights_are_averaged(task, prepared, weights, tmp_path):
    for name, chosen in (("a", weights[:1]), ("b", weights[1:]), ("both", weights)):
        predict(task, prepared, chosen, tmp_path / name, CPU)
    a, b, both = (maps(tmp_path / name) for name in ("a", "b", "both"))
    assert all(np.allclose(both[name], (a[name] + b[name]) / 2, atol=1e-6) for name in both)


def test_maps_that_are_there_are_kept_and_others_made_again(task, prepared, weights, tmp_path):
    done = []
    predict(task, prepared, weights[:1], tmp_path, CPU)
    first, *_ = sorted((tmp_path / "predictions" / "maps").iterdir())
    first.unlink()
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "predictions" / "maps").iterdir()}
    predict(task, prepared, weights[:1], tmp_path, CPU, advance=done.append)
    assert done == [len(before), 1]
    assert all(path.stat().st_mtime_ns == time for path, time in before.items())
    predict(task, prepared, weights[1:], tmp_path, CPU, advance=done.append)
    assert done[2:] == [0, *[1] * (len(before) + 1)]


@pytest.mark.parametrize("dtype", ["float16", "float32", "uint8"])
def test_types_of_maps(task, prepared, weights, tmp_path, dtype):
    predict(task, prepared, weights[:1], tmp_path / dtype, replace(CPU, dtype=dtype))
    predict(task, prepared, weights[:1], tmp_path / "full", CPU)
    found, full = maps(tmp_path / dtype), maps(tmp_path / "full")
    for name, p in found.items():
        assert p.dtype == dtype
        assert np.abs((p / 255.0 if dtype == "uint8" else p) - full[name]).max() < 3e-3


def test_manifests_are_data_sets(task, prepared, weights, tmp_path):
    found = predict(task, prepared, weights[:1], tmp_path, replace(CPU, splits=("val", "test")))
    assert list(found.sets) == ["ID", "bright"]
    for path in found.sets.values():
        cases = find_cases([path]).cases
        assert all(case.truth.path.exists() and case.image.path.exists() for case in cases)
        assert {case.split for case in cases} == {"test"}  # what was trained or chosen on is not judged
        assert not any("/" in case.name for case in cases)
    with found.manifest.open() as file:
        rows = list(csv.DictReader(file))
    assert {row["set"] for row in rows} == {"ID", "bright"}
    assert {row["split"] for row in rows} == {"val", "test"}
    alone = predict(task, prepared, weights[:1], tmp_path, replace(CPU, splits=("val",)))
    assert {case.split for case in find_cases([alone.sets["ID"]]).cases} == {"val"}


def test_what_cannot_be_predicted(task, prepared, weights, tmp_path):
    with pytest.raises(ParameterError, match="float32, float16, uint8"):
        PredictionOptions(dtype="float64")
    with pytest.raises(TooFewCasesError, match="cases of test"):
        predict(task, Prepared(()), weights, tmp_path, CPU)


def test_published_maps_are_taken_as_they_are(tmp_path):
    task = replace(get_task("polyp"), size=(40, 48))
    data = miniatures.polyps(tmp_path / "data")
    published = miniatures.published_maps(tmp_path / "maps", data)
    samples = find_samples(task, data)
    found = take_maps(task, samples, published, tmp_path / "run")
    assert found.cases == 10
    for case in find_cases([found.sets["OOD"]]).cases:
        p = np.load(case.probabilities.path)
        assert p.dtype == np.uint8
        assert len(np.unique(p)) > 50
    next(published.glob("*/1.png")).unlink()
    with pytest.raises(PairingError, match="got none for 1: "):
        take_maps(task, samples, published, tmp_path / "run")


def test_boxes_of_discs_are_in_pixels_of_the_photograph(tmp_path, weights):
    from segtrust.paper.tasks.boxes import write_boxes
    from segtrust.paper.tasks.fundus_layout import read_boxes

    task = replace(get_task("optic-disc"), size=(32, 32))
    data = miniatures.fundus_sets(tmp_path / "data", side=160)
    prepared = prepare(task, find_samples(task, data), tmp_path)
    predict(task, prepared, weights[:1], tmp_path, replace(CPU, splits=("train", "val", "test")))
    case = prepared.cases[0]
    p = np.zeros((32, 32), np.float32)
    p[8:12, 20:24] = 0.9
    np.save(tmp_path / "predictions" / "maps" / f"{case.case}.npy", p)
    assert write_boxes(task, prepared, tmp_path, data / "boxes.csv") == 18
    assert read_boxes(data / "boxes.csv")[case.case] == (40, 100, 60, 120)
    cup = {each.id: each.box for each in get_task("optic-cup").find(data)}
    assert cup[case.case] == (40, 100, 60, 120)


def test_bad_weights_lose_no_map(task, prepared, weights, tmp_path):
    predict(task, prepared, weights[:1], tmp_path, CPU)
    before = maps(tmp_path)
    (tmp_path / "no.pth").write_bytes(b"no weights")
    with pytest.raises(UnknownFormatError):
        predict(task, prepared, [tmp_path / "no.pth"], tmp_path, CPU)
    assert maps(tmp_path).keys() == before.keys()


def test_maps_do_not_depend_on_where_a_run_was_stopped(task, prepared, weights, tmp_path):
    predict(task, prepared, weights[:1], tmp_path, CPU)
    before = maps(tmp_path)
    for path in sorted((tmp_path / "predictions" / "maps").iterdir())[1::2]:
        path.unlink()
    predict(task, prepared, weights[:1], tmp_path, CPU)
    assert all(np.array_equal(values, before[name]) for name, values in maps(tmp_path).items())


def mask_of(case):
    image = Path(case.image)
    return image.parent.parent / "masks" / image.name


def test_published_maps_do_not_pass_for_those_of_a_network(task, prepared, weights, tmp_path):
    predict(task, prepared, weights[:1], tmp_path, CPU)
    before = maps(tmp_path)
    samples = [
        Sample(each.case.removeprefix("bright/"), set=each.set, split=each.split, masks=(mask_of(each),))
        for each in prepared.of("test")
    ]
    folder = tmp_path / "published"
    for each in samples:
        path = folder / f"{each.case}.npy"
        path.parent.mkdir(exist_ok=True)
        np.save(path, np.full((8, 8), 255, np.uint8))
    loose = replace(task, labels=Labels(at_least=128))
    take_maps(loose, samples, folder, tmp_path)
    assert all(values.dtype == np.uint8 for values in maps(tmp_path).values())
    predict(task, prepared, weights[:1], tmp_path, CPU)
    assert all(np.array_equal(values, before[name]) for name, values in maps(tmp_path).items())


def test_cases_of_another_size_are_refused(task, prepared, weights, tmp_path):
    with pytest.raises(
        ParameterError, match=r"expected a case of the task's size \(64, 64\), got \(32, 32\)"
    ):
        predict(replace(task, size=(64, 64)), prepared, weights[:1], tmp_path, CPU)
