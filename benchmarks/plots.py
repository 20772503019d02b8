"""Common style of all plots.

matplotlib is an extra, imported when a plot is drawn; ``require`` reports early if it is missing.
Figures are created without pyplot, which has global state and needs a display.

Unordered series use the colors of Okabe and Ito, in the order of ``SERIES``, which color-blind
readers can tell apart. Ordered series, such as numbers of sweeps, use steps of *viridis*
(``shades``), from dark to light.
Sources: Okabe, Ito, *Color universal design* (2002); Smith, van der Walt 2015 (viridis).
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cocite.errors import UsageError
from cocite.extras import install_command

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from matplotlib.axes import Axes

if TYPE_CHECKING:
    Plot = Callable[[Axes], None]


SERIES = ("#D55E00", "#0072B2", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
"""Vermilion, blue, green, purple, orange, sky blue, black."""

STYLE: Any = {
    "font.size": 9,
    "axes.titlesize": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#E4E4E4",
    "grid.linewidth": 0.6,
    "axes.axisbelow": True,
    "lines.linewidth": 1.6,
    "legend.frameon": False,
    "savefig.dpi": 150,
}


def require(extra: str = "plots", otherwise: str = "") -> None:
    """Raise :class:`~cocite.errors.UsageError` if pictures cannot be made.

    ``extra`` is the one that brings matplotlib, ``otherwise`` how to do without.
    """
    try:
        import_module("matplotlib.figure")
    except ImportError:
        raise UsageError(
            "pictures need matplotlib, which is not installed: "
            f"{install_command(extra)}" + (f"; or {otherwise}" if otherwise else "")
        ) from None


def shades(count: int) -> list[Any]:
    """``count`` colors for an ordered series, dark to light."""
    from matplotlib import colormaps

    # The lightest colors are too pale on white.
    return [colormaps["viridis"](0.88 * i / max(1, count - 1)) for i in range(count)]


def draw(path: Path, title: str, panels: Sequence[Plot], legend: str = "") -> None:
    """Draw panels side by side with the same axes, and one legend beside them.

    Each panel is called with its axes; series of one label share one entry of the legend, which
    has the title ``legend``. The ending of ``path`` decides between PNG and SVG.
    """
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    with rc_context(STYLE):
        width = 3.6 if len(panels) <= 2 else 2.5
        figure = Figure(figsize=(2.2 + width * len(panels), 3.8), layout="constrained")
        figure.suptitle(title, fontsize=11)
        row = figure.subplots(1, len(panels), sharex=True, sharey=True, squeeze=False)[0]
        for axes, panel in zip(row, panels, strict=True):
            panel(axes)
            axes.label_outer()
        entries = {
            label: handle
            for axes in figure.axes
            for handle, label in zip(*axes.get_legend_handles_labels(), strict=True)
        }
        figure.legend(
            list(entries.values()), list(entries), loc="outside right upper", title=legend or None
        )
        figure.savefig(path)
