# ruff: noqa: F401, D100, I001
# mypy: implicit-reexport
from segtrust.selective.vectors import check_labels as texts_of
from segtrust.selective.vectors import format_label as text_of
from segtrust.selective.vectors import number_labels as labels_of
