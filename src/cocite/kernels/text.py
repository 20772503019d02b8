"""Edge lists as text: one pass that checks every byte and writes clean rows.

``normalise`` reads whole lines of UTF-8 and writes ``source TAB target LF`` for each good row, or
``source TAB target TAB weight LF``, so that whoever loads the result needs no quoting, no dialect
and no mercy. It accepts LF, CR and CRLF ends in any mixture, skips blank and comment lines, trims
blanks around fields, undoes CSV quoting, and classifies every bad row instead of guessing:

    COLUMNS   not the expected number of fields     EMPTY     a node without a name
    CONTROL   a control character in a name         ENCODING  bytes that are not UTF-8
    QUOTE     text after, or no, closing quote      LONG      a name over the limit
    NO_WEIGHT no decimal number in [1e-30, 1e30)

Cost: about two nanoseconds a byte, one thread.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from cocite.kernels._jit import helper, kernel

__all__ = [
    "BAD_FIELDS",
    "COMMENT",
    "DELIMITER",
    "EXPECTED",
    "FIRST",
    "MAX_NAME",
    "NO_WEIGHT",
    "QUOTES",
    "REASONS",
    "RULES",
    "SECOND",
    "TALLY",
    "T_BAD",
    "T_BLANK",
    "T_BYTES",
    "T_COMMENT",
    "T_INTEGER",
    "T_LINES",
    "T_ROWS",
    "T_SKIP",
    "WEIGHT",
    "normalise",
]

MAX_NAME = 65_535
"""Bytes of the longest name."""

WHITESPACE = 32
DELIMITER, QUOTES, EXPECTED, FIRST, SECOND, COMMENT, WEIGHT = range(7)
RULES = 7
"""int64 words of the rules: delimiter byte (32: runs of blanks), whether double quotes
quote, fields a row, index of the first and of the second field taken (-1: only one), comment
byte (-1: none), index of the weight's field (-1: none)."""

T_ROWS, T_BLANK, T_COMMENT, T_LINES, T_INTEGER, T_BYTES, T_SKIP, T_BAD = range(8)
TALLY = 15
"""int64 words counted: good rows, blank lines, comment lines, all lines, whether all
names so far are canonical integers below 2**64, bytes written, rows still to skip; from
T_BAD on: all bad rows, then those of each reason."""

BAD_FIELDS = 4
"""int64 words kept of a bad row: line, first and last byte in this piece, reason."""

COLUMNS, EMPTY, CONTROL, ENCODING, QUOTE, LONG, NO_WEIGHT = range(1, 8)
REASONS = {
    COLUMNS: "columns",
    EMPTY: "empty name",
    CONTROL: "control character",
    ENCODING: "not UTF-8",
    QUOTE: "quotes",
    LONG: f"name over {MAX_NAME} bytes",
    NO_WEIGHT: "weight",
}

_LF, _CR, _TAB, _SPACE, _QUOTE = 10, 13, 9, 32, 34
_LF8, _CR8, _SPACE8, _DELETE8, _WIDE8 = map(np.uint8, (10, 13, 32, 127, 128))
_ONE64 = np.uint64(1)
_PLUS, _MINUS, _POINT, _ZERO, _NINE = 43, 45, 46, 48, 57
_LARGEST_POWER = 30
"""Weights have their first digit at 10**-30 to 10**29: far from what float32 cannot hold."""
_MAX_U64 = np.frombuffer(b"18446744073709551615", np.uint8)


@helper
def _find(text: Any, low: Any, high: Any, first: Any, second: Any) -> Any:
    """Where ``first`` or ``second`` next stands in text[low:high]; ``high`` if nowhere."""
    i, end = np.uint64(low), np.uint64(high)
    while i < end and text[i] != first and text[i] != second:
        i += _ONE64
    return np.int64(i)


