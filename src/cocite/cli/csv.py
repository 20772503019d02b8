"""``--format csv``: the rows of the document, by RFC 4180 with lines that end in LF."""

from __future__ import annotations

import csv
import sys

from cocite.cli.output import Reply
from cocite.io.writers.tables import safe_cell
from cocite.results import plain


def show(reply: Reply, safe: bool = False) -> None:
    """Print titles and rows; what does not exist is an empty cell. ``safe``: no text is one that a
    spreadsheet takes for a formula.
    """
    titles, rows = reply.document.rows()
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(titles)
    for row in rows:
        cells = ["" if (cell := plain(value)) is None else cell for value in row]
        writer.writerow(map(safe_cell, cells) if safe else cells)
