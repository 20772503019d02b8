"""How a build grows
=================

These builds use generated webs with eight links per page. Twice as many pages take about twice as
long.
"""

import tempfile
import time
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import cocite

sizes = [4_000, 8_000, 16_000]
seconds, megabytes = [], []
with tempfile.TemporaryDirectory() as folder:
    warm = cocite.generate_web(Path(folder, "warm.graph"), nodes=100, links=800)
    cocite.build(warm)
    for size in sizes:
        web = cocite.generate_web(Path(folder, f"{size}.graph"), nodes=size, links=8 * size)
        index = Path(folder, f"{size}.index")
        start = time.process_time()
        cocite.build(web, index)
        seconds.append(time.process_time() - start)
        megabytes.append(sum(p.stat().st_size for p in index.rglob("*") if p.is_file()) / 1e6)

slope = np.polyfit(np.log(sizes), np.log(seconds), 1)[0]
print(f"time grows with the number of pages to the power of {slope:.2f}")

# %%

figure, (left, right) = plt.subplots(1, 2, figsize=(8, 3), layout="constrained")
left.loglog(sizes, seconds, "o-", color="#0B6E5F")
left.set(xlabel="pages", ylabel="CPU seconds")
right.loglog(sizes, megabytes, "o-", color="#C77F1B")
right.set(xlabel="pages", ylabel="index, MB")
plt.show()
