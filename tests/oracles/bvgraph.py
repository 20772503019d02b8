"""A plain writer of BVGraph, which ``kernels/bvgraph.py`` reads: bit by bit from its definition.

Boldi and Vigna, "The WebGraph framework I" (WWW 2004) and "II: codes for the web" (DCC 2004). The
reference of each list is random, so that all of the format is used, even where it is not shortest.
"""

import random
from dataclasses import dataclass, field
from pathlib import Path

FLAGS = {
    "OUTDEGREES": "GAMMA",
    "REFERENCES": "UNARY",
    "BLOCK_COUNT": "GAMMA",
    "BLOCKS": "GAMMA",
    "RESIDUALS": "ZETA",
}


def binary(value: int, size: int) -> str:
    return format(value, f"0{size}b") if size else ""


def unary(value: int) -> str:
    return "0" * value + "1"


def gamma(value: int) -> str:
    size = (value + 1).bit_length() - 1
    return unary(size) + binary(value + 1 - (1 << size), size)


def delta(value: int) -> str:
    size = (value + 1).bit_length() - 1
    return gamma(size) + binary(value + 1 - (1 << size), size)


def minimal(value: int, below: int) -> str:
    """Minimal binary code of a number below ``below``."""
    size = below.bit_length() - 1
    short = (2 << size) - below
    return binary(value, size) if value < short else binary(value + short, size + 1)


def zeta(value: int, k: int) -> str:
    h = ((value + 1).bit_length() - 1) // k
    low, high = 1 << h * k, 1 << (h + 1) * k
    return unary(h) + minimal(value + 1 - low, high - low)


def nibble(value: int) -> str:
    groups = [value & 7]
    while value := value >> 3:
        groups.append(value & 7)
    *others, last = reversed(groups)
    return "".join("0" + binary(g, 3) for g in others) + "1" + binary(last, 3)


def golomb(value: int, k: int) -> str:
    return unary(value // k) + minimal(value % k, k)


def coded(value: int, code: str, k: int) -> str:
    if code in ("ZETA", "GOLOMB"):
        return {"ZETA": zeta, "GOLOMB": golomb}[code](value, k)
    return {"UNARY": unary, "GAMMA": gamma, "DELTA": delta, "NIBBLE": nibble}[code](value)


def signed(value: int) -> int:
    return 2 * value if value >= 0 else -2 * value - 1


def packed(bits: str) -> bytes:
    bits += "0" * (-len(bits) % 8)
    return bytes(int(bits[i : i + 8], 2) for i in range(0, len(bits), 8))


@dataclass
class Writer:
    """The parameters of a graph; ``flags`` are codes other than those of :data:`FLAGS`."""

    window: int = 7
    least: int = 4
    k: int = 3
    flags: dict[str, str] = field(default_factory=dict)

    def number(self, value: int, part: str) -> str:
        return coded(value, {**FLAGS, **self.flags}[part], self.k)

    def bits(self, lists: list[list[int]], seed: int = 0) -> str:
        draw = random.Random(seed)
        out = []
        for x, successors in enumerate(lists):
            out.append(self.number(len(successors), "OUTDEGREES"))
            if not successors:
                continue
            remaining = list(successors)
            if self.window:
                reference = draw.randint(0, min(self.window, x))
                out.append(self.number(reference, "REFERENCES"))
                if reference:
                    bits, remaining = self.blocks(lists[x - reference], successors)
                    out.append(bits)
            if remaining and self.least:
                bits, remaining = self.intervals(x, remaining)
                out.append(bits)
            for i, value in enumerate(remaining):
                gap = signed(value - x) if i == 0 else value - remaining[i - 1] - 1
                out.append(self.number(gap, "RESIDUALS"))
        return "".join(out)

    def blocks(self, reference: list[int], successors: list[int]) -> tuple[str, list[int]]:
        in_reference, in_successors = set(reference), set(successors)
        runs: list[int] = []
        for i, value in enumerate(reference):
            keep = value in in_successors
            if i == 0 and not keep:
                runs.append(0)
            if i and keep == (reference[i - 1] in in_successors):
                runs[-1] += 1
            else:
                runs.append(1)
        if runs:
            runs.pop()  # the last run follows from the others
        bits = self.number(len(runs), "BLOCK_COUNT")
        bits += "".join(self.number(run - (i > 0), "BLOCKS") for i, run in enumerate(runs))
        return bits, [value for value in successors if value not in in_reference]

    def intervals(self, x: int, remaining: list[int]) -> tuple[str, list[int]]:
        runs: list[list[int]] = []
        for value in remaining:
            if runs and value == runs[-1][-1] + 1:
                runs[-1].append(value)
            else:
                runs.append([value])
        long_runs = [run for run in runs if len(run) >= self.least]
        bits = gamma(len(long_runs))
        for i, run in enumerate(long_runs):
            gap = signed(run[0] - x) if i == 0 else run[0] - long_runs[i - 1][-1] - 2
            bits += gamma(gap) + gamma(len(run) - self.least)
        return bits, [value for run in runs if len(run) < self.least for value in run]

    def properties(self, lists: list[list[int]]) -> str:
        flags = "|".join(f"{part}_{code}" for part, code in self.flags.items())
        values = {
            "nodes": len(lists),
            "arcs": sum(map(len, lists)),
            "windowsize": self.window,
            "minintervallength": self.least,
            "zetak": self.k,
            "compressionflags": flags,
            "version": 0,
            "graphclass": "it.unimi.dsi.webgraph.BVGraph",
        }
        return "#BVGraph properties\n" + "".join(f"{k}={v}\n" for k, v in values.items())

    def write(self, base: Path, lists: list[list[int]], seed: int = 0) -> None:
        base.with_name(base.name + ".graph").write_bytes(packed(self.bits(lists, seed)))
        base.with_name(base.name + ".properties").write_text(self.properties(lists))
