"""Plain, slow references for the stored graph, and helpers that read it, without our kernels."""

import io
import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest

import cocite
from cocite import Graph
from cocite.io.readers import ReadOptions, Source, sources
from cocite.io.readers.contract import no_progress
from cocite.io.readers.text import TextInput, clean_text
from cocite.options.ingest import IngestOptions

zstd = sources.zstd()
"""Python's module, or its backport."""
MakeFolder = Callable[[Mapping[str, str | bytes]], Path]
TURNS = "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
"""Characters that change the text direction; not allowed in names."""
_URL = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://(?:[^/?#@]*@)?([^/?#:]*)(:[0-9]*)?(.*)", re.DOTALL)


def surt(name: str) -> str:
    """The sort key of a name: a URL with its host reversed, or the name itself."""
    parts = _URL.fullmatch(name)
    if parts is None:
        return name
    host = ",".join(reversed(parts[2].lower().split(".")))
    return f"{host}{parts[3] or ''}){parts[4]}"


def numbered(names: Iterable[str]) -> list[str]:
    """Distinct names, ordered by id."""
    distinct = set(names)
    if all(re.fullmatch("0|[1-9][0-9]*", name) and int(name) < 2**64 for name in distinct):
        return sorted(distinct, key=int)
    return sorted(distinct, key=lambda name: (surt(name).encode(), name.encode()))


def links(graph: Graph) -> list[tuple[str, str]]:
    """All links of a stored graph, by name, in stored order."""
    names = list(graph.names)
    return [
        (names[source], names[node])
        for node in range(graph.nodes)
        for source in graph.in_neighbors(node).tolist()
    ]


def weights_of(graph: Graph) -> dict[tuple[str, str], float]:
    """All links of a stored graph, by name, with their weights."""
    assert graph.in_weights is not None
    assert graph.in_weights.dtype == np.float32
    return dict(zip(links(graph), graph.in_weights.tolist(), strict=True))


def title_of(graph: Graph, name: Any) -> str | None:
    assert graph.titles is not None
    return graph.titles[graph.names.id(name)]


def source_of(graph: Graph) -> dict[str, Any]:
    """The manifest's entry for the only input."""
    (source,) = graph.store.facts["sources"]
    assert isinstance(source, dict)
    return source


def assert_stored(graph: Graph, rows: list[tuple[str, str]], nodes: Iterable[str] = ()) -> None:
    """Check arrays, names and counts against directed rows without self-loops."""
    names = numbered([name for row in rows for name in row] + list(nodes))
    ids = {name: i for i, name in enumerate(names)}
    expected = sorted({(ids[b], ids[a]) for a, b in rows if a != b})
    offsets = [sum(d < node for d, _ in expected) for node in range(len(names) + 1)]
    assert list(graph.names) == names
    assert [graph.names.find(name) for name in names] == list(range(len(names)))
    assert graph.in_offsets.tolist() == offsets
    assert graph.in_sources.tolist() == [source for _, source in expected]
    out_degrees = [sum(s == node for _, s in expected) for node in range(len(names))]
    assert graph.out_degrees.tolist() == out_degrees
    info = graph.info()
    loops = sum(a == b for a, b in rows)
    assert (info.rows, info.edges, info.self_loops) == (len(rows), len(expected), loops)
    assert info.duplicates == len(rows) - loops - len(expected)


def read(tmp_path: Path, content: bytes | str, file: str = "links.tsv", **options: object) -> Graph:
    """Store a graph from one file with this content."""
    path = tmp_path / file
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    output = tmp_path / "out.graph"
    return cocite.ingest(path, output, overwrite=True, **options)


def cleaned(
    tmp_path: Path, content: bytes | str, file: str = "links.tsv", **options: Any
) -> tuple[list[tuple[str, ...]], TextInput]:
    """The rows of links in a text, and the report on it: what :func:`read` would store, in a
    fiftieth of the time.
    """
    path, out = tmp_path / file, io.BytesIO()
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    chosen = ReadOptions.checked(IngestOptions(**options))
    found = clean_text(Source(path), 2, chosen, out, no_progress)
    rows = out.getvalue().decode().split("\n")[:-1]
    return [tuple(row.split("\t")) for row in rows], found


def refused(
    tmp_path: Path,
    error: type[Exception] | tuple[type[Exception], ...],
    content: bytes | str,
    file: str = "links.tsv",
    match: str | None = None,
    **options: object,
) -> Any:
    """The error of ingesting one file with this content; nothing may be stored."""
    before = [path for path in tmp_path.iterdir() if path.name.startswith("out.graph")]
    with pytest.raises(error, match=match) as caught:
        read(tmp_path, content, file, **options)
    assert [path for path in tmp_path.iterdir() if path.name.startswith("out.graph")] == before
    return caught.value


def write_files(folder: Path, files: Mapping[str, str | bytes]) -> Path:
    """Write these files to a folder, and return it."""
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    return folder


def graph_of(path: Path | list[Path], **options: Any) -> Graph:
    """The graph of a file, a folder or several files, stored next to the first."""
    first = path[0] if isinstance(path, list) else path
    return cocite.ingest(path, first.with_name("out.graph"), overwrite=True, **options)


def read_path(
    path: Path | list[Path], **options: Any
) -> tuple[set[tuple[str, str]], dict[str, Any]]:
    """The links, including self-loops, and the manifest's entry for the input."""
    graph = graph_of(path, keep_self_loops=True, **options)
    return set(links(graph)), source_of(graph)


def read_parquet(
    tmp_path: Path, query: str, file: str = "links.parquet", **options: object
) -> Graph:
    """Store a graph from one Parquet file with the rows of a query."""
    path = tmp_path / file
    path.parent.mkdir(exist_ok=True)
    escaped = str(path).replace("'", "''")
    duckdb.execute(f"COPY ({query}) TO '{escaped}' (FORMAT parquet)")
    return read(tmp_path, path.read_bytes(), file, **options)


def titles_of(graph: Graph) -> list[str | None]:
    """The titles of all nodes, ordered by id."""
    assert graph.titles is not None
    return [graph.titles[node] for node in range(graph.nodes)]


def content_of(graph: Graph) -> dict[str, bytes]:
    """All files of a graph except the manifest."""
    paths = (path for path in sorted(graph.path.iterdir()) if path.name != "manifest.json")
    return {path.name: path.read_bytes() for path in paths}


def nothing_left(tmp_path: Path) -> bool:
    """Whether there is no output, complete or partial."""
    return not [p for p in tmp_path.iterdir() if p.name.startswith("out.graph")]
