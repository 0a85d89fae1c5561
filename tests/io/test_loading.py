"""From files to cases: which map, which mask, which truth, and whether they lie on one grid."""

import json
import pickle
from pathlib import Path

import numpy as np
import pytest

from segtrust.errors import (
    GeometryError,
    NotBinaryError,
    NotNormalisedError,
    ParameterError,
    UnknownNameError,
    WrongContentError,
)
from segtrust.io import readers
from segtrust.io.cases import CaseFiles
from segtrust.io.datasets import find_cases
from segtrust.io.loading import MaskKind, ReadOptions, load_case
from segtrust.io.partners import add_files
from segtrust.io.places import Place

pytestmark = pytest.mark.needs("nibabel", "SimpleITK")

ROOT = Path(__file__).parents[1] / "fixtures/nnunet"
P = np.random.default_rng(2).dirichlet(np.ones(3), (4, 5, 6)).transpose(3, 0, 1, 2).astype(np.float32)
LABELS = P.argmax(0).astype(np.uint8)


def array_of(path):
    import SimpleITK

    return SimpleITK.GetArrayFromImage(SimpleITK.ReadImage(str(path)))


def nifti(path, values, affine=None):
    """Write an array of (z, y, x)."""
    import nibabel

    nibabel.save(nibabel.Nifti1Image(values.T, np.eye(4) if affine is None else affine), path)
    return path


def npy(path, values):
    np.save(path, values)
    return path


def case_of(probabilities, mask=None, truth=None, *, id="a"):
    return CaseFiles(id, *(None if each is None else Place.of(each) for each in (probabilities, mask, truth)))


def load(files, **options):
    return list(load_case(files, ReadOptions(**options)))


def fixture_case(kind, name):
    found = add_files(find_cases([ROOT / kind / "predictions"]), "truth", ROOT / kind / "labels")
    return next(case for case in found.cases if case.id == name)


@pytest.fixture
def model(tmp_path):
    """A case of nnU-Net with three channels, a mask, and labels that name them."""
    np.savez_compressed(tmp_path / "a.npz", probabilities=P)
    geometry = {"spacing": (1.0, 1.0, 1.0), "origin": (0.0,) * 3, "direction": (-1, 0, 0, 0, -1, 0, 0, 0, 1)}
    (tmp_path / "a.pkl").write_bytes(pickle.dumps({"sitk_stuff": geometry}))
    (tmp_path / "dataset.json").write_text(json.dumps({"labels": {"background": 0, "organ": 1, "lesion": 2}}))
    nifti(tmp_path / "a.nii.gz", LABELS)
    return case_of(tmp_path / "a.npz", tmp_path / "a.nii.gz")


@pytest.mark.parametrize("name", ["test_0", "test_1"])
def test_all_that_is_not_background_is_scored_with_the_delivered_mask(name):
    files = fixture_case("plain", name)
    (loaded,) = load(files)
    with np.load(files.probabilities.path) as archive:
        wanted = 1 - archive["probabilities"][0]
    assert loaded.structure == "foreground"
    assert (loaded.prediction.probabilities == wanted).all()
    assert (loaded.prediction.mask == (array_of(files.mask.path) > 0)).all()
    assert (loaded.truth == (array_of(files.truth.path) > 0)).all()
    assert loaded.delivered is loaded.prediction.mask
    assert loaded.prediction.id == name
    assert len({*loaded.prediction.spacing_mm}) == 3


@pytest.mark.parametrize("name", ["test_0", "test_1"])
def test_each_region_has_its_map_its_mask_and_its_truth(name):
    files = fixture_case("regions", name)
    loaded = load(files, regions=("each",))
    assert [each.structure for each in loaded] == ["whole_tumor", "tumor_core", "enhancing_tumor"]
    mask, truth = array_of(files.mask.path), array_of(files.truth.path)
    with np.load(files.probabilities.path) as archive:
        p = archive["probabilities"]
    for channel, (each, values) in enumerate(zip(loaded, ([1, 2, 3], [2, 3], [3]), strict=True)):
        assert (each.prediction.probabilities == p[channel]).all()
        assert (each.prediction.mask == np.isin(mask, values)).all()
        assert (each.truth == np.isin(truth, values)).all()


