"""Stack the middle 240×240 pixels of 155 saved 8-bit maps into one float32 volume for ``kernels --map``.

Run it with ``python -m docs.results.scripts.stack_maps OUT.npy FOLDER [FOLDER ...]``.
"""

import sys
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

DEPTH, SIDE = 155, 240


def middle_of(path: Path) -> Any:
    """Read one map and cut out its middle."""
    levels = np.asarray(Image.open(path).convert("L"))
    top, left = ((length - SIDE) // 2 for length in levels.shape)
    return levels[top : top + SIDE, left : left + SIDE]


def main() -> None:
    """Write the volume and say what is in it."""
    out, *folders = sys.argv[1:]
    paths = [path for folder in folders for path in sorted(Path(folder).glob("*.png"))][:DEPTH]
    volume = np.stack([middle_of(path) for path in paths]).astype(np.float32) / 255
    np.save(out, volume)
    shares = f"{np.mean(volume == 0):.0%} of the pixels are 0, {np.mean(volume >= 0.5):.0%} at least 1/2"
    print(f"{volume.shape}: {shares}")  # noqa: T201


if __name__ == "__main__":
    main()
