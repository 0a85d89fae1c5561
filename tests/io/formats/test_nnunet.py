"""Archives of nnU-Net, compared with the masks that it delivered."""

import pickle
from pathlib import Path

import numpy as np
import pytest

from segtrust.errors import DamagedFileError, UnsafeFileError, WrongContentError
from segtrust.io.formats.nifti import open_nifti
from segtrust.io.formats.nnunet import open_nnunet, recognises_nnunet
from segtrust.io.grid import Grid, check_same_grid

ROOT = Path(__file__).parents[2] / "fixtures/nnunet"
CASES = sorted(ROOT.glob("*/*/*.npz"))
P = np.random.default_rng(1).dirichlet(np.ones(3), (4, 5, 6)).transpose(3, 0, 1, 2).astype(np.float32)
ITK = {"spacing": (0.5, 0.7, 3.0), "origin": (1.0, 2.0, 3.0), "direction": (0, 1, 0, -1, 0, 0, 0, 0, 1)}

of_cases = pytest.mark.parametrize("path", CASES, ids=lambda path: "-".join(path.parts[-3:]))


@pytest.fixture
def write(tmp_path):
    """Write a case, with what is noted about it."""

    def written(about=None, *, key="probabilities", values=P):
        path = tmp_path / "case.npz"
        np.savez_compressed(path, **{key: values})
        if about is not None:
            path.with_suffix(".pkl").write_bytes(pickle.dumps(about))
        return path

    return written


def test_there_are_fixtures():
    assert len(CASES) == 8


@pytest.mark.needs("SimpleITK")
@of_cases
def test_the_grid_is_that_of_the_delivered_mask(path):
    import SimpleITK

    mask = SimpleITK.ReadImage(str(path.with_suffix(".nii.gz")))
    volume = open_nnunet(path)
    assert volume.grid.shape == mask.GetSize()[::-1] == volume.shape[1:]
    about = volume.grid.itk()
    assert np.allclose(about["spacing"], mask.GetSpacing())
    assert np.allclose(about["origin"], mask.GetOrigin())
    assert np.allclose(about["direction"], mask.GetDirection())
    check_same_grid(volume.grid, open_nifti(path.with_suffix(".nii.gz")).grid, ("a", "b"))


@pytest.mark.needs("SimpleITK")
@of_cases
def test_the_probabilities_make_the_delivered_mask(path):
    """All lengths differ, so no other order of the axes would fit."""
    import SimpleITK

    mask = SimpleITK.GetArrayFromImage(SimpleITK.ReadImage(str(path.with_suffix(".nii.gz"))))
    p = open_nnunet(path).read()
    assert len({*p.shape[1:]}) == 3
    if "plain" in path.parts:
        made = p.argmax(0)
    else:
        made = np.zeros(mask.shape)
        for channel, value in zip(p, (1, 2, 3), strict=True):
            made[channel > 0.5] = value
    assert (made == mask).all()


@of_cases
def test_arrays_are_recognised_and_have_channels(path):
    assert recognises_nnunet(path, path.read_bytes()[:512])
    volume = open_nnunet(path)
    assert volume.has_channels
    with np.load(path) as loaded:
        wanted = loaded["probabilities"]
    assert (volume.read() == wanted).all()
    assert (volume.read(1) == wanted[1]).all()


def test_other_archives_are_not_recognised(tmp_path):
    np.savez(tmp_path / "a.npz", other=P)
    head = (tmp_path / "a.npz").read_bytes()[:512]
    assert not recognises_nnunet(tmp_path / "a.npz", head)
    assert not recognises_nnunet(tmp_path / "a.npz", b"\x93NUMPY")


def test_another_array_can_be_asked_for(tmp_path):
    path = tmp_path / "a.npz"
    np.savez(path, probabilities=P, other=P[::-1])
    assert (open_nnunet(path, "other").read() == P[::-1]).all()
    with pytest.raises(
        WrongContentError, match=rf"^{path}: expected an array called 'absent', got other, prob"
    ):
        open_nnunet(path, "absent")


@pytest.mark.parametrize("shape", [(5, 6), (4, 5, 6), (2, 3, 4, 5, 6)])
def test_arrays_of_other_axes_are_of_somebody_else(write, shape):
    """Whether the first axis of three are channels is not known."""
    volume = open_nnunet(write(values=np.zeros(shape, np.float32)))
    assert (volume.shape, volume.has_channels, volume.grid) == (shape, None, None)


def test_flat_images_have_channels_and_one_slice(write):
    flat = P[:, :1]
    for about in (
        {"spacing": [999, 1, 1]},
        {"sitk_stuff": {"spacing": (1, 1), "origin": (0, 0), "direction": (1, 0, 0, 1)}},
    ):
        volume = open_nnunet(write(about, values=flat))
        assert (volume.shape, volume.has_channels, volume.grid) == (flat.shape, True, None)


def test_without_notes_nothing_is_known_of_the_grid(write):
    assert open_nnunet(write()).grid is None
    assert open_nnunet(write({})).grid is None


def test_arrays_are_as_good_as_tuples(write):
    about = {"sitk_stuff": {name: np.array(values) for name, values in ITK.items()}}
    wanted = Grid.of_itk(P.shape[1:], **ITK)
    assert np.allclose(open_nnunet(write(about)).grid.affine, wanted.affine)