def test_validation_folders_find_the_labels_above(tmp_path, model):
    folder = tmp_path / "fold_0/validation"
    folder.mkdir(parents=True)
    for name in ("a.npz", "a.pkl", "a.nii.gz"):
        (tmp_path / name).rename(folder / name)
    (loaded,) = load(case_of(folder / "a.npz", folder / "a.nii.gz"), regions=("lesion",))
    assert (loaded.prediction.probabilities == P[2]).all()
    assert (loaded.prediction.mask == (LABELS == 2)).all()


def test_the_threshold_can_be_asked_for(model):
    (loaded,) = load(model, mask=MaskKind.THRESHOLD, threshold=0.7)
    assert loaded.prediction.mask is None
    assert loaded.prediction.threshold == 0.7
    assert (loaded.delivered == (LABELS > 0)).all()


def test_a_mask_of_another_kind_is_refused():
    with pytest.raises(ParameterError, match=r"^mask: expected delivered or threshold, got 'argmax'"):
        ReadOptions(mask="argmax")


def test_without_a_mask_the_threshold_serves(tmp_path):
    (loaded,) = load(case_of(npy(tmp_path / "a.npy", P[1])))
    assert (loaded.prediction.mask, loaded.delivered, loaded.truth) == (None, None, None)
    assert loaded.structure == "foreground"


@pytest.mark.parametrize(("channel", "name"), [(0, "background"), (1, "organ"), (2, "lesion")])
def test_a_channel_is_chosen_by_number(model, channel, name):
    (loaded,) = load(model, channel=channel)
    assert loaded.structure == name
    assert (loaded.prediction.probabilities == P[channel]).all()
    assert (loaded.prediction.mask == np.equal(LABELS, channel)).all()


def test_a_channel_that_is_not_there_is_told(model):
    with pytest.raises(
        WrongContentError, match=rf"^{model.probabilities.path}: expected a channel from 0 to 2, got 3"
    ):
        load(model, channel=3)
    with pytest.raises(ParameterError, match="expected --channel or --region, got both"):
        ReadOptions(channel=1, regions=("organ",))


def test_a_region_that_is_not_there_lists_those_that_are(model):
    with pytest.raises(UnknownNameError, match="'tumour'; available: organ, lesion, foreground, each"):
        load(model, regions=("tumour",))


def test_labels_can_be_said_by_hand(model, tmp_path):
    (loaded,) = load(model, labels=(2,))
    assert (loaded.prediction.mask == (LABELS == 2)).all()
    (loaded,) = load(case_of(npy(tmp_path / "b.npy", P[1]), tmp_path / "a.nii.gz"), labels=(1, 2))
    assert (loaded.prediction.mask == (LABELS > 0)).all()


def test_labels_without_names_are_told(model, tmp_path):
    with pytest.raises(
        NotBinaryError, match=rf"^{tmp_path}/a\.nii\.gz: expected a mask .* got labels 0, 1, 2\."
    ):
        load(case_of(npy(tmp_path / "b.npy", P[1]), tmp_path / "a.nii.gz"))


def test_classes_without_names_are_numbered(model, tmp_path):
    (tmp_path / "dataset.json").unlink()
    assert [each.structure for each in load(model, regions=("each",))] == ["class 1", "class 2"]


def test_names_given_by_hand_win(model, tmp_path):
    names = tmp_path / "names.json"
    names.write_text(json.dumps({"labels": {"background": 0, "x": 1, "y": 2}}))
    assert [each.structure for each in load(model, regions=("each",), scheme=names)] == ["x", "y"]


def test_names_given_by_hand_say_that_there_are_channels(model, tmp_path):
    """A plain array does not tell channels from slices; whoever names them does."""
    files = case_of(npy(tmp_path / "b.npy", P), tmp_path / "a.nii.gz")
    (loaded,) = load(files, regions=("lesion",), scheme=tmp_path / "dataset.json")
    assert (loaded.prediction.probabilities == P[2]).all()
    with pytest.raises(WrongContentError, match=r"b\.npy: expected 3 channels, .* got 2\."):
        load(case_of(npy(tmp_path / "b.npy", P[:2])), scheme=tmp_path / "dataset.json")


