"""Spreadsheets: the rows of a sheet of an .xlsx, .xlsb, .xls or .ods file, read as those of a text.

A sheet becomes text with commas and quotes, so header, columns and weights are found out, or named,
as of any text (``io/readers/text.py``), and a row that is malformed is named by its number in the
sheet. The sheet is the one that is named (``--sheet``), or the only one with rows.

An unknown sheet may claim any size, so it is read in a process with a limit of addresses
(``io/readers/sheet.py``): what a packed input may unpack to (``io/readers/sources.py``), and no
more than ``--memory``. Cost: 5 million cells a second, some 130 bytes of memory a cell.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path

from cocite.errors import InputError, UnrecognizedInput, UsageError
from cocite.extras import need
from cocite.io.readers.contract import FormatReader, Job, Read, no_progress
from cocite.io.readers.rows import RowsFound
from cocite.io.readers.sources import ALWAYS_UNPACKED, MOST_RATIO, most_unpacked
from cocite.io.readers.text import Cleaner, clean_relation, new_clean_file
from cocite.resources import format_size

_SHEET = str(Path(__file__).with_name("sheet.py"))
_ERRORS = {"unknown": UsageError, "unclear": UnrecognizedInput, "damaged": InputError}


def _read(job: Job) -> Read:
    """Read the rows of one sheet as text."""
    need("python_calamine", "a spreadsheet", "excel")
    job.progress("reading " + job.source.short, 0, 0)
    with closing(_Sheet(job)) as sheet, new_clean_file(job) as out:
        options = replace(job.options, delimiter="comma")
        found = Cleaner(job.source, job.wanted, options).run(sheet, sheet.tell, out, no_progress)
    note = found.describe().removeprefix(f"{found.file}: comma-separated, ")
    named = RowsFound.of(found, f"the sheet {sheet.name!r} of a spreadsheet", note)
    return Read(clean_relation(job, found.integers), named)


READER = FormatReader(
    "a spreadsheet",
    "a sheet of a spreadsheet (xlsx, xlsb, xls, ods), as rows of a text; --sheet names it",
    _read,
    streams=False,
)


class _Sheet:
    """The text of a sheet, from a process with limited memory, which may die."""

    def __init__(self, job: Job) -> None:
        self.name = ""
        self._source, self._given = job.source, 0
        self._most = min(most_unpacked(job.source.nbytes), job.memory)
        self._process = run_script(_SHEET)
        try:
            self._begin(str(job.source.path), job.options.sheet)
        except BaseException:
            self.close()
            raise

    def _begin(self, path: str, named: str) -> None:
        """Read which sheet follows, or the error."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        request = {"path": path, "named": named, "limit": self._most}
        with suppress(BrokenPipeError):
            self._process.stdin.write(json.dumps(request).encode() + b"\n")
            self._process.stdin.flush()
        for line in self._process.stdout:
            found = json.loads(line)
            if "error" in found:
                raise _ERRORS[found["error"]](f"{self._source.label} {found['text']}")
            self.name = found.get("sheet") or found["reading"]
            if "sheet" in found:
                return
        raise self._failure(self._process.wait())

    def read(self, size: int) -> bytes:
        """Return ``size`` bytes, fewer at the end."""
        assert self._process.stdout is not None
        data = self._process.stdout.read(size)
        if not data and (code := self._process.wait()):
            raise self._failure(code)
        self._given += len(data)
        return data

    def tell(self) -> int:
        """Return the bytes read."""
        return self._given

    def _failure(self, code: int) -> InputError:
        """Return the error for a process's exit ``code``: a signal means too little memory."""
        if code >= 0:
            return InputError(
                f"{self._source.label} cannot be read as a spreadsheet: what reads it ended with "
                f"exit code {code}"
            )
        where = (
            f"the sheet {self.name!r} of {self._source.label}" if self.name else self._source.label
        )
        return InputError(
            f"{where} takes more than {format_size(self._most)} to read: it has too many cells, or "
            f"cells too far apart or too long. A spreadsheet may take {MOST_RATIO} times its size, "
            f"or {format_size(ALWAYS_UNPACKED)} if that is more, and no more than --memory. If you "
            "trust it, save the sheet as CSV, and name that file"
        )

    def close(self) -> None:
        """Ensure that the process ends."""
        self._process.kill()
        self._process.communicate()


def run_script(script: str) -> subprocess.Popen[bytes]:
    """Start one of our scripts in a process that untrusted input may kill. It can import what this
    process can, reads standard input, and only prints.
    """
    paths = os.pathsep.join(path for path in sys.path if path)
    return subprocess.Popen(
        [sys.executable, "-P", script],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=os.environ | {"PYTHONPATH": paths},
    )
