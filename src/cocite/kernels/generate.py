"""Generate a web-like graph from a hash; the in-links of each page can be computed alone.

A *host* is a range of ids, cut into *sections* of 8 to 256 pages, and each section into *runs* of 1
to 32. The first page of a section is its index; the first page of a host is its front page. For
every page

    in-degree    max(1, floor(boost * law(u))), at most the host's page count (except front pages)
                 law(u) = 0.78 * u ** (-1 / alpha), u uniform; one u for a whole run
    sources      a window of consecutive pages of the host, the same for a whole run, that skips
                 quiet pages, which link to nothing
    outside      half of a front page's in-links, and a few in-links of other pages: one page per
                 host of the same topic, then of any host
    anywhere     evenly spread links that bring the total to the exact number

So the pages of a run have the same in-links, apart from themselves, like pages from one template,
and reversed walks meet early. Each decision is ``draw(key, node)`` with its own key (``KEYS``), so
chunks of any size yield the same links.

Costs about 20 ns per page for the in-degree, 20 to 40 ns per link, and 40 ns per name. Source:
Kumar et al. 2000, *Stochastic models for the web graph* (copying); the rest is our own.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from cocite.kernels._kernel import helper, kernel
from cocite.kernels._types import *
from cocite.kernels.links import first_from, sort_ids
from cocite.kernels.random import draw, node_at, pick, place_of

LEVELS, CELLS = 48, 64
"""A law is float64[LEVELS, CELLS + 1]: entry [k, j] is for u = (1 + j / CELLS) / 2**(k + 1)."""

PLAN_WORDS = 7
_NODES, _CAP, _TOP, _LINKED, _EACH, _REST, _STRIDE = range(PLAN_WORDS)
"""The plan, int64: nodes; the largest possible in-degree, and the largest desired one; how many of
2**16 pages have in-links; how many links from anywhere every page has, and how many pages have one
more; the stride, coprime to nodes, that finds the sources of these links.
"""

KEYS = 8
_SHAPE, _PAGE, _INDEX, _RUN, _ALONE, _WINDOW, _QUIET, _OUTSIDE = range(KEYS)

_ONE64, _LOW16 = np.uint64(1), np.uint64(0xFFFF)
_TOP_BIT = np.uint64(1 << 63)
_CELL_SHIFT, _REST_SHIFT, _REST_BITS = np.uint64(58), np.uint64(6), np.uint64(11)
_TO_UNIT = 1.0 / (1 << 53)

# Fractions below are multiples of 2**-16.
_SHARE = 1 << 16
_SMALLEST_BITS, _SECTION_KINDS, _RUN_KINDS = 3, 6, 6
_UNSHARED = int(0.05 * _SHARE)
_INDEX_BOOST, _FRONT_BOOST = 6.0, 16.0
_INDEX_OUTSIDE, _PAGE_OUTSIDE = int(0.10 * _SHARE), int(0.02 * _SHARE)
_FROM_BEFORE, _FROM_INDEX, _FROM_SECTION = (int(x * _SHARE) for x in (0.04, 0.15, 0.72))
_FROM_SECOND = int(0.20 * _SHARE)
_FROM_CHILDREN = int(0.41 * _SHARE)
_QUIET_SHARE = int(0.42 * _SHARE)
_ANY_TOPIC = int(0.10 * _SHARE)


@helper
def _part(bits: Any, number: Any) -> Any:
    return np.int64((bits >> np.uint64(16 * number)) & _LOW16)


@helper
def _law(law: Any, bits: Any) -> Any:
    level = 0
    while level < LEVELS - 1 and bits < _TOP_BIT:
        bits = bits << _ONE64
        level += 1
    bits = bits << _ONE64
    cell = np.int64(bits >> _CELL_SHIFT)
    rest = np.float64((bits << _REST_SHIFT) >> _REST_BITS) * _TO_UNIT
    return law[level, cell] + (law[level, cell + 1] - law[level, cell]) * rest


@kernel
def heavy_tailed(key: U64, law: F64s2, out: OutF64s) -> None:
    """Draw ``out.size`` values of the law (float64)."""
    for i in range(out.size):
        out[i] = _law(law, draw(key, i))


@helper
def _host_of(starts: Any, node: Any) -> Any:
    """Return the last host that begins at or before ``node``."""
    low, high = 0, starts.size - 1
    while high - low > 1:
        middle = (low + high) // 2
        if np.int64(starts[middle]) <= node:
            low = middle
        else:
            high = middle
    return low


@helper
def section_bits(keys: Any, host: Any) -> Any:
    """Return the binary logarithm of the section size of ``host``."""
    return _SMALLEST_BITS + ((_part(draw(keys[_SHAPE], host), 0) * _SECTION_KINDS) >> 16)


@helper
def _unit(node: Any, section: Any, keys: Any) -> Any:
    """Return (key, id) of the unit that shares in-links: an index, a run, or a single page."""
    if node == section:
        return keys[_INDEX], node
    if _part(draw(keys[_PAGE], node), 0) < _UNSHARED:
        return keys[_ALONE], node
    shift = (_part(draw(keys[_RUN], section), 0) * _RUN_KINDS) >> 16
    return keys[_RUN], section + (((node - section) >> shift) << shift)


@helper
def _anywhere(node: Any, plan: Any) -> Any:
    """Return a page's number of links from anywhere; these numbers sum to the plan's total."""
    nodes, rest, at = np.uint64(plan[_NODES]), np.uint64(plan[_REST]), np.uint64(node)
    return plan[_EACH] + np.int64((at + _ONE64) * rest // nodes - at * rest // nodes)


@kernel
def in_degrees(first: I64, starts: U32s, law: F64s2, keys: U64s, plan: I64s, out: OutU32s2) -> I64:
    """Compute in-degrees from page ``first`` on: uint32[pages, 2], in total and from outside.

    ``starts`` is uint32[hosts + 1], ``law`` the law of in-degrees, ``keys`` uint64[KEYS], ``plan``
    int64[PLAN_WORDS]. Returns the total number of links.
    """
    total = 0
    first = np.int64(first)
    host = _host_of(starts, first)
    hosts = starts.size - 1
    begin, end = np.int64(starts[host]), np.int64(starts[host + 1])
    bits = section_bits(keys, host)
    for i in range(out.shape[0]):
        node = first + i
        if node >= end:
            host += 1
            begin, end = end, np.int64(starts[host + 1])
            bits = section_bits(keys, host)
        section = begin + (((node - begin) >> bits) << bits)
        key, unit = _unit(node, section, keys)
        value = _law(law, draw(key, unit))
        most = np.float64(min(end - begin, plan[_TOP]))
        page = draw(keys[_PAGE], node)
        outside = 0
        if node == begin:
            degree = np.int64(min(value * _FRONT_BOOST, np.float64(plan[_TOP])))
            outside = (degree + 1) // 2
            degree = min(degree, outside + end - begin - 1)
        elif node == section:
            degree = np.int64(min(value * _INDEX_BOOST, most))
            if _part(page, 1) < _INDEX_OUTSIDE:
                outside = max(np.int64(1), degree // 10)
        else:
            degree = np.int64(min(value, most))
            if _part(page, 1) < _PAGE_OUTSIDE:
                outside = 1
        degree = min(max(degree, np.int64(1)), plan[_CAP])
        if _part(page, 2) >= plan[_LINKED]:
            degree = 0
        outside = min(outside, degree, hosts - 1)
        degree += _anywhere(node, plan)
        out[i, 0] = np.uint32(degree)
        out[i, 1] = np.uint32(outside)
        total += degree
    return total


@helper
def _is_quiet(keys: Any, node: Any) -> Any:
    return _part(draw(keys[_QUIET], node), 0) < _QUIET_SHARE


@helper
def _window(node: Any, begin: Any, end: Any, section: Any, bits: Any, keys: Any) -> Any:
    """Return where the window of the page's in-links begins in the host."""
    key, unit = _unit(node, section, keys)
    chosen = draw(keys[_WINDOW] ^ key, unit)
    mode = _part(chosen, 0)
    if node == section:
        return section + 1 if mode < _FROM_CHILDREN else begin
    if mode < _FROM_BEFORE:
        return node - 1
    if mode < _FROM_INDEX:
        return section
    if mode < _FROM_SECTION:
        # The product of two uniform numbers favors the first pages of a section.
        size = min(section + (1 << bits), end) - section
        return section + ((((_part(chosen, 1) * _part(chosen, 2)) >> 16) * size) >> 16)
    second = begin + (1 << bits)
    return second if _part(chosen, 1) < _FROM_SECOND and second < end else begin


