"""Batches of logits for the tests of the torch module and of the metric."""

import numpy as np


def class_logits(images=3, seed=0):
    """Logits of four classes; the last is nowhere likely."""
    import torch

    logits = torch.from_numpy(np.random.default_rng(seed).normal(0, 2, (images, 4, 12, 13)))
    logits[:, 3] -= 30.0
    return logits


def batches(task, count=3, seed=0):
    """Batches of logits and truths."""
    import torch

    generator = np.random.default_rng(seed)
    for i in range(count):
        logits = class_logits(images=2 + i, seed=seed + i)
        shape = (2 + i, 12, 13) if task == "multiclass" else logits.shape
        yield logits, torch.from_numpy(generator.integers(0, 3 if task == "multiclass" else 2, shape))
