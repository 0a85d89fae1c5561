"""Trainer and hook can be run in the environment of nnU-Net alone."""

collect_ignore = ["trainers", "hook.py"]
