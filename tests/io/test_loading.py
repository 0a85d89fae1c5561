"""From files to cases: which map, which mask, which truth, and whether they lie on one grid."""

import json
import pickle
import re
from pathlib import Path

import numpy as np
import pytest

from segtrust.errors import (
    GeometryError,
    NotBinaryError,
    NotNormalisedError,
    ParameterError,
    ReadError,
    UnknownNameError,
    UnsafeFileError,
    WrongContentError,
)
from segtrust.io import volume as readers
from segtrust.io.array_ref import ArrayRef
from segtrust.io.case_files import CaseFiles
from segtrust.io.dataset import find_cases
from segtrust.io.loading import MaskKind, ReadOptions, load_case

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
    return CaseFiles(
        id, *(None if each is None else ArrayRef.parse(each) for each in (probabilities, mask, truth))
    )


def load(files, **options):
    return list(load_case(files, ReadOptions(**options)))


def fixture_case(kind, name):
    found = find_cases(ROOT / kind / "predictions", truth=ROOT / kind / "labels")
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
        NotBinaryError, match=rf"^{tmp_path}/a\.nii\.gz: expected a mask .* got 3 values from 0 to 2\."
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
    (loaded,) = load(CaseFiles("a", ArrayRef(tmp_path / "a.npz", "first")), key="second")
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
        match=rf"^{tmp_path}/m\.npy: expected the shape of the map {tmp_path}/a\.npy, \(4, 5, 6\), got "
        r"\(4, 4, 6\)\. .*--resample truth .* --resample map",
    ):
        load(files)


def test_channels_are_no_labels(tmp_path):
    files = case_of(nifti(tmp_path / "a.nii", P[1]), nifti(tmp_path / "m.nii", (P > 0.5).astype(np.uint8)))
    for resample in ("truth", "map", None):
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
    (loaded,) = load(model, resample="truth")
    assert (loaded.prediction.mask == (LABELS > 0)).all()


def test_a_finer_mask_is_brought_to_the_map(model, tmp_path):
    import SimpleITK

    fine = np.random.default_rng(3).integers(0, 3, (8, 10, 12)).astype(np.uint8)
    path = nifti(tmp_path / "a.nii.gz", fine, np.diag([0.5, 0.5, 0.5, 1.0]))
    (loaded,) = load(model, resample="truth")
    target = SimpleITK.GetImageFromArray(np.zeros((4, 5, 6), np.uint8))
    target.SetDirection((-1, 0, 0, 0, -1, 0, 0, 0, 1))
    image = SimpleITK.ReadImage(str(path))
    wanted = SimpleITK.Resample(image, target, SimpleITK.Transform(), SimpleITK.sitkNearestNeighbor)
    assert (loaded.prediction.mask == (SimpleITK.GetArrayFromImage(wanted) > 0)).all()
    assert loaded.prediction.mask.any()


def test_where_no_place_is_known_nothing_is_resampled(tmp_path):
    files = case_of(npy(tmp_path / "a.npy", P[1]), nifti(tmp_path / "m.nii", (LABELS > 0).astype(np.uint8)))
    (loaded,) = load(files, resample="truth")
    assert (loaded.prediction.mask == (LABELS > 0)).all()


def test_stacks_are_read_once(tmp_path, monkeypatch):
    path = tmp_path / "polyp.npz"
    maps = np.random.default_rng(0).random((6, 4, 5))
    np.savez_compressed(path, p_hat=maps, y=maps > 0.6, y_hat=maps > 0.4)
    opened = []
    reader = readers.Reader("stack", lambda path, head: True, lambda *place: counted(opened, *place))
    monkeypatch.setattr(readers, "READERS", (reader,))
    readers._read_stack.cache_clear()
    for index, case in enumerate(find_cases([path]).cases):
        (loaded,) = load(case)
        assert (loaded.prediction.probabilities == maps[index]).all()
        assert (loaded.prediction.mask == (maps[index] > 0.4)).all()
        assert (loaded.truth == (maps[index] > 0.6)).all()
    assert sorted(opened) == ["p_hat", "y", "y_hat"]


