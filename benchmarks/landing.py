"""The chart on the documentation's first page: the default measure compared with embeddings.

    python -m benchmarks.landing [--write]    docs/landing-light.svg and docs/landing-dark.svg

Each graph has a row with the precision of the first ten hits, with short lists filled, and the
difference from the best embedding with its 95% interval. Data:
``benchmarks/results/embeddings.json``.
"""

from __future__ import annotations

import argparse
import json
from typing import Any

from benchmarks.block import ROOT, add_write, edit

RESULTS = ROOT / "benchmarks/results/embeddings.json"
GRAPHS = ("wikispeedia", "hollins", "cora", "polblogs")
DECIDES = "filled_precision@10"
THEMES = {
    "light": {"ink": "#14201D", "quiet": "#5F6E69", "line": "#E1E6E4", "ours": "#0B6E5F"},
    "dark": {"ink": "#E9F0EE", "quiet": "#8C9A96", "line": "#26302E", "ours": "#5BD0BA"},
}
LEFT, RIGHT, TOP, ROW = 130, 500, 64, 40
LOW, HIGH = 0.4, 1.0


def _x(value: float) -> float:
    return round(LEFT + (value - LOW) / (HIGH - LOW) * (RIGHT - LEFT), 1)


def _signed(value: float) -> str:
    return f"{value:+.3f}".replace("-", "\N{MINUS SIGN}")


def drawn(rows: dict[str, Any], theme: str) -> str:
    """Return the chart as SVG."""
    color = THEMES[theme]
    bottom = TOP + ROW * len(GRAPHS)
    peers = [("spectral", "spectral embedding"), ("best", "best of seven, tuned")]
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 700 {bottom + 28}" '
        f'font-family="Inter, system-ui, sans-serif" font-size="14" fill="{color["ink"]}">'
    ]
    legend = [(LEFT, "ours", "cocite, default"), (LEFT + 140, *peers[0]), (LEFT + 310, *peers[1])]
    for x, kind, text in legend:
        parts += [_dot(x, 16, kind, color), f'<text x="{x + 12}" y="21">{text}</text>']
    parts.append(
        f'<text x="{RIGHT + 20}" y="{TOP - 14}" fill="{color["quiet"]}" font-size="12">'
        "less the best, 95% interval</text>"
    )
    for tick in (0.4, 0.6, 0.8, 1.0):
        at = _x(tick)
        parts += [
            f'<path d="M{at} {TOP - 6}V{bottom}" stroke="{color["line"]}"/>',
            f'<text x="{at}" y="{bottom + 20}" text-anchor="middle" fill="{color["quiet"]}" '
            f'font-size="12">{tick:.1f}</text>',
        ]
    for place, graph in enumerate(GRAPHS):
        row, y = rows[graph], TOP + ROW * place + ROW // 2
        figures, (value, low, high) = row["figures"], row["less the best"][DECIDES]
        parts.append(f'<text x="0" y="{y + 5}">{graph}</text>')
        for kind, name in (("spectral", "spectral"), ("best", row["best"]), ("ours", "fusion")):
            parts.append(_dot(_x(figures[name][DECIDES]), y, kind, color))
        parts.append(
            f'<text x="{RIGHT + 20}" y="{y + 5}">{_signed(value)} <tspan fill="{color["quiet"]}" '
            f'font-size="12">[{_signed(low)}, {_signed(high)}]</tspan></text>'
        )
    return "\n".join([*parts, "</svg>", ""])


def _dot(x: float, y: float, kind: str, color: dict[str, str]) -> str:
    if kind == "ours":
        return f'<circle cx="{x}" cy="{y}" r="5" fill="{color["ours"]}"/>'
    if kind == "best":
        return f'<path d="M{x} {y - 6}l6 6l-6 6l-6 -6z" fill="none" stroke="{color["ink"]}"/>'
    return f'<circle cx="{x}" cy="{y}" r="6" fill="none" stroke="{color["quiet"]}"/>'


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    add_write(parser, "docs/landing-*.svg")
    given = parser.parse_args()
    rows = json.loads(RESULTS.read_text("utf-8"))
    for theme in THEMES:
        edit(ROOT / f"docs/landing-{theme}.svg", drawn(rows, theme), write=given.write)


if __name__ == "__main__":
    main()
