r"""Rows of ``INSERT INTO ... VALUES (1,0,'It\'s'),(2,...);``, as in dumps of MySQL and MariaDB.

One pass extracts some columns, checks them, and writes rows separated by tabs. Strings are decoded
as in MySQL: ``\0 \' \" \b \n \r \t \Z \\`` and ``''``; a backslash before another letter is
dropped. Hexadecimal strings (0x4142) and introducers (``_binary 'x'``) are supported. NULL becomes
an empty string, or 0. A row is skipped if an extracted column contains a control character, a
direction character or bytes that are not UTF-8, or no integer where one is expected.

Costs about two nanoseconds per byte, on one thread.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from cocite.kernels._kernel import helper, kernel
from cocite.kernels._types import *
from cocite.kernels.text import C1, TURN, is_integer, wide_fault

SKIPPED, TEXT, INTEGER = range(3)
"""Ways to treat a column."""

ENDED, MORE, BROKEN = range(3)
"""How a piece ends: after the statement, within a row, or at text that is not a row."""

T_ROWS, T_BYTES, T_STATE, T_BAD = range(4)
TALLY = 4
"""int64 words for a piece: rows and bytes written, how it ended, rows skipped."""

BAD_FIELDS = 3
"""int64 words stored for a skipped row: first and last byte in this piece, reason."""

CONTROL, ENCODING, NUMBER, TURNED = range(1, 5)
REASONS = {
    CONTROL: "a control character in a name",
    ENCODING: "bytes that are not UTF-8",
    NUMBER: "not a whole number",
    TURNED: "a name with a character that changes the text direction",
}

_LF, _TAB, _SPACE, _QUOTE, _BACKSLASH = 10, 9, 32, 39, 92
_MEANT = np.arange(256, dtype=np.uint8)
_MEANT[[48, 98, 110, 114, 116, 90]] = 0, 8, 10, 13, 9, 26
"""What a character after a backslash stands for."""
_OPEN, _CLOSE, _COMMA, _SEMICOLON, _UNDERSCORE, _X, _N, _ZERO = 40, 41, 44, 59, 95, 120, 78, 48


@helper
def _blanks(text: Any, i: Any) -> Any:
    while i < text.size and (text[i] == _SPACE or 9 <= text[i] <= 13):
        i += 1
    return i


@helper
def _digit(byte: Any) -> Any:
    if 48 <= byte <= 57:
        return byte - 48
    byte |= 32
    return byte - 87 if 97 <= byte <= 102 else 16


@helper
def _string(text: Any, i: Any, taken: Any, out: Any, at: Any) -> Any:
    """Decode the string quoted at ``i``; return (its end or -1 if unclosed, end of output)."""
    i += 1
    while i < text.size:
        byte = text[i]
        if byte == _QUOTE:
            if i + 1 >= text.size:
                return -1, at
            if text[i + 1] != _QUOTE:
                return i + 1, at
            i += 1
        elif byte == _BACKSLASH:
            i += 1
            if i >= text.size:
                return -1, at
            byte = _MEANT[text[i]]
        if taken:
            out[at] = byte
            at += 1
        i += 1
    return -1, at


@helper
def _token(text: Any, i: Any, taken: Any, out: Any, at: Any) -> Any:
    """Like ``_string``, but for an unquoted token, up to a comma, bracket or semicolon."""
    begin = i
    while i < text.size and text[i] != _COMMA and text[i] != _CLOSE and text[i] != _SEMICOLON:
        i += 1
    if i >= text.size:
        return -1, at
    if taken == SKIPPED:
        return i, at
    end = i
    while end > begin and (text[end - 1] == _SPACE or 9 <= text[end - 1] <= 13):
        end -= 1
    if text[begin] == _N:  # NULL
        if taken == INTEGER:
            out[at] = _ZERO
            at += 1
    elif taken == TEXT and end - begin >= 2 and text[begin] == _ZERO and text[begin + 1] == _X:
        for j in range(begin + 2, end - 1, 2):
            out[at] = (_digit(text[j]) * 16 + _digit(text[j + 1])) & 255
            at += 1
    else:
        for j in range(begin, end):
            out[at] = text[j]
            at += 1
    return i, at


@helper
def _fault(out: Any, low: Any, high: Any, taken: Any) -> Any:
    """Return why out[low:high] is invalid in a column of kind ``taken``, or 0."""
    if taken == INTEGER:
        negative = low < high and out[low] == 45
        digits = low + 1 if negative else low
        return 0 if digits < high and is_integer(out, digits, high) else NUMBER
    wide = False
    for i in range(low, high):
        if out[i] < 32 or out[i] == 127:
            return CONTROL
        wide |= out[i] >= 128
    found = wide_fault(out, low, high) if wide else 0
    if found == 0:
        return 0
    return CONTROL if found == C1 else (TURNED if found == TURN else ENCODING)


@helper
def _row(text: Any, i: Any, take: Any, out: Any, at: Any) -> Any:
    """Parse a row; return (state, end of its last value, end of output, reason to skip it)."""
    reason = 0
    for column in range(take.size):
        i = _blanks(text, i)
        if i >= text.size:
            return MORE, i, at, reason
        if text[i] != (_COMMA if column else _OPEN):
            return BROKEN, i, at, reason
        i = _blanks(text, i + 1)
        if i < text.size and text[i] == _UNDERSCORE:
            while i < text.size and text[i] != _QUOTE and text[i] != _CLOSE:
                i += 1
        if i >= text.size:
            return MORE, i, at, reason
        field = at
        if text[i] == _QUOTE:
            i, at = _string(text, i, take[column], out, at)
        else:
            i, at = _token(text, i, take[column], out, at)
        if i < 0:
            return MORE, text.size, at, reason
        if take[column]:
            if not reason:
                reason = _fault(out, field, at, take[column])
            out[at] = _TAB
            at += 1
    return ENDED, i, at, reason


@helper
def _end(text: Any, i: Any) -> Any:
    """Parse the end of a row after its last value; return (state, position of the separator)."""
    i = _blanks(text, i)
    if i < text.size and text[i] != _CLOSE:
        return BROKEN, i
    i = _blanks(text, i + 1)
    if i >= text.size:
        return MORE, i
    return (ENDED if text[i] == _COMMA or text[i] == _SEMICOLON else BROKEN), i


@kernel
def rows(text: U8s, take: U8s, out: OutU8s, bad: OutI64s2, tally: OutI64s) -> I64:
    """Write the rows of ``text`` (uint8), which begins with a row, to ``out``.

    ``out`` is uint8[text.size + take.size]. ``take`` uint8[columns] is how to treat each column;
    extracted columns are written in order. ``bad`` int64[b, BAD_FIELDS] receives the first b
    skipped rows. Returns the position of the next row, of the statement's end, or of text that is
    not a row.
    """
    tally[:] = 0
    start, at = 0, 0
    while True:
        begun = at
        state, i, at, reason = _row(text, _blanks(text, start), take, out, at)
        if state == ENDED:
            state, i = _end(text, i)
        if state != ENDED:
            tally[T_BYTES], tally[T_STATE] = begun, state
            return start
        if reason:
            if tally[T_BAD] < bad.shape[0]:
                which = tally[T_BAD]
                bad[which, 0], bad[which, 1], bad[which, 2] = start, i, reason
            tally[T_BAD] += 1
            at = begun
        else:
            out[at - 1] = _LF
            tally[T_ROWS] += 1
        start = i + 1
        if text[i] == _SEMICOLON:
            tally[T_BYTES], tally[T_STATE] = at, ENDED
            return start
