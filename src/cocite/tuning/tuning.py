"""What an index of a graph should be made of: candidates tried, successively fewer, the best told.

    round 1   every measure in every direction: a quarter of the pages, a quarter of the samples
    round 2   the best 6 of these, one setting at a time set otherwise: half of both
    round 3   the best 5 of these, and the best value of every setting at once: all of both

The default takes part in every round. Without labels some links are hidden, and what finds the
company of their ends is best (``company.py``); with labels some labelled pages choose by a figure
of ``cocite evaluate``, on the whole graph. Half of the pages choose; the others have no say, and
tell how good what was chosen is, as a best of many looks better on the pages that chose it.

Who is best in round 3 is chosen, but what is not told apart from it by the pages (the 95 % interval
of the difference, over resamples of the pages, reaches 0) goes before it: the default, if that is
among them, or else the smallest index. The default is left only for what is ahead of it, by more
than chance, on the pages that chose and on the others, too; unless the ``best`` is asked for. Where
a choice rests on few pages, that is told.

What was judged is kept beside the output, and a run with the same settings goes on behind it. A
choice follows from graph, settings and seed, unless the time was up: a round has until 40, 75 and
100 % of it, and what it has not come to then is left out, and told.

Cost: some 40 builds with a quarter of the samples, 30 with a half, 10 with all.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from cocite.errors import InputError, UsageError
from cocite.evaluation.builds import builds_on
from cocite.graph import Graph
from cocite.query.plan.plan import parse_time
from cocite.store import Building, check_file
from cocite.tuning.company import COMPANY_TITLES
from cocite.tuning.records import Records
from cocite.tuning.result import Tuned
from cocite.tuning.run import Progress, Tuning

if TYPE_CHECKING:
    from cocite.runner.ray import Cluster

__all__ = ["DEFAULT_SHARE", "DEFAULT_TIME", "FIGURE", "LABELS_FIGURE", "tune"]

DEFAULT_SHARE, DEFAULT_TIME, DEFAULT_QUERIES, DEFAULT_SAMPLES = 0.1, "10min", 1000, 100
FIGURE, LABELS_FIGURE = "company@50", "precision@10"
SMALL, SMALL_FIGURE = 500, "company@10"
"""Of fewer nodes fifty are so many that every list has everybody."""


def tune(
    graph: Graph | str | os.PathLike[str],
    output: str | os.PathLike[str] | None = None,
    *,
    labels: str | os.PathLike[str] | None = None,
    label_columns: Sequence[int | str] = (1, 2),
    delimiter: str = "auto",
    header: str = "auto",
    skip_bad_rows: bool | str = False,
    separator: str = ".",
    figure: str | None = None,
    measures: Sequence[str] = (),
    directions: Sequence[str] = (),
    share: float = DEFAULT_SHARE,
    queries: int = DEFAULT_QUERIES,
    samples: int = DEFAULT_SAMPLES,
    seed: int = 0,
    time: str | float | None = DEFAULT_TIME,
    unweighted: bool = False,
    side: str | None = None,
    threads: int | None = None,
    memory: str | int | None = None,
    cluster: str | Cluster | None = None,
    via: str | None = None,
    overwrite: bool = False,
    restart: bool = False,
    best: bool = False,
    progress: Progress = lambda stage, done, total, remark: None,
) -> Tuned:
    """Find out what an index of ``graph`` should be made of.

    Parameters
    ----------
    graph
        A stored graph, opened or as a path.
    output
        The file of settings to write, for ``build(..., settings=output)``. A run that was
        interrupted goes on; without an output nothing is kept.
    labels, label_columns, separator
        A table of names and categories, as for ``cocite evaluate``: by these, instead of by links
        that are hidden.
    delimiter, header, skip_bad_rows
        How the labels are read, as for :func:`~cocite.ingest`.
    figure
        What decides: ``company@50`` (``tuning/company.py``), ``company@10`` in graphs of fewer than
        500 nodes; or ``links@10``, ``links@50``; with labels ``precision@10``, or another one of
        ``cocite evaluate``.
    measures, directions
        Try only these; by default all.
    share
        The share of the links that are hidden, above 0, at most 0.5.
    queries
        How many pages choose and judge, half of them each, drawn by ``seed``; 0 for all.
    samples
        How many samples measures have in the last round, and in the settings.
    seed
        Where the random numbers start. Equal seeds give equal choices, unless time was up.
    time
        Such as ``"10min"``, in all; None for no limit. What is not tried then is left out.
    unweighted
        Ignore the weights of links.
    side
        Of a bipartite graph the side whose nodes choose and judge, by its title, such as
        ``"user"``; by default the right one, the items. Labels are those of one side.
    threads, memory
        As for building an index. A candidate that does not fit is left out.
    cluster, via
        As for building an index: where samples are drawn. Nodes see ``output``, and the graph,
        whose links are hidden in a copy beside ``output``.
    overwrite
        Replace ``output``.
    restart
        Throw away an unfinished run with other settings.
    best
        Choose the best by the pages that choose, even if the default is not told apart from it.
    progress
        Called with (stage, done, total, remark).

    Raises
    ------
    UsageError
        For a value that is not allowed, and if nothing can be hidden.
    InputError, OutputExists, Busy, ResourceError, ClusterError
    """
    if not isinstance(graph, Graph):
        graph = Graph.open(graph)
    graph.check()
    if not 0 < share <= 0.5:
        raise UsageError(f"share is {share!r}; it is a number above 0, at most 0.5")
    for name, value, least in (("queries", queries, 0), ("samples", samples, 1), ("seed", seed, 0)):
        if type(value) is not int or value < least:
            raise UsageError(f"{name} is {value!r}; it is a whole number, {least} or more")
    if side is not None and graph.sides is None:
        raise UsageError(f"{graph.path} is not bipartite: leave side out")
    by = figure or (LABELS_FIGURE if labels else FIGURE if graph.nodes >= SMALL else SMALL_FIGURE)
    if labels is None and by not in COMPANY_TITLES:
        raise UsageError(
            f"without labels figure is one of {', '.join(COMPANY_TITLES)}; found {by!r}"
        )
    if labels is None and graph.sides is not None and by.startswith("links@"):
        raise UsageError(
            f"figure is {by}, which lists the ends of hidden links, and these are on the other "
            "side of a bipartite graph, which no list has: choose company@10 or company@50"
        )
    seconds = float("inf") if time is None else parse_time(time)
    if output is not None:
        check_file(Path(output), overwrite)
    plan = {
        "graph": graph.digest,
        "labels": None if labels is None else _content(labels),
        "label columns": list(label_columns),
        "delimiter": delimiter,
        "header": header,
        "skip bad rows": skip_bad_rows,
        "separator": separator,
        "figure": by,
        "measures": list(measures),
        "directions": list(directions),
        "share": share,
        "queries": queries,
        "samples": samples,
        "seed": seed,
        "unweighted": unweighted,
    }
    if graph.sides is not None:
        within = graph.sides.named(side)
        ids: list[int | str] = [within.start, within.stop]
        plan["nodes"] = ids
    with ExitStack() as stack:
        builds = stack.enter_context(builds_on(cluster, via, threads, memory))
        place = Path(output) if output is not None else None
        if place is None:
            place = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="cocite-"))) / "t"
        building = stack.enter_context(Building(place, resumable=True))
        building.goes_on(plan, "tuning", restart=restart)
        records = stack.enter_context(Records(building.path / "records"))
        work = Tuning(graph, building.path, records, plan, builds, seconds, progress, best)
        try:
            found = work.run(None if labels is None else Path(labels))
        except KeyboardInterrupt as stopped:
            if output is not None:
                stopped.add_note(
                    f"{len(records):,} judgements are kept in {building.path}: repeat the command "
                    "to go on"
                )
            raise
        if output is not None:
            found.save(output, overwrite)
        building.done()
    return found


def _content(path: str | os.PathLike[str]) -> str:
    """What tells one file of labels from another."""
    import xxhash

    try:
        return xxhash.xxh3_128_hexdigest(Path(path).read_bytes())
    except OSError as error:
        raise InputError(f"{os.fspath(path)} cannot be read: {error.strerror}") from error
