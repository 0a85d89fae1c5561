# ruff: noqa
# mypy: implicit-reexport
from segtrust._optional import install_hint as remedy
from segtrust._optional import require as require
