"""The paper's simulated experiments (section 6), and the same beyond ten pixels and independence."""

from segtrust.paper.synthetic.paper import EXPERIMENTS, Experiment, SyntheticResults, run_synthetic
from segtrust.paper.synthetic.settings import Synthetic

__all__ = ["EXPERIMENTS", "Experiment", "Synthetic", "SyntheticResults", "run_synthetic"]