def counted(opened, path, key):
    """Open an array, and note when it is read whole."""
    from dataclasses import replace

    from segtrust.io.formats.numpy import open_npz

    volume = open_npz(path, key)

    def load(channel):
        opened.append(key)
        return volume.load(channel)

    return replace(volume, load=load)


def test_many_structures_of_an_archive_are_unpacked_once(model, monkeypatch):
    from segtrust.io.formats import numpy

    begun = []
    verified = numpy._Pixels._verified
    monkeypatch.setattr(numpy._Pixels, "_verified", lambda *where: begun.append(where) or verified(*where))
    assert len(load(model, regions=("each",))) == 2
    assert len(begun) == 1


def test_four_axes_without_a_word_on_channels_are_refused(tmp_path):
    np.save(tmp_path / "a.npy", np.full((3, 4, 5, 6), 0.5))
    case = CaseFiles("a", ArrayRef(tmp_path / "a.npy"))
    with pytest.raises(WrongContentError, match=r"at most 3 dimensions, got \(3, 4, 5, 6\).*--channel"):
        list(load_case(case, ReadOptions()))
    (loaded,) = load_case(case, ReadOptions(channel=2))
    assert loaded.prediction.shape == (4, 5, 6)


def test_regions_without_names_are_not_taken_for_a_softmax(tmp_path):
    """The first region would be taken for the background, and its complement be scored."""
    p = np.random.default_rng(0).random((3, 4, 5, 6)).astype(np.float32)
    np.savez_compressed(tmp_path / "a.npz", probabilities=p)
    case = CaseFiles("a", ArrayRef(tmp_path / "a.npz"))
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
        list(load_case(CaseFiles("a", ArrayRef(tmp_path / "a.nii.gz")), ReadOptions()))


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


# Different sizes, order of axes, soft ground truth, checksums


def png(path, values):
    from PIL import Image

    Image.fromarray(np.asarray(values, np.uint8)).save(path)
    return path


@pytest.fixture
def picture(tmp_path):
    """A map of 8 × 6 pixels, and ground truth of the original size, 24 × 30."""
    p = np.random.default_rng(4).integers(0, 256, (8, 6))
    y, x = np.indices((24, 30))
    truth = 255 * (np.hypot(y - 10, x - 12) < 7)
    return case_of(png(tmp_path / "p.png", p), None, png(tmp_path / "t.png", truth)), p, truth > 0


@pytest.mark.needs("PIL")
def test_pictures_of_different_sizes_are_rejected_with_what_works(picture, tmp_path):
    """The advice of an error is what works: the same options, typed as it says."""
    with pytest.raises(GeometryError) as raised:
        load(picture[0])
    said = str(raised.value)
    for part in (f"{tmp_path}/t.png", f"{tmp_path}/p.png", "(24, 30)", "(8, 6)", "--resample map"):
        assert part in said
    for advised in ("truth", "map"):
        assert f"--resample {advised}" in said
        assert load(picture[0], resample=advised)


@pytest.mark.needs("PIL")
def test_ground_truth_is_brought_to_the_size_of_the_map(picture):
    files, p, truth = picture
    (loaded,) = load(files, resample="truth")
    assert (loaded.prediction.probabilities == p).all()
    rows, columns = ((np.arange(8) + 0.5) * 3).astype(int), ((np.arange(6) + 0.5) * 5).astype(int)
    np.testing.assert_array_equal(loaded.truth, truth[np.ix_(rows, columns)])
    (loaded,) = load(files, resample="truth-opencv")
    np.testing.assert_array_equal(loaded.truth, truth[::3, ::5])


@pytest.mark.needs("PIL")
def test_the_map_is_brought_to_the_size_of_the_ground_truth(picture, tmp_path):
    files, p, truth = picture
    mask = png(tmp_path / "m.png", 255 * (p > 99))
    (loaded,) = load(case_of(files.probabilities.path, mask, files.truth.path), resample="map")
    np.testing.assert_array_equal(loaded.truth, truth)
    values = loaded.prediction.probabilities
    assert values.shape == (24, 30)
    assert values.dtype == np.float32
    np.testing.assert_allclose(values[1::3, 2::5], p / 255, rtol=1e-6)  # where centres coincide
    np.testing.assert_array_equal(loaded.delivered, np.kron(p > 99, np.ones((3, 5), bool)))
    (loaded,) = load(case_of(files.probabilities.path, mask), resample="map")
    assert loaded.prediction.shape == (8, 6), "without ground truth there is nothing to bring it to"


