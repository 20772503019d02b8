"""Graphs from objects of other libraries, and back: the methods that ``Graph`` has for it.

What a stored graph keeps is links, their weights, and names: text, or whole numbers. Other names
come back as they went in from the object that was made of them, and from indexes built from it;
opened again from the disk, the graph has the text of each. Attributes of nodes and links, other
than weights, are not kept, nor is the order of nodes; of links that are there several times the
weights are added up, and those without weights are one.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Protocol, Self

from cocite.graph.blocks import InLinks

if TYPE_CHECKING:
    from cocite.graph.names import Names
    from cocite.io.objects import ObjectInput
    from cocite.io.readers.contract import Progress
    from cocite.storage import Store


class _Stored(InLinks, Protocol):
    @property
    def store(self) -> Store: ...

    @property
    def names(self) -> Names: ...


def store_object(
    given: ObjectInput,
    output: str | os.PathLike[str] | None = None,
    *,
    undirected: bool = False,
    keep_self_loops: bool = False,
    count_duplicates: bool = False,
    skip_bad_rows: bool | str = False,
    memory: str | int | None = None,
    threads: int | None = None,
    overwrite: bool = False,
    progress: Progress | None = None,
    exclude: Iterable[object] | None = None,
    titles: Any = None,
    title_columns: str | Iterable[str | int] = (),
    bipartite: bool = False,
    sides: str | Iterable[str] | None = None,
) -> Store:
    """Store links that were given; the arguments are those of :func:`cocite.ingest`."""
    from cocite.graph.excluded import checked_names
    from cocite.graph.name_files import text_of
    from cocite.graph.sides import checked_sides, refuse_undirected
    from cocite.io.object_kinds import titling_of
    from cocite.io.object_tables import How, store_objects
    from cocite.io.readers.contract import no_progress
    from cocite.resources import OWN_MEMORY, Resources

    called = tuple(
        title_columns.split(",") if isinstance(title_columns, str) else map(str, title_columns)
    )
    two = checked_sides(bipartite, sides)
    if two is not None and given.undirected:
        raise refuse_undirected(given.what)
    means, titling = Resources.checked(threads, memory), None
    if titles is not None or called:
        titling = titling_of(titles, called, means.memory - OWN_MEMORY)
    texts = exclude if isinstance(exclude, str) else map(text_of, exclude or ())
    return store_objects(
        given,
        output,
        How(undirected, keep_self_loops, count_duplicates, two),
        means,
        skip_bad_rows=skip_bad_rows,
        overwrite=overwrite,
        progress=progress or no_progress,
        exclude=None if exclude is None else checked_names(texts),
        titling=titling,
    )


class Exchanged:
    """Has a constructor that takes a ``Store``."""

    def __init__(self, store: Store) -> None:
        raise NotImplementedError

    @classmethod
    def from_edges(
        cls,
        links: Any,
        output: str | os.PathLike[str] | None = None,
        *,
        columns: str | Iterable[str | int] = (),
        weight_column: str | int | None = None,
        nodes: Any = None,
        **options: Any,
    ) -> Self:
        """Store links that are in memory.

        Parameters
        ----------
        links
            Pairs of source and target, or triples with a weight; a NumPy array (links, 2), or
            (links, 3) with weights; a data frame of pandas or polars, or an Arrow table, of which
            those columns are source and target whose titles say so, such as ``from`` and ``to``,
            else the first two.
        output
            The directory to make. By default a temporary one, which goes with the last object that
            was made of it.
        columns
            The two columns of a link in a table, as titles or numbers from 1.
        weight_column
            The column of the weights in a table; without it its links have none.
        nodes
            Names of nodes, so that some without any link exist too.
        options
            ``undirected``, ``keep_self_loops``, ``count_duplicates``, ``skip_bad_rows``,
            ``exclude``, ``titles``, ``title_columns``, ``bipartite``, ``sides``, ``memory``,
            ``threads``, ``overwrite``, ``progress``, as for :func:`cocite.ingest`.

        Returns
        -------
        Graph
            With the names as they were given: text, whole numbers from 0 on, or any other value
            that can be the key of a dictionary, such as tuples. No two may be the same as text.

        Raises
        ------
        UsageError
            For what holds no links, or columns that hold no names or no weights.
        InputError
            For a row with a name or a weight that is missing or not allowed.
        OutputExists, Busy, ResourceError
        """
        from cocite.graph.sides import checked_sides
        from cocite.io.object_kinds import links_of
        from cocite.io.object_tables import TableRequest

        chosen = tuple(columns.split(",") if isinstance(columns, str) else columns)
        two = checked_sides(options.get("bipartite", False), options.get("sides"))
        wanted = TableRequest(chosen, weight_column, nodes, two).checked()
        return cls(store_object(links_of(links, wanted, tables=True), output, **options))

    @classmethod
    def from_scipy(
        cls,
        matrix: Any,
        output: str | os.PathLike[str] | None = None,
        *,
        names: Sequence[object] | None = None,
        weighted: bool | None = None,
        **options: Any,
    ) -> Self:
        """Store the links of a sparse matrix of SciPy: from its rows to its columns.

        Parameters
        ----------
        matrix
            Square, with a row a node. Values are weights, above 0; zeros are no links, stored or
            not, and values that are there twice are added up.
        names
            A name for each row; by default 0, 1, 2, ...
        weighted
            Whether the values are weights; by default if any is not 1.
        output, options
            As for :meth:`from_edges`.

        Raises
        ------
        UsageError, InputError, OutputExists, Busy, ResourceError
        """
        from cocite.io.object_kinds import kind_of_object, scipy_links

        found = kind_of_object(matrix)
        _see(matrix, found is not None and found.library == "scipy", "a sparse matrix of SciPy")
        return cls(
            store_object(scipy_links(matrix, names=names, weighted=weighted), output, **options)
        )

    @classmethod
    def from_networkx(
        cls,
        graph: Any,
        output: str | os.PathLike[str] | None = None,
        *,
        weight: str | None = "weight",
        **options: Any,
    ) -> Self:
        """Store a graph of NetworkX, directed or not.

        Of a multigraph the weights of links between the same nodes are added up; without weights
        they count once, or as often as they are there with ``count_duplicates=True``.

        Parameters
        ----------
        graph
            Of any of its classes. Nodes may be anything that it takes.
        weight
            The attribute that is the weight, where some link has it; 1 on links without. None for
            no weights. Other attributes are not kept.
        output, options
            As for :meth:`from_edges`. Links from a node to itself are kept only with
            ``keep_self_loops=True``.

        Raises
        ------
        UsageError, InputError, OutputExists, Busy, ResourceError
        """
        from cocite.io.object_kinds import kind_of_object, networkx_links

        found = kind_of_object(graph)
        _see(graph, found is not None and found.library == "networkx", "a graph of NetworkX")
        return cls(store_object(networkx_links(graph, weight=weight), output, **options))

    @classmethod
    def from_igraph(
        cls,
        graph: Any,
        output: str | os.PathLike[str] | None = None,
        *,
        weight: str | None = "weight",
        **options: Any,
    ) -> Self:
        """Store a graph of igraph, directed or not; nodes are named by the attribute ``name``, if
        there is one, else by their numbers. All else is as for :meth:`from_networkx`.
        """
        from cocite.io.object_kinds import igraph_links, kind_of_object

        found = kind_of_object(graph)
        _see(graph, found is not None and found.library == "igraph", "a graph of igraph")
        return cls(store_object(igraph_links(graph, weight=weight), output, **options))

    def to_scipy(self: _Stored) -> Any:
        """A ``scipy.sparse.csr_array``, float64[nodes, nodes]: the weight of the link from the node
        of the row to that of the column, 1 where links have no weights. Rows and columns are ids:
        ``graph.names[id]`` is the name.
        """
        from cocite.io.object_export import to_scipy

        return to_scipy(self)

    def to_networkx(self: _Stored) -> Any:
        """A ``networkx.DiGraph``, or a ``Graph`` if the graph was stored as undirected, with the
        names as nodes, and the attribute ``weight`` if links have weights.
        """
        from cocite.io.object_export import to_networkx

        return to_networkx(self, self.names, self.store.facts["undirected"])

    def to_igraph(self: _Stored) -> Any:
        """An ``igraph.Graph``, directed unless the graph was stored as undirected. Vertices are
        ids, with the names as attribute ``name``; links have the attribute ``weight`` if they have
        weights.
        """
        from cocite.io.object_export import to_igraph

        return to_igraph(self, self.names, self.store.facts["undirected"])

    def to_arrow(self: _Stored) -> Any:
        """A ``pyarrow.Table`` of links: source, target and, if they have weights, weight; by id of
        the source, then of the target. Links of an undirected graph are there once. Names that are
        neither text nor whole numbers are text here. Nodes without links are in none.
        """
        from cocite.io.object_export import to_arrow

        return to_arrow(self, self.names, self.store.facts["undirected"])

    def to_pandas(self: _Stored) -> Any:
        """A ``pandas.DataFrame`` of links, as :meth:`to_arrow`, with the names as they are."""
        from cocite.io.object_export import to_pandas

        return to_pandas(self, self.names, self.store.facts["undirected"])

    def to_polars(self: _Stored) -> Any:
        """A ``polars.DataFrame`` of links, as :meth:`to_arrow`."""
        from cocite.io.object_export import to_polars

        return to_polars(self, self.names, self.store.facts["undirected"])


def _see(value: object, fine: bool, wanted: str) -> None:
    from cocite.errors import UsageError

    if not fine:
        raise UsageError(f"{type(value).__name__} is not {wanted}")
