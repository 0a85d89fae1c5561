"""One thread for torch, as in the tests of networks."""

from tests.paper.networks.conftest import one_thread

__all__ = ["one_thread"]
