"""``cocite site``: lists of related pages in the pages of a folder of HTML, or out again."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from cocite.cli.console import Stages, say
from cocite.cli.help import SectionedCommand
from cocite.cli.inputs import report_inputs
from cocite.cli.options import flag_of, format_option, resource_options, takes
from cocite.cli.output import Reply, Show, counted, facts_text, held
from cocite.errors import UsageError
from cocite.graph.graph import HUBS_LOG
from cocite.options.site import SiteOptions
from cocite.resources import Resources

if TYPE_CHECKING:
    from cocite.integrations.results import SiteDocument

_UNITS = {"parsing": "pages", "writing": "pages", "indexing": "nodes"}
_EXAMPLES = 3


@click.command(cls=SectionedCommand)
@click.argument("folder", metavar="FOLDER", type=click.Path(exists=True, file_okay=False))
@takes(SiteOptions, "options")
@resource_options
@format_option
def site(
    folder: str, options: SiteOptions, memory: int | None, threads: int | None, show: Show
) -> None:
    """Put a list of related pages onto each page of FOLDER, from the links between them.

    \b
    cocite site build/html -k 5           the lists are made anew each time
    cocite site build/html --dry-run      what would be done, and one page's change
    cocite site build/html --remove       the pages are what they were

    Only the list is written into a page: all other bytes stay. Files outside of FOLDER are never
    touched.
    """  # noqa: D301 - click wants the backspace itself
    from cocite.integrations import site_folder as work

    for name in options.changed() if options.remove else ():
        if name not in ("remove", "dry_run"):
            flag = flag_of(name, SiteOptions)
            raise UsageError(
                f"--remove takes lists out, and {flag} says how they are made: leave "
                "one of the two out"
            )
    place = Path(folder)
    with Stages(_UNITS) as stages:
        if options.remove:
            found = work.remove_lists(place, options, stages)
        else:
            means = Resources.checked(threads, memory)
            with held(HUBS_LOG):  # those hubs are left out
                of = work.relate(place, options, stages, threads=means.threads, memory=means.memory)
            report_inputs(of.graph)
            if options.json_folder is not None:
                found = work.write_json(of, Path(options.json_folder))
            else:
                found = work.insert_lists(of, stages)
    show(Reply(found, lambda: _text(found, options)))
    for pages, what in (
        (list(found.hubs), "linked with more than a quarter of the site, so related to none"),
        (
            list(found.edited),
            "edited since the list was put there: the list is gone, the rest stays",
        ),
    ):
        if pages:
            more = ", ..." if len(pages) > _EXAMPLES else ""
            say(f"{counted(len(pages), 'page')} {what}: {', '.join(pages[:_EXAMPLES])}{more}")
    for page, why in list(found.left_alone.items())[:_EXAMPLES]:
        say(f"left as it is: {page}: {why}")
    if len(found.left_alone) > _EXAMPLES:
        say(f"{len(found.left_alone):,} pages are left as they are: --format json names all")


def _text(found: SiteDocument, options: SiteOptions) -> str:
    """What people read."""
    would = "would be " if found.dry_run else ""
    facts = {"pages": f"{found.pages:,}"}
    if options.remove:
        facts["lists"] = (
            f"{would}removed from {counted(len(found.edited) + found.restored, 'page')}"
        )
        facts["restored"] = f"{counted(found.restored, 'page')} to the very bytes"
    else:
        facts["lists"] = (
            f"on {counted(found.listed, 'page')}, {counted(found.links_listed, 'link')}"
        )
        ends = {"main": "end of main", "article": "end of article", "body": "end of body"}
        places = (f"{ends.get(p, p)} {n:,}" for p, n in found.places.items())
        facts |= {"places": ", ".join(places)} if found.places else {}
    if found.output is not None:
        facts["output"] = found.output + " (not written)" * found.dry_run
    elif not found.dry_run:
        facts["written"] = counted(found.written, "page")
    text = facts_text(facts)
    return f"{text}\n\n{found.shown_page}\n{found.shown}" if found.shown else text