@helper
def _rank_of(order: Any, host: Any, hosts: Any) -> Any:
    rank = np.int64(place_of(order, np.uint32(host)))
    while rank >= hosts:
        rank = np.int64(place_of(order, np.uint32(rank)))
    return rank


@helper
def _host_at(order: Any, rank: Any, hosts: Any) -> Any:
    host = np.int64(node_at(order, np.uint32(rank)))
    while host >= hosts:
        host = np.int64(node_at(order, np.uint32(host)))
    return host


@helper
def topic_of(topics: Any, order: Any, host: Any, hosts: Any) -> Any:
    """Return the leaf topic of ``host``; ``topics`` uint32[leaves + 1] are first ranks."""
    return _host_of(topics, _rank_of(order, host, hosts))


@helper
def _has(ascending: Any, node: Any) -> Any:
    at = first_from(ascending, 0, ascending.size, node)
    return at < ascending.size and np.int64(ascending[at]) == node


@helper
def _sort(links: Any) -> None:
    for i in range(1, links.size):
        if links[i] < links[i - 1]:
            sort_ids(links)
            break


@helper
def _from_host(node: Any, source: Any, begin: Any, end: Any, bits: Any, keys: Any, out: Any) -> Any:
    """Fill ``out`` with the host's non-quiet pages from ``source`` on, wrapping; count them."""
    at = 0
    for _ in range(end - begin):
        if at == out.size:
            break
        if source >= end:
            source = begin
        if source != node and (
            ((source - begin) & ((1 << bits) - 1)) == 0 or not _is_quiet(keys, source)
        ):
            out[at] = np.uint32(source)
            at += 1
        source += 1
    return at


