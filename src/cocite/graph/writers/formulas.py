"""Cells of CSV and TSV that a spreadsheet would take for a formula, written so that it does not.

Names and titles come from others. A cell of text that begins with one of ``= + - @``, a tab, an end
of a line, or the wide forms of the four, has an apostrophe before it; spreadsheets then show it as
text, and other programs read one sign more, so nobody gets this who does not ask. Numbers stay.

Source: https://owasp.org/www-community/attacks/CSV_Injection
"""

from __future__ import annotations

from typing import Any

from cocite.graph.writers.writer import Types

__all__ = ["safe_cell", "safe_columns"]

_FIRST = "=+-@\t\r\n\uff1d\uff0b\uff0d\uff20"
_MARK = "'"


def safe_cell(value: Any) -> Any:
    """``value`` as it may stand in a cell; what is no text stays as it is."""
    return _MARK + value if isinstance(value, str) and value.startswith(tuple(_FIRST)) else value


def safe_columns(types: Types) -> str:
    """The same of all columns of a table, as DuckDB selects them."""
    signs = ", ".join(f"chr({ord(sign)})" for sign in _FIRST)
    return ", ".join(
        f'CASE WHEN left("{title}", 1) IN ({signs}) THEN chr({ord(_MARK)}) || "{title}" '
        f'ELSE "{title}" END AS "{title}"'
        if kind == "VARCHAR"
        else f'"{title}"'
        for title, kind in types.items()
    )
