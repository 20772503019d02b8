"""Draw the figures of the explanatory documents from real indexes of a small graph.

    python -m benchmarks.drawings [--write]    docs/pictures/*.svg

Each figure is one SVG for light and dark themes. ``tests/documents/test_figures.py`` checks them.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterator
from html import escape
from pathlib import Path

import numpy as np

import cocite
from benchmarks.block import ROOT, add_write, edit

PICTURES = ROOT / "docs" / "pictures"
LINKS = (
    *(("Drinks", "Tea"), ("Drinks", "Coffee"), ("Shop", "Tea"), ("Shop", "Coffee")),
    *(("Shop", "Cup"), ("Tea", "Cup"), ("Tea", "Water"), ("Coffee", "Water"), ("Cup", "Water")),
    ("Water", "Drinks"),
)
SPOTS = {"Drinks": (30, 40), "Shop": (178, 40), "Tea": (30, 120), "Coffee": (104, 68)}
SPOTS |= {"Cup": (178, 120), "Water": (104, 176)}
ASKED = "Tea"
SAMPLED = {"samples": 2_500, "seed": 1}
MEASURES = {
    "cocitation": {},
    "coupling": {},
    "snn": {},
    "fusion": {},
    "simrank": SAMPLED,
    "psimrank": SAMPLED,
    "prank": SAMPLED,
    "xjaccard": SAMPLED,
    "pagesim": {"normalized": True},
    "ppr": {},
    "companion": {},
}
STYLE = """<style>
text{font:13px Inter,system-ui,sans-serif;fill:#14201d}.s{font-size:11px;fill:#5f6e69}
.o{stroke:#fff;stroke-width:4;paint-order:stroke}
.b{fill:#fff}.l{stroke:#5f6e69;fill:none}.n{stroke:#0b6e5f;fill:#0b6e5f}.f{fill:#fff;stroke:#0b6e5f}
.a{stroke-width:2.5}.h{fill:#d6ebe6;stroke:none}.m{fill:#5f6e69}
@media(prefers-color-scheme:dark){text{fill:#e9f0ee}.s{fill:#8c9a96}.o{stroke:#131a18}.b{fill:#131a18}
.l{stroke:#8c9a96}.n{stroke:#5bd0ba;fill:#5bd0ba}.f{fill:#131a18;stroke:#5bd0ba}.h{fill:#1d3a34}
.m{fill:#8c9a96}}</style>
<defs><marker id="m" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="6" markerHeight="6"
orient="auto"><path class="m" d="M0 0L8 4L0 8z"/></marker></defs>"""


def svg(width: int, height: int, title: str, parts: Iterator[str]) -> str:
    """Return a picture with a background of its own and a text for those who do not see it."""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img">'
        f"<title>{escape(title)}</title>{STYLE}\n"
        f'<rect class="b" width="{width}" height="{height}" rx="8"/>\n'
        + "\n".join(parts)
        + "</svg>\n"
    )


def text(x: float, y: float, label: str, kind: str = "", anchor: str = "middle") -> str:
    """Return a text at a place."""
    kind = f' class="{kind}"' if kind else ""
    return f'<text x="{x:g}" y="{y:g}"{kind} text-anchor="{anchor}">{escape(label)}</text>'


def box(kind: str, x: float, y: float, width: float, height: float) -> str:
    """Return a box with round corners."""
    return f'<rect class="{kind}" x="{x}" y="{y}" width="{width}" height="{height}" rx="6"/>'


def arrow(start: tuple[float, float], end: tuple[float, float], radius: float = 15) -> str:
    """Return an arrow between two circles of a ``radius``."""
    (x, y), (a, b) = start, end
    long = ((a - x) ** 2 + (b - y) ** 2) ** 0.5
    dx, dy = (a - x) / long * radius, (b - y) / long * radius
    places = f"M{x + dx:.1f} {y + dy:.1f}L{a - dx:.1f} {b - dy:.1f}"
    return f'<path class="l" d="{places}" marker-end="url(#m)"/>'


def graph(left: float, top: float, scores: dict[str, float] | None = None) -> Iterator[str]:
    """Yield the graph, its circles filled by their scores, the largest of which is full."""
    at = {name: (left + x, top + y) for name, (x, y) in SPOTS.items()}
    for source, target in LINKS:
        if (source, target) == ("Water", "Drinks"):  # around the left side
            (x, y), (a, b) = at[source], at[target]
            yield (
                f'<path class="l" d="M{x - 14:g} {y + 5:g}C{left - 22:g} {y:g} '
                f"{left - 22:g} {b + 30:g} "
                f'{a - 13:g} {b + 8:g}" marker-end="url(#m)"/>'
            )
        else:
            yield arrow(at[source], at[target])
    most = max(scores.values()) if scores else 1
    for name, (x, y) in at.items():
        asked = ' a"' if name == ASKED and scores else '"'
        yield f'<circle class="f{asked} cx="{x:g}" cy="{y:g}" r="14"/>'
        share = (scores or {}).get(name, 0) / most
        if share > 0.004:
            yield f'<circle class="n" cx="{x:g}" cy="{y:g}" r="{14 * share**0.5:.1f}"/>'
        label = name if scores is None or name == ASKED else f"{name} {scores[name]:.2f}"
        yield text(x, y + 28 if name in ("Tea", "Cup", "Water") else y - 20, label, "s o")


def measures(web: cocite.Graph) -> str:
    """Draw what each measure says of one node."""
    width, height, columns = 225, 240, 3

    def parts() -> Iterator[str]:
        for place, (measure, settings) in enumerate(MEASURES.items()):
            index = cocite.build(web, measure=measure, **settings)  # type: ignore[arg-type]
            scores = {name: index.similarity(ASKED, name).score for name in SPOTS if name != ASKED}
            left, top = place % columns * width + 16, place // columns * height + 8
            yield text(left + 105, top + 14, measure)
            yield from graph(left, top + 22, scores)

    rows = -(-len(MEASURES) // columns)
    label = f"Six pages and their links; each circle is filled by its score with {ASKED}"
    return svg(width * columns, height * rows, label, parts())


def tree(web: cocite.Graph) -> str:
    """Draw one sample: which walks have met by which step, and the same as a row of labels."""
    # Of the first samples, seed 21 has most meetings at different steps.
    index = cocite.build(web, measure="psimrank", samples=1, seed=21, length=4)
    names = list(SPOTS)
    met = {
        (a, b): round(1 / score)
        for a in names
        for b in names
        if a != b and (score := index.similarity(a, b, meeting_weight="1/t").score) > 0
    }
    order, labels = _depth_first(names, met)
    step, left, floor = 88, 70, 190

    def parts() -> Iterator[str]:
        for t in range(5):
            y = floor - 36 * t
            yield f'<path class="l" stroke-dasharray="2 5" opacity=".5" d="M{left - 30} {y}H600"/>'
            yield text(26, y + 4, f"step {t}", "s")
        tops: dict[str, tuple[float, int]] = {
            name: (left + 20 + step * n, floor) for n, name in enumerate(order)
        }
        group = {name: name for name in names}
        for t in range(1, 5):
            for a, b in ((a, b) for (a, b), when in met.items() if when == t):
                one, other = group[a], group[b]
                if one == other:
                    continue
                (x, y), (u, v), top = tops[one], tops[other], floor - 36 * t
                places = f"M{x:g} {y}V{top}H{u:g}V{v}"
                yield f'<path class="n" style="fill:none" stroke-width="2" d="{places}"/>'
                tops[one] = ((x + u) / 2, top)
                group = {name: one if each == other else each for name, each in group.items()}
        for n, name in enumerate(order):
            x = left + 20 + step * n
            yield f'<circle class="n" cx="{x}" cy="{floor}" r="5"/>'
            yield box("h", x - 38, floor + 14, 76, 26)
            yield text(x, floor + 32, name)
            if n and labels[n]:
                yield text(x - step / 2, floor + 60, str(labels[n]), "s")
            elif n:
                yield text(x - step / 2, floor + 60, "never", "s")
        yield text(26, floor + 60, "label", "s")

    return svg(620, 270, "A fingerprint tree: pages whose walks meet, joined at the step", parts())


def _depth_first(names: list[str], met: dict[tuple[str, str], int]) -> tuple[list[str], list[int]]:
    """Return an order in which each node follows the one it met first, and when that was."""
    order, labels, left = [names[0]], [0], names[1:]
    while left:
        near = min(
            left, key=lambda name: min((met.get((name, o), 9) for o in order[::-1]), default=9)
        )
        chosen = min(left, key=lambda name: met.get((order[-1], name), 9))
        chosen = chosen if (order[-1], chosen) in met else near
        labels.append(met.get((order[-1], chosen), 0))
        order.append(chosen)
        left.remove(chosen)
    return order, labels


def intervals(folder: Path) -> str:
    """Draw the first hits of a node with intervals and true scores, for two numbers of samples."""
    rng = np.random.default_rng(4)
    links = [(a, (a + b) % 80) for a in range(80) for b in rng.geometric(0.25, size=7)]
    web = cocite.ingest(links, folder / "ring.graph")
    asked, left, wide, most = 40, 50, 240, 0.4
    truth = cocite.build(web, measure="psimrank", samples=5_000, seed=2)

    def parts() -> Iterator[str]:
        for panel, samples in enumerate((100, 1_600)):
            index = cocite.build(web, measure="psimrank", samples=samples, seed=1)
            found = index.related(asked, k=8)
            start = left + panel * (wide + 60)
            for row, hit in enumerate(found):
                y = 52 + 24 * row
                low, at, high, true = (
                    round(start + wide * value / most, 1)
                    for value in (
                        hit.low,
                        hit.score,
                        hit.high,
                        truth.similarity(asked, hit.node).score,
                    )
                )
                yield text(start - 10, y + 4, str(hit.node), "s", "end")
                yield f'<path class="l" d="M{low} {y}H{high}M{low} {y - 4}v8M{high} {y - 4}v8"/>'
                yield f'<circle class="n" cx="{at}" cy="{y}" r="4"/>'
                yield f'<path class="l" stroke-width="2" d="M{true} {y - 8}v16"/>'
            y = 52 + 24 * found.certain_ranks - 12
            yield f'<path class="n" stroke-dasharray="4 3" d="M{start - 30} {y}H{start + wide}"/>'
            label = f"{samples:,} samples: {found.certain_ranks or 'none'} certain"
            yield text(start + wide / 2, 24, label)

    return svg(640, 260, "Scores with intervals, by 100 and by 1,600 samples", parts())


def passes() -> str:
    """Draw two blocks of a graph, and the messages between them."""

    def parts() -> Iterator[str]:
        for n, (name, state) in enumerate(
            [("block 1", "in memory now"), ("block 2", "on disk"), ("block 3", "on disk")]
        ):
            x = 20 + 200 * n
            yield box("l" if n else "h", x, 40, 180, 110)
            yield text(x + 90, 62, name)
            yield text(x + 90, 80, state, "s")
            yield text(x + 90, 108, f"nodes {n * 100:,} to {n * 100 + 99:,}", "s")
            yield text(x + 90, 126, "and the links that end there", "s")
            yield box("f", x + 30, 200, 120, 34)
            yield text(x + 90, 221, f"messages for {n + 1}", "s")
            if n:
                yield arrow((110, 150), (x + 60 if n == 1 else x + 30, 200), 2)
        yield arrow((110, 200), (110, 152), 2)
        yield text(20, 24, "A pass works on one block after another.", "", "start")
        yield text(
            20,
            262,
            "What crosses a border is written, and read when its block is next.",
            "s",
            "start",
        )

    return svg(620, 280, "Blocks of a graph, one in memory, and files of messages", parts())


def which() -> str:
    """Draw the questions that lead to a measure."""
    rows = [
        ("Does it have to be a published measure?", "no", "fusion, the default"),
        ("Is one link far enough?", "yes", "cocitation, coupling"),
        ("Do you want what is near, not what is alike?", "yes", "ppr, companion"),
        ("Should important pages count more?", "yes", "pagesim"),
        ("Do out-links say as much as in-links?", "yes", "prank"),
        ("Is it enough to compare neighborhoods?", "yes", "xjaccard"),
        ("Should popular pages in common score high?", "yes", "psimrank"),
        ("", "", "simrank"),
    ]

    def parts() -> Iterator[str]:
        for n, (question, answer, leads) in enumerate(rows):
            y = 20 + 52 * n
            if question:
                yield box("f", 20, y, 330, 32)
                yield text(185, y + 21, question)
                yield arrow((350, y + 16), (440, y + 16), 2)
                yield text(395, y + 11, answer, "s")
            if n:
                yield arrow((185, y - 20), (185, y), 2)
            x = 440 if question else 20
            yield box("h", x, y, 180 if question else 330, 32)
            yield text(x + (90 if question else 165), y + 21, leads)

    return svg(640, 20 + 52 * len(rows), "Which measure: questions, and where they lead", parts())


def drawings() -> dict[str, str]:
    """Return all pictures by their names."""
    with tempfile.TemporaryDirectory() as folder:
        web = cocite.ingest(list(LINKS), Path(folder, "six.graph"))
        return {
            "intervals": intervals(Path(folder)),
            "measures": measures(web),
            "tree": tree(web),
            "passes": passes(),
            "which": which(),
        }


def main() -> None:
    """Write the pictures, where ``--write`` says so."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.drawings", description=__doc__)
    add_write(parser, "the pictures")
    chosen = parser.parse_args()
    for name, drawn in drawings().items():
        print(f"{name}: {len(drawn):,} bytes")
        edit(PICTURES / f"{name}.svg", drawn, write=chosen.write)


if __name__ == "__main__":
    main()