@pytest.mark.parametrize("resample", ["truth", "map"])
def test_volumes_without_geometry_are_resized(tmp_path, resample):
    files = case_of(npy(tmp_path / "a.npy", P[1]), None, npy(tmp_path / "t.npy", np.ones((8, 10, 12), bool)))
    (loaded,) = load(files, resample=resample)
    assert (
        loaded.truth.shape == loaded.prediction.shape == ((4, 5, 6) if resample == "truth" else (8, 10, 12))
    )


@pytest.mark.parametrize("resample", ["truth", "map", None])
def test_a_volume_is_not_resized_if_only_one_side_has_a_geometry(tmp_path, resample):
    files = case_of(
        npy(tmp_path / "a.npy", P[1]), None, nifti(tmp_path / "t.nii", np.ones((8, 10, 12), np.uint8))
    )
    with pytest.raises(GeometryError, match=r"t\.nii: .* got \(8, 10, 12\)\. Only one .*: save the other as"):
        load(files, resample=resample)


def test_arrays_of_other_dimensions_are_not_resized(tmp_path):
    files = case_of(npy(tmp_path / "a.npy", P[1]), None, npy(tmp_path / "t.npy", np.ones((5, 6), bool)))
    with pytest.raises(GeometryError, match=r"got \(5, 6\)\. Check that they belong together\.$"):
        load(files, resample="truth")


def test_a_map_is_brought_to_the_grid_of_the_ground_truth_in_space(tmp_path):
    """A finer grid, whose x axis runs from the other end: interpolation is linear between voxel centres."""
    z = np.linspace(0.1, 0.9, 4, dtype=np.float32)
    p = np.broadcast_to(z[:, None, None], (4, 5, 6)).copy()
    affine = flipped(np.diag([1.0, 1.0, 0.5, 1.0]), 6)
    truth = nifti(tmp_path / "t.nii", np.ones((7, 5, 6), np.uint8), affine)
    mask = nifti(tmp_path / "m.nii", (p > 0.5).astype(np.uint8))
    (loaded,) = load(case_of(nifti(tmp_path / "a.nii", p), mask, truth), resample="map")
    expected = np.interp(np.arange(7) / 2, np.arange(4), z)
    assert loaded.prediction.shape == loaded.truth.shape == (7, 5, 6)
    np.testing.assert_allclose(loaded.prediction.probabilities[:, 2, 3], expected, rtol=1e-6)
    assert loaded.delivered.shape == (7, 5, 6)
    assert loaded.prediction.spacing_mm == pytest.approx((0.5, 1.0, 1.0))
    np.testing.assert_allclose(loaded.grid.affine, affine)


def test_members_are_fused_before_they_are_brought_to_the_ground_truth(tmp_path):
    from dataclasses import replace

    first = case_of(npy(tmp_path / "a.npy", P[1, 0]), None, npy(tmp_path / "t.npy", np.ones((10, 12), bool)))
    files = replace(first, members=(ArrayRef(npy(tmp_path / "b.npy", P[2, 0])),))
    (loaded,) = load(files, resample="map")
    assert loaded.prediction.shape == (10, 12)
    assert loaded.prediction.agreement is not None


@pytest.mark.parametrize(
    ("saved", "meant"), [(True, "truth"), (False, None), ("truth", "truth"), ("map", "map")]
)
def test_resampling_as_tables_of_any_version_have_it(saved, meant):
    assert ReadOptions(resample=saved).resample == meant


def test_options_that_make_no_sense_are_rejected():
    for value, said in (
        (0.0, "share of white"),
        (-1, "share"),
        (np.nan, "grey level"),
        (np.inf, "grey level"),
    ):
        with pytest.raises(ParameterError, match=f"^truth_threshold: .*{said}"):
            ReadOptions(truth_threshold=value)
    with pytest.raises(ParameterError, match="--truth-threshold or --label, got both"):
        ReadOptions(truth_threshold=0.5, labels=(1,))
    with pytest.raises(ParameterError, match=r"^resample: expected truth or map"):
        ReadOptions(resample="mask")
    with pytest.raises(ParameterError, match=r"^resample: expected truth or map, got 'images'\.$"):
        ReadOptions(resample="images")


