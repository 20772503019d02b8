"""The list of links that lead nowhere, as a file: page, what is wrong, what was written, its URL.

A row each, in the order of the pages, with tabs between the columns, or commas if the file ends in
``.csv``; what is no text is escaped. The file is there when it is whole.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from cocite.graph.readers.reader import Reported, no_report
from cocite.store import disk, written_beside
from cocite.store.beside import check_file

__all__ = ["TITLES", "report_to"]

TITLES = ("page", "what", "written", "leads to")
_FULL = 1 << 20


@contextmanager
def report_to(path: str, overwrite: bool) -> Iterator[Reported]:
    """What adds a row to the file at ``path``; nothing is written if that is empty.

    Raises :class:`~cocite.errors.OutputExists` before anything is done.
    """
    if not path:
        yield no_report
        return
    where = check_file(Path(path), overwrite)
    text = io.StringIO(newline="")
    rows = csv.writer(text, delimiter="," if path.endswith(".csv") else "\t", lineterminator="\n")

    with written_beside(where) as file:

        def write() -> None:
            disk.write(file, text.getvalue().encode("utf-8", "backslashreplace"))
            text.seek(0)
            text.truncate()

        def add(page: str, what: str, written: str, url: str) -> None:
            rows.writerow([" ".join(field.split()) for field in (page, what, written, url)])
            if text.tell() > _FULL:
                write()

        rows.writerow(TITLES)
        yield add
        write()
