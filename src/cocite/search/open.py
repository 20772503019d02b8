"""Building and opening an index from Python."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cocite.graph import Graph
from cocite.index import StoredIndex
from cocite.measures import By, Value
from cocite.resources import Resources
from cocite.search.index import Index
from cocite.search.source import GivenGraph
from cocite.search.stages import DEFAULT_DEADLINE
from cocite.storage import kind_of

if TYPE_CHECKING:
    from cocite.cluster.ray import Cluster
    from cocite.index.settings import SettingsLike
    from cocite.search.remote.replicas import OnCluster
    from cocite.storage.spool import Temporary


BUILD_LOG = "cocite.build"
"""The logger that says what a graph is like to be indexed."""
_log = logging.getLogger(BUILD_LOG)
_COMPARED = 4 << 20
"""Bytes of an index that are compared with their checksums when it is opened: less than 1 ms."""
_NODE_BYTES, _SAMPLE_BYTES, _LINK_BYTES = 1000, 16, 48


def open_index(
    path: str | os.PathLike[str],
    *,
    graph: GivenGraph = None,
    threads: int | None = None,
    memory: str | int | None = None,
    verify: bool = True,
    cluster: str | OnCluster | None = None,
    shards: int | None = None,
    replicas: int = 1,
    deadline: float = DEFAULT_DEADLINE,
) -> Index:
    """Open an index.

    ``path`` is the directory of an index. Or it is a stored graph, or a file of links: the default
    index of it is then built, and cached until the graph or the file changes
    (``search/cache.py``). To choose the measure and the settings, :func:`build` it.

    Refined answers, and some reasons, also read the graph it was built from, which is looked for
    where it was then, as seen from the index; ``graph`` says where it is now (of an index that was
    refreshed there may be several). What they make of it takes ``threads`` at most, and ``memory``:
    by default all cores, and half of what is available now.

    A question reads a few cache lines of each sample, so that comparing all files with their
    checksums would take many times as long as answering it. Those of 4 MiB in all, the smallest
    first, are compared when the index is opened, of a small index all; the others by
    :meth:`Index.related_all`, which reads them anyway, and by ``cocite verify``. ``verify=False``
    leaves both out.

    With a ``cluster`` (``local:N`` for N nodes on this machine, ``HOST:PORT``, ``auto``) its
    samples answer from there, in so many ``shards``, two a node by default, each on ``replicas``
    nodes, all of which see ``path``. An answer is made of what has come by the ``deadline``, in
    seconds, and :attr:`~cocite.search.remote.index.SpreadIndex.answered` says of how many samples.
    Close it (``with``, ``close()``) when done.

    Raises
    ------
    UsageError, NotAStore, WrongFormat, Damaged
    """
    held = None
    if cluster is None and kind_of(os.fspath(path)) != "index":
        from cocite.search.cache import find_or_make, is_links

        source = os.fspath(path)
        if kind_of(source) == "graph" or (isinstance(source, str) and is_links(source)):
            found = find_or_make(source, threads=threads, memory=memory)
            path, graph, held = found.index, graph or found.graph, found.temporary
    stored = StoredIndex.open(path, verify=verify).sound(_COMPARED)
    if held is not None:  # a temporary index goes with the last object that was made of it
        stored = type(stored)(replace(stored.store, home=held))
    means = Resources.checked(threads, memory)
    if cluster is not None:
        from cocite.search.remote.replicas import open_spread

        return open_spread(stored, means, graph, cluster, shards, replicas, deadline)
    return Index(stored, means, graph)


def build(
    graph: Any,
    output: str | os.PathLike[str] | None = None,
    *,
    measure: str | None = None,
    direction: str | None = None,
    layout: str | None = None,
    settings: SettingsLike | None = None,
    threads: int | None = None,
    memory: str | int | None = None,
    shard: int | None = None,
    blocks: int | None = None,
    external: bool = False,
    overwrite: bool = False,
    restart: bool = False,
    unweighted: bool = False,
    refine: bool = False,
    by: By | None = None,
    numbers: range | None = None,
    keep: Iterable[object] | None = None,
    keep_prefix: str | Sequence[str] | None = None,
    texts: str | os.PathLike[str] | None = None,
    texts_share: float | None = None,
    cluster: str | Cluster | None = None,
    via: str | None = None,
    progress: Callable[[int, int], None] = lambda done, total: None,
    **given: Value,
) -> Index:
    """Build an index of ``graph`` in the directory ``output``, and open it.

    Parameters
    ----------
    graph
        A stored graph, opened, as a path, or as a URL that fsspec reads, of which a copy is kept;
        or anything else that holds links (:func:`open_graph`). Its files are compared with their
        checksums first, unless it was opened with ``verify=False``.
    output
        The directory to make, or a URL that fsspec writes, where the index comes when it is whole
        (``io/publish.py``). A build that was interrupted is resumed. By default a temporary
        one, which goes with the last object that was made of it.
    measure
        Such as ``"psimrank"``, ``"cocitation"`` or ``"ppr"``; ``cocite measures`` lists them all.
        By default ``neighbourhood``, which has an answer for every node that has a link.
        Or a weighted mean of several: ``"blend:0.6*psimrank+0.4*cocitation(idf=true)"``.
    direction
        Which links count: ``in`` (two pages are similar if similar pages link to them), ``out``
        (if they link to similar pages), ``both`` together, or ``any``: links are taken either way.
        By default what the measure says (``cocite measures --format json``).
    layout
        How the index is stored, for a measure that has a choice.
    settings
        A file that says what the index is made of, such as :func:`tune` writes
        (``index/settings.py``), or the ``settings`` of its result. What is given beside it
        goes before it, but for another measure.
    given
        What the measure takes: ``samples``, ``length``, ``seed``, ... (``cocite measures``).
        Equal seeds give equal samples, whatever the threads, memory, blocks and shards.
    threads, memory
        By default all cores, and half of the memory that is available. The index is opened with
        the same.
    shard
        Save after so many samples; a build that was interrupted goes on from there. By default 16,
        fewer for large graphs.
    blocks
        Cut the graph into so many blocks and keep one of them in memory at a time; by default as
        many as the memory requires, mostly one.
    external
        Keep everything but one block in files, so that memory does not grow with the graph. By
        default only if the memory does not suffice otherwise.
    overwrite
        Replace ``output`` if it is an index; the old one answers until the new one is complete.
    restart
        Throw away an unfinished build that had other settings, and begin again.
    unweighted
        Ignore the weights of links. By default they are used, if there are any; a measure that
        cannot use them is refused.
    refine
        Prepare refined answers of simrank (``related(..., refine=True)``), in 24 bytes a node.
        Otherwise that is done when the first one is asked for.
    by
        What a meeting after t steps is worth where a question does not say, for measures of walks:
        a function of t, numbers, an expression or a name (:meth:`Index.related`).
    numbers
        Draw the samples with these numbers, such as ``range(100, 200)``, instead of the first ones:
        :func:`merge` joins indexes that were built so, anywhere. Each answers alone, too.
    keep, keep_prefix
        Names of the pages to keep, and beginnings of names, one or more: only these can be asked,
        and be hits. Walks go over the whole graph all the same, so their scores are what they would
        be, and the index is smaller in proportion. Names that the graph does not have are left out,
        of which the logger ``cocite`` warns. For layouts ``trees``,
        ``packed``, ``minhash`` and ``sketch``.
    texts, texts_share
        The texts of the pages: a folder or a tar archive with a file a page, or a table of names
        and texts. Scores are then those of ``measure`` and of ``text`` added up, with the share
        ``texts_share`` for the latter, by default 0.5; a ``measure`` that names ``text`` says so
        itself. Texts of no page are left out, of which the logger ``cocite`` warns. A build takes
        the extra ``texts`` (``pip install '.[texts]'`` in a clone); asking does not.
    cluster
        Draw the samples on the nodes of a cluster: ``"local:4"`` (so many nodes on this machine),
        ``"HOST:PORT"`` of its head node, ``"auto"``, or one that is connected. ``threads`` and
        ``memory`` are then those of a piece of work, a shard, on a node; by default all cores of
        the smallest node, and half of its memory. Nodes see graph and output by their paths, or
        ``graph`` is a URL that fsspec reads, of which each node keeps a copy. The extra
        ``cluster``.
    via
        Where nodes do not see the output: the URL of a folder by which the shards come; beside an
        output that is a URL by default.
    progress
        Called with (done, total), in samples for measures that have them.

    Raises
    ------
    UsageError, OutputExists, Busy, ResourceError
    """
    from cocite.index.build import GraphReport, IndexBuild
    from cocite.index.cluster import of_nodes, spread_on
    from cocite.index.plan import Keep
    from cocite.index.settings import chosen_options
    from cocite.io.publish import Sending
    from cocite.io.remote import is_url
    from cocite.storage.spool import Temporary

    url, graph = _graph_of(graph, memory=memory, threads=threads)
    options = chosen_options(
        settings,
        measure,
        direction,
        layout,
        given,
        unweighted=unweighted,
        refine=refine,
        numbers=numbers,
        by=by,
        keep=Keep.checked(keep, keep_prefix),
        texts=texts,
        texts_share=texts_share,
    )
    means = Resources.checked(threads, memory, shard, blocks, external)
    home = Temporary(_size(graph, options.samples), means.memory) if output is None else None
    place = home.path / "index" if home else Path(os.fspath(output or ""))
    sending = Sending(output, "index", overwrite) if is_url(output) else None
    again: dict[str, Any] = {"overwrite": overwrite, "restart": restart}
    if sending is not None:
        place, again["overwrite"], again["elsewhere"] = sending.path, True, True
        via = via or (f"{sending.url}.building" if cluster is not None else None)
    with spread_on(cluster, url, via) as spread:
        each = of_nodes(spread, means, threads, memory)
        with IndexBuild(graph, place, options, each, **again, spread=spread) as work:
            work.run(progress)
            options = work.options
    place = place if sending is None else sending.send()
    for said in GraphReport.of(graph, options).lines(graph, options):
        _log.info(said)
    return Index(_opened(place, graph, home), means)


def _graph_of(links: Any, **options: Any) -> tuple[str | None, Graph]:
    """The URL of a stored graph, if it is given by one, and the graph (:func:`open_graph`)."""
    from cocite.io.opening import open_graph
    from cocite.io.remote import is_url, origin

    graph = open_graph(links, **options)
    return str(links) if is_url(links) else origin(graph.path), graph


def _size(graph: Graph, samples: int | None) -> int:
    """What an index takes at most, roughly: samples, lists of nearest pages, links both ways."""
    node = _NODE_BYTES + _SAMPLE_BYTES * (samples or 0)
    return 2 * graph.store.nbytes + node * graph.nodes + _LINK_BYTES * graph.edges


def _opened(
    index: str | os.PathLike[str], graph: Graph, home: Temporary | None = None
) -> StoredIndex:
    """The index of a graph, which stays as long, with what its names were."""
    found = StoredIndex.open(index)
    if home is None and graph.store.home is None and graph.store.labels is None:
        return found
    held = [each for each in (home, graph.store.home) if each is not None]
    return type(found)(replace(found.store, home=held, labels=graph.store.labels))


def merge(
    indexes: Sequence[str | os.PathLike[str]],
    output: str | os.PathLike[str],
    *,
    shard: int | None = None,
    overwrite: bool = False,
    threads: int | None = None,
    memory: str | int | None = None,
    verify: bool = True,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Index:
    """Join indexes of different samples of one graph into the index ``output``, and open it.

    It is the index that one build of all these samples makes, to the byte. The numbers of the
    samples must follow each other, none twice and none missing: ``build(..., numbers=range(100,
    200))`` draws such, on any machine. An index that has lost files of samples becomes whole with
    one of just those numbers.

    Parameters
    ----------
    indexes
        The directories of two or more, of the same graph, measure and settings; none that was
        refreshed.
    output
        The directory to make, or a URL, as for :func:`build`. A merge that is interrupted leaves
        nothing.
    shard, overwrite, threads, memory
        As for :func:`build`; ``output`` may be one of the indexes if ``overwrite`` is true.
    verify
        Compare what is read with its checksums.
    progress
        Called with (done, total), in samples.

    Raises
    ------
    UsageError
        If they do not fit together.
    OutputExists, Busy, ResourceError, StoreError
    """
    from cocite.index.merge import Merge
    from cocite.io.publish import Sending
    from cocite.io.remote import is_url

    means = Resources.checked(threads, memory, shard)
    sending = Sending(output, "index", overwrite) if is_url(output) else None
    how: dict[str, Any] = {"shard": shard, "overwrite": overwrite, "verify": verify}
    how |= {"overwrite": True, "elsewhere": True} if sending else {}
    place = sending.path if sending else output
    with Merge(indexes, place, **how) as work:
        work.run(progress)
    return Index(StoredIndex.open(place if sending is None else sending.send()), means)


def refresh(
    index: str | os.PathLike[str],
    graph: Any,
    *,
    share: float = 0.1,
    date: str | None = None,
    threads: int | None = None,
    memory: str | int | None = None,
    restart: bool = False,
    texts: str | os.PathLike[str] | None = None,
    again: bool = False,
    verify: bool = True,
    cluster: str | None = None,
    via: str | None = None,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Index:
    """Draw some samples of an index anew, from ``graph`` as it is now; open what comes of it.

    The oldest samples retire; the others stay, without the nodes that are gone. A score is the mean
    over the samples that know both nodes, each of the graph that it was drawn from, and its
    interval holds the mean of what it was in those. Measure and settings stay as they are; parts
    without samples are computed anew. The index answers all the while.

    Parameters
    ----------
    index
        The directory of an index. Samples in the layouts ``paths`` and ``compact`` cannot stay:
        such an index takes a share of 1.
    graph
        A stored graph, or anything else that holds links (:func:`open_graph`), with weights if the
        index's has some.
    share
        How many of the samples are drawn anew, above 0, at most 1, rounded up to whole ones.
    date
        The day that ``graph`` is of, such as ``"2026-11-21"``; by default today.
    threads, memory
        As for :func:`build`.
    restart
        Throw away an unfinished refresh that had another graph, share or date, and begin again.
    texts
        The texts of the pages as they are now, as for :func:`build`, of an index that compares
        them. Without them pages keep the words that the index has of them, and their weights, and
        pages that are new have none.
    again
        Refresh an index also from the graph that its newest samples are of already. By default it
        stays as it is then, so that a refresh that was killed can be repeated, however far it came.
    verify
        Compare what is read of the index, and of a graph that is given as a path, with its
        checksums.
    cluster, via
        As for :func:`build`: nodes draw what is drawn anew, this machine carries over what stays.
    progress
        Called with (done, total), as for :func:`build`.

    Raises
    ------
    UsageError, Busy, ResourceError, StoreError
    """
    from cocite.index.cluster import of_nodes, spread_on
    from cocite.index.refresh import RefreshBuild

    url, graph = _graph_of(graph, verify=verify, memory=memory, threads=threads)
    means = Resources.checked(threads, memory)
    chosen: dict[str, Any] = {"date": date, "restart": restart, "texts": texts, "again": again}
    with spread_on(cluster, url, via) as spread:
        each, chosen["spread"] = of_nodes(spread, means, threads, memory), spread
        with RefreshBuild(index, graph, share, each, verify=verify, **chosen) as work:
            work.run(progress)
    return Index(_opened(index, graph), means)
