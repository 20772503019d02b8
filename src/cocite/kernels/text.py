"""Edge lists as text: one pass checks every byte and writes clean rows.

``normalize`` reads whole lines of UTF-8, and writes ``source TAB target LF`` for each good row, or
``source TAB target TAB weight LF``: no quoting, one dialect, no faults. It accepts any mixture of
LF, CR and CRLF, skips blank lines and comments, trims blanks around fields unless they are
``EXACT``, and undoes CSV quoting, even across lines. Bad rows are classified:

    COLUMNS   not the expected number of fields     EMPTY     a node without a name
    CONTROL   a control character in a name         ENCODING  bytes that are not UTF-8
    QUOTE     text after, or no, closing quote      LONG      a name over the limit
    NO_WEIGHT no decimal number in [1e-30, 1e30)    TURNED    a direction character in a name

Costs about two nanoseconds per byte, on one thread.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from cocite.kernels._kernel import helper, kernel
from cocite.kernels._types import *

NO_UTF8, TURN, C1 = range(1, 4)
"""Faults that :func:`wide_fault` finds."""

_PLUS, _MINUS, _POINT, _ZERO, _NINE = 43, 45, 46, 48, 57
_LARGEST_POWER = 30
"""The first nonzero digit of a weight is at 10**-30 to 10**29, well within the range of float32."""
_MAX_U64 = np.frombuffer(b"18446744073709551615", np.uint8)


@helper
def wide_fault(text: Any, low: Any, high: Any) -> Any:
    """Return the fault of text[low:high] beyond ASCII, or 0.

    Faults are UTF-8 that is not well-formed (Unicode 15, table 3-7), control characters (U+0080 to
    U+009F), and direction characters (U+202A to U+202E, U+2066 to U+2069; see
    ``graph/spelling.py``).
    """
    i, found = low, 0
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
            return NO_UTF8
        if i + more >= high:
            return NO_UTF8
        for j in range(i + 1, i + 1 + more):
            if text[j] < floor or text[j] > ceiling:
                return NO_UTF8
            floor, ceiling = 0x80, 0xBF
        if byte == 0xC2 and text[i + 1] <= 0x9F:
            found = C1
        elif byte == 0xE2 and found == 0:
            second, third = text[i + 1], text[i + 2]
            if (second == 0x80 and 0xAA <= third <= 0xAE) or (
                second == 0x81 and 0xA6 <= third <= 0xA9
            ):
                found = TURN
        i += more + 1
    return found


@helper
def is_integer(text: Any, low: Any, high: Any) -> Any:
    """Return whether text[low:high] is an integer below 2**64 as ``str`` formats it."""
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
def is_weight(text: Any, low: Any, high: Any) -> Any:
    """Return whether text[low:high] is a decimal in [1e-30, 1e30), by its first nonzero digit."""
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


# -- text --------------------------------------------------------------------------------


MAX_NAME = 65_535
"""Maximum length of a name in bytes."""

WHITESPACE = 32
DELIMITER, QUOTES, EXPECTED, FIRST, SECOND, COMMENT, WEIGHT, UNFINISHED, EXACT = range(9)
RULES = 9
"""int64 words of the rules: delimiter byte (32: runs of blanks), whether double quotes quote,
fields per row, index of the first and of the second field taken (-1: only one), comment byte (-1:
none), index of the weight's field (-1: none), whether more text follows this piece (1), whether
blanks around fields belong to them (1).
"""

T_ROWS, T_BLANK, T_COMMENT, T_LINES, T_INTEGER, T_BYTES, T_SKIP, T_REST, T_BAD = range(9)
TALLY = 17
"""int64 words counted: good rows, blank lines, comment lines, all lines, whether all names so far
are canonical integers below 2**64, bytes written, rows still to skip, the start of a row that must
be read again with the next piece (-1: none); from T_BAD on: all bad rows, then those of each
reason.
"""

MAX_RECORD = 1 << 20
"""Bytes within which a quote must be closed. Otherwise, the row ends with the line, and is bad."""

BAD_FIELDS = 4
"""int64 words stored for a bad row: line, first and last byte in this piece, reason."""

COLUMNS, EMPTY, CONTROL, ENCODING, QUOTE, LONG, NO_WEIGHT, TURNED = range(1, 9)
_OPEN = 9
"""The open quote may close on a later line. This is not one of REASONS."""
REASONS = {
    COLUMNS: "columns",
    EMPTY: "empty name",
    CONTROL: "control character",
    ENCODING: "not UTF-8",
    QUOTE: "quotes",
    LONG: f"name over {MAX_NAME} bytes",
    NO_WEIGHT: "weight",
    TURNED: "turned direction",
}

_LF, _CR, _TAB, _SPACE, _QUOTE = 10, 13, 9, 32, 34
_LF8, _CR8, _SPACE8, _DELETE8, _WIDE8 = map(np.uint8, (10, 13, 32, 127, 128))
_ONE64 = np.uint64(1)


@helper
def find(text: Any, low: Any, high: Any, first: Any, second: Any) -> Any:
    """Return the next position of ``first`` or ``second`` in text[low:high], or ``high``."""
    i, end = np.uint64(low), np.uint64(high)
    while i < end and text[i] != first and text[i] != second:
        i += _ONE64
    return np.int64(i)


@helper
def trimmed(text: Any, begin: Any, end: Any) -> Any:
    """Return the bounds without blanks at either end."""
    while end > begin and text[end - 1] == _SPACE:
        end -= 1
    while begin < end and (text[begin] == _SPACE or text[begin] == _TAB):
        begin += 1
    return begin, end


@helper
def _fault(text: Any, low: Any, high: Any) -> Any:
    """Return why text[low:high] is not a name, or 0."""
    begin, end = trimmed(text, low, high)
    if end <= begin:
        return EMPTY
    if high - low > MAX_NAME:
        return LONG
    # No early exit: the loop over every byte of the input vectorizes.
    control, wide = np.uint8(0), np.uint8(0)
    for i in range(np.uint64(low), np.uint64(high)):
        byte = text[i]
        control |= np.uint8(byte < _SPACE8) | np.uint8(byte == _DELETE8)
        wide |= byte
    if control:
        return CONTROL
    if wide < _WIDE8:
        return 0
    found = wide_fault(text, low, high)
    if found == 0:
        return 0
    return CONTROL if found == C1 else (TURNED if found == TURN else ENCODING)


@helper
def _split(text: Any, low: Any, high: Any, rules: Any, fields: Any) -> Any:
    """Find the fields of text[low:high]; return their number, -QUOTE or -_OPEN. ``fields``
    int64[f, 3] receives (begin, end, whether quoted) of the first f fields.
    """
    delimiter, quotes, exact = rules[DELIMITER], rules[QUOTES], rules[EXACT] > 0
    blanks = delimiter == WHITESPACE
    count = 0
    i = low
    while True:
        while (
            not exact
            and i < high
            and (text[i] == _SPACE or (text[i] == _TAB and (blanks or delimiter != _TAB)))
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
                return -_OPEN
            end = i
            i += 1
            while i < high and (text[i] == _SPACE or text[i] == _TAB) and text[i] != delimiter:
                i += 1
            if i < high and text[i] != delimiter:
                return -QUOTE
        else:
            i = find(text, i, high, np.uint8(delimiter), np.uint8(_TAB if blanks else delimiter))
            end = i
            while not exact and end > begin and (text[end - 1] == _SPACE or text[end - 1] == _TAB):
                end -= 1
        if count < fields.shape[0]:
            fields[count, 0], fields[count, 1], fields[count, 2] = begin, end, quoted
        count += 1
        if i >= high:
            return count
        i += 1


@helper
def _copy(text: Any, field: Any, out: Any, at: Any) -> Any:
    """Write one field and a tab from ``at`` on, undoing doubled quotes; return the end."""
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
    """Split one line and check the fields to use; return 0, or the reason to reject the line."""
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
    if which >= 0:
        fields[which, 0], fields[which, 1] = trimmed(text, fields[which, 0], fields[which, 1])
        if not is_weight(text, fields[which, 0], fields[which, 1]):
            return NO_WEIGHT
    return 0


@helper
def _closed(text: Any, low: Any, delimiter: Any) -> Any:
    """Return the end of the field quoted at ``low``, after its closing quote; -1 if this is too
    far or followed by other text, -2 if the text ends first.
    """
    i, limit = low, min(low + MAX_RECORD, text.size)
    while i < limit:
        if text[i] != _QUOTE:
            i += 1
        elif i + 1 < text.size and text[i + 1] == _QUOTE:
            i += 2
        else:
            i += 1
            j = i
            while j < text.size and (text[j] == _SPACE or text[j] == _TAB) and text[j] != delimiter:
                j += 1
            if j < text.size and text[j] != delimiter and text[j] != _LF and text[j] != _CR:
                return -1
            return i
    return -2 if limit == text.size else -1


@helper
def behind(text: Any, end: Any) -> Any:
    """Return where the next line begins, after one that ends at ``end``."""
    if end + 1 < text.size and text[end] == _CR and text[end + 1] == _LF:
        return end + 2
    return end + 1


@helper
def _gone_on(text: Any, begin: Any, high: Any, low: Any, rules: Any, tally: Any) -> Any:
    """Return (end of the row, start of the next one), for a row with a quoted field open at
    ``high``. The end is -1 if that field is not closed, or continues in the next chunk.
    """
    closed = _closed(text, high, rules[DELIMITER])
    if closed == -2 and rules[UNFINISHED] > 0:
        tally[T_REST] = begin
    if closed < 0 or closed - begin > MAX_RECORD:
        return -1, low
    while high < closed:
        high = find(text, low, text.size, _LF8, _CR8)
        low = behind(text, high)
        tally[T_LINES] += 1
    return high, low


@helper
def _content(text: Any, begin: Any, end: Any, rules: Any) -> Any:
    if rules[EXACT] > 0:
        return begin, end
    return trimmed(text, begin, end)


@helper
def _keep(bad: Any, at: Any, line: Any, begin: Any, end: Any, reason: Any) -> None:
    bad[at, 0], bad[at, 1] = line, begin
    bad[at, 2], bad[at, 3] = end, reason


@kernel
def normalize(text: U8s, rules: I64s, out: OutU8s, bad: OutI64s2, tally: OutI64s) -> I64:
    """Clean the whole lines of ``text`` (uint8) into ``out`` (uint8[text.size + 1] or more).

    ``bad`` int64[b, BAD_FIELDS] receives the first b bad rows of this chunk. ``tally`` counts over
    all chunks, except for T_BYTES. Returns the number of bad rows in this chunk.
    """
    most = max(rules[FIRST], rules[SECOND], rules[WEIGHT]) + 1
    fields = np.empty((most, 3), np.int64)
    tally[T_REST] = -1
    at, wrong, low = 0, 0, 0
    while low < text.size:
        high = find(text, low, text.size, _LF8, _CR8)
        tally[T_LINES] += 1
        begin, low, line = low, behind(text, high), tally[T_LINES]
        first, end = _content(text, begin, high, rules)
        if first == end:
            tally[T_BLANK] += 1
            continue
        if text[first] == rules[COMMENT]:
            tally[T_COMMENT] += 1
            continue
        until, below, reason = end, low, _OPEN
        while reason == _OPEN:
            reason = _take(text, begin, end, rules, fields)
            if reason == _OPEN:
                high, low = _gone_on(text, begin, high, low, rules, tally)
                end = high
                if high < 0:
                    reason, end, low, tally[T_LINES] = QUOTE, until, below, line
        if tally[T_REST] >= 0:
            tally[T_LINES] -= 1
            break
        if tally[T_SKIP]:
            tally[T_SKIP] -= 1
            continue
        if reason:
            if wrong < bad.shape[0]:
                _keep(bad, wrong, line, begin, end, reason)
            wrong += 1
            tally[T_BAD] += 1
            tally[T_BAD + reason] += 1
            continue
        for which in (rules[FIRST], rules[SECOND]):
            if which < 0:
                continue
            if tally[T_INTEGER]:
                integer = is_integer(text, fields[which, 0], fields[which, 1])
                tally[T_INTEGER] = 1 if integer else 0
            at = _copy(text, fields[which], out, at)
        if rules[WEIGHT] >= 0:
            at = _copy(text, fields[rules[WEIGHT]], out, at)
        out[at - 1] = _LF
        tally[T_ROWS] += 1
    tally[T_BYTES] = at
    return wrong
