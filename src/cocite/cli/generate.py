"""``cocite generate``: graphs that are made, not read."""

from __future__ import annotations

import click

from cocite.cli.options import format_option, overwrite_option
from cocite.cli.outputs import Show
from cocite.cli.progress import Stages

__all__ = ["generate"]


@click.group()
def generate() -> None:
    """Make a graph of any size, for trying things out at that size."""


@generate.command()
@click.option(
    "--pages", "nodes", type=int, required=True, metavar="N", help="How many pages (nodes)."
)
@click.option("--links", type=int, required=True, metavar="M", help="How many links, exactly.")
@click.option(
    "--seed",
    type=int,
    default=0,
    show_default=True,
    metavar="S",
    help="Where the random numbers start; another seed gives another graph.",
)
@click.option("-o", "--output", required=True, metavar="DIR", help="The graph to make.")
@click.option(
    "--labels",
    metavar="FILE",
    help="Write this file, too: the name of each page, a tab, and its topic.",
)
@click.option(
    "--names",
    type=click.Choice(["text", "integers"], case_sensitive=False),
    default="text",
    show_default=True,
    help="Name pages by URLs, or by numbers, which take no space on disk.",
)
@overwrite_option("graph")
@format_option
def web(
    nodes: int,
    links: int,
    seed: int,
    output: str,
    labels: str | None,
    names: str,
    overwrite: bool,
    show: Show,
) -> None:
    """Make a web-like graph: hosts, sections, templated pages, topics.

    Some pages have very many in-links, most links stay inside a host, and hosts of one topic link
    to each other. The same --pages, --links and --seed always give the same graph. Memory does not
    grow with the links.
    """
    from cocite.cli.info import graph_reply
    from cocite.graph.generate import generate_web

    with Stages({"linking": "links", "naming": "pages"}) as stages:
        graph = generate_web(
            output,
            nodes=nodes,
            links=links,
            seed=seed,
            names=names,
            labels=labels,
            overwrite=overwrite,
            progress=stages,
        )
    show(graph_reply(graph))
