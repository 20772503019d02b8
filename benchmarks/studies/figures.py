"""Draw the plots of a study as SVG (style: ``benchmarks/plots.py``).

| plot | contents | source |
| --- | --- | --- |
| methods | Gamma, precision@10 and content@10 of every method, with intervals | |
| best | the same for each measure at its best settings | |
| sweep of a setting | the same, comparable pairs and size, by value | 000 fig. 1; 001 fig. 4 |
| content | Delta(., T) by T | 002 fig. 4 |
| content by a setting | the same, one line per value | 002 fig. 2 and 3 |
| trees | mean and largest tree, live tokens, by length | 001 fig. 5 |
| accuracy | errors and precision by the number of samples | |

A figure consists of panels with their own axes, and one legend below all panels. Each measure has
one color and one marker in all plots, and each direction has one line style; other methods are
black. matplotlib is an extra.
"""

from __future__ import annotations

import io
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks import plots
from benchmarks.studies.study import Series, SuiteStudy, decides
from cocite.evaluation.judge import headline
from cocite.evaluation.points import plain
from cocite.evaluation.report import Result, best_first
from cocite.measures import MEASURES, Value

if TYPE_CHECKING:
    from matplotlib.axes import Axes


_COLORS = (*plots.SERIES[:6], "#8C564B", "#7F7F7F", "#B5BD00", "#17A398")
_OTHER = "#000000"
LOOK: Any = plots.STYLE | {"svg.hashsalt": "cocite", "svg.fonttype": "path"}
STYLES = {"in": "-", "out": ":", "both": "--", "any": "-.", "mixed": "-."}
_MARKS = "osD^vPX*<>"
_WIDTH, _HEIGHT = 3.5, 3.1
_LONGEST = 56
"""Characters of a name in a picture: a path may be of any length, and squeeze out the rest."""

Panel = Callable[["Axes"], None]


def color_of(measure: str) -> str:
    """The measure's own; black for a blend, which is none of them."""
    names = list(MEASURES)
    return _COLORS[names.index(measure) % len(_COLORS)] if measure in names else _OTHER


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


# -- figures -----------------------------------------------------------------------------


_UNITS = {"length": "length, steps", "radius": "radius, hops"}


def _axis(title: str) -> str:
    """What an axis of a figure is called."""
    kind, _, cutoff = title.partition("@")
    if kind == "content":
        return f"mean cosine TF-IDF, top {cutoff}"
    if kind.startswith("gamma"):
        return "sibling Γ, micro, top of the list" if kind == "gamma" else "Γ, macro, whole lists"
    return f"{kind}@{cutoff}"


def _plot_titles(result: Result) -> list[str]:
    """Gamma, precision and content, as far as they are there."""
    found = headline(list(result.figures))
    return [t for t in found if t == "gamma" or t.startswith(("precision", "content"))]


def pictures(study: SuiteStudy) -> dict[str, Picture]:
    """Title -> picture, in the order of the report; raises UsageError without matplotlib."""
    plots.require("evaluate")
    found: dict[str, Picture] = {}
    titles = _plot_titles(study.methods[0]) if study.methods else []
    if titles:
        found["Methods"] = _methods(best_first(study.methods, decides(study)), titles)
    if titles and study.best is not None:
        found["Each measure at its best setting"] = _methods(
            best_first(study.best.results, study.best.by), titles
        )
    if study.methods and "content@1" in study.methods[0].figures:
        found["Content of the first T hits"] = _content(study)
    for setting, series in study.sweeps.items():
        drawn = [each for each in series if each.results]
        if drawn:
            found[f"Sweep of {setting}"] = _sweep(setting, drawn)
            by_value = _by_value(setting, drawn)
            if by_value:
                found[f"Content by {setting}"] = by_value
    if study.accuracy:
        found["Estimates against exact scores"] = _accuracy(study)
    if study.trees:
        found["Fingerprint trees and walks"] = _trees(study)
    return found


# -- methods ---------------------------------------------------------------------------------------


def _methods(results: Sequence[Result], titles: Sequence[str]) -> Picture:
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    names = [result.name for result in results]
    with rc_context(LOOK):
        size = 2.2 + 2.9 * len(titles), 0.9 + 0.21 * len(names)
        figure = Figure(figsize=size, layout="constrained")
        row = figure.subplots(1, len(titles), sharey=True, squeeze=False)[0]
        for axes, title in zip(row, titles, strict=True):
            for place, result in enumerate(results):
                value, low, high = result.figures[title]
                color = color_of(result.point.measure if result.point else "")
                axes.errorbar(
                    [value],
                    [place],
                    xerr=[[max(0.0, value - low)], [max(0.0, high - value)]],
                    fmt="o",
                    color=color,
                    markersize=4,
                    capsize=2,
                )
            axes.set_xlabel(_axis(title))
            axes.set_yticks(range(len(names)), list(map(shortened, names)))
        row[0].set_ylim(len(names) - 0.5, -0.5)
        return Picture(figure)


