"""Spreadsheets: the rows of one sheet of an .xlsx, .xlsb, .xls or .ods file.

The sheet is the named one (``--sheet``), or the only one with rows. It is converted to
comma-separated text and read as such (``io/readers/text.py``), with the same detection of header,
columns and weights; malformed rows are reported by their number in the sheet.

An untrusted sheet may claim any size, so it is read in a process with limited memory
(``io/readers/sheet.py``): as much as a compressed input may unpack to (``io/readers/sources.py``),
and no more than ``--memory``. Cost: 5 million cells a second, about 130 bytes of memory per cell.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO

from cocite.errors import InputError, UnrecognizedInput, UsageError
from cocite.extras import need
from cocite.io.readers.contract import FormatReader, Job, Read, no_progress
from cocite.io.readers.sources import ALWAYS_UNPACKED, MOST_RATIO, most_unpacked
from cocite.io.readers.text import Cleaner, clean_relation, new_clean_file
from cocite.resources import format_size
from cocite.storage import disk

_SHEET = str(Path(__file__).with_name("sheet.py"))
_ERRORS = {"unknown": UsageError, "unclear": UnrecognizedInput, "damaged": InputError}


def _read(job: Job) -> Read:
    """Read the rows of one sheet as text."""
    need("python_calamine", "a spreadsheet", "excel")
    job.progress("reading " + job.source.short, 0, 0)
    most, text = min(most_unpacked(job.source.nbytes), job.memory), job.scratch / "sheet.csv"
    asked = {"path": str(job.source.path), "named": job.options.sheet, "limit": most}
    with disk.rewrite(text) as out, run_script(_SHEET, out) as process:
        try:
            process.communicate(json.dumps(asked).encode() + b"\n")
        finally:
            process.kill()
    with text.open("rb") as sheet, new_clean_file(job) as out:
        name = _begun(job, sheet, process.returncode, most)
        options = replace(job.options, delimiter="comma")
        found = Cleaner(job.source, job.wanted, options).run(sheet, sheet.tell, out, no_progress)
    note = found.describe().removeprefix(f"{found.file}: comma-separated, ")
    named = found.read_as(f"the sheet {name!r} of a spreadsheet", note)
    return Read(clean_relation(job, found.integers), named)


READER = FormatReader(
    "a spreadsheet",
    "a sheet of a spreadsheet (xlsx, xlsb, xls, ods), as rows of a text; --sheet names it",
    _read,
    streams=False,
)


def _begun(job: Job, text: BinaryIO, code: int, most: int) -> str:
    """Read the lines before the rows, and return the sheet's name. Raises its error, or one for a
    process that ended with another ``code`` than 0: by a signal if memory was insufficient.
    """
    label, name = job.source.label, ""
    for line in text:
        found = json.loads(line)
        if "error" in found:
            raise _ERRORS[found["error"]](f"{label} {found['text']}")
        name = found.get("sheet") or found["reading"]
        if "sheet" in found:
            break
    if code == 0:
        return name
    if code > 0:
        raise InputError(
            f"{label} cannot be read as a spreadsheet: what reads it ended with exit code {code}"
        )
    where = f"the sheet {name!r} of {label}" if name else label
    raise InputError(
        f"{where} takes more than {format_size(most)} to read: it has too many cells, or cells too "
        f"far apart or too long. A spreadsheet may take {MOST_RATIO} times its size, or "
        f"{format_size(ALWAYS_UNPACKED)} if that is more, and no more than --memory. If you trust "
        "it, save the sheet as CSV, and name that file"
    )


def run_script(script: str, out: int | BinaryIO = subprocess.PIPE) -> subprocess.Popen[bytes]:
    """Start one of our scripts in a process that untrusted input may kill. It can import what this
    process can, reads standard input, and only prints.
    """
    paths = os.pathsep.join(path for path in sys.path if path)
    return subprocess.Popen(
        [sys.executable, "-P", script],
        stdin=subprocess.PIPE,
        stdout=out,
        stderr=subprocess.DEVNULL,
        env=os.environ | {"PYTHONPATH": paths},
    )
