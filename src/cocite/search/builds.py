"""The Python functions that build, merge and refresh indexes."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cocite.graph import Graph
from cocite.index import StoredIndex
from cocite.options import accepts
from cocite.options.build import IndexOptions, RefreshOptions
from cocite.progress import shows
from cocite.resources import Resources
from cocite.search.index import Index

if TYPE_CHECKING:
    from cocite.cluster.ray import Cluster
    from cocite.index.settings import SettingsLike
    from cocite.storage.spool import Temporary


BUILD_LOG = "cocite.build"
"""Logger for remarks on properties of the graph that affect an index."""
_log = logging.getLogger(BUILD_LOG)
_NODE_BYTES, _SAMPLE_BYTES, _LINK_BYTES = 1000, 16, 48


@shows("building an index")
@accepts(IndexOptions)
def build(
    graph: Any,
    output: str | os.PathLike[str] | None = None,
    *,
    settings: SettingsLike | None = None,
    threads: int | None = None,
    memory: str | int | None = None,
    cluster: str | Cluster | None = None,
    progress: Callable[[int, int], None] = lambda done, total: None,
    options: IndexOptions | None = None,
    **given: Any,
) -> Index:
    """Build an index of ``graph`` in the directory ``output``, and open it.

    Parameters
    ----------
    graph
        A stored graph (opened, a path, or a URL that fsspec downloads), or other links
        (:func:`open_graph`). File checksums are verified first, unless the graph was opened with
        ``verify=False``.
    output
        The directory to create, or a URL to which fsspec uploads the finished index
        (``io/remote.py``). Interrupted builds resume. The default is a temporary directory, deleted
        with the last object that uses the index.
    settings
        A settings file written by :func:`tune` (``index/settings.py``), or ``settings`` from the
        result of :func:`tune`. Arguments override these settings, except the measure.
    threads, memory
        Limits for the build and the opened index, by default all cores and half of the available
        memory.
    cluster
        Draw the samples on a cluster: ``"local:4"`` (4 nodes on this machine), ``"HOST:PORT"`` of
        the head node, ``"auto"``, or a connected cluster. ``threads`` and ``memory`` then limit
        each shard on a node; the defaults are the smallest node's cores and half of its memory.
        Nodes must find graph and output under the same paths, unless ``graph`` is a URL, which each
        node downloads. Requires the extra ``cluster``.
    progress
        Called with (done, total), counted in samples if the measure has samples.
    options, given
        The options below, as one object or by name. Other keyword arguments are the measure's
        settings, such as ``samples``, ``length`` and ``seed`` (``cocite measures``). The same
        seed gives the same samples, regardless of threads, memory, blocks, and shards.
    {options}

    Raises
    ------
    UsageError, OutputExists, Busy, ResourceError
    """
    from cocite.index.build import IndexBuild
    from cocite.index.cluster import of_nodes, spread_on
    from cocite.index.reports import GraphReport
    from cocite.index.settings import chosen_options
    from cocite.io.remote import Sending, is_url
    from cocite.storage.spool import Temporary

    url, graph = _graph_of(graph, memory=memory, threads=threads)
    chosen = IndexOptions.of(options, given)
    built = chosen_options(settings, chosen)
    means = Resources.checked(threads, memory, chosen.shard, chosen.blocks, chosen.external)
    home = Temporary(_size(graph, built.samples), means.memory) if output is None else None
    place = home.path / "index" if home else Path(os.fspath(output or ""))
    sending = Sending(output, "index", chosen.overwrite) if is_url(output) else None
    again: dict[str, Any] = {"overwrite": chosen.overwrite, "restart": chosen.restart}
    via = chosen.staging_url
    if sending is not None:
        place, again["overwrite"], again["elsewhere"] = sending.path, True, True
        via = via or (f"{sending.url}.building" if cluster is not None else None)
    with spread_on(cluster, url, via) as spread:
        each = of_nodes(spread, means, threads, memory)
        with IndexBuild(graph, place, built, each, **again, spread=spread) as work:
            work.run(progress)
            built = work.options
    place = place if sending is None else sending.send()
    for line in GraphReport.of(graph, built).lines(graph, built):
        _log.info(line)
    return Index(_opened(place, graph, home), means)


def _graph_of(links: Any, **options: Any) -> tuple[str | None, Graph]:
    from cocite.io.opening import open_graph
    from cocite.io.remote import is_url, origin

    graph = open_graph(links, **options)
    return str(links) if is_url(links) else origin(graph.path), graph


def _size(graph: Graph, samples: int | None) -> int:
    """Estimate an index's maximum size: samples, nearest pages, and links in both directions."""
    node = _NODE_BYTES + _SAMPLE_BYTES * (samples or 0)
    return 2 * graph.store.nbytes + node * graph.nodes + _LINK_BYTES * graph.edges


