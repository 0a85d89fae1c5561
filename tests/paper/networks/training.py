"""A few steps of training."""


def assert_learns(model, images, target, *, steps: int = 3, rate: float) -> None:
    """The loss of a batch that is seen again, with the same dropout, is lower."""
    import torch

    from segtrust.paper.networks import training_loss

    loss_of = training_loss(model.name)
    optimiser = torch.optim.SGD(model.parameters(), lr=rate)
    losses = []
    for _ in range(steps + 1):
        torch.manual_seed(0)
        optimiser.zero_grad()
        loss = loss_of(model.train()(images), target)
        loss.backward()
        optimiser.step()
        losses.append(loss.item())
    assert losses[-1] < losses[0]
