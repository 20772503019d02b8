"""Options that many commands share: outputs and sources."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cocite.options import CLI, Options, option, option_of, side_option
from cocite.options.ingest import IngestOptions


@dataclass(frozen=True)
class OutputOptions(Options):
    """Where a table goes: a file, or a table of a database."""

    output: str | None = option(None, "The file to write.", flag="-o,--output", metavar="FILE")
    output_format: str | None = option(
        None, "The output format. It overrides the file extension.", unset="by the extension"
    )
    to: str | None = option(
        None,
        "Write to a database table instead of a file: sqlite:///FILE, duckdb:///FILE or "
        "postgres://USER@HOST/DATABASE, followed by #TABLE. All rows appear at once.",
        metavar="DATABASE#TABLE",
    )
    append: bool = option(False, "Append rows to an existing table of --to.")
    overwrite: bool = option(
        False, "Replace the output file or the table. Symbolic links are refused."
    )


@dataclass(frozen=True)
class SourceOptions(Options, fronts=CLI):
    """How a path on the command line becomes a graph or an index."""

    bipartite: bool = option_of(IngestOptions, "bipartite")
    no_cache: bool = option(
        False,
        "Do not cache. By default, the index of LINKS or of a GRAPH is cached until it changes "
        "(see: cocite info --cache).",
    )
    titles: tuple[str, ...] = option(
        (),
        "Show titles beside the names of LINKS: a table of names and titles, as a file or in a "
        "database, such as 'sqlite:///site.db#pages'. Titles are cached with the links. "
        "Repeatable.",
        metavar="FILE|DATABASE#TABLE",
    )


@dataclass(frozen=True)
class QuerySource(SourceOptions, fronts=CLI):
    """How a path on the command line becomes an index to query."""

    graphs: tuple[str, ...] = option(
        (),
        "The graph of an INDEX, if it was moved. Repeat it for an index refreshed from several "
        "graphs.",
        flag="--graph",
        metavar="DIR",
    )
    exclude_nodes: Path | None = option(
        None,
        "Exclude the nodes named in this file, one per line, and all their links; useful for hubs. "
        "Only for LINKS.",
        metavar="FILE",
    )
    side: str | None = side_option("the named nodes")
    settings: Mapping[str, Any] = field(default_factory=dict)
