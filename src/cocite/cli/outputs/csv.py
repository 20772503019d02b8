"""``--format csv``: the rows of the document, by RFC 4180 with lines that end in LF."""

from __future__ import annotations

import csv
import sys

from cocite.cli.outputs import Reply
from cocite.documents import plain

__all__ = ["show"]


def show(reply: Reply) -> None:
    """Print titles and rows; what does not exist is an empty cell."""
    titles, rows = reply.document.rows()
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(titles)
    for row in rows:
        writer.writerow(["" if (cell := plain(value)) is None else cell for value in row])
