"""What grey levels do for AEF and AEF+SDC, for docs/results/tunable.md.

Run ``python -m docs.results.scripts.aef_bin_widths WIDTH PREDICTIONS FOLDER...``; it needs scikit-learn,
Pillow, and for widths below 1 PyRadiomics. PREDICTIONS is the name of the folder of maps in each FOLDER,
beside ``masks``.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import segtrust as st
from segtrust.evaluation import TuningOptions, summarise_tuning, tuning_curve, tuning_sizes
from segtrust.paper.pairs import labelled_pairs
from segtrust.paper.tuning import tuning_table


def main():
    """Print the table of one width."""
    width, predictions, *folders = sys.argv[1:]
    pairs = labelled_pairs([Path(folder) for folder in folders], predictions)
    forests = [
        kind(bin_width=float(width)) for kind in (st.FeatureAggregation, st.SoftDiceFeatureAggregation)
    ]
    sizes = tuning_sizes(len(pairs))[::3]
    rows = tuning_curve(pairs, forests, sizes, options=TuningOptions(workers=os.cpu_count() or 1))
    sys.stdout.write(
        f"bin width {width}, {len(pairs)} cases\n{tuning_table(summarise_tuning(rows), 'test', 'aurc')}\n"
    )


if __name__ == "__main__":
    main()
