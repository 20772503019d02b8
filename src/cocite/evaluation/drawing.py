"""How the pictures of a study look: colours and marks of measures, panels in rows, axes.

One colour and one mark a measure throughout, one line style a direction; black for what is no
measure. A figure is panels with axes of their own, and one legend below them all.
"""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from cocite import plots
from cocite.measures import MEASURES

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = [
    "LOOK",
    "STYLES",
    "Panel",
    "Picture",
    "colour_of",
    "draw_panels",
    "log_scale",
    "mark_of",
    "shortened",
    "widths",
]

_COLOURS = (*plots.SERIES[:6], "#8C564B", "#7F7F7F", "#B5BD00", "#17A398")
_OTHER = "#000000"
LOOK: Any = plots.STYLE | {"svg.hashsalt": "cocite", "svg.fonttype": "path"}
STYLES = {"in": "-", "out": ":", "both": "--", "any": "-.", "mixed": "-."}
_MARKS = "osD^vPX*<>"
_WIDTH, _HEIGHT = 3.5, 3.1
_LONGEST = 56
"""Characters of a name in a picture: a path may be of any length, and squeeze out the rest."""

Panel = Callable[["Axes"], None]


def colour_of(measure: str) -> str:
    """The measure's own; black for a blend, which is none of them."""
    names = list(MEASURES)
    return _COLOURS[names.index(measure) % len(_COLOURS)] if measure in names else _OTHER


def mark_of(measure: str) -> str:
    """The measure's own; a dot for a blend."""
    names = list(MEASURES)
    return _MARKS[names.index(measure) % len(_MARKS)] if measure in names else _MARKS[0]


def shortened(name: str) -> str:
    """A name as it stands in a picture: the end of a long one, which tells it from others."""
    return name if len(name) <= _LONGEST else "…" + name[1 - _LONGEST :]


@dataclass(frozen=True)
class Picture:
    """A figure that is drawn."""

    figure: Any

    @cached_property
    def svg(self) -> str:
        """As text."""
        from matplotlib import rc_context

        out = io.StringIO()
        # No date and no creator: the same study gives the same bytes.
        with rc_context(LOOK):
            self.figure.savefig(out, format="svg", metadata={"Date": None, "Creator": None})
        return out.getvalue()

    @property
    def png(self) -> bytes:
        """As pixels, 150 an inch."""
        from matplotlib import rc_context

        out = io.BytesIO()
        with rc_context(LOOK):
            self.figure.savefig(out, format="png", metadata={"Software": None})
        return out.getvalue()


def draw_panels(panels: Sequence[Panel], columns: int, title: str = "") -> Picture:
    """Panels in rows, each with its own axes, and one legend below them all."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    with rc_context(LOOK):
        rows = -(-len(panels) // columns)
        columns = min(columns, len(panels))
        figure = Figure(figsize=(_WIDTH * columns, _HEIGHT * rows + 0.6), layout="constrained")
        grid = figure.subplots(rows, columns, squeeze=False).ravel()
        for axes, panel in zip(grid, panels, strict=False):
            panel(axes)
        for axes in grid[len(panels) :]:
            axes.set_axis_off()
        entries = {
            label: handle
            for axes in grid
            for handle, label in zip(*axes.get_legend_handles_labels(), strict=True)
        }
        if entries:
            figure.legend(
                list(entries.values()),
                list(map(shortened, entries)),
                loc="outside lower center",
                ncols=_legend_columns(list(entries), max(1, int(_WIDTH * columns / 1.75))),
                handlelength=3,
            )
        return Picture(figure)


def _legend_columns(labels: list[str], most: int) -> int:
    """How many columns a legend has, which fills them one by one: a measure each, with all its
    directions, if they are as many for each and that fits.
    """
    groups = Counter(label.split(" ")[0] for label in labels)
    whole = len(groups) if len(groups) > 1 and len(set(groups.values())) == 1 else most + 1
    return whole if whole <= most else -(-len(labels) // -(-len(labels) // most))


def _plain_number(value: float, place: int = 0) -> str:
    """A number of an axis: written out, or with a power of ten if that is long."""
    if value == 0 or 1e-3 <= abs(value) < 1e6:
        return f"{value:,.6g}"
    digits, _, power = f"{value:.3e}".partition("e")
    ten = rf"10^{{{int(power)}}}"
    digits = digits.rstrip("0").rstrip(".")
    return f"${ten}$" if digits == "1" else rf"${digits}\times{ten}$"


def log_scale(axes: Axes) -> None:
    """A logarithmic y axis, with numbers at 2 and 5 as well where it is less than two decades; a
    linear one where all values are much the same.
    """
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    low, high = axes.dataLim.intervaly
    axes.yaxis.set_major_formatter(FuncFormatter(_plain_number))
    if not 0 < 4 * low < high:
        return
    axes.set_yscale("log")
    axes.yaxis.set_major_formatter(FuncFormatter(_plain_number))
    axes.yaxis.set_minor_formatter(NullFormatter())
    if high < 100 * low:
        axes.yaxis.set_minor_locator(LogLocator(subs=(2, 5)))
        axes.yaxis.set_minor_formatter(FuncFormatter(_plain_number))


def widths(count: int) -> list[float]:
    """Of lines: what is drawn later is thinner, so that lines that it covers can be seen."""
    return [2.2 - 1.2 * i / max(1, count - 1) for i in range(count)]
