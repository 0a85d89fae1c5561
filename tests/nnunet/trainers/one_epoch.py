"""A trainer for a run that has to be short, not good. nnU-Net finds it through ``nnUNet_extTrainer``."""

import os

import numpy as np
import torch
from nnunetv2.training.nnUNetTrainer.nnUNetTrainer import nnUNetTrainer


class OneEpochTrainer(nnUNetTrainer):
    """One epoch of a few iterations, with a seed."""

    def __init__(self, plans, configuration, fold, dataset_json, device=torch.device("cpu")):  # noqa: B008
        super().__init__(plans, configuration, fold, dataset_json, device)
        os.environ["nnUNet_n_proc_DA"] = "0"  # noqa: SIM112 - images are drawn in this process: the seed holds
        torch.set_num_threads(1)  # two wait for each other longer than they work
        torch.manual_seed(0)
        np.random.seed(0)  # noqa: NPY002
        self.num_epochs = 1
        self.num_iterations_per_epoch = 40
        self.num_val_iterations_per_epoch = 1

    def configure_optimizers(self):
        """Adam, which finds the inner structures within the few iterations."""
        optimizer = torch.optim.Adam(self.network.parameters(), lr=self.initial_lr)
        return optimizer, torch.optim.lr_scheduler.ConstantLR(optimizer, factor=1.0)
