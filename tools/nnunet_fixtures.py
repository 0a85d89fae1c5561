"""Run nnU-Net on tiny data and keep what it writes in ``tests/fixtures/nnunet``.

Run it with ``python -m tools.nnunet_fixtures .venv-nnunet/bin/python`` after ``make .venv-nnunet/.ready``.
"""

import sys
import tempfile
from pathlib import Path

from tests.nnunet.data import VARIANTS
from tests.nnunet.fixtures import keep
from tests.nnunet.run import run_nnunet


def main():
    """Run every variant, keep its files and say how long it took."""
    (python,) = sys.argv[1:]
    for labels in VARIANTS:
        with tempfile.TemporaryDirectory() as name:
            root = Path(name).resolve()
            made = run_nnunet(root, Path(python), labels)
            keep(made, labels, root)
        print(f"{labels}: {sum(made.seconds.values()):.0f} s")  # noqa: T201


if __name__ == "__main__":
    main()