def test_regions_of_a_file_without_channels_are_told(tmp_path):
    with pytest.raises(
        WrongContentError, match=r"a\.nii: expected channels, for the regions organ, got one map"
    ):
        load(case_of(nifti(tmp_path / "a.nii", P[1])), regions=("organ",))
    with pytest.raises(
        WrongContentError, match=r"a\.npy: expected a dataset\.json that names the regions organ"
    ):
        load(case_of(npy(tmp_path / "a.npy", P)), regions=("organ",))


def test_one_region_has_its_labels(tmp_path):
    np.savez(tmp_path / "a.npz", probabilities=P[:1])
    (tmp_path / "dataset.json").write_text(json.dumps({"labels": {"background": 0, "whole": [1, 2]}}))
    (loaded,) = load(case_of(tmp_path / "a.npz", None, npy(tmp_path / "t.npy", LABELS)))
    assert loaded.structure == "whole"
    assert (loaded.truth == (LABELS > 0)).all()


def test_channels_of_another_model_are_told(model, tmp_path):
    (tmp_path / "names.json").write_text(json.dumps({"labels": {"background": 0, "x": 1}}))
    with pytest.raises(
        WrongContentError, match=rf"^{tmp_path}/a\.npz: expected 2 channels.*Are they of one model"
    ):
        load(model, scheme=tmp_path / "names.json")


def test_labels_of_another_data_set_are_told(model, tmp_path):
    nifti(tmp_path / "a.nii.gz", LABELS + 5)
    with pytest.raises(
        NotBinaryError, match=rf"^{tmp_path}/a\.nii\.gz: expected the labels 0, 1, 2, got 5, 6, 7"
    ):
        load(model)


def test_an_array_is_chosen_by_its_key(tmp_path):
    np.savez(tmp_path / "a.npz", first=P[0], second=P[1])
    (loaded,) = load(case_of(tmp_path / "a.npz"), key="second")
    assert (loaded.prediction.probabilities == P[1]).all()
    (loaded,) = load(CaseFiles("a", Place(tmp_path / "a.npz", "first")), key="second")
    assert (loaded.prediction.probabilities == P[0]).all()


@pytest.mark.parametrize("values", [(0, 255), (0, 65535), (0, 1)])
def test_binary_masks_of_any_kind(tmp_path, values):
    mask = np.where(P[1] > 0.4, values[1], values[0]).astype(np.uint16)
    (loaded,) = load(case_of(npy(tmp_path / "a.npy", P[1]), npy(tmp_path / "m.npy", mask)))
    assert (loaded.prediction.mask == (P[1] > 0.4)).all()


def test_flat_images_of_nnunet(tmp_path):
    """Arrays have an axis of one slice, which masks lack."""
    np.savez(tmp_path / "a.npz", probabilities=P[:, :1])
    (tmp_path / "a.pkl").write_bytes(pickle.dumps({"spacing": [999, 1, 1]}))
    for mask in (npy(tmp_path / "m.npy", LABELS[0]), npy(tmp_path / "n.npy", LABELS[:1])):
        (loaded,) = load(case_of(tmp_path / "a.npz", mask))
        assert loaded.prediction.shape == (5, 6)
        assert (loaded.prediction.mask == (LABELS[0] > 0)).all()
        assert loaded.prediction.spacing_mm is None


@pytest.mark.parametrize("shape", [(5, 6), (1, 5, 6), (1, 1, 5, 6)])
def test_axes_of_one_are_dropped(tmp_path, shape):
    p, mask = P[1, 0].reshape(shape), (P[1, :1] > 0.4)
    (loaded,) = load(case_of(npy(tmp_path / "a.npy", p), npy(tmp_path / "m.npy", mask)))
    assert loaded.prediction.shape == loaded.prediction.mask.shape == (5, 6)


