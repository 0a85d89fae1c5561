"""The 3-D U-Net of the Shifts 2.0 challenge: white matter lesions in FLAIR volumes."""

from __future__ import annotations

from collections.abc import Sequence

from monai.inferers.utils import sliding_window_inference
from monai.networks.nets.unet import UNet
from torch import Tensor

from segtrust._arguments import check_whole
from segtrust.errors import ParameterError
from segtrust.paper.networks.network import Network

__all__ = ["ShiftsUNet"]


class ShiftsUNet(Network):
    """The U-Net of 7.9 million parameters: (N, 1, D, H, W) to two logits, (N, 2, D, H, W).

    Volumes of any size go through `probabilities`, window by window; ``forward`` takes windows.

    Parameters
    ----------
    window
        Sides of the window in voxels, or the one of a cube: multiples of 16, at least 32.
    overlap
        Share of a window that overlaps with the next, in [0, 1). Overlapping logits are averaged with the
        weights of a Gaussian.
    windows_at_once
        How many go through the network together.

    References
    ----------
    Malinin et al., "Shifts 2.0: Extending the dataset of real distributional shifts", 2022.
    """

    name = "shifts-unet"
    channels = 1
    dimensions = 3
    divisor = 16

    def __init__(
        self, *, window: int | Sequence[int] = 96, overlap: float = 0.25, windows_at_once: int = 4
    ) -> None:
        super().__init__()
        sides = (window,) * 3 if isinstance(window, int | float) else tuple(window)
        whole = len(sides) == 3 and all(isinstance(side, int) for side in sides)
        if not whole or any(side <= self.divisor or side % self.divisor for side in sides):
            raise ParameterError(  # norms need two voxels at the bottom
                f"window: expected a multiple of {self.divisor}, 32 or more, or three such, got {window!r}."
            )
        if not 0.0 <= overlap < 1.0:
            raise ParameterError(f"overlap: expected a share in [0, 1), got {overlap!r}.")
        check_whole(windows_at_once, "windows_at_once", least=1)
        self.window, self.overlap, self.windows_at_once = sides, overlap, windows_at_once
        self.model = UNet(
            spatial_dims=3, in_channels=1, out_channels=2, channels=(32, 64, 128, 256, 512), strides=(2,) * 4
        ).model

    def forward(self, images: Tensor) -> Tensor:
        """Give the logits of background and lesion, (N, 2, D, H, W)."""
        self.check_images(images)
        logits: Tensor = self.model(images)
        return logits

    def foreground(self, images: Tensor) -> Tensor:
        """Give the lesion's logit less the background's, of which the sigmoid is the softmax of both."""
        if images.ndim != 5 or images.shape[1] != self.channels:
            raise ParameterError(f"images: expected (N, 1, D, H, W), got {tuple(images.shape)}.")
        logits = sliding_window_inference(
            images, self.window, self.windows_at_once, self, overlap=self.overlap, mode="gaussian"
        )
        return logits[:, 1:] - logits[:, :1]  # type: ignore[call-overload]
