"""The tasks that are known: the paper's six, and some on small public data sets."""