def _opened(
    index: str | os.PathLike[str], graph: Graph, home: Temporary | None = None
) -> StoredIndex:
    found = StoredIndex.open(index)
    if home is None and graph.store.home is None and graph.store.labels is None:
        return found
    held = [each for each in (home, graph.store.home) if each is not None]
    return type(found)(replace(found.store, home=held, labels=graph.store.labels))


@shows("merging indexes")
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
    """Merge indexes of one graph, each with different samples or nodes, and open the result.

    The result is byte-identical to a single build. Sample numbers must be consecutive, without gaps
    or overlaps; ``build(..., numbers=range(100, 200))`` draws samples 100 to 199 on any machine. To
    repair an index that has lost files, merge it with an index of the lost samples. For ``fusion``
    and ``ppr-pmi``, merge indexes of node ranges (``build(..., only_range="2/8")``); names then
    come from the graph.

    Parameters
    ----------
    indexes
        Two or more directories, with the same graph, measure and settings. Refreshed indexes cannot
        be merged.
    output
        The directory to create, or a URL, as for :func:`build`. An interrupted merge leaves no
        output.
    shard, overwrite, threads, memory
        As for :func:`build`; ``output`` may be one of the indexes if ``overwrite`` is true.
    verify
        Verify file checksums.
    progress
        Called with (done, total), in samples or nodes.

    Raises
    ------
    UsageError
        If the indexes do not match.
    OutputExists, Busy, ResourceError, StoreError
    """
    from cocite.index.merge import open_merge
    from cocite.io.remote import Sending, is_url

    means = Resources.checked(threads, memory, shard)
    sending = Sending(output, "index", overwrite) if is_url(output) else None
    how: dict[str, Any] = {"overwrite": overwrite, "verify": verify}
    how |= {"overwrite": True, "elsewhere": True} if sending else {}
    place = sending.path if sending else output
    with open_merge(indexes, place, means, **how) as work:
        work.run(progress)
    return Index(StoredIndex.open(place if sending is None else sending.send()), means)


@shows("refreshing an index")
@accepts(RefreshOptions)
def refresh(
    index: str | os.PathLike[str],
    graph: Any,
    *,
    threads: int | None = None,
    memory: str | int | None = None,
    verify: bool = True,
    cluster: str | None = None,
    progress: Callable[[int, int], None] = lambda done, total: None,
    options: RefreshOptions | None = None,
    **given: Any,
) -> Index:
    """Replace an index's oldest samples with new ones from ``graph``, and open the result.

    The other samples are kept, without removed nodes; the measure and the settings do not change. A
    score is the mean over the samples that contain both nodes, and the interval covers the mean of
    the scores in these samples' graphs. Parts without samples are rebuilt. During the refresh, the
    old index answers queries.

    Parameters
    ----------
    index
        The index directory. The ``paths`` and ``compact`` layouts cannot keep old samples and
        require ``fraction=1``.
    graph
        A stored graph, or other links (:func:`open_graph`), with weights if the index uses weights.
    threads, memory
        As for :func:`build`.
    verify
        Verify the checksums of the index, and of a graph given as a path.
    cluster
        As for :func:`build`. Cluster nodes draw new samples; this machine copies the others.
    progress
        Called with (done, total), as for :func:`build`.
    options, given
        The options below, as one object or by name.
    {options}

    Raises
    ------
    UsageError, Busy, ResourceError, StoreError

    A refresh can be repeated at any time, even after a crash: it does nothing if the newest samples
    already come from ``graph``.
    """
    from cocite.index.cluster import of_nodes, spread_on
    from cocite.index.refresh import RefreshBuild, graph_with_links

    url, graph = _graph_of(graph, verify=verify, memory=memory, threads=threads)
    means = Resources.checked(threads, memory)
    chosen = RefreshOptions.of(options, given)
    graph = graph_with_links(index, graph, means, chosen)
    with spread_on(cluster, url, chosen.staging_url) as spread:
        each = of_nodes(spread, means, threads, memory)
        with RefreshBuild(index, graph, each, chosen, verify=verify, spread=spread) as work:
            work.run(progress)
    return Index(_opened(index, graph), means)
