"""What the bytes of a field are: UTF-8 that a name may have, an integer as Python prints it, a
weight.

Each looks at text[low:high] and takes a nanosecond or two a byte.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from cocite.kernels._jit import helper

__all__ = ["C1", "NO_UTF8", "TURN", "is_integer", "is_weight", "wide_fault"]

NO_UTF8, TURN, C1 = range(1, 4)
"""What :func:`wide_fault` may find."""

_PLUS, _MINUS, _POINT, _ZERO, _NINE = 43, 45, 46, 48, 57
_LARGEST_POWER = 30
"""Weights have their first digit at 10**-30 to 10**29: far from what float32 cannot hold."""
_MAX_U64 = np.frombuffer(b"18446744073709551615", np.uint8)


@helper
def wide_fault(text: Any, low: Any, high: Any) -> Any:
    """What is wrong with text[low:high] beyond ASCII, or 0: it is not well-formed UTF-8 (Unicode
    15, table 3-7), or has a control character (U+0080 to U+009F) or a sign that turns the direction
    of text (U+202A to U+202E, U+2066 to U+2069; ``graph/unnamed.py`` says why).
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
def is_weight(text: Any, low: Any, high: Any) -> Any:
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
