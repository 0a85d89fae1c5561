"""Files as TotalSegmentator leaves them: nnU-Net's probabilities on its own grid, and a mask on the CT's."""

import pickle

import numpy as np

COARSE, FINE = 3.0, 1.5
SIZE = 12


def soft_maps(channels: int, seed: int = 0):
    """A softmax (C, z, y, x) of balls side by side, one a structure, blurred by noise."""
    generator = np.random.default_rng(seed)
    places = np.stack(np.meshgrid(*[np.arange(SIZE)] * 3, indexing="ij"), -1)
    centres = generator.uniform(2, SIZE - 3, (channels - 1, 3))
    distances = np.sqrt(((places[..., None, :] - centres) ** 2).sum(-1))
    logits = np.concatenate([np.zeros((SIZE,) * 3 + (1,)), 4.0 * (2.5 - distances)], -1)
    logits += generator.normal(0, 0.5, logits.shape)
    p = np.exp(logits - logits.max(-1, keepdims=True))
    return np.moveaxis(p / p.sum(-1, keepdims=True), -1, 0).astype(np.float32)


def write_probabilities(path, p):
    """What nnU-Net's export writes, which TotalSegmentator copies to the path that it was given."""
    np.savez_compressed(path, probabilities=p)
    direction = (-1.0, 0.0, 0.0, 0.0, -1.0, 0.0, 0.0, 0.0, 1.0)  # of a canonical NIfTI, told by ITK
    geometry = {"spacing": (COARSE,) * 3, "origin": (0.0, 0.0, 0.0), "direction": direction}
    about = {
        "sitk_stuff": geometry,
        "spacing": [COARSE] * 3,
        "shape_before_cropping": p.shape[1:],
        "bbox_used_for_cropping": [[0, length] for length in p.shape[1:]],
        "shape_after_cropping_and_before_resampling": p.shape[1:],
    }
    path.with_suffix(".pkl").write_bytes(pickle.dumps(about))
    return path


def write_segmentation(path, labels, names):
    """A multi-label image of twice the resolution, written by TotalSegmentator's own code.

    Its first axis runs from right to left, as that of many CTs, while the probabilities lie canonically.
    """
    import nibabel
    from totalsegmentator.nifti_ext_header import save_multilabel_nifti

    fine = labels.repeat(2, 0).repeat(2, 1).repeat(2, 2).T.astype(np.uint8)  # (x, y, z)
    affine = np.diag([FINE, FINE, FINE, 1.0])
    affine[:3, 3] = -FINE / 2  # the corner of the image, not the middle of its first pixel, is the same
    flipped = affine @ np.diag([-1.0, 1.0, 1.0, 1.0])
    flipped[0, 3] = affine[0, 3] + FINE * (fine.shape[0] - 1)
    save_multilabel_nifti(nibabel.Nifti1Image(fine[::-1], flipped), str(path), dict(names))
    return path
