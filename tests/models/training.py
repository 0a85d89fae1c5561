"""A few steps of training."""


def assert_learns(model, images, target, *, steps: int, rate: float = 1e-3) -> None:
    """Every parameter that takes part has a gradient, and the loss of a batch seen again is lower."""
    import torch

    from segtrust.models import training_loss

    loss_of = training_loss(model.name)
    optimiser = torch.optim.Adam(model.parameters(), lr=rate)
    losses = []
    for _ in range(steps + 1):
        optimiser.zero_grad()
        loss = loss_of(model.train()(images), target)
        loss.backward()
        optimiser.step()
        losses.append(loss.item())
    assert losses[-1] < losses[0]
