"""What is run by tests, and holds none."""

collect_ignore = ["lightning_runs.py"]  # imports Lightning, which not every environment has
