"""The public interface to an index: related nodes, similarities, and reasons.

An :class:`Index` checks queries and converts between names and node ids. Its ``Searcher`` answers
queries by id, from local samples or from responses of other machines (``search/remote/``):

    Scorer      scores                          Explainer   reasons for scores
    Intervals   errors and certain ranks        Refiner     more accurate scores, from the graph
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from copy import copy
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from cocite.errors import UsageError
from cocite.graph.name_files import Titles
from cocite.graph.names import Names
from cocite.index import StoredIndex
from cocite.index.stored import Lost
from cocite.measures import AskValue, Value
from cocite.options import accepts, shown
from cocite.options.query import (
    DEFAULT_AGGREGATE,
    DEFAULT_K,
    DEFAULT_REASONS,
    QueryOptions,
    ScoreOptions,
    ShardOptions,
)
from cocite.resources import Resources, checked_threads
from cocite.search.hits import Hit, HitLists, Hits, Score
from cocite.search.scorer import Filter, Scorer
from cocite.search.searcher import Query, Searcher, checked_option
from cocite.storage import kind_of

if TYPE_CHECKING:
    from cocite.cluster.ray import Cluster
    from cocite.search.batch.run import BatchReport
    from cocite.search.explainer import Why, WhyTogether
    from cocite.search.pairs import Progress, Similarities
    from cocite.search.refine.candidates import Refiner
    from cocite.search.related_graph import RelatedGraph
    from cocite.search.remote.index import Answered, RemoteShards
    from cocite.search.source import GivenGraph, RanksLike
    from cocite.search.unseen import LinksLike, UnseenNode


_COMPARED = 4 << 20
"""Bytes verified on opening, which takes less than 1 ms."""
_PLUMBING = re.compile("_.*|answered|for_(related|similarity|why)|given|means|now|remote|scorer")
"""Internal attributes, which tab completion omits."""


class Index:
    """An index of a graph for one measure. Thread-safe."""

    def __init__(
        self,
        stored: StoredIndex,
        means: Resources | None = None,
        graph: GivenGraph = None,
        *,
        remote: RemoteShards | None = None,
    ) -> None:
        """Wrap an opened index.

        ``means`` limits memory and threads, ``graph`` locates the graphs that some answers read,
        and ``remote`` supplies samples from other machines.
        """
        if means is None:
            raise UsageError(
                f"Index() does not accept {shown(stored)}. Open an index with cocite.open(path)"
            )
        self.means, self.given, self.remote = means, graph, remote
        self._searcher = Searcher(stored, means, graph)
        self._answered: Answered | None = None
        self._whole: Index | None = None

    def __repr__(self) -> str:
        settings = "".join(f", {name}={value}" for name, value in self.settings.items())
        return (
            f"Index({str(self.stored.store.path)!r}, measure={self.measure!r}, "
            f"direction={self.direction!r}, nodes={len(self.nodes)}{settings})"
        )

    def __dir__(self) -> list[str]:
        return [name for name in super().__dir__() if not _PLUMBING.fullmatch(name)]

    def __enter__(self) -> Index:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Stop the remote sample servers."""
        if self.remote is not None:
            self.remote.replicas.close()

    # -- facts ----------------------------------------------------------------------

    @property
    def stored(self) -> StoredIndex:
        """The index on disk."""
        return self.now.stored

    @property
    def measure(self) -> str:
        """The name of the measure."""
        return self.now.stored.measure.name

    @property
    def direction(self) -> str:
        """The direction of the links used, such as ``in``, ``out`` or ``both``."""
        return self.now.stored.direction

    @property
    def settings(self) -> dict[str, Value]:
        """The build settings, such as ``samples``, ``length`` and ``seed``."""
        return self.now.stored.settings.to_json()

    @property
    def samples(self) -> int | None:
        """The number of samples per estimate; None if scores are not sampled."""
        return self.stored.samples if self.remote is None else self.remote.samples

    @property
    def missing_samples(self) -> tuple[Lost, ...]:
        """The missing or damaged sample files, which queries skip.

        The logger ``cocite`` warns when one is detected, on opening or by a query.
        """
        return self.stored.lost

    @property
    def answered(self) -> Answered | None:
        """How many remote samples answered this thread's last query."""
        return self._answered if self.remote is None else self.remote.answered

    @property
    def nodes(self) -> Names:
        """The node names: ``len``, ``in``, iteration, ``complete``, ``suggest``."""
        return self._searcher.nodes

    @property
    def titles(self) -> Titles | None:
        """The node titles; None if the graph has no titles."""
        return self.now.stored.titles

    def titles_of(self, names: Sequence[str]) -> list[str] | None:
        """Return titles by node name, "" for untitled nodes; None if the graph has no titles."""
        titles = self.titles
        return None if titles is None else titles.of(self.nodes.ids(list(names)))

    @property
    def refiner(self) -> Refiner | None:
        """The refiner of answers; None if scores are exact."""
        return self.now.refiner

    # -- who answers ---------------------------------------------------------------------

    @property
    def now(self) -> Searcher:
        """The current searcher, which skips damaged samples."""
        return self._searcher.now

    @property
    def scorer(self) -> Scorer:
        """The current scorer of node ids."""
        return self.now.scorer

    def _over(self, searcher: Searcher) -> Index:
        found = copy(self)
        found._searcher = searcher
        return found

    def for_related(self, node: object) -> Index:
        """Return the index that answers :meth:`related`; query remote samples first."""
        return self if self.remote is None else self._answering(rows=self.now.ids_of(node))

    def for_similarity(self, a: object, b: object) -> Index:
        """Return the index that answers :meth:`similarity`; see :meth:`for_related`."""
        return self if self.remote is None else self._answering(pairs=(self.now.pair_of(a, b),))

    def for_why(self, nodes: Sequence[object], b: object) -> Index:
        """Return the index that answers :meth:`why` and :meth:`why_together`."""
        if self.remote is None:
            return self
        other = self.nodes.id(b)
        pairs = tuple((node, other) for node in self.now.ids_of(list(nodes)) if node != other)
        return self._answering(pairs=pairs or ((other, other),), ways=True)

    def _answering(self, **request: Any) -> Index:
        from cocite.index.layouts.messages import ShardRequest

        assert self.remote is not None
        scorer, answered = self.remote.ask(self.scorer, ShardRequest(**request))
        found = self._over(self.now.over(scorer))
        found.remote, found._whole, found._answered = None, self, answered
        return found

    def with_samples(self, samples: int) -> Index:
        """Return the index restricted to its first ``samples``.

        If samples are remote, queries use the least busy shards. Raises
        :class:`~cocite.errors.UsageError` if the index has fewer samples.
        """
        if self.remote is None:
            return Index(self.stored.with_samples(samples), self.means, self.given)
        found = copy(self)
        found.remote = self.remote.with_samples(samples)
        return found

    # -- related nodes -------------------------------------------------------------------

    @accepts(QueryOptions)
    def related(
        self,
        node: object,
        k: int = DEFAULT_K,
        *,
        options: QueryOptions | None = None,
        **given: AskValue,
    ) -> Hits:
        """Return the nodes most related to ``node``, or to several nodes together.

        Hits are sorted by ``order``: by default, descending score, ties by hash. ``to_pandas()``,
        ``to_polars()`` and ``to_arrow()`` convert the list to a table. Raises
        :class:`UnknownNode`, and :class:`UsageError` for invalid values.

        Parameters
        ----------
        node
            A node name, or a list of names whose scores are combined. Hits exclude these nodes.
        k
            The maximum number of hits. Consecutive pages (``offset``) form one list, unless
            ``refine`` draws samples: each page then refines the first ``k + offset`` hits again.
        options, given
            The options below, as one object or by name. Other keyword arguments are the measure's
            query settings, such as ``decay=0.6`` or ``meeting_weight="t <= 3"``
            (see :meth:`similarity`).
        {options}
        """
        options = QueryOptions.of(options, given)
        searcher = self.now
        checked = searcher.stored.ask_settings(options.settings)
        level = searcher.level(checked, options, options.min_confidence)
        query, nodes = Query.checked(k, options, level), searcher.ids_of(node)
        chosen = Filter.checked(self.nodes, nodes, options, searcher.stored.replaced)
        if self.remote is not None:
            searcher = self.for_related(node)._searcher
        return searcher.attempt(lambda now: now.hits(nodes, query, chosen, checked))

    def related_many(
        self,
        nodes: Iterable[object],
        k: int = DEFAULT_K,
        *,
        threads: int | None = None,
        **options: Any,
    ) -> HitLists:
        """Run :meth:`related` for many nodes on all cores; return the lists in the order of
        ``nodes``.

        Results are bit-identical to single queries. A list of names within ``nodes`` is one query.
        ``threads`` queries run concurrently; the default is the index's thread count. If a query
        detects a damaged shard, all queries are repeated without the shard, so that every answer
        uses the same samples. Raises :class:`UnknownNode` before any query runs, and
        :class:`UsageError`.
        """
        from cocite.search.pairs import related_many

        if isinstance(nodes, str | bytes) or not isinstance(nodes, Iterable):
            raise UsageError(f"nodes is {nodes!r}; pass a list of names")
        names = list(nodes)
        count = self.means.threads if threads is None else checked_threads(threads)
        whole = self if self._whole is None else self._whole
        for node in names:
            whole._searcher.ids_of(node)  # raises for unknown nodes before anything is computed

        def ask(searcher: Searcher, node: object) -> Hits:
            return whole._over(searcher).related(node, k, **options).without_samples()

        return related_many(names, count, lambda: whole.now, ask)

    def related_graph(self, node: object, k: int = DEFAULT_K, **options: Any) -> RelatedGraph:
        """Return a graph of ``node`` and its hits, with an edge from each node to any of its own
        ``k`` hits that the graph contains.

        Accepts the arguments of :meth:`related`. Export the graph with ``write("near.gexf")`` (or
        ``.graphml``, ``.dot``), ``to_networkx()`` or ``to_text("dot")``.
        """
        from cocite.search.related_graph import RelatedGraph

        return RelatedGraph.of(self, node, k, **options)

    def related_all(
        self, output: str | os.PathLike[str] | None = None, k: int = DEFAULT_K, **options: Any
    ) -> BatchReport:
        """Write every node's related nodes to a file or database; see ``search/batch/run.py``."""
        from cocite.search.batch.run import related_all

        if self.remote is not None:
            self.remote.refuse("all nodes", "or run cocite related-all --cluster")
        return related_all(self, output, k, **options)

    def pageranks(self, nodes: Iterable[object], ranks: RanksLike = None) -> list[float]:
        """Return the PageRanks that order lists, by node name.

        ``ranks`` is a file written by ``cocite rank -o``, or float64[nodes] by id. By default,
        PageRank is computed once from the index's graph. Raises :class:`UnknownNode`;
        :class:`InputError` if the file lacks a node; :class:`NotAStore` if the graph is missing;
        and :class:`UsageError` for the wrong graph.
        """
        found: list[float] = self.now.ranks.of(self.nodes.ids(list(nodes)), ranks).tolist()
        return found

    # -- pairs ---------------------------------------------------------------------------

    @accepts(ScoreOptions)
    def similarity(
        self, a: object, b: object, *, options: ScoreOptions | None = None, **given: AskValue
    ) -> Score:
        """Return the similarity of two nodes, with its standard error and confidence interval.

        Raises :class:`UnknownNode`, and :class:`UsageError` for invalid values.

        Parameters
        ----------
        a, b
            Node names.
        options, given
            The options below, as one object or by name. Refined SimRank and XJaccard scores equal
            those in ``related(a)``. Other measures refine by drawing samples: for a list until its
            order is settled, for a pair until its error is small enough.

            Other keyword arguments are the measure's query settings, such as ``decay=0.6``
            (``cocite measures``). For walk measures, ``meeting_weight`` gives a meeting after t
            steps a weight from 0 to 1: a function of t, numbers for t = 1, 2, ..., an expression
            such as ``"t <= 3"``, or ``"hitting"`` (``measures/meeting_weight.py``). For ``simrank``
            and ``psimrank``, ``evidence="geometric"`` or ``"exponential"`` multiplies scores by the
            evidence, which depends on shared neighbors in the graph (``measures/evidence.py``).
        {options}
        """
        options = ScoreOptions.of(options, given)
        searcher = self.now
        checked = searcher.stored.ask_settings(options.settings)
        pair, level = searcher.pair_of(a, b), searcher.level(checked, options)
        searcher = self.for_similarity(a, b)._searcher
        return searcher.attempt(lambda now: now.score(pair, checked, level, options))

    def similarities(
        self,
        a: Any,
        b: Any = None,
        *,
        ids: bool = False,
        threads: int | None = None,
        progress: Progress | None = None,
        options: ScoreOptions | None = None,
        **given: AskValue,
    ) -> Similarities:
        """Return the similarities of many pairs, bit-identical to :meth:`similarity`.

        ``a`` and ``b`` are columns of names: lists, arrays, or pandas, polars or Arrow columns.
        Alternatively, ``a`` alone is a two-column table, an array of shape (pairs, 2), or a list of
        pairs. With ``ids``, the columns contain node ids. ``threads`` blocks of pairs run
        concurrently; the default is the index's thread count. ``progress`` is called with
        (``"scoring"``, done, total), counted in pairs. Other arguments are those of
        :meth:`similarity`.

        The result is a sequence of :class:`Score`, has the arrays ``score``, ``stderr``, ``low``
        and ``high``, and converts to a table. Raises :class:`UnknownNode` before any pair is
        scored, and :class:`UsageError`.
        """
        from cocite.search import pairs as many

        if self.remote is not None:
            self.remote.refuse("many pairs", "or query one pair at a time")
        columns = many.columns_of_pairs(a, b)
        pairs = many.ids_of_pairs(self.nodes, columns, numbers=ids)
        count = self.means.threads if threads is None else checked_threads(threads)
        searcher, options = self.now, ScoreOptions.of(options, given)
        checked = searcher.stored.ask_settings(options.settings)
        level = searcher.level(checked, options)

        def question(now: Searcher) -> Any:
            def one(first: int, second: int) -> Score:
                return now.score((first, second), checked, level, options)

            block = partial(
                now.intervals.of_pairs,
                settings=checked,
                confidence=options.confidence,
                bound=options.interval,
            )
            single = level and now.refiner
            blocks = 0 if single else now.scorer.pair_blocks(pairs[0].size, checked, count)
            report: dict[str, Any] = {} if progress is None else {"progress": progress}
            return many.scores_of_pairs(*pairs, one, block, blocks, count, **report)

        return many.Similarities(*columns, *searcher.attempt(question))

    # -- reasons -------------------------------------------------------------------------

    def why(
        self,
        a: object,
        b: object,
        k: int = DEFAULT_REASONS,
        *,
        graph: GivenGraph = None,
        **settings: AskValue,
    ) -> Why:
        """Return why two nodes are similar: the pages that contribute to their score.

        ``k`` is the maximum number of reasons; the remaining ones are summed. ``settings`` are
        those of :meth:`similarity`. ``graph`` is the index's graph or its path, required if the
        graph was moved: the ``trees`` layout stores when walks meet, but not where. A refreshed
        index may need several graphs.

        The result contains the ``score``; its ``reasons``, by descending share, then by node id;
        the number of ``others`` and their share, ``remaining``; and the ``unattributed`` share,
        from samples whose graph is unavailable. Raises :class:`UnknownNode`; :class:`UsageError`
        for invalid values or another index's graph; :class:`NotAStore` if a required graph is not
        found; and :class:`Damaged` if graph and index do not match.
        """
        k = checked_option("k", k)
        checked = self.now.stored.ask_settings(settings)
        pair = self.now.pair_of(a, b)
        searcher = self.for_why([a], b)._searcher
        return searcher.attempt(lambda now: now.explainer.why(pair, k, checked, graph))

    def why_together(
        self,
        nodes: Sequence[object],
        b: object,
        k: int = DEFAULT_REASONS,
        *,
        aggregate: str = DEFAULT_AGGREGATE,
        graph: GivenGraph = None,
        **settings: AskValue,
    ) -> WhyTogether:
        """Return each node's contribution to the combined score of ``b``, with reasons.

        ``k`` is the maximum number of reasons for each of ``nodes``; duplicates count once.
        ``aggregate`` is ``mean`` or ``min``, as in :meth:`related`; ``graph`` and ``settings`` are
        those of :meth:`why`. The result contains the ``score``, equal to that of :meth:`related`,
        and ``pages``: each node's own score, its share, and the reasons. With ``mean``, a share is
        the node's own score divided by the number of nodes; with ``min``, the node with the lowest
        score gets the entire share. Raises the errors of :meth:`why`, and :class:`UsageError` if
        ``b`` is one of ``nodes``.
        """
        k, aggregate = checked_option("k", k), checked_option("aggregate", aggregate)
        searcher = self.now
        checked, ids = searcher.stored.ask_settings(settings), searcher.ids_of(list(nodes))
        other = self.nodes.id(b)
        if other in ids:
            raise UsageError(
                f"{b!r} is one of the query nodes, so it cannot be a hit; pass another node last"
            )
        if self.nodes.sides is not None:
            self.nodes.sides.check_alike((*ids, other), (*nodes, b))
        searcher = self.for_why(nodes, b)._searcher
        return searcher.attempt(
            lambda now: now.explainer.why_together(ids, other, k, aggregate, checked, graph)
        )

    # -- nodes that are not in the graph -------------------------------------------------

    def with_draft(
        self,
        out: LinksLike = (),
        into: LinksLike = (),
        *,
        name: str | None = None,
        skip_unknown: bool = False,
    ) -> Index:
        """Return the index with an added draft page, as if the graph contained the page.

        The draft is the last node; all queries support it. Drafts have no text: if the index
        compares texts, the text weight lowers the draft's scores, which is logged.

        ``out`` lists the pages that the draft links to, ``into`` the pages that link to the draft.
        If the index uses weights, each may also contain (name, weight) pairs or be a mapping.
        ``name`` defaults to ``draft``; for ``exclude_same_site``, it must be a URL.
        ``skip_unknown`` ignores links to and from unknown pages.

        Raises :class:`UsageError` for unknown names, if no link is left, if ``name`` is taken, and
        for an index of selected pages. Raises :class:`NotAStore` if the graph is not found;
        ``cocitation``, ``coupling``, ``ppr``, ``ppr-symmetric`` and ``companion`` do not need the
        graph.
        """
        from cocite.search.unseen import UnseenNode

        return self.with_unseen(UnseenNode.of(out, into), name=name, skip_unknown=skip_unknown)

    def with_unseen(
        self,
        draft: UnseenNode,
        *,
        name: str | None = None,
        skip_unknown: bool = False,
        replaced: int | None = None,
    ) -> Index:
        """Return the index with a parsed draft; see :meth:`with_draft`.

        If ``replaced`` is a node id, the draft takes over that node's name, and hits exclude the
        node.
        """
        now = self.now
        stored = now.unseen.added(
            draft, now.nodes, name=name, skip_unknown=skip_unknown, replaced=replaced
        )
        return Index(stored, self.means, self.given)

    def related_to(
        self,
        out: LinksLike = (),
        into: LinksLike = (),
        k: int = DEFAULT_K,
        *,
        name: str | None = None,
        skip_unknown: bool = False,
        **options: Any,
    ) -> list[Hit]:
        """Return the nodes most related to a page outside the graph, given its links.

        Accepts the arguments of :meth:`with_draft` and of :meth:`related`, except ``refine``.
        """
        index = self.with_draft(out, into, name=name, skip_unknown=skip_unknown)
        draft = index.nodes.name(len(index.nodes) - 1)
        return index.related(draft, k, **options)