# -- sweeps ----------------------------------------------------------------------------------------


def _numeric(values: Iterable[Value]) -> bool:
    return all(type(value) in (int, float) for value in values)


def _places(values: Iterable[Value]) -> list[float]:
    """Where values stand on an axis: numbers where they are, others side by side."""
    values = list(values)
    if _numeric(values):
        return [float(value) for value in values]
    return list(map(float, range(len(values))))


def _line(axes: Axes, each: Series, of: Callable[[Result], float], width: float) -> None:
    axes.plot(
        _places(each.results),
        [of(result) for result in each.results.values()],
        linestyle=STYLES[each.direction],
        color=color_of(each.measure),
        marker=mark_of(each.measure),
        markersize=3,
        linewidth=width,
        label=each.method,
    )


def _value(title: str, result: Result) -> float:
    return result.figures[title].value


def _sweep(setting: str, series: Sequence[Series]) -> Picture:
    first = next(iter(series[0].results.values()))
    values = list(dict.fromkeys(value for each in series for value in each.results))
    wide = setting == "samples"

    def panel(of: Callable[[Result], float], title: str, log: bool, axes: Axes) -> None:
        for each, width in zip(series, widths(len(series)), strict=True):
            _line(axes, each, of, width)
        axes.set_xlabel(_UNITS.get(setting, setting))
        axes.set_ylabel(title)
        if wide:
            axes.set_xscale("log")
        if wide or not _numeric(values):
            axes.set_xticks(_places(values), [plain(value) for value in values])
            axes.minorticks_off()
        if log:
            log_scale(axes)

    panels: list[Panel] = [
        partial(panel, partial(_value, title), _axis(title), False) for title in _plot_titles(first)
    ]
    if "gamma_macro" in first.figures:
        panels.append(
            partial(panel, lambda r: r.figures["gamma_macro"].value, _axis("gamma_macro"), False)
        )
        if any(r.pairs for each in series for r in each.results.values()):
            panels.append(
                partial(panel, lambda r: r.pairs or float("nan"), "comparable pairs", True)
            )
    panels += [partial(panel, partial(_value, "hits"), "hits a query", True)] * (not panels)
    if any(len({r.bytes for r in each.results.values()}) > 1 for each in series):
        panels.append(partial(panel, lambda r: (r.bytes or 0) / 1e6, "size of the index, MB", True))
    return draw_panels(panels, 3)


# -- content, trees, accuracy ----------------------------------------------------------------------


def _content(study: SuiteStudy) -> Picture:
    """A panel a direction; what has none in each, black. Of a measure's variants the plain one, but
    all of the indexes that are compared.
    """
    names = {id(r): f"{r.point.measure} {r.point.direction}" for r in study.methods if r.point}
    plain = [result for result in study.methods if names.get(id(result)) == result.name]
    shown = plain or [result for result in study.methods if result.point]
    others = [result for result in study.methods if result.point is None]
    groups = {
        direction: [r for r in shown if r.point and r.point.direction == direction]
        for direction in STYLES
    }
    groups = {direction: [*found, *others] for direction, found in groups.items() if found}
    depth = sum(title.startswith("content@") for title in study.methods[0].figures)
    ts = range(1, depth + 1)
    ends = [r.figures[f"content@{t}"].value for r in study.methods for t in (1, depth)]
    low, top = min(ends), max(ends)

    def panel(direction: str, results: list[Result], axes: Axes) -> None:
        lines = iter(("-", "--", ":", "-."))
        for result, width in zip(results, widths(len(results)), strict=True):
            values = [result.figures[f"content@{t}"].value for t in ts]
            measure = result.point.measure if result.point else ""
            axes.plot(
                ts,
                values,
                color=color_of(measure),
                linestyle="-" if measure in MEASURES else next(lines, "-"),
                linewidth=width,
                label=measure if plain and measure else result.name,
            )
        axes.set_title(f"direction {direction}")
        axes.set_xlabel("T, hits")
        axes.set_ylabel("Δ(·, T), mean cosine TF-IDF")
        axes.set_ylim(0.8 * low, 1.03 * top)

    return draw_panels([partial(panel, *group) for group in groups.items()], 3)