@pytest.mark.parametrize("turned", [True, False])
def test_readers_of_nibabel_note_an_affine(write, turned):
    """Where an image was turned, its probabilities are as well, and the mask is not."""
    first, second = np.diag([1.0, 2.0, 3.0, 1.0]), np.diag([-1.0, 2.0, 3.0, 1.0])
    noted = {"original_affine": first} | ({"reoriented_affine": second} if turned else {})
    grid = open_nnunet(write({"nibabel_stuff": noted})).grid
    assert (grid.affine == (second if turned else first)).all()
    assert grid.shape == P.shape[1:]


@pytest.mark.parametrize(
    "noted",
    [
        {"sitk_stuff": ITK | {"spacing": (1.0, 0.0, 1.0)}},
        {"sitk_stuff": ITK | {"spacing": (1.0, np.nan, 1.0)}},
        {"sitk_stuff": ITK | {"spacing": ("a", "b", "c")}},
        {"sitk_stuff": ITK | {"spacing": 3}},
        {"sitk_stuff": ITK | {"origin": (1.0, 2.0)}},
        {"sitk_stuff": ITK | {"direction": (1, 0, 0, 1)}},
        {"sitk_stuff": ITK | {"direction": [[1, 0], [0]]}},
        {"sitk_stuff": ITK | {"direction": (0,) * 9}},
        {"nibabel_stuff": {"original_affine": np.zeros((4, 4))}},
        {"nibabel_stuff": {"original_affine": np.eye(3)}},
        {"nibabel_stuff": {"original_affine": "words"}},
    ],
)
def test_a_geometry_that_is_none_is_told(write, noted):
    path = write(noted)
    with pytest.raises(DamagedFileError, match=f"^{path.with_suffix('.pkl')}: expected"):
        open_nnunet(path)


def test_notes_of_another_kind_are_told(write):
    path = write([1, 2, 3])
    with pytest.raises(DamagedFileError, match=r"case\.pkl: expected the geometry of a case, got list"):
        open_nnunet(path)


def test_notes_that_run_code_are_refused(write, tmp_path):
    path = write()
    path.with_suffix(".pkl").write_bytes(b"cposix\nsystem\n(Vtouch " + bytes(tmp_path / "canary") + b"\ntR.")
    with pytest.raises(UnsafeFileError, match=r"case\.pkl: .* got posix\.system"):
        open_nnunet(path)
    assert not (tmp_path / "canary").exists()


V1 = {
    "crop_bbox": [[1, 5], [2, 7], [0, 6]],
    "original_size_of_raw_data": np.array([6, 8, 9]),
    "size_after_cropping": (4, 5, 6),
    **{f"itk_{name}": values for name, values in ITK.items()},
}


def test_arrays_of_version_1_are_put_back(write):
    volume = open_nnunet(write(V1, key="softmax", values=P.astype(np.float16)))
    assert (volume.shape, volume.dtype, volume.has_channels) == ((3, 6, 8, 9), np.float16, True)
    assert np.allclose(volume.grid.affine, Grid.of_itk((6, 8, 9), **ITK).affine)
    wanted = np.zeros((3, 6, 8, 9), np.float16)
    wanted[0] = 1
    wanted[:, 1:5, 2:7, :6] = P
    assert (volume.read() == wanted).all()
    for channel in range(3):
        assert (volume.read(channel) == wanted[channel]).all()
        assert volume.read(channel).dtype == np.float16


def test_regions_of_version_1_are_nowhere_outside(write):
    """None of them is the background."""
    volume = open_nnunet(write(V1 | {"regions_class_order": (1, 2, 3)}, key="softmax"))
    outside = np.ones((6, 8, 9), bool)
    outside[1:5, 2:7, :6] = False
    assert not volume.read()[:, outside].any()
    assert (volume.read(0)[1:5, 2:7, :6] == P[0]).all()


def test_version_1_without_a_crop_is_left_as_it_is(write):
    volume = open_nnunet(write(V1 | {"crop_bbox": None}, key="softmax"))
    assert volume.shape == P.shape
    assert np.allclose(volume.grid.affine, Grid.of_itk(P.shape[1:], **ITK).affine)


@pytest.mark.parametrize(
    "changed",
    [
        {"crop_bbox": [[1, 5], [2, 7]]},
        {"crop_bbox": [[1, 5], [2, 7], [0, 7]]},
        {"crop_bbox": [[-1, 3], [2, 7], [0, 6]]},
        {"crop_bbox": [[5, 9], [2, 7], [0, 6]]},
        {"crop_bbox": [[np.nan, 5], [2, 7], [0, 6]]},
        {"crop_bbox": "words"},
        {"crop_bbox": 7},
        {"original_size_of_raw_data": None},
        {"original_size_of_raw_data": (6, 8)},
        {"original_size_of_raw_data": (6, 8, np.inf)},
        {"original_size_of_raw_data": (2, 8, 9)},
    ],
)
def test_a_crop_that_does_not_fit_is_told(write, changed):
    path = write(V1 | changed, key="softmax")
    with pytest.raises(DamagedFileError, match=f"^{path.parent}/case.(pkl|npz): expected"):
        open_nnunet(path)
