"""Weights with a decimal comma, 0,5 or 1.234,5, as spreadsheets write them in much of Europe: told
as what they are, with the command that writes them with a point.

They are not read as they stand: 1,234 may be a thousand and more, and nothing in a row tells.

Cost: nothing but for the first bad row.
"""

from __future__ import annotations

import re

from cocite.graph.readers.dialect import fields
from cocite.graph.readers.options import DELIMITERS

__all__ = ["with_comma"]

_COMMA = re.compile(r"\+?(?:[0-9]+|[0-9]{1,3}(?:\.[0-9]{3})+),[0-9]+")


def with_comma(row: str, at: int | None, delimiter: str, printed_by: str) -> tuple[str, str]:
    """What is wrong with a row whose weight, in column ``at`` from 0 on, is a number but for its
    comma, and what to do about it; ``printed_by`` is the command that prints the table. Two empty
    texts for any other row.
    """
    cells = fields(row, delimiter)
    weight = cells[at].strip() if at is not None and at < len(cells) else ""
    if at is None or not _COMMA.fullmatch(weight):
        return "", ""
    what = f"a weight with a comma, {weight}"
    point = weight.replace(".", "").replace(",", ".")
    told = f"Weights have a point, as in {point}. "
    if delimiter in ("comma", "space"):
        return what, told + "Write the table so, or leave the weights out"
    sign, column = DELIMITERS[delimiter].replace("\t", "\\t"), f"${at + 1}"
    return what, told + (
        f"To write them so: {printed_by} | awk -F '{sign}' -v OFS='{sign}' "
        f'\'{{ gsub("[.]", "", {column}); sub(",", ".", {column}) }} 1\' | '
        f"cocite ingest - -o DIR --weight-column {at + 1}"
    )