def test_a_slice_keeps_its_spacing_and_its_place(tmp_path):
    affine = np.diag([0.5, 0.7, 3.0, 1.0])
    p = nifti(tmp_path / "a.nii", P[1, :1], affine)
    mask = nifti(tmp_path / "m.nii", (P[1, 0] > 0.4).astype(np.uint8), affine)
    (loaded,) = load(case_of(p, mask))
    assert loaded.prediction.shape == (5, 6)
    assert np.allclose(loaded.prediction.spacing_mm, (0.7, 0.5))
    assert (loaded.prediction.mask == (P[1, 0] > 0.4)).all()


def test_another_grid_is_told_with_both_values(model, tmp_path):
    nifti(tmp_path / "a.nii.gz", LABELS, np.diag([1.0, 1.0, 2.5, 1.0]))
    with pytest.raises(
        GeometryError,
        match=rf"^{tmp_path}/a\.nii\.gz: expected the grid of {tmp_path}/a\.npz, spacing 1×1×1 mm, .*"
        r"got spacing 2\.5×1×1 mm",
    ):
        load(model)


def test_another_shape_is_told_with_both_values(tmp_path):
    files = case_of(npy(tmp_path / "a.npy", P[1]), npy(tmp_path / "m.npy", LABELS[:, :4] > 0))
    with pytest.raises(
        GeometryError,
        match=rf"^{tmp_path}/m\.npy: expected the shape of the map, \(4, 5, 6\), got \(4, 4, 6\)",
    ):
        load(files)


def test_channels_are_no_labels(tmp_path):
    files = case_of(nifti(tmp_path / "a.nii", P[1]), nifti(tmp_path / "m.nii", (P > 0.5).astype(np.uint8)))
    for resample in (True, False):
        with pytest.raises(
            WrongContentError, match=rf"^{tmp_path}/m\.nii: expected one image of labels, got 3"
        ):
            load(files, resample=resample)


def flipped(affine, length):
    """The same box, with the x axis from the other end."""
    turned = affine.copy()
    turned[:3, 0] *= -1
    turned[:3, 3] += affine[:3, 0] * (length - 1)
    return turned


def test_a_flipped_mask_is_turned_back(model, tmp_path):
    nifti(tmp_path / "a.nii.gz", LABELS[:, :, ::-1], flipped(np.eye(4), 6))
    with pytest.raises(GeometryError):
        load(model)
    (loaded,) = load(model, resample=True)
    assert (loaded.prediction.mask == (LABELS > 0)).all()


def test_a_finer_mask_is_brought_to_the_map(model, tmp_path):
    import SimpleITK

    fine = np.random.default_rng(3).integers(0, 3, (8, 10, 12)).astype(np.uint8)
    path = nifti(tmp_path / "a.nii.gz", fine, np.diag([0.5, 0.5, 0.5, 1.0]))
    (loaded,) = load(model, resample=True)
    target = SimpleITK.GetImageFromArray(np.zeros((4, 5, 6), np.uint8))
    target.SetDirection((-1, 0, 0, 0, -1, 0, 0, 0, 1))
    image = SimpleITK.ReadImage(str(path))
    wanted = SimpleITK.Resample(image, target, SimpleITK.Transform(), SimpleITK.sitkNearestNeighbor)
    assert (loaded.prediction.mask == (SimpleITK.GetArrayFromImage(wanted) > 0)).all()
    assert loaded.prediction.mask.any()


def test_where_no_place_is_known_nothing_is_resampled(tmp_path):
    files = case_of(npy(tmp_path / "a.npy", P[1]), nifti(tmp_path / "m.nii", (LABELS > 0).astype(np.uint8)))
    (loaded,) = load(files, resample=True)
    assert (loaded.prediction.mask == (LABELS > 0)).all()


def test_stacks_are_read_once(tmp_path, monkeypatch):
    path = tmp_path / "polyp.npz"
    maps = np.random.default_rng(0).random((6, 4, 5))
    np.savez_compressed(path, p_hat=maps, y=maps > 0.6, y_hat=maps > 0.4)
    opened = []
    reader = readers.Reader("stack", lambda path, head: True, lambda *place: counted(opened, *place))
    monkeypatch.setattr(readers, "READERS", (reader,))
    readers._stack.cache_clear()
    for index, case in enumerate(find_cases([path]).cases):
        (loaded,) = load(case)
        assert (loaded.prediction.probabilities == maps[index]).all()
        assert (loaded.prediction.mask == (maps[index] > 0.4)).all()
        assert (loaded.truth == (maps[index] > 0.6)).all()
    assert sorted(opened) == ["p_hat", "y", "y_hat"]