CUBE = np.zeros((12, 12, 12), np.uint8)
CUBE[1:4, 2:8, 3:11] = 1


def test_arrays_in_the_order_of_nibabel_are_rejected(tmp_path):
    """Attack 11: a cubic array in (x, y, z) order had a Dice of 0, without comment."""
    truth = nifti(tmp_path / "t.nii.gz", CUBE)
    as_nibabel_has_it = npy(tmp_path / "a.npy", CUBE.T * 0.9)
    with pytest.raises(
        GeometryError,
        match=rf"t\.nii\.gz: .*reversed \(Dice 1\.00 .*{tmp_path}/a\.npy has no geometry.*array\.T.*also",
    ):
        load(case_of(as_nibabel_has_it, None, truth))
    (loaded,) = load(case_of(npy(tmp_path / "a.npy", CUBE * 0.9), None, truth))
    assert (loaded.truth == CUBE).all()


def test_the_side_without_geometry_may_be_the_truth(tmp_path):
    p, truth = nifti(tmp_path / "a.nii", CUBE * np.float32(0.9)), npy(tmp_path / "t.npy", CUBE.T.copy())
    with pytest.raises(GeometryError, match=rf"{tmp_path}/t\.npy has no geometry"):
        load(case_of(p, None, truth))


@pytest.mark.parametrize("resample", ["truth", "map", None])
def test_shapes_that_agree_only_in_reverse_are_rejected(tmp_path, resample):
    files = case_of(npy(tmp_path / "a.npy", P[1].T), None, nifti(tmp_path / "t.nii", LABELS % 2))
    with pytest.raises(
        GeometryError, match=r"\(4, 5, 6\) and \(6, 5, 4\), they agree only with the axes rev"
    ):
        load(files, resample=resample)


def test_a_case_that_fits_somewhat_better_in_reverse_is_noted(tmp_path):
    """Those of its set that overlap well are rejected; this one was scored without a word."""
    missed = np.zeros_like(CUBE)
    missed[1:3, 2:4, 3:11] = 1  # a third of the ground truth
    truth = nifti(tmp_path / "t.nii.gz", CUBE)
    (loaded,) = load(case_of(npy(tmp_path / "a.npy", missed.T * 0.9), None, truth))
    (note,) = loaded.notes
    assert re.search(
        rf"reversed \(Dice 0\.\d+ instead of 0\.\d+\)\. Is {tmp_path}/a\.npy.*\(x, y, z\)\?", note
    )
    (loaded,) = load(case_of(npy(tmp_path / "a.npy", missed * 0.9), None, truth))
    assert loaded.notes == ()


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0)])
def test_a_poor_or_symmetric_map_is_no_reason_to_reject(tmp_path, order):
    rng = np.random.default_rng(0)
    ball = np.linalg.norm(np.indices((12, 12, 12)) - 5.5, axis=0) < 4
    for p in (rng.random((12, 12, 12)), ball * 0.8, np.zeros((12, 12, 12))):
        files = case_of(
            npy(tmp_path / "a.npy", p.transpose(order)),
            None,
            nifti(tmp_path / "t.nii", ball.astype(np.uint8)),
        )
        assert load(files)


def test_arrays_without_geometry_on_both_sides_are_taken_as_they_are(tmp_path):
    files = case_of(npy(tmp_path / "a.npy", CUBE.T * 0.9), None, npy(tmp_path / "t.npy", CUBE))
    assert load(files)


def blurred(size=64, radius=20):
    y, x = np.indices((size, size))
    return np.rint(255 * np.clip((radius - np.hypot(y - size / 2, x - size / 2)) / 3 + 0.5, 0, 1)).astype(
        "u1"
    )


