# ruff: noqa
# mypy: implicit-reexport
from segtrust._files import GIB as GIB
from segtrust._files import BYTES_PER_CHARACTER as LETTER
from segtrust._files import check_size as check_size
from segtrust._files import max_bytes as largest_case
from segtrust._files import format_bytes as told
