"""Script that prints one sheet of a spreadsheet as comma-separated text.

A cell at XFD1048576, or a cell of a gigabyte in a zip archive of a megabyte, exhausts the memory,
and calamine then aborts its process. So this script runs in a process of its own
(``io/readers/spreadsheet.py``), imports nothing from cocite, and limits its address space to
``limit`` more bytes (``RLIMIT_AS``, if its current size is known). If a signal ends the process,
memory was insufficient.

The script reads a line of JSON, ``{"path": path, "named": name, "limit": bytes}``. Before the rows,
it prints lines of JSON: ``{"reading": name}`` before reading a sheet, then ``{"sheet": name}`` for
the selected one, or ``{"error": kind, "text": ...}``.
"""

from __future__ import annotations

import csv
import io
import json
import os
import sys
import zipfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any


class Refused(Exception):
    """Raised for an invalid file or request, with a kind and a text."""


def print_sheet(path: str, named: str, limit: int) -> None:
    """Print the sheet ``named`` within ``limit`` bytes; raises :class:`Refused`."""
    import python_calamine as calamine

    _bound(limit)
    try:
        if zipfile.is_zipfile(path):
            with zipfile.ZipFile(path) as archive:
                if sum(entry.file_size for entry in archive.infolist()) > limit:
                    raise MemoryError
        sheet = _sheet(calamine.CalamineWorkbook.from_path(path), named)
    except (Refused, MemoryError):
        raise
    except calamine.PasswordError as error:
        text = "is a spreadsheet with a password. Save it without one"
        raise Refused("damaged", text) from error
    except BaseException as error:  # calamine raises PanicException
        raise Refused("damaged", f"cannot be read as a spreadsheet: {error}") from error
    _print({"sheet": sheet.name})
    _print_rows(sheet.iter_rows())


def _bound(limit: int) -> None:
    """Limit the address space to ``limit`` more bytes."""
    try:
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
        import resource
    except (OSError, ImportError):
        return
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    most = pages * resource.getpagesize() + limit
    if hard == resource.RLIM_INFINITY or most < hard:
        resource.setrlimit(resource.RLIMIT_AS, (most, most))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _sheet(book: Any, named: str) -> Any:
    """Return the named sheet, or the only one with rows."""
    shown = ", ".join(map(repr, book.sheet_names))
    if named:
        if named not in book.sheet_names:
            raise Refused("unknown", f"has no sheet {named!r}; it has {shown}")
        return _read(book, named)
    full = [name for name in book.sheet_names if _read(book, name).height]
    if not full:
        raise Refused("unclear", f"has only empty sheets: {shown}")
    if len(full) > 1:
        raise Refused(
            "unclear",
            f"has {len(full)} sheets with rows: {', '.join(map(repr, full))}. Choose the one with "
            f"links: --sheet {full[0]!r}",
        )
    return _read(book, full[0])


def _read(book: Any, name: str) -> Any:
    _print({"reading": name})
    return book.get_sheet_by_name(name)


def _print_rows(rows: Iterable[Sequence[Any]]) -> None:
    """Print rows as comma-separated lines, empty rows as blank lines."""
    out = io.TextIOWrapper(sys.stdout.buffer, "utf-8", errors="surrogatepass", newline="")
    write = csv.writer(out, lineterminator="\n").writerow
    quote = csv.writer(out, lineterminator="\n", quoting=csv.QUOTE_ALL).writerow
    for row in rows:  # including the empty rows above the first cells
        cells = [_written(value) for value in row]
        if any(cell != cell.strip(" ") for cell in cells):
            quote(cells)  # names are trimmed later, where merges are counted
        elif any(cells):
            write(cells)
        else:
            out.write("\n")
    out.flush()


def _written(value: Any) -> str:
    """Return a cell's text, on one line."""
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return str(int(value))
    return " ".join(str(value).splitlines()) if isinstance(value, str) else str(value)


def _print(what: dict[str, str]) -> None:
    sys.stdout.buffer.write(json.dumps(what).encode() + b"\n")
    sys.stdout.buffer.flush()


if __name__ == "__main__":
    try:
        print_sheet(**json.loads(sys.stdin.buffer.readline()))
    except Refused as refused:
        _print(dict(zip(("error", "text"), refused.args, strict=True)))
    except MemoryError:
        os.abort()  # as calamine does
