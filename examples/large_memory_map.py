"""Score a map of 2 GB on disk without reading it into memory: python large_memory_map.py [gigabytes]."""

import sys
import tracemalloc
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

import segtrust as st

gigabytes = float(sys.argv[1]) if len(sys.argv) > 1 else 2.0
shape = (max(8, round(gigabytes * 512)), 512, 1024)  # 2 MiB per slice of float32

with TemporaryDirectory() as folder:
    # The file is sparse: only the slices that are written take space on the disk.
    path = Path(folder, "map.npy")
    p = np.lib.format.open_memmap(path, mode="w+", dtype=np.float32, shape=shape)
    rows, columns = np.mgrid[: shape[1], : shape[2]]
    for number in range(4):
        p[shape[0] // 2 + number] = 1 / (1 + np.exp((np.hypot(rows - 256, columns - 512) - 150) / 20))
    p.flush()
    del p

    p = np.load(path, mmap_mode="r")
    names = ["sdc", "idc", "ane"]
    st.score(np.zeros((8, 8), np.float32), estimators=names)  # load the compiled loops before measuring
    tracemalloc.start()
    scores = st.score(p, estimators=names)
    peak = tracemalloc.get_traced_memory()[1]
    del p  # before the folder is removed

for name, value in scores.items():
    print(f"{name}: {value:.6f}")
print(f"map {4e-6 * np.prod(shape):.0f} MB, memory used {1e-6 * peak:.1f} MB")
