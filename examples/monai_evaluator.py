"""Confidences inside a MONAI evaluator: a transform scores each case, a handler writes the score table."""

import torch
from monai.data import DataLoader, Dataset
from monai.engines import SupervisedEvaluator
from monai.transforms import Compose

from segtrust.integrations.monai import ConfidenceSaver, SegmentationConfidenced

rows, columns = torch.meshgrid(torch.arange(32), torch.arange(32), indexing="ij")


def item(number):
    """Return one case: a disc of its own size, with less contrast in later cases."""
    label = ((rows - 16) ** 2 + (columns - 16) ** 2 < 30 + 10 * number).float()
    noise = torch.randn(label.shape, generator=torch.Generator().manual_seed(number))
    image = (1 - number / 8) * (2 * label - 1) + 0.3 * noise
    return {"id": f"case_{number}", "image": image[None], "label": label[None]}


class Network(torch.nn.Module):
    """Two classes from the brightness; a real network goes here."""

    def forward(self, image):
        return torch.cat([-2 * image, 2 * image], dim=1)


score = SegmentationConfidenced(
    "pred",
    label_keys="label",  # adds the Dice; leave it out if there are no labels
    from_logits=True,
    task="multiclass",
    names=["background", "disc"],
    estimators=["sdc", "idc"],
)
evaluator = SupervisedEvaluator(
    device="cpu",
    val_data_loader=DataLoader(Dataset([item(number) for number in range(8)]), batch_size=4),
    network=Network(),
    postprocessing=Compose([score]),
    val_handlers=[ConfidenceSaver("scores.csv", name_of=lambda output: output["id"])],
)
evaluator.run()
for row in evaluator.state.confidences.rows:
    print(f"{row['case']}: SDC {row['sdc']:.3f}, Dice {row['dice']:.3f}")
print(f"AURC {evaluator.state.metrics['sdc_aurc']:.3f}; table written to scores.csv")
