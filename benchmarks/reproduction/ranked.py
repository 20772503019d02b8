"""Rows of Haveliwala 1999: PageRank."""

from __future__ import annotations

from benchmarks.reproduction.rows import Measured, Paper, Row, each, grows, picture

_BLOCKS = ("1", "2", "4")


def _memory(measured: Measured) -> tuple[str, str]:
    lines, holds = {}, {}
    for name, one in measured["blocks"].items():
        sets = [one[b]["working set"] for b in _BLOCKS]
        lines[name] = ", ".join(f"{s / 1e6:.2f} MB" for s in sets)
        holds[name] = all(
            abs(s * int(b) / sets[0] - 1) < 0.15 for s, b in zip(sets, _BLOCKS, strict=True)
        )
    return each(lines) + "<br>(1, 2, 4 blocks; bytes read at random, in double precision)", grows(
        holds
    )


def _times(measured: Measured) -> tuple[str, str]:
    lines, holds = {}, {}
    for name, one in measured["blocks"].items():
        times = [one[b]["seconds a sweep"] for b in _BLOCKS]
        lines[name] = (
            f"{1000 * one['in memory']:.1f} ms in memory; "
            + ", ".join(f"{1000 * t:.1f}" for t in times)
            + " in 1, 2, 4 blocks"
        )
        holds[name] = times[-1] < 4 * times[0]
    return (
        each(lines),
        f"too many blocks cost less than 4 times the time: {grows(holds)}",
    )


def _duration(seconds: float) -> str:
    return f"{seconds:.3g} s" if seconds >= 1 else f"{1000 * seconds:.3g} ms"


def _penalty(measured: Measured) -> tuple[str, str]:
    found = dict(measured["paging"])
    page = found.pop("page seconds")
    lines, holds = {}, {}
    for name, by_memory in found.items():
        lines[name] = "; ".join(
            f"{megabytes} MB: " + ", ".join(_duration(by_blocks[b]["seconds"]) for b in _BLOCKS)
            for megabytes, by_blocks in by_memory.items()
        )
        least = by_memory["32"]
        times = least["1"]["seconds"] / least["4"]["seconds"]
        lines[name] += f"; with 32 MB, 1 block takes {times:,.0f} times as long as 4"
        holds[name] = times >= 100
    return (
        each(lines)
        + "<br>(1, 2, 4 blocks; memory sizes are in proportion to our Dest, as 256, 64 and 32 MB "
        "are to the paper's 72 MB; shuffled: nodes in random order; estimated: a replay counts the "
        f"4 kB pages read or written, {1e6 * page:.0f} μs each on this disk)",
        f"two orders of magnitude or more: {grows(holds)}<br>In URL order, most links lead to "
        "nearby nodes, which avoids most disk accesses",
    )


def _growth(measured: Measured) -> tuple[str, str]:
    lines, holds = {}, {}
    for name, one in measured["blocks"].items():
        sizes = [one[b]["links"] for b in _BLOCKS]
        growth = [s / sizes[0] - 1 for s in sizes]
        lines[name] = (
            ", ".join(f"{s / 1e6:.1f} MB" for s in sizes)
            + "; ε "
            + ", ".join(f"{g:.3f}" for g in growth)
        )
        holds[name] = 0 <= growth[1] <= growth[2] <= 0.28
    return each(lines), (
        grows(holds) + ", and ε is smaller, because no source or degree is repeated"
    )


def _precision(measured: Measured) -> tuple[str, str]:
    lines: dict[str, str] = {}
    holds: dict[str, dict[str, bool]] = {}
    for name, by_damping in measured["precision"].items():
        for damping, found in by_damping.items():
            single, double = found["single"], found["double"]
            lines[f"{name}, c = {damping}"] = f"{single:.3e} single, {double:.3e} double"
            holds.setdefault(damping, {})[name] = abs(single / double - 1) < 0.01
    return (
        each(lines) + "<br>(L1 residual of power iteration; the paper does not print its c)",
        "single and double precision agree within 1%: "
        + "; ".join(f"c = {damping}: {grows(found)}" for damping, found in holds.items())
        + "<br>With c = 0.95 residuals have about the published size. With c = 0.85 "
        "single precision reaches its rounding error, while double precision continues",
    )


