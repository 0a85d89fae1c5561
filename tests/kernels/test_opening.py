"""Arrays of every kind find their way to the sums."""

import numpy as np
import pytest

import segtrust
from segtrust.errors import MaskShapeError
from segtrust.kernels.opening import open_map
from tests.references import logit_normal

P = logit_normal((12, 14))
MASK = np.random.default_rng(0).random(P.shape) < 0.3
SDC = segtrust.soft_dice_confidence(P, MASK)


@pytest.mark.needs("h5py")
def test_a_data_set_that_is_one_number(tmp_path):
    import h5py

    with h5py.File(tmp_path / "one.h5", "w") as file:
        one = file.create_dataset("p", data=0.7)
        names = ["sdc", "idc", "ane", "mmmc", "pla"]
        assert segtrust.score(one, estimators=names) == segtrust.score(0.7, estimators=names)


@pytest.mark.needs("zarr")
def test_a_store_that_is_one_number():
    import zarr

    assert segtrust.soft_dice_confidence(zarr.array(np.array(0.7))) == segtrust.soft_dice_confidence(0.7)


@pytest.mark.needs("dask", "pandas")
def test_lists_and_tables_are_masks_of_maps_in_chunks():
    import dask.array
    import pandas as pd

    p = dask.array.from_array(P, chunks=5)
    for mask in (MASK.tolist(), pd.DataFrame(MASK), MASK.astype(float).tolist()):
        assert segtrust.soft_dice_confidence(p, mask) == pytest.approx(SDC, rel=1e-14)
    with pytest.raises(MaskShapeError, match=r"mask: expected the shape of p, \(12, 14\), got \(2,\)"):
        segtrust.soft_dice_confidence(p, [0, 1])


@pytest.mark.needs("torch", "zarr")
def test_a_mask_comes_to_its_map_from_anywhere():
    import torch
    import zarr

    tensor = torch.tensor(MASK, dtype=torch.float32, requires_grad=True)
    assert segtrust.soft_dice_confidence(P, tensor) == SDC
    assert segtrust.dice(tensor, MASK) == 1
    for mask in (zarr.array(MASK, chunks=(5, 5)), MASK.tolist()):
        assert segtrust.soft_dice_confidence(torch.from_numpy(P), mask).item() == pytest.approx(SDC)
        assert segtrust.soft_dice_confidence(P, mask) == SDC


def test_masks_are_named_by_their_case():
    with pytest.raises(MaskShapeError, match="case 7: mask: expected the shape"):
        open_map(P, MASK[1:], source="case 7")
