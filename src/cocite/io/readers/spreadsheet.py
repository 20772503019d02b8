"""Spreadsheets: the rows of one sheet of an .xlsx, .xlsb, .xls or .ods file.

The sheet is ``--sheet``, or the only one with rows. It is converted to comma-separated text. The
reader for text (``io/readers/text.py``) detects header and columns; malformed rows are reported by
their number in the sheet.

A sheet may declare any size, so it is read in a process with limited memory
(``io/readers/sheet.py``). The limit is the same as for decompression (``io/readers/sources.py``),
or ``--memory`` if that is less. The speed is 5 million cells per second, with about 130 bytes of
memory per cell.
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
    "a sheet of a spreadsheet (xlsx, xlsb, xls, ods), read like text; --sheet selects it",
    _read,
    streams=False,
)


def _begun(job: Job, text: BinaryIO, code: int, most: int) -> str:
    """Read the lines of JSON above the rows; return the sheet's name, or raise their error."""
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
            f"{label} cannot be read as a spreadsheet: the parser failed with exit code {code}"
        )
    where = f"the sheet {name!r} of {label}" if name else label
    raise InputError(
        f"{where} takes more than {format_size(most)} of memory: it has too many cells, or cells "
        f"too far apart or too long. The limit is {MOST_RATIO} times the file's size, but at "
        f"least {format_size(ALWAYS_UNPACKED)} and at most --memory. If you trust the file, save "
        "the sheet as CSV, and pass that file"
    )


def run_script(script: str, out: int | BinaryIO = subprocess.PIPE) -> subprocess.Popen[bytes]:
    """Start one of this package's scripts in its own process, with the same import path."""
    paths = os.pathsep.join(path for path in sys.path if path)
    return subprocess.Popen(
        [sys.executable, "-P", script],
        stdin=subprocess.PIPE,
        stdout=out,
        stderr=subprocess.DEVNULL,
        env=os.environ | {"PYTHONPATH": paths},
    )