@accepts(ShardOptions)
def open_index(
    path: str | os.PathLike[str],
    *,
    graph: GivenGraph = None,
    threads: int | None = None,
    memory: str | int | None = None,
    verify: bool = True,
    cluster: str | Cluster | None = None,
    options: ShardOptions | None = None,
    **given: Any,
) -> Index:
    """Open an index.

    Opening verifies the checksums of the smallest files, up to 4 MiB in total.
    :meth:`Index.related_all` and ``cocite verify`` verify all files.

    Parameters
    ----------
    path
        An index; or a stored graph or an edge list, for which the default index is built and
        cached. Use :func:`build` to choose a measure and settings.
    graph
        The index's graph, if the graph was moved; several graphs for a refreshed index.
        Refined answers and some reasons read the graph.
    threads, memory
        Limits for queries, by default all cores and half of the available memory.
    verify
        Whether to verify checksums.
    cluster
        The workers that answer: ``"local:4"`` (4 on this machine), ``"HOST:PORT"``, ``"auto"``, or
        a connected cluster. All of them must be able to read ``path``. Answers combine the shards
        that respond in time; :attr:`~cocite.Index.answered` counts their samples. Close the index
        when done.
    options, given
        How to divide the samples: a :class:`ShardOptions`, or its fields by name.
    {options}

    Raises
    ------
    UsageError, NotAStore, WrongFormat, Damaged
    """
    shards = ShardOptions.of(options, given)
    held = None
    if cluster is None and kind_of(os.fspath(path)) != "index":
        from cocite.search.cache import find_or_make, is_links

        source = os.fspath(path)
        if kind_of(source) == "graph" or (isinstance(source, str) and is_links(source)):
            found = find_or_make(source, threads=threads, memory=memory)
            path, graph, held = found.index, graph or found.graph, found.temporary
    stored = StoredIndex.open(path, verify=verify).validated(_COMPARED)
    if held is not None:  # removes the temporary index with the last object that uses it
        stored = type(stored)(replace(stored.store, home=held))
    means, remote = Resources.checked(threads, memory), None
    if cluster is not None:
        from cocite.search.remote.replicas import open_spread

        remote = open_spread(stored, cluster, shards)
    return Index(stored, means, graph, remote=remote)
