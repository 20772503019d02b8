"""Read links between integers from text.

``read_pairs`` accepts only rows that need no cleaning: two fields of plain digits below 2**32, in
any dialect of ``kernels/text.py``. It counts comments and blank lines, and returns -1 for any other
row, so its results equal those of ``text.normalize``.

Costs 0.9 ns per byte for lines of just two numbers, otherwise 1.9 ns.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from cocite.kernels._kernel import helper, kernel
from cocite.kernels._types import *
from cocite.kernels.text import (
    COMMENT,
    DELIMITER,
    EXPECTED,
    FIRST,
    QUOTES,
    SECOND,
    behind,
    find,
    trimmed,
)

SKIP, BLANK, COMMENTS, LARGEST = range(4)
STATE = 4
"""int64 words reported about a piece: rows still to skip, blank lines, comment lines, largest
id.
"""

_LF, _CR, _TAB, _SPACE, _QUOTE = map(np.uint8, (10, 13, 9, 32, 34))
_ZERO, _TEN = np.uint8(48), np.uint8(10)
_TEN64, _ONE64, _NONE64, _HALF = np.uint64(10), np.uint64(1), np.uint64(0), np.uint64(32)
_DIGITS = 10
"""Digits of the largest id, 2**32 - 1."""


@helper
def _number(text: Any, i: Any) -> Any:
    """Return (value, end, whether ``str`` would format it the same) of the number at ``i``."""
    low, value = i, _NONE64
    digit = np.uint8(text[i] - _ZERO)
    while digit < _TEN:
        value = value * _TEN64 + np.uint64(digit)
        i += _ONE64
        digit = np.uint8(text[i] - _ZERO)
    digits = i - low
    return value, i, 0 < digits <= _DIGITS and (digits == 1 or text[low] != _ZERO)


@helper
def _blanks(text: Any, i: Any, tabs: Any) -> Any:
    while text[i] == _SPACE or (tabs and text[i] == _TAB):
        i += _ONE64
    return i


@helper
def _pair(text: Any, i: Any, dialect: Any) -> Any:
    """Return (source, target, end of line, whether it is a plain link) for the line at ``i``."""
    delimiter, quotes, expected, first, second = dialect
    runs, tabs = delimiter == _SPACE, delimiter != _TAB
    source, target, column, plain = _NONE64, _NONE64, 0, True
    while plain:
        i = _blanks(text, i, tabs)
        if runs and (text[i] == _LF or text[i] == _CR):
            break
        if column == first:
            source, i, plain = _number(text, i)
        elif column == second:
            target, i, plain = _number(text, i)
        else:
            plain = not (quotes and text[i] == _QUOTE)
            i = _other_end(text, i, delimiter, runs)
        if not runs:
            i = _blanks(text, i, tabs)
        byte = text[i]
        column += 1
        if byte == _LF or byte == _CR:
            break
        plain = plain and (byte == delimiter or (runs and byte == _TAB))
        i += _ONE64
    plain = plain and column == expected and (source | target) >> _HALF == _NONE64
    return source, target, i, plain


@helper
def _bare_pair(text: Any, i: Any, delimiter: Any) -> Any:
    """Do the same as ``_pair`` for a line of two numbers, with one delimiter between them and LF at
    the end.
    """
    source, end, plain = _number(text, i)
    if not plain or text[end] != delimiter:
        return source, source, end, False
    target, end, plain = _number(text, end + _ONE64)
    return source, target, end, plain and text[end] == _LF and (source | target) >> _HALF == _NONE64


@helper
def _other_end(text: Any, i: Any, delimiter: Any, runs: Any) -> Any:
    while text[i] not in (delimiter, _LF, _CR) and not (runs and text[i] == _TAB):
        i += _ONE64
    return i


@kernel
def read_pairs(text: U8s, rules: I64s, sources: OutU32s, targets: OutU32s, state: OutI64s) -> I64:
    """Read whole lines of ``text`` (uint8, ending with LF); return the number of links.

    Returns -1 if a row is not plain. ``rules`` are those of ``kernels/text.py``; ``sources`` and
    ``targets`` are uint32[text.size // 4 + 1], ``state`` is int64[STATE].
    """
    delimiter, quotes = np.uint8(rules[DELIMITER]), rules[QUOTES] > 0
    dialect = delimiter, quotes, rules[EXPECTED], rules[FIRST], rules[SECOND]
    skip, rows, most = state[SKIP], 0, _NONE64
    bare = rules[EXPECTED] == 2 and rules[FIRST] == 0 and rules[SECOND] == 1
    i, size = _NONE64, np.uint64(text.size)
    while i < size:
        if skip == 0:
            if bare:  # the usual row, two numbers and nothing else, takes half the time
                source, target, end, plain = _bare_pair(text, i, delimiter)
                if plain:
                    sources[rows], targets[rows] = np.uint32(source), np.uint32(target)
                    most = max(most, source, target)
                    rows += 1
                    i = end + _ONE64
                    continue
            source, target, end, plain = _pair(text, i, dialect)
            if plain:
                sources[rows], targets[rows] = np.uint32(source), np.uint32(target)
                most = max(most, source, target)
                rows += 1
                i = np.uint64(behind(text, np.int64(end)))
                continue
        low = np.int64(i)
        high = find(text, low, text.size, _LF, _CR)
        start, end_of = trimmed(text, low, high)
        i = np.uint64(behind(text, high))
        if start == end_of:
            state[BLANK] += 1
        elif text[start] == rules[COMMENT]:
            state[COMMENTS] += 1
        elif skip and not (quotes and find(text, start, end_of, _QUOTE, _QUOTE) < end_of):
            skip -= 1
        else:
            return -1
    state[SKIP], state[LARGEST] = skip, np.int64(most)
    return rows
