"""Build backend graphs from files and tables, and choose the calls that NetworkX handles.

NetworkX uses these readers with ``backend="cocite"``, or according to its configuration. It first
calls ``can_run``, then ``should_run`` unless the call names a backend, and logs their reasons.

A line of text takes some 2 microseconds, or 0.4 if all lines are pairs of integers; a matrix of a
million links takes 0.2 seconds.
"""

from __future__ import annotations

import inspect
from ast import literal_eval
from collections.abc import Iterator
from io import BytesIO, StringIO
from itertools import chain
from typing import Any

import networkx as nx
import numpy as np
from numpy.typing import NDArray

from cocite.integrations.networkx.convert import linked, numbered, numbered_whole
from cocite.integrations.networkx.graph import MISSING, BackendGraph, Column, column_of
from cocite.integrations.networkx.info import FUNCTIONS

KINDS: dict[Any, tuple[bool, bool]] = {
    None: (False, False),
    nx.Graph: (False, False),
    nx.DiGraph: (True, False),
    nx.MultiGraph: (False, True),
    nx.MultiDiGraph: (True, True),
}
"""``create_using`` -> (directed, multigraph)."""
_NUMBERS = b"0123456789 \t\r\n"
_DIGITS = 18
"""Maximum number of decimal digits that always fit in 64 bits."""
Ids = NDArray[np.int64]


