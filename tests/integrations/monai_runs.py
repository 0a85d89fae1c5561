"""A small evaluator of MONAI with real transforms, as tests run it in one process and in several."""

from pathlib import Path

import nibabel
import numpy as np

NAMES = ["background", "organ", "lesion"]
SIZE = 24


def write_volumes(folder: Path, count: int = 5) -> list[dict]:
    """Volumes with a large bright ball and a small brighter one inside, and their labels."""
    grid = np.stack(np.meshgrid(*[np.arange(SIZE)] * 3, indexing="ij"))
    items = []
    for i in range(count):
        generator = np.random.default_rng(i)
        centre = generator.uniform(9, 15, (3, 1, 1, 1))
        distance = np.sqrt(((grid - centre) ** 2).sum(0))
        label = (distance < 7).astype(np.uint8) + (distance < 3)
        image = label + generator.normal(0, 0.1 + 0.15 * i, label.shape)
        item = {}
        for kind, values in (("image", image.astype(np.float32)), ("label", label)):
            path = folder / f"{kind}s" / f"case_{i}.nii.gz"
            path.parent.mkdir(exist_ok=True, parents=True)
            nibabel.save(nibabel.Nifti1Image(values, np.diag([1.0, 1.5, 2.0, 1.0])), path)
            item[kind] = str(path)
        items.append(item)
    return items


def network(channels: int = 3):
    """A U-Net of MONAI whose last word is the brightness, so that it finds something untrained."""
    import torch
    from monai.networks.nets import UNet

    class Found(torch.nn.Module):
        def __init__(self):
            super().__init__()
            torch.manual_seed(0)
            self.net = UNet(
                3, in_channels=1, out_channels=channels, channels=(4, 8), strides=(2,), norm="batch"
            )

        def forward(self, image):
            levels = torch.arange(channels, device=image.device).view(1, -1, 1, 1, 1)
            return 0.2 * self.net(image) - 4.0 * (image - levels) ** 2

    return Found().eval()


def evaluator(items, handlers, *, sampler=None, before=(), **settings):
    """An evaluator over these files that looks at one window after the other."""
    from monai.data import DataLoader, Dataset
    from monai.engines import SupervisedEvaluator
    from monai.handlers import MeanDice, from_engine
    from monai.inferers import SlidingWindowInferer
    from monai.transforms import (
        Activationsd,
        AsDiscreted,
        Compose,
        EnsureChannelFirstd,
        LoadImaged,
        ScaleIntensityRanged,
    )

    from segtrust.integrations.monai import SegmentationConfidenced

    read = Compose(
        [
            LoadImaged(["image", "label"], image_only=True),
            EnsureChannelFirstd(["image", "label"]),
            ScaleIntensityRanged("image", 0.0, 1.0, 0.0, 1.0),
        ]
    )
    usual = {"from_logits": False, "task": "multiclass", "names": NAMES, "estimators": ["sdc", "idc", "amsp"]}
    post = Compose(
        [
            Activationsd("pred", softmax=True),
            *before,
            SegmentationConfidenced("pred", label_keys="label", **{**usual, **settings}),
            AsDiscreted("pred", argmax=True, to_onehot=3),
            AsDiscreted("label", to_onehot=3),
        ]
    )
    data = Dataset(items, read)
    loader = DataLoader(data, batch_size=2, sampler=sampler(data) if sampler else None)
    return SupervisedEvaluator(
        device="cpu",
        val_data_loader=loader,
        network=network(),
        inferer=SlidingWindowInferer(roi_size=(16, 16, 16), sw_batch_size=2, overlap=0.25),
        postprocessing=post,
        key_val_metric={
            "dice": MeanDice(include_background=False, output_transform=from_engine(["pred", "label"]))
        },
        val_handlers=handlers,
    )
