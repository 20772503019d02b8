"""Compare two checkouts: ``python -m benchmarks.turns OTHER OTHER_INDEX INDEX [K]``.

Two processes, one with the code of the checkout OTHER and one with this one, answer the same 600
nodes by ``related`` in turns; which goes first alternates. It prints the median ratio of the turns,
this over the other, and its quartiles: on a shared machine single times vary by a third.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np

ROUNDS = 60
ANSWER = """
import sys, time
import numpy as np, cocite
index, k = cocite.open(sys.argv[1]), int(sys.argv[2])
nodes = [int(node) for node in np.random.default_rng(5).integers(0, len(index.nodes), 600)]
for line in sys.stdin:
    times = []
    for node in nodes:
        begin = time.perf_counter()
        index.related(node, k)
        times.append(time.perf_counter() - begin)
    print(float(np.median(times)), flush=True)
"""


def start(checkout: Path, index: str, k: str) -> subprocess.Popen[str]:
    """Start a process that answers a turn for each line that it reads."""
    command = [str(checkout / ".venv/bin/python"), "-c", ANSWER, str(Path(index).resolve()), k]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, cwd=checkout, stdin=pipe, stdout=pipe, text=True)


def turn(process: subprocess.Popen[str]) -> float:
    """Return the median seconds of one turn."""
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write("go\n")
    process.stdin.flush()
    return float(process.stdout.readline())


def main() -> None:
    """Measure and print."""
    other, other_index, index = sys.argv[1:4]
    k = sys.argv[4] if len(sys.argv) > 4 else "20"
    here = Path(__file__).parents[1]
    sides = [start(Path(other).resolve(), other_index, k), start(here, index, k)]
    for side in sides:
        turn(side)
    times = np.empty((ROUNDS, 2))
    for number in range(ROUNDS):
        for column in (0, 1) if number % 2 else (1, 0):
            times[number, column] = turn(sides[column])
    for side in sides:
        side.kill()
    low, middle, high = np.quantile(times[:, 1] / times[:, 0], (0.25, 0.5, 0.75))
    print(
        f"other {1e3 * np.median(times[:, 0]):.3f} ms, this {1e3 * np.median(times[:, 1]):.3f} ms"
    )
    print(f"this / other: {middle:.3f}, quartiles {low:.3f} and {high:.3f}")


if __name__ == "__main__":
    main()
