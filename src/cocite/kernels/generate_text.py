"""Names and labels of a generated web, as bytes.

    com,d000012,h0000098)/             the front page of host 98
    com,d000012,h0000098)/s0003/       the index of its section 3
    com,d000012,h0000098)/s0003/p017   page 17 of that

which is the SURT form of ``h0000098.d000012.com/s0003/p017``. Numbers have as many digits
everywhere, top-level domains ascend with the host, and a section's index is the beginning of its
pages' names: so names ascend as ids do, byte by byte, and need no order of their own.

A label is ``name <tab> topic.a.b.c <newline>``: the leaf that the page's host belongs to in a tree
of topics with equally many branches at every inner node.

Cost: about 40 ns a name.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from cocite.kernels._jit import helper, kernel
from cocite.kernels.generate import _host_of, section_bits, topic_of

__all__ = ["NAME_ROOM", "labels", "names"]

NAME_ROOM = 64
"""No name, and no label without its name, has more bytes."""

_TAB, _NEWLINE, _ZERO = np.uint8(9), np.uint8(10), np.uint8(48)


@helper
def _put_byte(out: Any, at: Any, byte: Any) -> Any:
    out[at] = np.uint8(byte)
    return at + 1


@helper
def _put_number(out: Any, at: Any, number: Any, digits: Any) -> Any:
    for i in range(digits):
        out[at + digits - 1 - i] = np.uint8(48 + number % 10)
        number //= 10
    return at + digits


@kernel
def names(
    first: Any, starts: Any, keys: Any, domains: Any, tops: Any, digits: Any, ends: Any, out: Any
) -> Any:
    """Names of ``ends.size`` pages from ``first`` on, one behind the other; returns their bytes.

    ``tops`` uint8[number, width]: top-level domains, zeros behind them; ``domains``
    int64[number + 1]: the host at which each begins; ``digits`` int64[3]: of domains, hosts and
    sections. ``out`` has room for NAME_ROOM bytes a name; ``ends`` uint64 receives where each ends.
    """
    first = np.int64(first)
    host = _host_of(starts, first)
    begin, end = np.int64(starts[host]), np.int64(starts[host + 1])
    bits = section_bits(keys, host)
    at = 0
    for i in range(ends.size):
        node = first + i
        if node >= end:
            host += 1
            begin, end = end, np.int64(starts[host + 1])
            bits = section_bits(keys, host)
        top = _host_of(domains, host)
        for j in range(tops.shape[1]):
            if tops[top, j] != 0:
                at = _put_byte(out, at, tops[top, j])
        at = _put_byte(out, at, 44)  # ,d
        at = _put_byte(out, at, 100)
        at = _put_number(out, at, host // 8, digits[0])
        at = _put_byte(out, at, 44)  # ,h
        at = _put_byte(out, at, 104)
        at = _put_number(out, at, host, digits[1])
        at = _put_byte(out, at, 41)  # )/
        at = _put_byte(out, at, 47)
        section = (node - begin) >> bits
        page = (node - begin) & ((1 << bits) - 1)
        if node != begin:
            at = _put_byte(out, at, 115)  # s
            at = _put_number(out, at, section, digits[2])
            at = _put_byte(out, at, 47)  # /
            if page != 0:
                at = _put_byte(out, at, 112)  # p
                at = _put_number(out, at, page, 3)
        ends[i] = np.uint64(at)
    return at


@kernel
def labels(
    first: Any, starts: Any, topics: Any, order: Any, branches: Any, text: Any, ends: Any, out: Any
) -> Any:
    """Labels of the pages whose names are ``text`` and ``ends``; returns their bytes.

    A topic is the three digits of its leaf's number to the base ``branches``. ``out`` has room for
    ``text.size + NAME_ROOM * ends.size`` bytes.
    """
    first = np.int64(first)
    host = _host_of(starts, first)
    hosts = starts.size - 1
    end = np.int64(starts[host + 1])
    leaf = topic_of(topics, order, host, hosts)
    at = 0
    begin = 0
    for i in range(ends.size):
        if first + i >= end:
            host += 1
            end = np.int64(starts[host + 1])
            leaf = topic_of(topics, order, host, hosts)
        for j in range(begin, np.int64(ends[i])):
            at = _put_byte(out, at, text[j])
        begin = np.int64(ends[i])
        at = _put_byte(out, at, _TAB)
        for byte in (116, 111, 112, 105, 99):  # topic
            at = _put_byte(out, at, byte)
        for number in (leaf // (branches * branches), leaf // branches % branches, leaf % branches):
            at = _put_byte(out, at, 46)  # .
            at = _put_number(out, at, number, 1)
        at = _put_byte(out, at, _NEWLINE)
    return at
