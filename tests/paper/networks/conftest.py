"""One thread for torch: tests run side by side, and threads that wait for each other take far longer."""

from importlib.util import find_spec

import pytest


@pytest.fixture(autouse=True)
def one_thread():
    if not find_spec("torch"):
        yield
        return
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)
