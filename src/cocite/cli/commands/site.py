"""``cocite site``: put lists of related pages into a folder of HTML pages, or remove them.
``cocite watch``: keep the cached index of a folder or an edge list up to date.
"""

from __future__ import annotations

import json
import logging
import os
import shlex
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import click

from cocite.cli import CACHED, flags
from cocite.cli.console import Stages, say
from cocite.cli.help import SectionedCommand
from cocite.cli.inputs import IndexSource, asks, is_links, opened, report_inputs
from cocite.cli.output import Reply, Show, counted, facts_text, show_json
from cocite.errors import InputError, UsageError
from cocite.extras import need
from cocite.graph import Graph
from cocite.options.site import SiteOptions
from cocite.resources import Resources

if TYPE_CHECKING:
    from cocite.integrations.site_folder import SiteDocument

_UNITS = {"parsing": "pages", "writing": "pages", "indexing": "nodes"}
_EXAMPLES = 3


@click.command(cls=SectionedCommand)
@click.argument("folder", metavar="FOLDER", type=click.Path(exists=True, file_okay=False))
@flags.takes(SiteOptions, "options")
@flags.resources
@flags.format
def site(folder: str, options: SiteOptions, limits: flags.ResourceLimits, show: Show) -> None:
    """Add a list of related pages to each page of FOLDER, based on the links between them.

    \b
    cocite site build/html -k 5           insert the lists, or update them
    cocite site build/html --dry-run      preview, with the change of one page
    cocite site build/html --remove       restore the original pages

    Only the list on a page changes. Files outside FOLDER are never touched.
    """  # noqa: D301 - click wants the backspace itself
    from cocite.integrations import site_folder as work

    for name in options.changed() if options.remove else ():
        if name not in ("remove", "dry_run"):
            flag = flags.flag_of(name, SiteOptions)
            raise UsageError(
                f"--remove deletes lists, but {flag} says how to create them: omit one of the two"
            )
    place = Path(folder)
    with Stages(_UNITS) as stages:
        if options.remove:
            found = work.remove_lists(place, options, stages)
        else:
            means = Resources.checked(**limits)
            of = work.relate(place, options, stages, threads=means.threads, memory=means.total)
            report_inputs(of.graph)
            if options.json_folder is not None:
                found = work.write_json(of, Path(options.json_folder))
            else:
                found = work.insert_lists(of, stages)
    show(Reply(found, lambda: _text(found, options)))
    for pages, what in (
        (
            list(found.hubs),
            "linked with more than a quarter of the site, so they have no related pages",
        ),
        (
            list(found.edited),
            "edited since their lists were inserted; only the lists are removed",
        ),
    ):
        if pages:
            more = f" and {len(pages) - _EXAMPLES:,} more" if len(pages) > _EXAMPLES else ""
            say(f"{counted(len(pages), 'page')} {what}: {', '.join(pages[:_EXAMPLES])}{more}")
    for page, why in list(found.left_alone.items())[:_EXAMPLES]:
        say(f"unchanged: {page}: {why}")
    if len(found.left_alone) > _EXAMPLES:
        say(f"{len(found.left_alone):,} pages are unchanged: --format json lists all")


def _text(found: SiteDocument, options: SiteOptions) -> str:
    would = "would be " if found.dry_run else ""
    facts = {"pages": f"{found.pages:,}"}
    if options.remove:
        facts["lists"] = (
            f"{would}removed from {counted(len(found.edited) + found.restored, 'page')}"
        )
        facts["restored"] = f"{counted(found.restored, 'page')}, byte for byte"
    else:
        facts["lists"] = (
            f"on {counted(found.listed, 'page')}, {counted(found.links_listed, 'link')}"
        )
        if alone := found.pages - found.listed:
            facts["lists"] += f"; none on {counted(alone, 'page')}"
        ends = {"main": "end of main", "article": "end of article", "body": "end of body"}
        places = (f"{ends.get(p, p)} {n:,}" for p, n in found.places.items())
        facts |= {"places": ", ".join(places)} if found.places else {}
    if found.output is not None:
        facts["output"] = found.output + " (not written)" * found.dry_run
    elif not found.dry_run:
        facts["written"] = counted(found.written, "page")
    text = facts_text(facts)
    return f"{text}\n\n{found.shown_page}\n{found.shown}" if found.shown else text


_WAIT = 250


@click.command(cls=SectionedCommand)
@click.argument("watched", metavar="LINKS")
@asks
@flags.resources
@flags.format
def watch(watched: str, source: IndexSource, limits: flags.ResourceLimits, show: Show) -> None:
    """Keep the index of an edge list, or of a folder of notes, pages or code, up to date.

    Rebuild the cached index whenever LINKS changes, so that it is ready for queries with the same
    options. Unchanged notes and pages are not parsed again.

    \b
    cocite watch vault/                      in one terminal, or started by an editor
    cocite related vault/ "Some note"        in another one, answered immediately

    Each update prints a line, or a JSON object. If the input cannot be read, the error is printed,
    and the previous answers remain. Stop with Ctrl-C.
    """  # noqa: D301 - click wants the backspace itself
    if flags.is_set("show") and show is not show_json:
        raise UsageError("cocite watch prints lines of text or JSON: omit --format, or choose json")
    if source.where.no_cache:
        raise UsageError("cocite watch updates the cache: omit --no-cache")
    if not os.path.exists(watched) or not is_links(watched):
        raise UsageError(
            f"{watched} is neither a folder nor an edge list. Pass a folder or file that "
            "changes, such as an Obsidian vault: cocite watch vault/"
        )
    need("watchfiles", "cocite watch", "watch")
    from cocite.io.readers.html.parsers import remembered

    with suppress(KeyboardInterrupt), remembered():
        for changed in changes(Path(watched)):
            start = time.monotonic()
            try:
                opened(watched, source, **limits)
            except InputError as error:
                _print(show, changed, {"error": str(error)})
                continue
            folder, _ = click.get_current_context().meta[CACHED]
            graph = Graph.open(folder / "graph")
            facts: dict[str, object] = {"nodes": graph.nodes, "links": graph.edges}
            _print(show, changed, facts | {"seconds": round(time.monotonic() - start, 2)})
    say(f"no longer watching {shlex.quote(watched)}")


def changes(place: Path) -> Iterator[list[str]]:
    """Yield lists of changed paths, first an empty one when watching begins."""
    from watchfiles import DefaultFilter
    from watchfiles import watch as watching

    logging.getLogger("watchfiles").setLevel(logging.ERROR)  # it warns about Ctrl-C
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
    if show is show_json:
        click.echo(json.dumps({"changed": changed, **facts}, ensure_ascii=False))
        return
    names = ", ".join(changed[:_EXAMPLES]) + ", ..." * (len(changed) > _EXAMPLES)
    what = f"{counted(len(changed), 'file')} changed ({names}): " if changed else ""
    if "error" in facts:
        click.echo(f"{what}{facts['error']}")
    else:
        click.echo(
            f"{what}{facts['nodes']:,} nodes, {facts['links']:,} links, {facts['seconds']} s"
        )
