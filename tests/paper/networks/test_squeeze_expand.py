"""The transformer of Segtran, at a size at which its steps can be written out."""

from importlib.util import find_spec

import pytest

pytestmark = pytest.mark.needs("torch")
if find_spec("torch"):  # elsewhere the mark skips every test
    import torch

    from segtrust.paper.networks.squeeze_expand import AttentionOptions, TokenTransformer

POSITIONS = [(row, column) for row in range(3) for column in range(4)]


@pytest.fixture
def transformer():
    torch.manual_seed(0)
    return TokenTransformer((32, 32, 16, 8), AttentionOptions(tied=True, bias=True)).eval()


@pytest.fixture
def tokens():
    torch.manual_seed(1)
    return torch.randn(2, 12, 32)


@pytest.fixture
def positions():
    return torch.tensor(POSITIONS, dtype=torch.float32)


def test_tokens_of_nothing_have_no_influence(transformer, tokens, positions):
    present = torch.ones(2, 12, 1, dtype=torch.bool)
    present[:, 5] = False
    changed = tokens.clone()
    changed[:, 5] += torch.randn(2, 32)
    found, again = (transformer(each, positions, present) for each in (tokens, changed))
    assert found.shape == (2, 12, 8)
    assert torch.equal(found, again)
    assert not torch.equal(found, transformer(changed, positions, torch.ones_like(present)))


def test_tokens_that_move_together_with_their_positions_stay_the_same(transformer, tokens, positions):
    order = torch.randperm(12)
    present = torch.ones(2, 12, 1)
    found = transformer(tokens, positions, present)
    moved = transformer(tokens[:, order], positions[order], present)
    torch.testing.assert_close(moved, found[:, order])


@pytest.mark.parametrize(("first", "found"), [([1.0, 2.0], [300.0, 280.0]), ([1.0, -2.0], [300.0, 260.0])])
def test_scores_are_cut_only_where_the_largest_is_beyond_500(transformer, first, found):
    """Tokens with one channel that is not 0: a score is the product of two, 600 and 520, or -600 and -520."""
    attention = transformer.translayers[0].in_ator_trans
    tokens, others = torch.zeros(1, 2, 32), torch.zeros(1, 2, 32)
    tokens[0, :, 0], others[0, :, 0] = torch.tensor(first), torch.tensor([300.0, 260.0])
    with torch.no_grad():
        attention.query.weight.copy_(torch.eye(32) * 32**0.25)
        attention.out_trans.first_linear.weight.copy_(torch.eye(32))
        seen = attention.seen(tokens, others)[0, 0, :, 0]
    assert seen.tolist() == pytest.approx(found)


def test_queries_keys_and_values_begin_near_the_identity(transformer):
    attention = transformer.translayers[1].ator_out_trans  # from 32 to 16 channels, in 4 modes
    rows = attention.query.weight.detach()[:8].view(8, 4, 8)
    for mode in range(4):
        assert rows[:, mode].diagonal().mean() == pytest.approx(0.2, abs=0.02)
    values = attention.out_trans.first_linear.weight.detach()
    assert values[:16, :16].diagonal().mean() == pytest.approx(0.2, abs=0.02)
    assert values[16:].std() == pytest.approx(0.02, rel=0.1)