@helper
def _from_topic(
    node: Any, host: Any, starts: Any, topics: Any, order: Any, keys: Any, out: Any
) -> Any:
    """Fill ``out`` with pages of hosts of the same topic, then of others; return their number."""
    at = 0
    hosts = starts.size - 1
    chosen = draw(keys[_OUTSIDE], node)
    leaf = topic_of(topics, order, host, hosts)
    low, size = np.int64(topics[leaf]), np.int64(topics[leaf + 1]) - np.int64(topics[leaf])
    if _part(chosen, 0) < _ANY_TOPIC:
        low, size = 0, hosts
    # The product of two uniform numbers favors the first hosts of a topic.
    turn = (((_part(chosen, 1) * _part(chosen, 2)) >> 16) * size) >> 16
    for i in range(hosts):
        if at == out.size:
            break
        rank = low + ((turn + i) % size if i < size else i)
        other = _host_at(order, rank - hosts if rank >= hosts else rank, hosts)
        if other == host:
            continue
        page = np.int64(starts[other])
        if page + 1 < np.int64(starts[other + 1]):
            page += _part(draw(keys[_OUTSIDE] ^ keys[_SHAPE], other), 1) & 1
        out[at] = np.uint32(page)
        at += 1
    return at


@helper
def _from_anywhere(node: Any, known: Any, keys: Any, plan: Any, out: Any) -> None:
    """Fill ``out`` with pages not in ``known`` (ascending), quiet ones only as a last resort."""
    at = 0
    nodes = plan[_NODES]
    source = np.int64(pick(draw(keys[_OUTSIDE] ^ keys[_PAGE], node), np.uint64(nodes)))
    for quiet in range(2):
        for _ in range(nodes):
            if at == out.size:
                break
            if (
                source != node
                and _is_quiet(keys, source) == (quiet == 1)
                and not _has(known, source)
            ):
                out[at] = np.uint32(source)
                at += 1
            source += plan[_STRIDE]
            if source >= nodes:
                source -= nodes


@kernel
def in_links(
    first: I64,
    pages: U32s2,
    starts: U32s,
    topics: U32s,
    order: U32s,
    keys: U64s,
    plan: I64s,
    out: OutU32s,
) -> None:
    """Write the ascending in-links from page ``first`` on; ``pages`` are from ``in_degrees``."""
    first = np.int64(first)
    host = _host_of(starts, first)
    begin, end = np.int64(starts[host]), np.int64(starts[host + 1])
    bits = section_bits(keys, host)
    low = 0
    for i in range(pages.shape[0]):
        node = first + i
        if node >= end:
            host += 1
            begin, end = end, np.int64(starts[host + 1])
            bits = section_bits(keys, host)
        high = low + np.int64(pages[i, 0])
        # Links from anywhere come last, and replace those that the others failed to find.
        wanted = high - _anywhere(node, plan)
        section = begin + (((node - begin) >> bits) << bits)
        source = _window(node, begin, end, section, bits, keys)
        inside = max(low, wanted - np.int64(pages[i, 1]))
        at = low + _from_host(node, source, begin, end, bits, keys, out[low:inside])
        if at < wanted:
            at += _from_topic(node, host, starts, topics, order, keys, out[at:wanted])
        _sort(out[low:at])
        if at < high:
            _from_anywhere(node, out[low:at], keys, plan, out[at:high])
            _sort(out[low:high])
        low = high


# -- generate text -----------------------------------------------------------------------

# Names are in SURT form: the last one below stands for ``h0000098.d000012.com/s0003/p017``.
#
#     com,d000012,h0000098)/             the front page of host 98
#     com,d000012,h0000098)/s0003/       the index of its section 3
#     com,d000012,h0000098)/s0003/p017   page 17 of that section
#
# Names ascend bytewise with ids: numbers are padded to equal length, top-level domains ascend with
# the host, and a section's index is a prefix of its pages' names. A label is ``name <tab>
# topic.a.b.c <newline>``: the host's leaf in a tree of topics with a constant branching factor.


NAME_ROOM = 64
"""Maximum bytes of a name, and of a label without its name."""

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
    first: I64,
    starts: U32s,
    keys: U64s,
    domains: I64s,
    tops: U8s2,
    digits: I64s,
    ends: OutU64s,
    out: OutU8s,
) -> I64:
    """Write the names of ``ends.size`` pages from ``first`` on, concatenated; return their bytes.

    ``tops`` uint8[number, width] are the top-level domains, padded with zeros; ``domains``
    int64[number + 1] the first host of each; ``digits`` int64[3] the number of digits for domains,
    hosts and sections. ``out`` has NAME_ROOM bytes per name; ``ends`` uint64 receives the end of
    each.
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
    first: I64,
    starts: U32s,
    topics: U32s,
    order: U32s,
    branches: I64,
    text: U8s,
    ends: U64s,
    out: OutU8s,
) -> I64:
    """Write the labels of the pages with the names ``text`` and ``ends``; return their bytes.

    A topic is the three digits of its leaf's number in base ``branches``. ``out`` has
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
