"""Lets torchvision's wheel of PyPI be imported beside a CPU build of torch, for which it has no kernels.

Two operators that it describes have then never been declared. Nothing that is compared calls them.
"""

from __future__ import annotations

import torch

for operator in ("nms", "qnms"):
    if not hasattr(torch.ops.torchvision, operator):
        torch.library.define(
            f"torchvision::{operator}", "(Tensor dets, Tensor scores, float limit) -> Tensor"
        )
