"""Options that many commands share: where an answer goes, and where links come from.

A source is a stored index, a stored graph, or anything that holds links, which is read as
``cocite ingest`` reads it (:class:`~cocite.options.ingest.IngestOptions`), cached, and used again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cocite.options import CLI, Options, option


@dataclass(frozen=True)
class OutputOptions(Options):
    """Where a table goes: a file, or a table of a database."""

    output: str | None = option(None, "The file to write.", flag="-o,--output", metavar="FILE")
    output_format: str | None = option(
        None, "What to write, whatever the name.", unset="by the name"
    )
    to: str | None = option(
        None,
        "Write to a table of a database instead of a file: sqlite:///FILE, duckdb:///FILE or "
        "postgres://USER@HOST/DATABASE, and #TABLE. All rows are there at once, or none.",
        metavar="DATABASE#TABLE",
    )
    append: bool = option(False, "Add to the rows that the table of --to has, if it is there.")
    overwrite: bool = option(
        False, "Replace the output file or the table. A symbolic link is refused."
    )


@dataclass(frozen=True)
class SourceOptions(Options, fronts=CLI):
    """How a path on the command line becomes a graph or an index."""

    bipartite: bool = option(
        False,
        "The two columns of LINKS are two kinds of nodes, user and item, with names of their own; "
        "only nodes of one kind are compared. An item is named as it is, a user as user:NAME.",
    )
    no_cache: bool = option(
        False,
        "Cache nothing. Otherwise the index of LINKS or of a GRAPH is cached, and used again until "
        "they change (cocite info --cache).",
    )
    titles: tuple[str, ...] = option(
        (),
        "Show titles beside the names of a file of LINKS: a table of names and titles, a file or "
        "one of a database, such as 'sqlite:///site.db#pages'. They are cached with the links. "
        "Repeatable.",
        metavar="FILE|DATABASE#TABLE",
    )


@dataclass(frozen=True)
class QuerySource(SourceOptions, fronts=CLI):
    """How a path on the command line becomes an index that answers."""

    graphs: tuple[str, ...] = option(
        (),
        "Where the graph of an INDEX is now, if it was moved. Repeat it for an index that was "
        "refreshed from several graphs.",
        flag="--graph",
        metavar="DIR",
    )
    exclude_nodes: Path | None = option(
        None,
        "Leave these nodes out of a file of LINKS: named in this file, one a line, with all links "
        "to and from them, such as hubs that are linked with all.",
        metavar="FILE",
    )
    side: str | None = option(
        None,
        "Of what is bipartite the side of the nodes that are named, such as user.",
        metavar="NAME",
        unset="the side of the targets, item",
    )
    settings: Mapping[str, Any] = field(default_factory=dict)
    """Those of questions, by name."""