def _positions(measured: Measured) -> tuple[str, str]:
    lines, holds = {}, {}
    for name, one in measured["orders"].items():
        mine = one["all"]
        lines[name] = (
            f"{mine['10']['in place']:.0%}, {mine['25']['in place']:.0%}, "
            f"{mine['50']['in place']:.0%} are at their final rank"
        )
        holds[name] = mine["50"]["in place"] > 0.8
    return each(lines) + "<br>(after 10, 25, 50 steps of power iteration)", grows(holds)


def _tops(measured: Measured) -> tuple[str, str]:
    lines, holds = {}, {}
    for name, one in measured["orders"].items():
        mine = one["all"]
        lines[name] = (
            f"{mine['25']['alike']:.4f} of the top {mine['top']:,} after 25 steps "
            f"({mine['10']['alike']:.4f} after 10)"
        )
        holds[name] = mine["25"]["alike"] > 0.98
    return each(lines), grows(holds)


def _queries(measured: Measured) -> tuple[str, str]:
    found = measured["orders"]["hollins"]
    lines = {
        f"hollins, *{query}*, {one['nodes']:,} pages": f"{one['10']['in place']:.0%} in place "
        f"after 10 steps, all from step {one['same order from']}"
        for query, one in found.items()
        if query != "all"
    }
    lines["hollins, all pages"] = f"all from step {found['all']['same order from']}"
    holds = {
        query: one["same order from"] < found["all"]["same order from"]
        and one["10"]["in place"] > 0.9
        for query, one in found.items()
        if query != "all"
    }
    return each(lines), grows(holds)


PAPER_004 = Paper(
    "004",
    "Haveliwala 1999",
    "Efficient computation of PageRank",
    "The paper uses 18.9 million pages of the Stanford WebBase. Both columns use power iteration "
    "from a uniform start. cocite's own Gauss-Seidel iteration needs about half as many sweeps: "
    "`docs/pagerank.md`.",
    (
        picture("004.figure1", "Figure 1", "the link file", "`src/cocite/storage/FORMAT.md`"),
        picture("004.figure2", "Figure 2", "source, matrix, destination", "the same"),
        picture("004.figure3", "Figure 3", "the same in blocks", "`docs/pagerank.md`, Memory"),
        picture("004.figure4", "Figure 4", "links split by block", "`docs/pagerank.md`, Memory"),
        Row(
            "004.figure5",
            "Figure 5",
            "working set of 72, 36, 18 MB with 1, 2, 4 blocks",
            ("blocks",),
            _memory,
        ),
        Row(
            "004.figure6",
            "Figure 6, too many blocks",
            "too many blocks slightly degrade performance",
            ("blocks",),
            _times,
        ),
        Row(
            "004.figure6-memory",
            "Figure 6, too few blocks",
            "several orders of magnitude slower if a block exceeds memory, estimated from part of "
            "an iteration",
            ("paging",),
            _penalty,
        ),
        Row(
            "004.figure7",
            "Figure 7",
            "links of 1.01, 1.14, 1.29 GB with 1, 2, 4 blocks: ε = 0, 0.13, 0.28",
            ("blocks",),
            _growth,
        ),
        Row(
            "004.precision",
            "Section 4",
            "after 100 iterations a residual of 2.575e-4 in single, 2.571e-4 in double precision",
            ("precision",),
            _precision,
        ),
        Row(
            "004.figure8",
            "Figure 8",
            "after 50 iterations, most of the top nodes have the rank that they have after 100",
            ("orders",),
            _positions,
        ),
        Row(
            "004.figure9",
            "Figure 9",
            "after 25 iterations, the top lists agree very closely with the lists after 100",
            ("orders",),
            _tops,
        ),
        Row(
            "004.figure10",
            "Figures 10 and 11",
            "within the results of two queries (1,567 and 19,341 pages), the order after 10 "
            "iterations agrees fairly well with the order after 100",
            ("orders",),
            _queries,
        ),
    ),
)
