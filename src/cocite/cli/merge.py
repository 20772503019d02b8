"""``cocite merge``: join indexes of different samples of one graph."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from cocite.cli.options import format_option, no_verify_option, overwrite_option, verifying
from cocite.cli.outputs import Reply, Show
from cocite.cli.progress import Stages
from cocite.cli.text import facts_text, say
from cocite.compiled.clock import clock
from cocite.memory import format_size, format_time

if TYPE_CHECKING:
    from cocite.index.documents import MergeDocument

__all__ = ["merge"]


@click.command()
@click.argument("indexes", metavar="INDEX INDEX...", nargs=-1, required=True)
@click.option(
    "-o",
    "--output",
    required=True,
    metavar="DIR",
    help="The index to make: a directory, or a URL, as for cocite index.",
)
@click.option(
    "--shard",
    type=click.IntRange(1),
    metavar="SAMPLES",
    help="How many samples a file holds.  [default: as for cocite index]",
)
@overwrite_option("index")
@no_verify_option
@format_option
def merge(
    indexes: tuple[str, ...], output: str, shard: int | None, overwrite: bool, show: Show
) -> None:
    """Join indexes that hold different samples of one graph.

    Build them with "cocite index --numbers", wherever you like. The result is the index that one
    build of all their samples makes, to the byte. The numbers must follow each other, none twice
    and none missing; graph, measure and settings must be the same.

    An index that has lost files of samples answers from the others. To make it whole, build an
    index of the lost numbers (cocite verify names them), and join the two; with --overwrite the
    output may be one of them. A merge that is interrupted leaves nothing behind.
    """
    from cocite.copies import Sending, is_url
    from cocite.index.documents import MergeDocument
    from cocite.index.merge import Merge

    begin = clock()
    sending = Sending(output, "index", overwrite) if is_url(output) else None
    how: dict[str, Any] = {"shard": shard, "overwrite": overwrite, "verify": verifying()}
    how |= {"overwrite": True, "elsewhere": True} if sending else {}
    with Merge(indexes, sending.path if sending else output, **how) as work:
        numbers = f"{work.numbers.start} to {work.numbers.stop - 1}"
        say(f"{output}: samples {numbers}, from {len(indexes)} indexes")
        with Stages({"merging": "samples"}) as stages:
            work.run(lambda done, total: stages("merging", done, total))
        if sending is not None:
            sending.send()
        found = MergeDocument.of(work, clock() - begin, output)
    show(Reply(found, lambda: _text(found)))


def _text(found: MergeDocument) -> str:
    return facts_text(
        {
            "index": found.index,
            "merged": ", ".join(found.merged),
            "samples": f"{found.samples:,}, numbers {found.first} to "
            f"{found.first + found.samples - 1}",
            "took": format_time(found.seconds),
            "on disk": format_size(found.bytes),
        }
    )
