"""From a validation loop to accept or defer: metric, curve, certified policy, decisions."""

import torch

import segtrust as st
from segtrust.integrations.torch import ConfidenceMetric


def noisy_discs(count, seed):
    """Return images (N, 1, 32, 32) and ground truth (N, 32, 32); contrast differs from image to image."""
    random = torch.Generator().manual_seed(seed)
    rows, columns = torch.meshgrid(torch.arange(32), torch.arange(32), indexing="ij")
    centre = torch.randint(10, 22, (2, count, 1, 1), generator=random)
    truth = (rows - centre[0]) ** 2 + (columns - centre[1]) ** 2 < 49
    contrast = torch.rand(count, 1, 1, generator=random)
    noise = torch.randn(count, 32, 32, generator=random)
    return (contrast * (2.0 * truth - 1) + 0.8 * noise)[:, None], truth.long()


def network(images):
    """Return logits (N, 1, 32, 32); a real model goes here."""
    return 6 * torch.nn.functional.avg_pool2d(images, 5, stride=1, padding=2)


# Validation: collect the confidence and the loss (1 - Dice) of every case, batch by batch.
metric = ConfidenceMetric("sdc", from_logits=True, task="binary")
images, truth = noisy_discs(400, seed=0)
for batch in torch.arange(400).split(50):
    metric.update(network(images[batch]), truth[batch])
cases = metric.compute()
print(f"AURC {cases.aurc:.3f}; mean loss if every case is accepted {cases.mean_risk:.3f}")

# Certification: the lowest threshold at which the accepted cases have a mean loss of at most 0.2.
certificate = st.certify_threshold(cases.confidences, loss=cases.risks, target_risk=0.2)
policy = st.Policy.from_certificate(certificate, st.Scoring("sdc", predictor="disc network 1"))
print(policy)

# In use: the policy scores a new map as it scored the validation cases, and decides.
images, truth = noisy_discs(8, seed=1)
probabilities = torch.sigmoid(network(images))[:, 0]
for p, true_mask in zip(probabilities, truth, strict=True):
    found = policy.decide_map(p)
    dice = st.dice(true_mask, p >= 0.5)  # known only because this example made the images
    print(f"SDC {found.confidence:.3f}: {found} (true Dice {dice:.3f})")

# Confidences that are known already, such as those of a batch or of a table, are decided on all at once.
confidences = st.score_batch(probabilities, estimators="sdc")["sdc"]
is_empty = (probabilities < 0.5).all(2).all(1)
decisions = policy.decide(confidences, empty_mask=is_empty)
print(f"{(decisions == 'accept').sum()} accepted, {(decisions == 'defer').sum()} for review")
