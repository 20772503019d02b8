"""``cocite related`` and ``cocite similarity``: ask an index."""

from __future__ import annotations

from typing import Any

import click

from cocite.cli.options import format_option
from cocite.cli.output import print_csv, print_facts, print_json, print_table
from cocite.cli.settings import ask_options, given

__all__ = ["related", "similarity"]


@click.command()
@click.argument("index", metavar="INDEX")
@click.argument("node", metavar="NODE")
@click.option("-k", type=click.IntRange(1), default=20, show_default=True, help="Hits at most.")
@click.option(
    "--min-score", type=float, default=0.0, show_default=True, help="The least score of a hit."
)
@ask_options
@format_option
def related(index: str, node: str, k: int, min_score: float, form: str, **settings: Any) -> None:
    """List the nodes most related to NODE, best first.

    The error is the standard error of the score over the samples: two hits whose scores differ by
    less than about twice that may stand in either order. Put -- before a NODE that begins with -.
    """
    from cocite.query import open_index

    asked = open_index(index)
    chosen = given(settings)
    hits = asked.related(node, k, min_score=min_score, **chosen)
    if form == "json":
        print_json(
            {
                "node": node,
                "measure": asked.measure,
                "direction": asked.direction,
                "settings": asked.settings | asked.stored.measure.ask_settings(chosen),
                "hits": [hit._asdict() for hit in hits],
            }
        )
    elif form == "csv":
        print_csv(["rank", "node", "score", "stderr"], [(i, *h) for i, h in enumerate(hits, 1)])
    elif not hits and min_score > 0:
        print(f"no node scores {min_score:g} or more with {node}")
    elif not hits:
        print(f"no node is related to {node} by {asked.measure}")
    else:
        rows = [
            (str(i), f"{hit.score:.4f}", f"{hit.stderr:.4f}", hit.node)
            for i, hit in enumerate(hits, 1)
        ]
        print_table(["rank", "score", "error", "node"], rows)


@click.command()
@click.argument("index", metavar="INDEX")
@click.argument("a", metavar="A")
@click.argument("b", metavar="B")
@ask_options
@format_option
def similarity(index: str, a: str, b: str, form: str, **settings: Any) -> None:
    """Tell how similar the nodes A and B are.

    Put -- before names that begin with -.
    """
    from cocite.query import open_index

    found = open_index(index).similarity(a, b, **given(settings))
    if form == "csv":
        print_csv(["a", "b", "score", "stderr"], [(a, b, *found)])
        return
    print_facts(
        {"a": a, "b": b, "score": found.score, "stderr": found.stderr},
        form,
        {"a": a, "b": b, "score": f"{found.score:.4f}", "error": f"{found.stderr:.4f}"},
    )
