"""Log the mean confidence and the AURC of every validation epoch in Lightning."""

import lightning
import torch
from torch.utils.data import DataLoader, TensorDataset

from segtrust.integrations.torch import ConfidenceAURC, MeanConfidence


class Model(lightning.LightningModule):
    """A convolution that separates bright discs from the background."""

    def __init__(self):
        super().__init__()
        self.network = torch.nn.Conv2d(1, 1, 5, padding=2)
        # Any estimator has these metrics, by its name or with settings of its own: st.PatchLevel(size=5).
        self.confidence = MeanConfidence("sdc", from_logits=True, task="binary")
        self.aurc = ConfidenceAURC("sdc", from_logits=True, task="binary")

    def training_step(self, batch, number):
        image, truth = batch
        return torch.nn.functional.binary_cross_entropy_with_logits(self.network(image)[:, 0], truth.float())

    def validation_step(self, batch, number):
        image, truth = batch
        logits = self.network(image)
        for name, metric in (("confidence", self.confidence), ("aurc", self.aurc)):
            metric.update(logits, truth)
            self.log(name, metric)  # Lightning computes and resets it at the end of the epoch

    def on_validation_epoch_end(self):
        confidence, aurc = self.confidence.compute(), self.aurc.compute()
        print(f"epoch {self.current_epoch}: mean SDC {confidence:.3f}, AURC {aurc:.3f}")

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=0.01)


def noisy_discs(count):
    """Return images (N, 1, 24, 24) and ground truth (N, 24, 24); contrast differs from image to image."""
    rows, columns = torch.meshgrid(torch.arange(24), torch.arange(24), indexing="ij")
    truth = torch.stack([(rows - 12) ** 2 + (columns - 8 - i % 8) ** 2 < 40 for i in range(count)])
    images = torch.rand(count, 1, 1) * (2.0 * truth - 1) + 0.5 * torch.randn(truth.shape)
    return TensorDataset(images[:, None], truth.long())


lightning.seed_everything(0, verbose=False)
quiet = {"logger": False, "enable_progress_bar": False, "enable_model_summary": False}
trainer = lightning.Trainer(
    max_epochs=4, accelerator="cpu", num_sanity_val_steps=0, enable_checkpointing=False, **quiet
)
trainer.fit(Model(), DataLoader(noisy_discs(64), batch_size=8), DataLoader(noisy_discs(32), batch_size=8))
logged = {name: f"{value:.3f}" for name, value in trainer.callback_metrics.items()}
print(f"logged in the last epoch: {logged}")
