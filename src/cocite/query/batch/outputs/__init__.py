"""What a batch writes: a file each, and the table that finds them by name.

A new kind is a file in this folder with an :class:`~.output.Output`, and a line of ``OUTPUTS``.
"""

from __future__ import annotations

import os
from importlib import import_module
from pathlib import Path
from typing import cast

from cocite.database import is_address
from cocite.errors import UsageError
from cocite.query.batch.outputs.output import Output, Pages

__all__ = ["OUTPUTS", "Output", "Pages", "chosen_output", "output_of"]

OUTPUTS = {
    "parquet": "cocite.query.batch.outputs.table",
    "csv": "cocite.query.batch.outputs.table",
    "tsv": "cocite.query.batch.outputs.table",
    "jsonl": "cocite.query.batch.outputs.lines",
    "arrow": "cocite.query.batch.outputs.table",
    "graphml": "cocite.query.batch.outputs.graph",
    "gexf": "cocite.query.batch.outputs.graph",
    "dot": "cocite.query.batch.outputs.graph",
    "folder": "cocite.query.batch.outputs.folder",
    "site": "cocite.query.batch.outputs.folder",
}
"""What the output may be -> the module that has ``output(kind)``. A table of a database, which has
an address and no path, is in ``database.py``.
"""
_FOLDERS = ("folder", "site")
_SHEETS = ("csv", "tsv")
"""What a spreadsheet opens."""


def chosen_output(
    output: str | os.PathLike[str] | None,
    index: Path,
    *,
    kind: str | None = None,
    to: str | None = None,
    overwrite: bool = False,
    append: bool = False,
    safe: bool = False,
) -> tuple[Output, Path]:
    """What writes to ``output``, or to a table of a database, and where that is; what is unfinished
    lies beside it, or, if it is on a server, beside the ``index``. Raises :class:`UsageError`.
    """
    if to is None:
        if output is None:
            raise UsageError("name an output, by --output (output=) or --to (to=)")
        if append:
            raise UsageError("--append is for a table of a database: name it by --to")
        return output_of(output, kind, safe), Path(output)
    if output is not None or kind is not None:
        raise UsageError(
            "hits go to a file or to a database: leave out --to, or --output and --kind"
        )
    from cocite.query.batch.outputs.database import database

    found = database(to, overwrite=overwrite, append=append)
    return found, found.place(index)


def output_of(path: str | os.PathLike[str], kind: str | None = None, safe: bool = False) -> Output:
    """What writes ``path``: of the kind that is named, or by the end of its name, of which ``/``
    is that of a folder; CSV and TSV ``safe`` for spreadsheets or not. Raises :class:`UsageError`.
    """
    name = os.fspath(path)
    if is_address(name):
        raise UsageError("a database is no file: name it by --to (to=), and no --output")
    if kind is None:
        found = os.path.splitext(name)[1].removeprefix(".")
        kind = "folder" if name.endswith(os.sep) else found
        if kind not in OUTPUTS or (kind in _FOLDERS and found):
            endings = ", ".join(f".{each}" for each in OUTPUTS if each not in _FOLDERS)
            raise UsageError(
                f"{name} ends in {os.path.splitext(name)[1]!r}; it ends in one of {endings}, or in "
                "/ for a folder with a file a page. Or say what it is with --kind (kind=)"
            )
    if kind not in OUTPUTS:
        raise UsageError(f"kind is {kind!r}; it is one of {', '.join(OUTPUTS)}")
    module = import_module(OUTPUTS[kind])
    return cast(Output, module.output(kind, safe) if kind in _SHEETS else module.output(kind))
