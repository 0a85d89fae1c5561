"""Train with the soft Dice loss, and with the soft Dice confidence of unlabelled images as a regulariser."""

import torch

import segtrust as st
from segtrust.integrations.torch import SoftDiceConfidence


def noisy_discs(count, seed):
    """Return images (N, 1, 24, 24) and ground truth (N, 24, 24)."""
    random = torch.Generator().manual_seed(seed)
    rows, columns = torch.meshgrid(torch.arange(24), torch.arange(24), indexing="ij")
    centre = torch.randint(8, 16, (2, count, 1, 1), generator=random)
    truth = (rows - centre[0]) ** 2 + (columns - centre[1]) ** 2 < 36
    return (truth + 0.7 * torch.randn(count, 24, 24, generator=random))[:, None], truth


def mean(function, *batches):
    """Return the mean over the images of a batch; each function takes one image."""
    return torch.stack([function(*images) for images in zip(*batches, strict=True)]).mean()


torch.manual_seed(0)
torch.set_num_threads(1)  # images this small are faster on one thread
network = torch.nn.Sequential(torch.nn.Conv2d(1, 4, 5, padding=2), torch.nn.ReLU(), torch.nn.Conv2d(4, 1, 1))
optimiser = torch.optim.Adam(network.parameters(), lr=0.02)
confidence = SoftDiceConfidence(from_logits=True, task="binary")  # one confidence per image, with gradient
labelled, truth = noisy_discs(8, seed=1)
unlabelled, _ = noisy_discs(8, seed=2)
new, new_truth = noisy_discs(20, seed=3)

for step in range(61):
    loss = mean(st.soft_dice_loss, torch.sigmoid(network(labelled))[:, 0], truth)
    # 1 - SDC is the soft Dice loss with the mask in place of the ground truth, so it needs no labels: it
    # rewards clear-cut maps. A small weight, because a model can be confident and wrong.
    doubt = 1 - confidence(network(unlabelled)).mean()
    optimiser.zero_grad()
    (loss + 0.1 * doubt).backward()
    optimiser.step()
    if step % 20 == 0:
        masks = network(new)[:, 0] >= 0
        dice = mean(st.dice, new_truth, masks)
        print(f"step {step}: soft Dice loss {loss:.3f}, SDC {1 - doubt:.3f}, Dice of new images {dice:.3f}")