def _by_value(setting: str, series: Sequence[Series]) -> Picture | None:
    """A panel a measure, in the direction that comes first, a line a value: the larger, the
    darker; None if there is nothing to draw.
    """
    shown = {each.measure: each for each in reversed(series) if _numeric(each.results)}
    shown = {
        measure: each
        for measure, each in reversed(shown.items())
        if len(each.results) > 1 and "content@1" in next(iter(each.results.values())).figures
    }
    values = sorted({value for each in shown.values() for value in each.results}, key=float)
    if not shown or setting == "seed":
        return None
    paleness = {v: 0.75 * (1 - i / max(1, len(values) - 1)) for i, v in enumerate(values)}

    def shade(color: str, value: Value) -> tuple[float, ...]:
        from matplotlib.colors import to_rgb

        pale = paleness[value]
        return tuple(pale + (1 - pale) * part for part in to_rgb(color))

    def panel(each: Series, axes: Axes) -> None:
        for value, result in each.results.items():
            depth = sum(title.startswith("content@") for title in result.figures)
            ts = range(1, depth + 1)
            curve = [result.figures[f"content@{t}"].value for t in ts]
            axes.plot(ts, curve, color=shade(color_of(each.measure), value), linewidth=1.2)
        for value in values:  # the legend, in gray: it is that of all panels
            axes.plot([], [], color=shade("#222222", value), label=f"{setting} {plain(value)}")
        axes.set_title(each.method)
        axes.set_xlabel("T, hits")
        axes.set_ylabel("Δ(·, T), mean cosine TF-IDF")

    return draw_panels([partial(panel, each) for each in shown.values()], 3)


def _trees(study: SuiteStudy) -> Picture:
    def sizes(largest: bool, axes: Axes) -> None:
        for each in study.trees:
            axes.plot(
                [size.length for size in each.sizes],
                [size.largest if largest else size.mean for size in each.sizes],
                color=color_of(each.measure),
                linestyle=STYLES[each.direction],
                marker=mark_of(each.measure),
                markersize=3,
                label=f"{each.measure} {each.direction}",
            )
        log_scale(axes)
        axes.set_xlabel("length, steps")
        axes.set_ylabel(("largest" if largest else "mean") + " tree read by a query, nodes")

    def live(axes: Axes) -> None:
        for each in study.trees:
            if each.live:
                axes.plot(
                    range(1, len(each.live) + 1),
                    each.live,
                    color=color_of(each.measure),
                    linestyle=STYLES[each.direction],
                    marker=mark_of(each.measure),
                    markersize=3,
                    label=f"{each.measure} {each.direction}",
                )
        axes.set_ylim(bottom=0)
        axes.set_xlabel("step")
        axes.set_ylabel("live tokens, share of nodes")

    return draw_panels([partial(sizes, False), partial(sizes, True), live], 3)


def _accuracy(study: SuiteStudy) -> Picture:
    measures = dict.fromkeys(each.measure for each in study.accuracy)
    ks = list(study.accuracy[0].found.precision)

    def panel(of: Callable[[Any], float], title: str, log: bool, axes: Axes) -> None:
        for measure in measures:
            points = [each for each in study.accuracy if each.measure == measure]
            axes.plot(
                [each.samples for each in points],
                [of(each.found) for each in points],
                color=color_of(measure),
                marker=mark_of(measure),
                markersize=3,
                label=measure,
            )
        axes.set_xscale("log")
        axes.set_xlabel("samples")
        axes.set_ylabel(title)
        counts = list(dict.fromkeys(each.samples for each in study.accuracy))
        axes.set_xticks(counts, [str(count) for count in counts])
        axes.minorticks_off()
        if log:
            log_scale(axes)
        else:
            axes.set_ylim(0, 1)

    panels: list[Panel] = [
        partial(panel, lambda found: found.mean_error, "mean error of a score", True),
        partial(panel, lambda found: found.largest_error, "largest error", True),
        partial(
            panel,
            lambda found: found.precision[ks[0]],
            f"precision@{ks[0]} against the exact list",
            False,
        ),
    ]
    return draw_panels(panels, 3)


def write_pictures(study: SuiteStudy, folder: Path) -> list[Path]:
    """Write every picture as SVG and PNG, called as its heading; return the files as SVG."""
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for name, picture in pictures(study).items():
        path = folder / (re.sub(r"\W+", "-", name.lower()).strip("-") + ".svg")
        path.write_text(picture.svg, "utf-8")
        path.with_suffix(".png").write_bytes(picture.png)
        written.append(path)
    return written
