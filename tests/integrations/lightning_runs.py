"""A validation by Lightning, run as a program on one process or more; see `test_lightning`.

python lightning_runs.py DEVICES FOLDER
"""

import json
import sys
from pathlib import Path

import lightning
import torch
from torch.utils.data import DataLoader, Dataset

from segtrust.integrations.torch import (
    MeanSoftDiceConfidence,
    SoftDiceConfidenceAURC,
    SoftDiceConfidenceMetric,
)

CASES = 7  # uneven: a sampler of two processes repeats one
SETTINGS = {"from_logits": True, "task": "multiclass"}


class Discs(Dataset):
    """Discs of two kinds in noise."""

    def __len__(self):
        return CASES

    def __getitem__(self, index):
        generator = torch.Generator().manual_seed(index)
        rows, columns = torch.meshgrid(torch.arange(20), torch.arange(22), indexing="ij")
        distance = (rows - 8 - index % 3) ** 2 + (columns - 9) ** 2
        truth = (distance < 40).long() + (distance < 4 * (index % 2))  # some have no second kind
        image = truth + (0.1 + 0.1 * index) * torch.randn(truth.shape, generator=generator)
        return image[None], truth, index


class Model(lightning.LightningModule):
    def __init__(self, folder):
        super().__init__()
        self.folder = Path(folder)
        torch.manual_seed(0)
        self.net = torch.nn.Conv2d(1, 3, 3, padding=1)
        self.cases = SoftDiceConfidenceMetric(**SETTINGS)
        self.aurc = SoftDiceConfidenceAURC(classes=[1, 2], **SETTINGS)
        self.mean = MeanSoftDiceConfidence(classes=[1, 2], **SETTINGS)

    def forward(self, image):
        levels = torch.arange(3, device=image.device).view(1, 3, 1, 1)
        return 0.2 * self.net(image) - 4.0 * (image - levels) ** 2

    def training_step(self, batch, number):
        image, truth, _ = batch
        return torch.nn.functional.cross_entropy(self(image), truth)

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.01)

    def validation_step(self, batch, number):
        image, truth, index = batch
        logits = self(image)
        for metric in (self.cases, self.aurc, self.mean):
            metric.update(logits, truth, index)
        self.log("aurc", self.aurc)
        self.log("confidence", self.mean)

    def on_validation_epoch_end(self):
        found = self.cases.compute()
        about = {
            "rank": self.global_rank,
            "confidences": found.confidences.nan_to_num(-1).tolist(),
            "risks": found.risks.tolist(),
            "ids": found.ids.tolist(),
        }
        self.log("liver_aurc", found.aurc[1], sync_dist=True)
        (self.folder / f"rank-{self.global_rank}.json").write_text(json.dumps(about))
        self.cases.reset()


def main(devices, folder):
    torch.set_num_threads(1)
    trainer = lightning.Trainer(
        accelerator="cpu",
        devices=devices,
        strategy="ddp" if devices > 1 else "auto",
        max_epochs=1,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        default_root_dir=folder,
    )
    model = Model(folder)
    # One case a batch: a convolution of two at once differs in the last bits from one of each.
    for _ in range(2):  # the second time begins anew
        trainer.validate(model, DataLoader(Discs(), batch_size=1), verbose=False)
    if trainer.is_global_zero:
        values = {name: float(value) for name, value in trainer.callback_metrics.items()}
        Path(folder, "logged.json").write_text(json.dumps(values))


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2])
