# ruff: noqa
# mypy: implicit-reexport
from segtrust.kernels.host_maps import ChunkedMap as ChunkedMap
from segtrust.kernels.host_maps import HostMap as HostMap
from segtrust.kernels.host_maps import MemoryMap as MemoryMap
