"""The paper's simulated experiments (section 6), and the same beyond ten pixels and independence."""

from segtrust.experiments.synthetic.paper import EXPERIMENTS, SyntheticResults, run_synthetic
from segtrust.experiments.synthetic.settings import Synthetic

__all__ = ["EXPERIMENTS", "Synthetic", "SyntheticResults", "run_synthetic"]