@helper
def _is_utf8(text: Any, low: Any, high: Any) -> Any:
    """Whether text[low:high] is well-formed UTF-8 (Unicode 15, table 3-7)."""
    i = low
    while i < high:
        byte = text[i]
        if byte < 0x80:
            i += 1
            continue
        floor, ceiling = 0x80, 0xBF
        if 0xC2 <= byte <= 0xDF:
            more = 1
        elif 0xE0 <= byte <= 0xEF:
            more = 2
            if byte == 0xE0:
                floor = 0xA0
            elif byte == 0xED:
                ceiling = 0x9F
        elif 0xF0 <= byte <= 0xF4:
            more = 3
            if byte == 0xF0:
                floor = 0x90
            elif byte == 0xF4:
                ceiling = 0x8F
        else:
            return False
        if i + more >= high:
            return False
        for j in range(i + 1, i + 1 + more):
            if text[j] < floor or text[j] > ceiling:
                return False
            floor, ceiling = 0x80, 0xBF
        i += more + 1
    return True


@helper
def _is_integer(text: Any, low: Any, high: Any) -> Any:
    """Whether text[low:high] is an integer below 2**64 as ``str`` would print it."""
    size = high - low
    if size > 20 or (size > 1 and text[low] == 48):
        return False
    for i in range(low, high):
        if text[i] < 48 or text[i] > 57:
            return False
    if size == 20:
        for i in range(20):
            if text[low + i] != _MAX_U64[i]:
                return text[low + i] < _MAX_U64[i]
    return True


@helper
def _is_weight(text: Any, low: Any, high: Any) -> Any:
    """Whether text[low:high] is a decimal number that is at least 1e-30 and below 1e30.

    Decided by its digits: the power of ten of the first one that is not 0.
    """
    i = low + 1 if low < high and text[low] == _PLUS else low
    digits, whole, leading = 0, -1, -1
    while i < high and (_ZERO <= text[i] <= _NINE or (text[i] == _POINT and whole < 0)):
        if text[i] == _POINT:
            whole = digits
        else:
            if leading < 0 and text[i] != _ZERO:
                leading = digits
            digits += 1
        i += 1
    if leading < 0:
        return False
    power = (digits if whole < 0 else whole) - 1 - leading
    if i < high and (text[i] == 69 or text[i] == 101):  # E or e
        i += 1
        sign = -1 if i < high and text[i] == _MINUS else 1
        if i < high and (text[i] == _MINUS or text[i] == _PLUS):
            i += 1
        exponent, begin = 0, i
        while i < high and _ZERO <= text[i] <= _NINE:
            exponent = min(exponent * 10 + text[i] - _ZERO, 1 << 40)
            i += 1
        if i == begin:
            return False
        power += sign * exponent
    return i == high and -_LARGEST_POWER <= power < _LARGEST_POWER


@helper
def _fault(text: Any, low: Any, high: Any) -> Any:
    """Why text[low:high] is no name, or 0."""
    if high <= low:
        return EMPTY
    if high - low > MAX_NAME:
        return LONG
    # No early exit: this loop is over every byte of the input, and so it vectorises.
    control, wide = np.uint8(0), np.uint8(0)
    for i in range(np.uint64(low), np.uint64(high)):
        byte = text[i]
        control |= np.uint8(byte < _SPACE8) | np.uint8(byte == _DELETE8)
        wide |= byte
    if control:
        return CONTROL
    if wide >= _WIDE8 and not _is_utf8(text, low, high):
        return ENCODING
    return 0


@helper
def _split(text: Any, low: Any, high: Any, rules: Any, fields: Any) -> Any:
    """Find the fields of text[low:high]; returns their number, or -QUOTE.

    ``fields`` int64[f, 3] receives begin, end, and whether the field is quoted, for the
    first f fields.
    """
    delimiter, quotes = rules[DELIMITER], rules[QUOTES]
    blanks = delimiter == WHITESPACE
    count = 0
    i = low
    while True:
        while i < high and (
            text[i] == _SPACE or (text[i] == _TAB and (blanks or delimiter != _TAB))
        ):
            i += 1
        if blanks and i >= high:
            return count
        begin, quoted = i, 0
        if quotes and i < high and text[i] == _QUOTE:
            quoted, begin, i = 1, i + 1, i + 1
            while i < high and (text[i] != _QUOTE or (i + 1 < high and text[i + 1] == _QUOTE)):
                i += 2 if text[i] == _QUOTE else 1
            if i >= high:
                return -QUOTE
            end = i
            i += 1
            while i < high and (text[i] == _SPACE or text[i] == _TAB) and text[i] != delimiter:
                i += 1
            if i < high and text[i] != delimiter:
                return -QUOTE
        else:
            i = _find(text, i, high, np.uint8(delimiter), np.uint8(_TAB if blanks else delimiter))
            end = i
            while end > begin and (text[end - 1] == _SPACE or text[end - 1] == _TAB):
                end -= 1
        if count < fields.shape[0]:
            fields[count, 0], fields[count, 1], fields[count, 2] = begin, end, quoted
        count += 1
        if i >= high:
            return count
        i += 1


