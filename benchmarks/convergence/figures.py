"""Write a study as files: one CSV table per figure, in long form, and plots.

| table | columns |
| --- | --- |
| residual.csv | iteration, sweeps, residual |
| positions.csv | iteration, among, sweeps, difference (the middle of a bucket), nodes |
| similarity.csv | iteration, among, sweeps, n, similarity |
| settled.csv | iteration, among, nodes, n, nearly, members, order (empty if never) |

*among* is the label of a query, or ``all nodes``. ``study.json`` has the arguments, and the table
of the sweeps at which orders settled. A plot has the name of its table, and a number if it is for a
query.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from benchmarks import plots
from benchmarks.convergence.comparison import Difference
from benchmarks.convergence.orders import Histogram, sizes_to
from benchmarks.convergence.study import Agreement, ConvergenceStudy, Iteration
from cocite.errors import OutputExists
from cocite.io.writers import check_output

if TYPE_CHECKING:
    from matplotlib.axes import Axes


CONTENTS = "study.json"
ALL = "all nodes"
_COLORS = dict(zip(Iteration, plots.SERIES, strict=False))
_TEXT, _COUNT, _REAL = "VARCHAR", "BIGINT", "DOUBLE"
Columns = dict[str, Any]


def check_study_output(
    output: str | os.PathLike[str], overwrite: bool, with_plots: bool = True
) -> Path:
    """The path, if a study may be written there and its pictures can be made; before any work.

    Raises :class:`~cocite.errors.OutputExists`, :class:`~cocite.errors.UsageError`.
    """
    if with_plots:
        plots.require(otherwise="pass --no-plots (with_plots=False) for the tables alone")
    path = Path(output)
    if path.exists() and not overwrite:
        raise OutputExists(f"{path} exists. Choose another output, or pass --overwrite")
    if path.exists():
        try:
            own = json.loads((path / CONTENTS).read_text("utf-8"))["files"]
        except (OSError, ValueError, KeyError):
            own = []
        strange = sorted({entry.name for entry in path.iterdir()} - {*own})
        if strange:
            raise OutputExists(f"{path} holds what no study has left ({', '.join(strange[:3])})")
    return path


def write_study(
    found: ConvergenceStudy,
    output: str | os.PathLike[str],
    *,
    with_plots: bool = True,
    overwrite: bool = False,
) -> None:
    """Write the tables of a study, and its pictures, into a new directory.

    Raises :class:`~cocite.errors.OutputExists`, :class:`~cocite.errors.UsageError`.
    """
    path = check_study_output(output, overwrite, with_plots)
    path.parent.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(prefix=f".{path.name}.", dir=path.parent) as beside:
        folder = Path(beside, path.name)
        folder.mkdir()
        for name, (pieces, types) in _tables(found).items():
            check_output(folder / name, True).write_table(pieces, types)
        if with_plots:
            _draw(found, folder)
        files = sorted({entry.name for entry in folder.iterdir()} | {CONTENTS})
        text = json.dumps(study_facts(found) | {"files": files}, ensure_ascii=False, indent=1)
        (folder / CONTENTS).write_text(text + "\n", "utf-8")
        if path.exists():
            path.rename(Path(beside, "old"))
        folder.rename(path)


def study_facts(found: ConvergenceStudy) -> dict[str, Any]:
    """What was asked, the residuals after the sweeps compared, and what settled when."""
    shown = (*found.sweeps, found.reference)
    return {
        "reference": found.reference,
        "sweeps": list(found.sweeps),
        "top": found.top,
        "bucket": found.bucket,
        "residuals": {
            iteration.value: {str(s): float(values[s - 1]) for s in shown}
            for iteration, values in found.residuals.items()
        },
        "settled": settled_rows(found),
    }


def settled_rows(found: ConvergenceStudy) -> list[dict[str, Any]]:
    """One row an iteration, a set of nodes and a size of the top."""
    return [
        {"iteration": a.iteration.value, "only": _among(a), "nodes": a.nodes} | vars(settled)
        for a in found.agreements
        for settled in a.settled
    ]


# -- tables ---------------------------------------------------------------------------------------


def _tables(found: ConvergenceStudy) -> dict[str, tuple[Iterator[Columns], dict[str, str]]]:
    key = {"iteration": _TEXT, "only": _TEXT, "sweeps": _COUNT}
    settled = {"iteration": _TEXT, "only": _TEXT}
    settled |= dict.fromkeys(("nodes", "n", "nearly", "members", "order"), _COUNT)
    return {
        "residual.csv": (
            _residual_pieces(found),
            {"iteration": _TEXT, "sweeps": _COUNT, "residual": _REAL},
        ),
        "positions.csv": (
            _position_pieces(found),
            key | {"difference": _COUNT, "nodes": _COUNT},
        ),
        "similarity.csv": (
            _similarity_pieces(found),
            key | {"n": _COUNT, "similarity": _REAL},
        ),
        "settled.csv": (_settled_pieces(found), settled),
    }


def _text(value: str, count: int) -> Any:
    return np.full(count, value, dtype=object)


def _residual_pieces(found: ConvergenceStudy) -> Iterator[Columns]:
    for iteration, values in found.residuals.items():
        yield {
            "iteration": _text(iteration.value, values.size),
            "sweeps": np.arange(1, values.size + 1),
            "residual": values,
        }


def _keys(agreement: Agreement, sweeps: int, count: int) -> Columns:
    return {
        "iteration": _text(agreement.iteration.value, count),
        "only": _text(_among(agreement), count),
        "sweeps": np.full(count, sweeps),
    }


def _position_pieces(found: ConvergenceStudy) -> Iterator[Columns]:
    for agreement in found.agreements:
        for sweeps, histogram in agreement.positions.items():
            keys = _keys(agreement, sweeps, histogram.nodes.size)
            yield keys | {"difference": histogram.middle, "nodes": histogram.nodes}


def _similarity_pieces(found: ConvergenceStudy) -> Iterator[Columns]:
    for agreement in found.agreements:
        for sweeps, values in agreement.similarity.items():
            sizes = np.arange(1, values.size + 1)
            yield _keys(agreement, sweeps, values.size) | {"n": sizes, "similarity": values}


def _settled_pieces(found: ConvergenceStudy) -> Iterator[Columns]:
    for row in settled_rows(found):
        yield {
            # A masked value is NULL to DuckDB, and an empty field of the CSV.
            title: _text(value, 1)
            if isinstance(value, str)
            else np.ma.array([value or 0], mask=[value is None])
            for title, value in row.items()
        }


def _among(agreement: Agreement) -> str:
    return ALL if agreement.query is None else agreement.query


# -- pictures -------------------------------------------------------------------------------------


def _draw(found: ConvergenceStudy, folder: Path) -> None:
    plots.draw(
        folder / "residual.png", "Residual after each sweep", [partial(_residual_panel, found)]
    )
    pairs: dict[str | None, list[Agreement]] = {}
    for agreement in found.agreements:
        pairs.setdefault(agreement.query, []).append(agreement)
    for number, pair in enumerate(pairs.values()):
        ending = f"-query{number}.png" if number else ".png"
        among = f"{_among(pair[0])} ({pair[0].nodes:,})" if number else f"{pair[0].nodes:,} nodes"
        against = f"against {found.reference} sweeps: {among}"
        plots.draw(
            folder / ("similarity" + ending),
            f"Similarity of the top n, {against}",
            [partial(_similarity_panel, found, agreement) for agreement in pair],
            legend="sweeps",
        )
        plots.draw(
            folder / ("positions" + ending),
            f"Differences in position, {against}",
            [partial(_positions_panel, found, pair, sweeps) for sweeps in found.sweeps],
        )


def _residual_panel(found: ConvergenceStudy, axes: Axes) -> None:
    for iteration, values in found.residuals.items():
        sweeps = np.arange(1, values.size + 1)
        axes.semilogy(sweeps, values, color=_COLORS[iteration], label=iteration.value)
    axes.set_xlabel("sweeps")
    axes.set_ylabel("L1 residual")


def _similarity_panel(found: ConvergenceStudy, agreement: Agreement, axes: Axes) -> None:
    """What is drawn later is thinner, so that lines it covers can be seen; so below."""
    colors = plots.shades(len(found.sweeps))
    widths = np.linspace(2.0, 0.9, len(found.sweeps))
    for sweeps, color, width in zip(found.sweeps, colors, widths, strict=True):
        values = agreement.similarity[sweeps]
        axes.step(
            np.arange(1, values.size + 1),
            values,
            where="mid",
            color=color,
            linewidth=width,
            label=str(sweeps),
        )
    axes.set_xscale("log")
    axes.set_title(agreement.iteration.value)
    axes.set_xlabel("n, nodes")
    axes.set_ylabel("similarity, |A ∩ B| / |A ∪ B|")


def _positions_panel(
    found: ConvergenceStudy, pair: list[Agreement], sweeps: int, axes: Axes
) -> None:
    for agreement, width in zip(pair, (2.4, 1.1), strict=True):
        shares, edges = _widening(agreement.positions[sweeps], found.bucket)
        color, label = _COLORS[agreement.iteration], agreement.iteration.value
        axes.stairs(shares, edges, color=color, linewidth=width, label=label)
    axes.set_xscale("symlog", linthresh=found.bucket)
    axes.set_yscale("log")
    axes.set_title(f"{sweeps} sweeps")
    axes.set_xlabel("difference, places")
    axes.set_ylabel("share of the top nodes, % a bin")
    axes.tick_params(axis="x", labelrotation=90, labelsize=7)


def _widening(histogram: Histogram, bucket: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """(share in %, edges) in bins of 1 bucket around 0, then 1, 2, 4, ... on both sides."""
    steps = histogram.middle // bucket
    bins = np.sign(steps) * np.frexp(np.abs(steps))[1]
    most = int(np.abs(bins).max(initial=0))
    shares = np.bincount(bins + most, weights=histogram.nodes, minlength=2 * most + 1)
    beyond = bucket * (2.0 ** np.arange(most + 1) - 0.5)
    return 100 * shares / histogram.nodes.sum(), np.concatenate([-beyond[::-1], beyond])


def among(difference: Difference) -> str:
    """What its nodes are called."""
    return ALL if difference.query is None else difference.query


def similar(difference: Difference) -> list[tuple[int, float]]:
    """(n, similarity of the top n) for n = 10, 100, ... and all that were looked at."""
    values = difference.similarity
    return [(n, float(values[n - 1])) for n in sizes_to(values.size).tolist()]
