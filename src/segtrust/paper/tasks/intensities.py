"""Images as networks want them: from 8-bit colours, or from intensities without a unit."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["half_grey_refuge", "imagenet", "imagenet_twice_scaled", "unchanged", "zscored", "zscored_image"]

_MEAN, _STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
"""Of ImageNet, for red, green and blue in [0, 1]."""


def imagenet(images: Any) -> Any:
    """Normalise 8-bit colours, (N, 3, H, W), by the mean and standard deviation of ImageNet.

    Examples
    --------
    >>> [f"{each:.2f}" for each in imagenet(np.full((1, 3, 1, 1), 255, np.uint8)).flat]
    ['2.25', '2.43', '2.64']
    """
    return normalised(images, _MEAN, _STD)


def imagenet_twice_scaled(images: Any) -> Any:
    """Normalise as the published training of UNeXt does: blue first, and divided by 255 once more.

    Red gets the numbers of blue and the other way round, since they are applied in that order.
    """
    return normalised(images[:, ::-1], _MEAN, _STD, scale=1.0 / 255.0)


def half_grey_refuge(images: Any) -> Any:
    """Normalise photographs that are blended with their grey, by REFUGE's mean and standard deviation.

    The numbers are the means of those that are published for its three parts.
    """
    return normalised(images, (0.549, 0.445, 0.385), (0.176, 0.161, 0.136))


def normalised(images: Any, mean: tuple[float, ...], std: tuple[float, ...], *, scale: float = 1.0) -> Any:
    """Give ((images / 255) - mean) / std * scale, channel by channel, as float32."""
    factor = np.asarray([scale / (255.0 * each) for each in std], np.float32)
    shift = np.asarray([-scale * middle / each for middle, each in zip(mean, std, strict=True)], np.float32)
    return images * factor[:, None, None] + shift[:, None, None]


def zscored(volume: Any) -> Any:
    """Bring the voxels that are not 0 to mean 0 and standard deviation 1; 0 stays 0.

    Examples
    --------
    >>> zscored(np.array([0.0, 1.0, 3.0])).tolist()
    [0.0, -1.0, 1.0]
    """
    inside = volume != 0
    if not inside.any():
        return np.zeros(volume.shape, np.float32)
    values = volume[inside].astype(np.float64)
    result = np.zeros(volume.shape, np.float32)
    result[inside] = (values - values.mean()) / (values.std() or 1.0)
    return result


def zscored_image(image: Any, labels: Any, sample: Any) -> tuple[Any, Any]:
    """Bring each channel of an image to `zscored` intensities, when it is prepared."""
    return np.stack([zscored(channel) for channel in image]), labels


def unchanged(images: Any) -> Any:
    """Give float32 as they are; they were normalised when they were prepared."""
    return np.asarray(images, np.float32)
