"""What a batch writes: a file each, and the table that finds them by name.

A new kind is a file in this folder with an :class:`~.output.Output`, and a line of ``OUTPUTS``.
"""

from __future__ import annotations

import os
from importlib import import_module
from typing import cast

from cocite.errors import UsageError
from cocite.query.batch.outputs.output import Output, Pages

__all__ = ["OUTPUTS", "Output", "Pages", "output_of"]

OUTPUTS = {
    "parquet": "cocite.query.batch.outputs.table",
    "csv": "cocite.query.batch.outputs.table",
    "tsv": "cocite.query.batch.outputs.table",
    "jsonl": "cocite.query.batch.outputs.lines",
    "arrow": "cocite.query.batch.outputs.table",
    "folder": "cocite.query.batch.outputs.folder",
}
"""What the output may be -> the module that has ``output(kind)``."""


def output_of(path: str | os.PathLike[str], kind: str | None = None) -> Output:
    """What writes ``path``: of the kind that is named, or by the end of its name, of which ``/``
    is that of a folder. Raises :class:`UsageError`.
    """
    name = os.fspath(path)
    if kind is None:
        found = os.path.splitext(name)[1].removeprefix(".")
        kind = "folder" if name.endswith(os.sep) else found
        if kind not in OUTPUTS or (kind == "folder" and found):
            endings = ", ".join(f".{each}" for each in OUTPUTS if each != "folder")
            raise UsageError(
                f"{name} ends in {os.path.splitext(name)[1]!r}; it ends in one of {endings}, or in "
                "/ for a folder with a file a page. Or say what it is with --kind (kind=)"
            )
    if kind not in OUTPUTS:
        raise UsageError(f"kind is {kind!r}; it is one of {', '.join(OUTPUTS)}")
    return cast(Output, import_module(OUTPUTS[kind]).output(kind))