@helper
def _copy(text: Any, field: Any, out: Any, at: Any) -> Any:
    """Write one field and a tab from ``at`` on, doubled quotes undone; returns the end."""
    i, end = field[0], field[1]
    if not field[2]:
        for j in range(np.uint64(end - i)):
            out[np.uint64(at) + j] = text[np.uint64(i) + j]
        at += end - i
        out[at] = _TAB
        return at + 1
    while i < end:
        out[at] = text[i]
        at += 1
        i += 2 if text[i] == _QUOTE else 1
    out[at] = _TAB
    return at + 1


@helper
def _take(text: Any, begin: Any, end: Any, rules: Any, fields: Any) -> Any:
    """Split one line and check the fields that are wanted: 0, or the reason against it."""
    found = _split(text, begin, end, rules, fields)
    if found < 0:
        return -found
    if found != rules[EXPECTED]:
        return COLUMNS
    for which in (rules[FIRST], rules[SECOND]):
        if which >= 0:
            reason = _fault(text, fields[which, 0], fields[which, 1])
            if reason:
                return reason
    which = rules[WEIGHT]
    if which >= 0 and not _is_weight(text, fields[which, 0], fields[which, 1]):
        return NO_WEIGHT
    return 0


@kernel
def normalise(text: Any, rules: Any, out: Any, bad: Any, tally: Any) -> Any:
    """Clean the whole lines of ``text`` (uint8) into ``out`` (uint8[text.size + 1] or more).

    ``bad`` int64[b, BAD_FIELDS] receives the first b bad rows of this piece; ``tally`` goes
    on counting over pieces, but for T_BYTES, which is this piece's. Returns the number of
    bad rows in this piece.
    """
    fields = np.empty((max(rules[FIRST], rules[SECOND], rules[WEIGHT]) + 1, 3), np.int64)
    size = text.size
    at, wrong, low = 0, 0, 0
    while low < size:
        high = _find(text, low, size, _LF8, _CR8)
        tally[T_LINES] += 1
        begin, end = low, high
        low = high + 1
        if high + 1 < size and text[high] == _CR and text[high + 1] == _LF:
            low = high + 2
        while end > begin and (text[end - 1] == _SPACE):
            end -= 1
        first = begin
        while first < end and (text[first] == _SPACE or text[first] == _TAB):
            first += 1
        if first == end:
            tally[T_BLANK] += 1
            continue
        if text[first] == rules[COMMENT]:
            tally[T_COMMENT] += 1
            continue
        if tally[T_SKIP]:
            tally[T_SKIP] -= 1
            continue
        reason = _take(text, begin, end, rules, fields)
        if reason:
            if wrong < bad.shape[0]:
                bad[wrong, 0], bad[wrong, 1] = tally[T_LINES], begin
                bad[wrong, 2], bad[wrong, 3] = end, reason
            wrong += 1
            tally[T_BAD] += 1
            tally[T_BAD + reason] += 1
            continue
        for which in (rules[FIRST], rules[SECOND]):
            if which < 0:
                continue
            if tally[T_INTEGER]:
                integer = _is_integer(text, fields[which, 0], fields[which, 1])
                tally[T_INTEGER] = 1 if integer else 0
            at = _copy(text, fields[which], out, at)
        if rules[WEIGHT] >= 0:
            at = _copy(text, fields[rules[WEIGHT]], out, at)
        out[at - 1] = _LF
        tally[T_ROWS] += 1
    tally[T_BYTES] = at
    return wrong