def counted(opened, path, key):
    """Open an array, and note when it is read whole."""
    from dataclasses import replace

    from segtrust.io.npz import open_npz

    volume = open_npz(path, key)

    def load(channel):
        opened.append(key)
        return volume.load(channel)

    return replace(volume, load=load)


def test_many_structures_of_an_archive_are_unpacked_once(model, monkeypatch):
    from segtrust.io import npz

    begun = []
    reader = npz.InflatingReader
    monkeypatch.setattr(npz, "InflatingReader", lambda *place: begun.append(place) or reader(*place))
    monkeypatch.setattr(npz, "_whole", None)  # never all channels at once
    assert len(load(model, regions=("each",))) == 2
    assert len(begun) == 1


def test_four_axes_without_a_word_on_channels_are_refused(tmp_path):
    np.save(tmp_path / "a.npy", np.full((3, 4, 5, 6), 0.5))
    case = CaseFiles("a", Place(tmp_path / "a.npy"))
    with pytest.raises(WrongContentError, match=r"at most 3 dimensions, got \(3, 4, 5, 6\).*--channel"):
        list(load_case(case, ReadOptions()))
    (loaded,) = load_case(case, ReadOptions(channel=2))
    assert loaded.prediction.shape == (4, 5, 6)


def test_regions_without_names_are_not_taken_for_a_softmax(tmp_path):
    """The first region would be taken for the background, and its complement be scored."""
    p = np.random.default_rng(0).random((3, 4, 5, 6)).astype(np.float32)
    np.savez_compressed(tmp_path / "a.npz", probabilities=p)
    case = CaseFiles("a", Place(tmp_path / "a.npz"))
    with pytest.raises(NotNormalisedError, match=r"a\.npz: expected a softmax.*--names.*--channel"):
        list(load_case(case, ReadOptions()))
    (loaded,) = load_case(case, ReadOptions(channel=0))
    assert (loaded.prediction.probabilities == p[0]).all()
    assert loaded.structure == "channel 0"


@pytest.mark.needs("nibabel")
def test_labels_given_as_a_map_are_refused(tmp_path):
    import nibabel

    labels = np.zeros((4, 5, 6), np.uint8)
    labels[1:3] = 1
    nibabel.save(nibabel.Nifti1Image(labels, np.eye(4)), tmp_path / "a.nii.gz")
    with pytest.raises(WrongContentError, match="whole numbers up to 1, which are labels"):
        list(load_case(CaseFiles("a", Place(tmp_path / "a.nii.gz")), ReadOptions()))


def softmax(*shape):
    return np.moveaxis(np.random.default_rng(5).dirichlet((1, 1, 1), shape), -1, 0)


@pytest.mark.parametrize("lead", [(), (np.newaxis,)])
def test_classes_are_not_taken_for_slices(tmp_path, lead):
    p = softmax(6, 7)
    files = case_of(npy(tmp_path / "a.npy", p[lead]))
    with pytest.raises(WrongContentError, match=r"a\.npy: expected one map, .*adds up to 1.* --channel"):
        load(files)
    (loaded,) = load(files, channel=2)
    np.testing.assert_array_equal(loaded.prediction.probabilities, p[2])


def test_classes_as_the_last_axis_are_refused(tmp_path):
    files = case_of(npy(tmp_path / "a.npy", np.moveaxis(softmax(6, 7), 0, -1)))
    with pytest.raises(WrongContentError, match="Save them as the first axis"):
        load(files)


def test_the_channel_of_a_volume_is_not_the_slice_of_a_batch(tmp_path):
    p = np.random.default_rng(0).random((1, 4, 5, 6))
    (loaded,) = load(case_of(npy(tmp_path / "a.npy", p)), channel=0)
    np.testing.assert_array_equal(loaded.prediction.probabilities, p[0])
