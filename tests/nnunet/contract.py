"""What nnU-Net writes, whether in a run of today or in one that was kept."""

import json
import pickle
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from tests.nnunet.data import TEST_CASES, VALIDATION_CASES, VARIANTS, inner_box
from tests.nnunet.run import NnunetRun

SCALARS = {"numpy.dtype", "numpy._core.multiarray.scalar"}
ARRAYS = {"numpy.ndarray", "numpy._core.multiarray._reconstruct"}


@dataclass(frozen=True)
class Written:
    """The files of one case; arrays have the axes (z, y, x), after that of the channels."""

    probabilities: np.ndarray
    mask: np.ndarray
    truth: np.ndarray
    geometry: tuple[tuple[float, ...], ...]
    truth_geometry: tuple[tuple[float, ...], ...]


def cases_of(run: NnunetRun) -> list[Written]:
    """All cases that were predicted, and those of the validation."""
    predicted = [read_case(run.predictions, run.labels, case) for case in TEST_CASES]
    return predicted + [read_case(run.validation, run.validation_labels, case) for case in VALIDATION_CASES]


def read_case(folder: Path, truths: Path, case: str) -> Written:
    """Read the map, the mask and the truth of one case."""
    with np.load(folder / f"{case}.npz") as arrays:
        assert arrays.files == ["probabilities"]
        probabilities = arrays["probabilities"]
    mask, geometry = read_image(folder / f"{case}.nii.gz")
    truth, truth_geometry = read_image(truths / f"{case}.nii.gz")
    return Written(probabilities, mask, truth, geometry, truth_geometry)


def read_image(path: Path) -> tuple[np.ndarray, tuple[tuple[float, ...], ...]]:
    """The voxels of an image, and its spacing, origin and direction in the order of SimpleITK."""
    import SimpleITK

    image = SimpleITK.ReadImage(path)
    geometry = (image.GetSpacing(), image.GetOrigin(), image.GetDirection())
    return SimpleITK.GetArrayFromImage(image), geometry


def paint(probabilities: np.ndarray, order: tuple[int, ...]) -> np.ndarray:
    """The labels that nnU-Net gives to regions: later ones cover earlier ones."""
    mask = np.zeros(probabilities.shape[1:], dtype=np.uint8)
    for region, label in zip(probabilities, order, strict=True):
        mask[region > 0.5] = label
    return mask


def extent(voxels: np.ndarray) -> list[tuple[int, int]]:
    """First and last index along each axis at which there is a voxel."""
    return [(int(indices.min()), int(indices.max())) for indices in np.nonzero(voxels)]


class NameRecorder(pickle.Unpickler):
    """Loads a pickle of our own and notes what it asks for."""

    def find_class(self, module: str, name: str) -> object:
        self.names.add(f"{module}.{name}")
        return super().find_class(module, name)


def load_properties(path: Path) -> tuple[dict, set[str]]:
    """The content of a ``.pkl`` file, and the names that were needed to load it."""
    with path.open("rb") as file:
        recorder = NameRecorder(file)
        recorder.names = set()
        return recorder.load(), recorder.names


class NnunetContract:
    """Subclasses give a fixture ``run``: a function that takes the name of a variant."""

    @pytest.mark.parametrize("labels", VARIANTS)
    def test_map_lies_on_the_grid_of_the_image(self, run, labels):
        for case in cases_of(run(labels)):
            assert case.probabilities.dtype == np.float32
            assert case.probabilities.shape == (3, *case.truth.shape)
            assert case.mask.shape == case.truth.shape
            assert case.geometry == case.truth_geometry
            assert len(set(case.truth.shape)) == 3, "no two axes can be taken for each other"

    @pytest.mark.parametrize("labels", VARIANTS)
    def test_axes_are_not_swapped(self, run, labels):
        for case in cases_of(run(labels)):
            outside = np.array([1, 0, 0] if labels == "plain" else [0, 0, 0])
            predicted = (case.probabilities != outside[:, None, None, None]).any(axis=0)
            assert extent(predicted) == extent(inner_box(case.truth.shape))

    def test_every_second_case_has_a_flipped_axis(self, run):
        flipped = [case.geometry[2][0] < 0 for case in cases_of(run("plain"))]
        assert flipped == [False, True, False, True]

    def test_plain_labels_are_one_distribution(self, run):
        for case in cases_of(run("plain")):
            np.testing.assert_allclose(case.probabilities.sum(axis=0), 1, atol=1e-6)
            np.testing.assert_array_equal(case.mask, case.probabilities.argmax(axis=0))

    def test_regions_overlap_and_are_painted_in_order(self, run):
        for case in cases_of(run("regions")):
            assert case.probabilities.sum(axis=0).max() > 1
            painted = paint(case.probabilities, VARIANTS["regions"].region_order)
            np.testing.assert_array_equal(case.mask, painted)

    @pytest.mark.parametrize("labels", VARIANTS)
    def test_pickles_hold_plain_values_and_arrays(self, run, labels):
        predicted, names = load_properties(run(labels).predictions / f"{TEST_CASES[0]}.pkl")
        assert names == SCALARS
        validated, names = load_properties(run(labels).validation / f"{VALIDATION_CASES[0]}.pkl")
        assert names == SCALARS | ARRAYS
        assert set(validated) - set(predicted) == {"class_locations"}

    @pytest.mark.parametrize("labels", VARIANTS)
    def test_pickles_keep_the_spacing_of_the_axes_of_the_map(self, run, labels):
        folder = run(labels).predictions
        for case in TEST_CASES:
            properties, _ = load_properties(folder / f"{case}.pkl")
            _, (spacing_mm, _, _) = read_image(folder / f"{case}.nii.gz")
            assert properties["spacing"] == list(reversed(spacing_mm))

    @pytest.mark.parametrize("labels", VARIANTS)
    def test_summary_lists_the_validation_cases(self, run, labels):
        summary = json.loads((run(labels).validation / "summary.json").read_text())
        names = [Path(case["prediction_file"]).name for case in summary["metric_per_case"]]
        assert sorted(names) == [f"{case}.nii.gz" for case in VALIDATION_CASES]

    @pytest.mark.parametrize("labels", VARIANTS)
    def test_description_is_copied(self, run, labels):
        written = json.loads((run(labels).predictions / "dataset.json").read_text())
        assert written == json.loads(run(labels).dataset_json.read_text())
        assert written["labels"] == VARIANTS[labels].labels