@pytest.mark.needs("PIL")
def test_soft_ground_truth_is_thresholded_and_noted(tmp_path):
    soft = blurred()
    files = case_of(png(tmp_path / "p.png", soft), None, png(tmp_path / "t.png", soft))
    (loaded,) = load(files)
    np.testing.assert_array_equal(loaded.truth, soft >= 128)
    (note,) = loaded.notes
    assert note.startswith(f"{tmp_path}/t.png: ground truth thresholded at 127.5; ")
    (loaded,) = load(files, truth_threshold=200)
    np.testing.assert_array_equal(loaded.truth, soft >= 200)
    (loaded,) = load(case_of(tmp_path / "p.png", None, png(tmp_path / "h.png", 255 * (soft > 127))))
    assert loaded.notes == ()


@pytest.mark.needs("PIL")
def test_delivered_masks_are_never_thresholded(tmp_path):
    soft = blurred()
    files = case_of(png(tmp_path / "p.png", soft), png(tmp_path / "m.png", soft))
    for threshold in (None, 0.5):
        with pytest.raises(NotBinaryError, match=r"m\.png: .* never thresholded: .* save it as 0 and 255"):
            load(files, truth_threshold=threshold)


@pytest.mark.needs("PIL")
@pytest.mark.parametrize("mode", ["L", "RGB"])
def test_ground_truth_in_jpeg(tmp_path, mode):
    """The format in which Kvasir-SEG is published; never for maps and delivered masks."""
    from PIL import Image

    hard = blurred() > 127
    Image.fromarray((255 * hard).astype("u1")).convert(mode).save(tmp_path / "t.jpg", quality=75)
    files = case_of(png(tmp_path / "p.png", blurred()), None, tmp_path / "t.jpg")
    (loaded,) = load(files)
    assert np.count_nonzero(loaded.truth != hard) < 20
    assert "t.jpg: ground truth thresholded" in loaded.notes[0]
    for wrong in (case_of(tmp_path / "t.jpg"), case_of(tmp_path / "p.png", tmp_path / "t.jpg")):
        with pytest.raises(WrongContentError, match=r"t\.jpg: expected pixels as they were saved, got JPEG"):
            load(wrong)
    with pytest.raises(NotBinaryError, match=r"t\.jpg: expected labels, got JPEG"):
        load(files, labels=(1,))


@pytest.mark.needs("PIL")
def test_images_are_no_ground_truth_in_jpeg(tmp_path):
    from PIL import Image

    colours = np.random.default_rng(0).integers(0, 256, (64, 64, 3)).astype("u1")
    Image.fromarray(colours).save(tmp_path / "t.jpg")
    p = png(tmp_path / "p.png", blurred())
    with pytest.raises(WrongContentError, match=r"t\.jpg: expected a grey picture, got one in colours"):
        load(case_of(p, None, tmp_path / "t.jpg"))
    Image.fromarray(np.tile(np.arange(64, dtype="u1") * 4, (64, 1))).save(tmp_path / "t.jpg")
    with pytest.raises(NotBinaryError, match=r"t\.jpg: expected a mask, in JPEG"):
        load(case_of(p, None, tmp_path / "t.jpg"))
    exif = Image.Exif()
    exif[0x0112] = 6
    Image.fromarray(blurred()).save(tmp_path / "t.jpg", exif=exif)
    with pytest.raises(WrongContentError, match=r"t\.jpg: .* orientation tag"):
        load(case_of(p, None, tmp_path / "t.jpg"))
    (tmp_path / "t.jpg").write_bytes((tmp_path / "t.jpg").read_bytes()[:-200])
    with pytest.raises(ReadError):
        load(case_of(p, None, tmp_path / "t.jpg"))


def test_labels_that_are_named_are_never_thresholded(model, tmp_path):
    truth = nifti(tmp_path / "t.nii.gz", LABELS)
    with pytest.raises(WrongContentError, match=r"t\.nii\.gz: expected binary ground truth for --truth-thr"):
        load(case_of(tmp_path / "a.npz", None, truth), truth_threshold=0.5)


def test_the_only_channel_of_nnunet_is_the_foreground(tmp_path):
    """A sigmoid: it was taken for the background, and its complement was scored."""
    np.savez(tmp_path / "a.npz", probabilities=P[1:2])
    (loaded,) = load(case_of(tmp_path / "a.npz"))
    assert loaded.structure == "foreground"
    assert (loaded.prediction.probabilities == P[1]).all()
    (loaded,) = load(case_of(tmp_path / "a.npz", None, npy(tmp_path / "t.npy", LABELS == 1)))
    assert (loaded.truth == (LABELS == 1)).all()


