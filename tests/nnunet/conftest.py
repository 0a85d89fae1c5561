"""The trainer can be imported in the environment of nnU-Net alone."""

collect_ignore = ["trainers"]
