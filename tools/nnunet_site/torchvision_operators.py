"""Lets torchvision be imported next to a torch that its compiled operators do not fit.

nnU-Net looks for a trainer by importing all that it knows, timm and torchvision among them. The torch of the
tests is built without a GPU; the compiled part of torchvision then does not load, and torchvision cannot be
imported for want of two operators. nnU-Net never calls them, so it is enough to declare them.

``make`` puts this file and ``torchvision_operators.pth`` beside the packages of ``.venv-nnunet``, and so into
every process of that environment. A ``sitecustomize.py`` would not do: that of Debian is found before it. It
waits for the import of torchvision, and where the compiled part does load it does nothing.
"""

import sys
from importlib.abc import MetaPathFinder
from importlib.util import find_spec
from pathlib import Path

OPERATORS = ("nms", "qnms")
SIGNATURE = "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor"


class DeclareFirst(MetaPathFinder):
    """Finds nothing itself: declares what is absent when torchvision is first looked for."""

    declared = None  # held, as the declarations end with it

    def find_spec(self, name, path=None, target=None):
        """Declare the operators before torchvision is imported, once."""
        if name == "torchvision":
            sys.meta_path.remove(self)
            spec = find_spec("torchvision")
            if spec and spec.origin and not loads_operators(Path(spec.origin).parent):
                type(self).declared = declare_operators()


def loads_operators(package):
    """Whether the compiled part of torchvision fits this torch."""
    import torch

    try:
        torch.ops.load_library(next(package.glob("_C.*")))
    except (OSError, StopIteration):
        return False
    return True


def declare_operators():
    """Declare the operators without which torchvision cannot be imported."""
    import torch

    library = torch.library.Library("torchvision", "FRAGMENT")
    for name in OPERATORS:
        library.define(name + SIGNATURE)
    return library


sys.meta_path.insert(0, DeclareFirst())
