"""``cocite watch``: keep the cached answers about a folder or file of links fresh."""

from __future__ import annotations

import json
import logging
import os
import shlex
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import click

from cocite.cli import CACHED
from cocite.cli.console import say
from cocite.cli.help import SectionedCommand
from cocite.cli.inputs import IndexSource, asks, is_links, opened
from cocite.cli.options import format_option, is_set, resource_options
from cocite.cli.output import Show, counted, show_json
from cocite.errors import InputError, UsageError
from cocite.extras import need
from cocite.graph import Graph

_WAIT = 250
"""Milliseconds after which the watcher looks whether it shall end."""
_SHOWN = 3


@click.command(cls=SectionedCommand)
@click.argument("watched", metavar="LINKS")
@asks
@resource_options
@format_option
def watch(
    watched: str, source: IndexSource, memory: int | None, threads: int | None, show: Show
) -> None:
    """Keep answers about LINKS fresh: a folder of notes, pages or code, or a file of links.

    Rebuild the cached index whenever LINKS changes, so that questions with the same options find it
    ready. Notes and pages that did not change are not parsed again.

    \b
    cocite watch vault/                      in one terminal, or started by an editor
    cocite related vault/ "Some note"        in another one, answered at once

    Print a line for each update, or an object of JSON. Input that cannot be read is reported, and
    the last answers stay until it can be read again. Ctrl-C ends the watch.
    """  # noqa: D301 - click wants the backspace itself
    if is_set("show") and show is not show_json:
        raise UsageError("updates are lines of text or of JSON: leave other formats out")
    if source.where.no_cache:
        raise UsageError("cocite watch keeps the cache fresh: leave --no-cache out")
    if not os.path.exists(watched) or not is_links(watched):
        raise UsageError(
            f"{watched} is no folder or file of links. Name one that changes, such as a vault: "
            "cocite watch vault/"
        )
    need("watchfiles", "cocite watch", "watch")
    from cocite.io.readers.html.parsers import remembered

    with suppress(KeyboardInterrupt), remembered():
        for changed in changes(Path(watched)):
            start = time.monotonic()
            try:
                opened(watched, source, memory=memory, threads=threads)
            except InputError as error:
                _print(show, changed, {"error": str(error)})
                continue
            folder, _ = click.get_current_context().meta[CACHED]
            graph = Graph.open(folder / "graph")
            facts: dict[str, object] = {"nodes": graph.nodes, "links": graph.edges}
            _print(show, changed, facts | {"seconds": round(time.monotonic() - start, 2)})
    say(f"no longer watching {shlex.quote(watched)}")


def changes(place: Path) -> Iterator[list[str]]:
    """Yield the paths that changed in a folder, or that of a file; first, once changes are seen,
    none.
    """
    from watchfiles import DefaultFilter
    from watchfiles import watch as watching

    logging.getLogger("watchfiles").setLevel(logging.ERROR)  # it warns of Ctrl-C
    folder = place if place.is_dir() else place.parent
    seen = DefaultFilter() if place.is_dir() else None
    batches = watching(
        folder,
        watch_filter=seen,
        yield_on_timeout=True,
        rust_timeout=_WAIT,
        recursive=place.is_dir(),
    )
    started = False
    for batch in batches:
        paths = sorted({path for _, path in batch})
        if not place.is_dir():
            paths = [path for path in paths if Path(path).name == place.name]
        if paths or not started:
            started = True
            yield [os.path.relpath(path, folder) for path in paths]


def _print(show: Show, changed: list[str], facts: dict[str, object]) -> None:
    """Print an update."""
    if show is show_json:
        click.echo(json.dumps({"changed": changed, **facts}, ensure_ascii=False))
        return
    names = ", ".join(changed[:_SHOWN]) + ", ..." * (len(changed) > _SHOWN)
    what = f"{counted(len(changed), 'file')} changed ({names}): " if changed else ""
    if "error" in facts:
        click.echo(f"{what}{facts['error']}")
    else:
        click.echo(
            f"{what}{facts['nodes']:,} nodes, {facts['links']:,} links, {facts['seconds']} s"
        )
