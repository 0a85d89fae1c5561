# ruff: noqa
# mypy: implicit-reexport
from segtrust._compile import current_threads as current_threads
from segtrust._compile import use_threads as use_threads
