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
        "postgres://USER@HOST/DATABASE, and #TABLE. Either all rows appear at once, or none.",
        metavar="DATABASE#TABLE",
    )
    append: bool = option(False, "Add to the rows of an existing table of --to.")
    overwrite: bool = option(
        False, "Replace the output file or the table. A symbolic link is refused."
    )


@dataclass(frozen=True)
class SourceOptions(Options, fronts=CLI):
    """How a path on the command line becomes a graph or an index."""

    bipartite: bool = option(
        False,
        "The two columns of LINKS are two kinds of nodes, users and items; only nodes of one kind "
        "are compared. Items keep their names, and a user is named user:NAME.",
    )
    no_cache: bool = option(
        False,
        "Cache nothing. By default the index of LINKS or of a GRAPH is cached until they change "
        "(cocite info --cache).",
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
        "Leave out the nodes named in this file, one a line, with all their links, such as hubs. "
        "Only for LINKS.",
        metavar="FILE",
    )
    side: str | None = option(
        None,
        "In a bipartite graph, the side of the named nodes, such as user.",
        metavar="NAME",
        unset="the side of the targets, item",
    )
    settings: Mapping[str, Any] = field(default_factory=dict)
    """Those of questions, by name."""