def test_predictions_carry_the_checksum_of_their_file(tmp_path):
    from segtrust.engine import checksum_of_row
    from segtrust.io.checksums import checksum_of

    path = npy(tmp_path / "a.npy", P[1])
    (loaded,) = load(case_of(path))
    assert loaded.checksum == loaded.prediction.checksum == checksum_of(path)
    np.savez(tmp_path / "stack.npz", p_hat=P)
    (loaded,) = load(CaseFiles("a", ArrayRef(tmp_path / "stack.npz", "p_hat", 1)))
    row = {"checksum": checksum_of(tmp_path / "stack.npz"), "k": 7, "file": f"{tmp_path}/stack.npz::p_hat[1]"}
    assert loaded.prediction.checksum == checksum_of_row(row)
    assert loaded.checksum == row["checksum"]
    (loaded,) = load_case(case_of(path), ReadOptions(), digest="sha256")
    assert loaded.prediction.checksum.startswith("sha256:")


@pytest.mark.parametrize("p", [np.zeros((4, 5)), np.full((4, 5), 127, np.uint8), np.full((4, 5), 0.49)])
def test_an_empty_mask_recognises_no_case(tmp_path, p):
    (loaded,) = load(case_of(npy(tmp_path / "a.npy", p)))
    assert loaded.checksum
    assert loaded.prediction.checksum == ""
    (loaded,) = load(
        case_of(npy(tmp_path / "a.npy", P[1, 0]), npy(tmp_path / "m.npy", np.zeros((5, 6), bool)))
    )
    assert loaded.prediction.checksum == ""


def test_estimators_that_learn_remember_the_checksums(tmp_path):
    import segtrust as st
    from segtrust._arguments import checksum_name

    maps = [npy(tmp_path / f"{i}.npy", P[i]) for i in range(3)]
    loaded = [load(case_of(path, id=path.stem))[0].prediction for path in maps]
    fitted = st.get_estimator("tla").fit(loaded)
    names = {checksum_name(each.checksum) for each in loaded} - {""}
    assert names
    assert names <= fitted.used_ids


def test_a_store_that_announces_too_much_is_not_read(tmp_path):
    from segtrust.io.grid import Grid
    from segtrust.io.loading import OpenedCase, load_opened
    from segtrust.io.volume import Volume

    def refuse(_):
        raise AssertionError("must not be read")

    affine = np.diag([2.0, 2.0, 2.0, 1.0])
    volume = Volume("a.npy", P[1].shape, P.dtype, lambda _: P[1], False, Grid(P[1].shape, np.eye(4)))
    huge = Grid((1 << 20, 1 << 10, 1 << 10), affine)
    truth = Volume("a.zarr", huge.shape, np.dtype("u1"), refuse, False, huge, lazy=True)
    with pytest.raises(UnsafeFileError, match=r"^a\.zarr: expected an array of at most"):
        list(load_opened(OpenedCase("a", tmp_path, volume, None, truth), ReadOptions(resample="truth")))


def test_the_checksum_of_a_case_is_computed_once(tmp_path, monkeypatch):
    import segtrust as st
    from segtrust.engine import ScoreJob
    from segtrust.io import checksums

    computed = []
    compute = checksums._of_file
    monkeypatch.setattr(
        checksums, "_of_file", lambda path, kind: computed.append(path) or compute(path, kind)
    )
    np.savez(tmp_path / "a.npz", probabilities=P)
    (tmp_path / "dataset.json").write_text(json.dumps({"labels": {"background": 0, "organ": 1, "lesion": 2}}))
    job = ScoreJob((st.SoftDice(),), ReadOptions(regions=("each",)))
    outcome = job(case_of(tmp_path / "a.npz", npy(tmp_path / "m.npy", LABELS)))
    assert computed == [tmp_path / "a.npz", tmp_path / "m.npy"]
    assert {row["checksum"] for row in outcome.rows} == {checksums.checksum_of(tmp_path / "a.npz")}