def read_edgelist(
    path: Any,
    comments: str | None = "#",
    delimiter: str | None = None,
    create_using: Any = None,
    nodetype: Any = None,
    data: Any = True,
    edgetype: Any = None,
    encoding: str = "utf-8",
) -> BackendGraph:
    """See :func:`networkx.read_edgelist`; NetworkX passes ``path`` as an open file."""
    if nodetype is int and delimiter is None and hasattr(path, "read"):
        text = path.read()
        whole = _pairs(text, comments, encoding)
        if whole is not None:
            return _graph(*numbered_whole(whole), {}, create_using)
        path = BytesIO(text) if isinstance(text, bytes) else StringIO(text)
    ends: list[Any] = []
    attributes: list[dict[Any, Any]] = []
    for u, v, rest in _rows(path, comments, delimiter, encoding):
        if nodetype is not None:
            try:
                u, v = nodetype(u), nodetype(v)  # noqa: PLW2901
            except Exception as error:
                raise TypeError(f"Failed to convert nodes {u},{v} to type {nodetype}.") from error
        ends.append(u)
        ends.append(v)
        if rest and data is not False:
            attributes.extend({} for _ in range(len(ends) // 2 - 1 - len(attributes)))
            attributes.append(_attributes(rest, data, delimiter))
    attributes.extend({} for _ in range(len(ends) // 2 - len(attributes)) if attributes)
    numbers = numbered(ends)
    names = dict.fromkeys(name for row in attributes for name in row)
    columns = {name: column_of([row.get(name, MISSING) for row in attributes]) for name in names}
    return _graph(*numbers, columns, create_using)


def _pairs(text: Any, comments: str | None, encoding: str) -> Ids | None:
    """Return the two integers of every line, interleaved, or None if a line has other content."""
    sign = (comments or "").encode()
    if encoding.lower() not in ("utf-8", "utf8", "ascii"):
        return None
    if comments == "" or set(sign) & set(_NUMBERS):
        return None
    data = text.encode() if isinstance(text, str) else text
    begin = 0
    while sign and data.startswith(sign, begin):
        end = data.find(b"\n", begin)
        begin = len(data) if end < 0 else end + 1
    data = data[begin:]
    if data.translate(None, _NUMBERS):
        return None
    digit = np.frombuffer(b" " + data + b" ", np.uint8) >= ord("0")
    begins = np.flatnonzero(digit[1:] & ~digit[:-1])
    ends = np.flatnonzero(digit[:-1] & ~digit[1:])
    breaks = np.flatnonzero(np.frombuffer(data, np.uint8) == ord("\n"))
    on_line = np.bincount(np.searchsorted(breaks, begins)) if begins.size else begins
    if ((on_line != 0) & (on_line != 2)).any() or (ends - begins).max(initial=0) > _DIGITS:
        return None
    return np.fromstring(data, np.int64, sep=" ") if begins.size else begins


def _rows(
    path: Any, comments: str | None, delimiter: str | None, encoding: str
) -> Iterator[tuple[str, str, list[str]]]:
    """Yield (source, target, other fields) for each line with at least two fields."""
    for raw in path:
        line = raw if isinstance(raw, str) else raw.decode(encoding)
        if comments is not None:
            begin = line.find(comments)
            if begin >= 0:
                line = line[:begin]
        row = line.rstrip("\n").split(delimiter)
        if len(row) >= 2:
            yield row[0], row[1], row[2:]


def _attributes(cells: list[str], data: Any, delimiter: str | None) -> dict[Any, Any]:
    """Parse a line's attributes, in either of NetworkX's notations."""
    if data is True:
        try:
            text = ("," if delimiter == "," else " ").join(cells)
            return dict(literal_eval(text.strip()))
        except Exception as error:
            raise TypeError(f"Failed to convert edge data ({cells}) to dictionary.") from error
    if len(cells) != len(data):
        raise IndexError(f"Edge data {cells} and data_keys {data} are not the same length")
    found = {}
    for (name, kind), cell in zip(data, cells, strict=True):
        try:
            found[name] = kind(cell)
        except Exception as error:
            raise TypeError(f"Failed to convert {name} data {cell} to type {kind}.") from error
    return found


def from_scipy_sparse_array(
    A: Any, parallel_edges: bool = False, create_using: Any = None, edge_attribute: Any = "weight"
) -> BackendGraph:
    """See :func:`networkx.from_scipy_sparse_array`."""
    directed, multigraph = KINDS[create_using]
    rows, columns = A.shape
    if rows != columns:
        raise nx.NetworkXError(f"Adjacency matrix not square: nx,ny={A.shape}")
    cells = A.tocoo()  # in NetworkX's order, whatever the format
    sources, targets, values = cells.row.astype(np.int64), cells.col.astype(np.int64), cells.data
    if A.dtype.kind in "iu" and multigraph and parallel_edges:
        times = np.maximum(values, 0).astype(np.int64)
        sources, targets = np.repeat(sources, times), np.repeat(targets, times)
        values = np.ones(sources.size, np.int64)
    if multigraph and not directed:
        once = sources <= targets
        sources, targets, values = sources[once], targets[once], values[once]
    column = column_of(values.tolist())
    weights = {} if column is None else {edge_attribute: column}
    return linked(
        list(range(rows)), sources, targets, weights, directed=directed, multigraph=multigraph
    )


def from_pandas_edgelist(
    df: Any,
    source: Any = "source",
    target: Any = "target",
    edge_attr: Any = None,
    create_using: Any = None,
    edge_key: Any = None,
) -> BackendGraph:
    """See :func:`networkx.from_pandas_edgelist`; ``edge_key`` must be None."""
    names = list(edge_attr) if isinstance(edge_attr, list | tuple) else [edge_attr]
    if edge_attr is True:
        names = [name for name in df.columns if name not in (source, target)]
    if not names:
        raise nx.NetworkXError(f"Invalid edge_attr argument: No columns found with name: {names}")
    try:
        cells = {name: df[name].tolist() for name in names if edge_attr is not None}
    except (KeyError, TypeError) as error:
        raise nx.NetworkXError(f"Invalid edge_attr argument: {edge_attr}") from error
    ends = zip(df[source].tolist(), df[target].tolist(), strict=True)
    columns = {name: column_of(values) for name, values in cells.items()}
    return _graph(*numbered(list(chain.from_iterable(ends))), columns, create_using)


def _graph(
    nodes: list[Any], ends: Ids, columns: dict[Any, Column | None], create_using: Any
) -> BackendGraph:
    """Return a graph of links; ``ends`` are their sources and targets, interleaved."""
    directed, multigraph = KINDS[create_using]
    have = {name: column for name, column in columns.items() if column is not None}
    return linked(nodes, ends[::2], ends[1::2], have, directed=directed, multigraph=multigraph)


OLDEST = (3, 6)
_SMALL = 2_000
"""Number of links below which NetworkX is faster than converting and loading kernels."""
_SMALL_NODES = 100
"""The same limit for SimRank, in nodes, because NetworkX uses a dense matrix there."""


_READERS = {"read_edgelist", "from_scipy_sparse_array", "from_pandas_edgelist"}
_STARTED = {"eigenvector_centrality", "katz_centrality"}


def can_run(name: str, args: Any, kwargs: Any) -> bool | str:
    """Return True, or why the backend cannot run this call."""
    if name not in FUNCTIONS:
        return f"cocite does not implement {name}"
    version = tuple(int(part) for part in nx.__version__.split(".")[:2])
    if version < OLDEST:
        return f"cocite supports NetworkX 3.6 and later; this is {nx.__version__}"
    if name not in _READERS | _STARTED:
        return True
    try:
        return _refused(name, _arguments(name, args, kwargs)) or True
    except (TypeError, AttributeError):
        return True  # an invalid call, which raises an error of its own


def should_run(name: str, args: Any, kwargs: Any) -> bool | str:
    """Return True, or why not: the graph is small and not yet converted."""
    graph = args[0] if args else kwargs.get("G")
    if not isinstance(graph, nx.Graph) or isinstance(graph, BackendGraph):
        return True
    if "cocite" in getattr(graph, "__networkx_cache__", {}).get("backends", {}):
        return True
    if name == "simrank_similarity":
        few, what, have = _SMALL_NODES, "nodes", graph.number_of_nodes()
    else:
        few, what, have = _SMALL, "edges", graph.number_of_edges()
    if have >= few:
        return True
    return f"the graph has {have:,} {what}; below {few:,}, NetworkX is as fast"


def _arguments(name: str, args: Any, kwargs: Any) -> dict[str, Any]:
    """Return a call's arguments by name; raises TypeError if the call would."""
    function = getattr(nx, name)
    signature = inspect.signature(getattr(function, "orig_func", function))
    return signature.bind(*args, **kwargs).arguments


def _refused(name: str, given: dict[str, Any]) -> str:
    """Return why the backend does not support a call; "" if it does."""
    nstart = given.get("nstart")
    if name in _STARTED and nstart is not None:
        graph = given["G"]
        if len(nstart) != len(graph) or any(node not in graph for node in nstart):
            return "nstart does not have exactly one value for each node"
    if name == "from_scipy_sparse_array" and given["A"].dtype.kind not in "biuf":
        return f"the matrix's values are {given['A'].dtype}; they must be real numbers"
    if name == "from_pandas_edgelist" and given.get("edge_key") is not None:
        return "edge_key is not supported: the backend numbers parallel links"
    kind = given.get("create_using")
    if kind is not None and not (isinstance(kind, type) and kind in KINDS):
        return "create_using must be Graph, DiGraph, MultiGraph or MultiDiGraph"
    return ""
