"""Inputs on their way into the tables: each read by its reader, those of one kind together.

A reader that says how to (``ReadsMany``) is given all files of its kind at once, and hands them
over some hundred at a time, so that thousands of small files cost what one of their size does;
other readers get one after another. Whatever the order in which inputs are read, ids are those of
the names, and what was found is told in the order in which inputs were named.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from cocite.errors import InputError, NotLinks
from cocite.graph.readers import Found, Job, LinkReader, ReadOptions, ReadsMany, Source, reader_of
from cocite.graph.readers.crawl.captures import CrawlFound
from cocite.graph.readers.html.reader import SiteFound
from cocite.graph.readers.parquet import ParquetInput
from cocite.graph.readers.text import TextInput
from cocite.graph.readers.wiki.reader import WikiFound
from cocite.store import disk

if TYPE_CHECKING:
    from cocite.graph.tables import Tables

__all__ = ["check_some", "facts_of", "load_all"]

_EACH = 100
"""Inputs of which each is told by itself."""
_EXAMPLES = 5
_COUNTS = ("rows", "comments", "blank_lines")
_SINGLE: dict[type, dict[str, Any]] = {TextInput: {"comments": 0, "first": ()}}
"""What texts that are read alike may differ in, and say."""


def load_all(
    tables: Tables,
    to_job: Callable[..., Job],
    sources: Sequence[Source],
    wanted: int,
    options: ReadOptions,
) -> list[Found]:
    """Load inputs, of which ``wanted`` is 2 for links and 1 for names of nodes; returns what was
    found in each, or in those of a kind that is read in one go. ``to_job`` makes a job of the rest.
    """
    found: list[Found | None] = [None] * len(sources)
    for told, places in _groups(sources, options, wanted):
        some = [sources[place] for place in places]
        with tables.reading() as database:
            job = to_job(database=database, source=some[0], wanted=wanted, options=options)
            disk.make_own_folder(job.scratch)
            reader = told or reader_of(job.source, options, wanted)
            if getattr(reader, "together", False):
                job = replace(job, inputs=tuple(some))
            elif wanted == 2:
                job = replace(job, inputs=tuple(sources))
            if not (len(some) > 1 and hasattr(reader, "read_many")):
                read = reader.read(job)
                found[places[0]] = read.found
                _check_few_bad(job.source, read.found, options)
                job.progress("loading " + job.source.short, 0, 0)
                tables.load(read.rows, wanted, read.found.integers)
                if read.nodes and options.sides and wanted == 2:
                    raise InputError(
                        f"{read.found.file} says which nodes there are, and not on which side: a "
                        "bipartite table is a text, a Parquet file, JSON lines or a query, with a "
                        "column a side"
                    )
                if read.nodes:
                    tables.load(read.nodes, 1, read.found.integers)
            else:
                place_of = {id(source): place for source, place in zip(some, places, strict=True)}
                for rows, part, those in cast(ReadsMany, reader).read_many(job, some):
                    for source, one in zip(part, those, strict=True):
                        _check_few_bad(source, one, options)
                        found[place_of.pop(id(source))] = one
                    tables.load(rows, wanted, all(one.integers for one in those))
                assert not place_of
        disk.remove_tree(job.scratch)
    return [one for one in found if one is not None]


def _groups(
    sources: Sequence[Source], options: ReadOptions, wanted: int
) -> list[tuple[LinkReader | None, list[int]]]:
    """Places of the inputs that are read together, in the order of the first of each; with their
    reader, which of a pipe is told when its turn comes.
    """
    groups: list[tuple[LinkReader | None, list[int]]] = []
    many: dict[int, list[int]] = {}
    for place, source in enumerate(sources):
        reader = None if source.is_pipe else reader_of(source, options, wanted)
        if reader is not None:
            source.forget()
        many_at_once = hasattr(reader, "read_many") or getattr(reader, "together", False)
        if reader is None or not many_at_once:
            groups.append((reader, [place]))
        elif id(reader) in many:
            many[id(reader)].append(place)
        else:
            many[id(reader)] = [place]
            groups.append((reader, many[id(reader)]))
    return groups


def _check_few_bad(source: Source, found: Found, options: ReadOptions) -> None:
    bad = sum(found.bad_rows.values())
    if bad > found.rows and options.skip_bad_rows != "all":
        raise InputError(
            f"{source.label} has {bad:,} bad rows and {found.rows:,} good ones: this may be no "
            "list of links, or one that is to be read in another way. The first is "
            f"{found.examples[0]}. To leave them out all the same: --skip-all-bad-rows "
            "(skip_bad_rows='all')"
        )


def check_some(read: Sequence[Found]) -> None:
    """See that there is a row in some input; raises :class:`NotLinks` with what there is."""
    if any(found.rows for found in read):
        return
    said = []
    for found in read[:3]:
        kinds = [(sum(found.bad_rows.values()), "bad row")]
        if isinstance(found, TextInput):
            kinds += [(found.comments, "comment line"), (found.header, "row of titles")]
        rest = " and ".join(f"{n:,} {what}{'s' * (n > 1)}" for n, what in kinds if n)
        if isinstance(found, SiteFound | CrawlFound | WikiFound):
            said.append(found.describe().replace(": ", " has ", 1))
            continue
        said.append(f"{found.file} {'has only ' + rest if rest else 'is empty'}")
    more = f" (and {len(read) - 3:,} more)" if len(read) > 3 else ""
    raise NotLinks(f"there is no link: {', '.join(said)}{more}. Name files with a row a link")


def facts_of(read: Sequence[Found]) -> list[dict[str, Any]]:
    """What the manifest says of the inputs: of more than a hundred, those that were read alike are
    one entry, which says how many ``files`` they are, so that opening a graph does not take as long
    as reading them. Where even so there are more than a hundred, those of a kind are one.
    """
    if len(read) <= _EACH:
        return [_told(found, asdict(found)) for found in read]
    entries = _together([(_way(found), found) for found in read], "files as")
    if len(entries) > _EACH:
        entries = _together([(_kind(found), found) for found in read], "files, the first as")
    return entries


def _kind(found: Found) -> tuple[object, ...]:
    return type(found), getattr(found, "format", ""), getattr(found, "what", "")


def _way(found: Found) -> tuple[object, ...]:
    if not isinstance(found, TextInput | ParquetInput):
        return _kind(found)
    return type(found), replace(found, file="", **_SINGLE.get(type(found), {})).describe()


def _together(read: Sequence[tuple[tuple[object, ...], Found]], words: str) -> list[dict[str, Any]]:
    """An entry for each key: that of the first input which has it, with what all of them counted;
    what differs among them and is no number is empty.
    """
    entries: dict[tuple[object, ...], dict[str, Any]] = {}
    firsts: dict[tuple[object, ...], Found] = {}
    for key, found in read:
        if key not in entries:
            firsts[key] = found
            entries[key] = asdict(found) | dict.fromkeys(_counted(found), 0)
            entries[key] |= {"files": 0, "examples": []} | {name: {} for name in _shares(found)}
        _add(entries[key], found)
    for key, entry in entries.items():
        first, files = firsts[key], entry["files"]
        if not isinstance(first, TextInput | ParquetInput):  # which say what they counted
            known = asdict(first)
            first = cast(Any, type(first))(**{name: entry[name] for name in known})
        _told(first, entry)
        if files > 1:
            entry["read_as"] = f"{files:,} {words} {entry['read_as']}"
    return list(entries.values())


def _counted(found: Found) -> list[str]:
    """The fields that are numbers of what was found, and not how it was read."""
    if isinstance(found, TextInput | ParquetInput):
        return [name for name in _COUNTS if hasattr(found, name)]
    return [name for name, value in asdict(found).items() if type(value) is int]


def _shares(found: Found) -> list[str]:
    """The fields that are numbers of what was found, by what it is."""
    return [name for name, value in asdict(found).items() if isinstance(value, dict)]


def _add(entry: dict[str, Any], found: Found) -> None:
    """Count one more input in an entry."""
    entry["files"] += getattr(found, "files", 1)
    entry["integers"] &= found.integers
    entry["examples"] += [f"{Path(found.file).name}: {each}" for each in found.examples]
    del entry["examples"][_EXAMPLES:]
    for name in _counted(found):
        if name != "files":
            entry[name] += getattr(found, name)
    for name in _shares(found):
        entry[name] = dict(Counter(entry[name]) + Counter(getattr(found, name)))
    for name, value in asdict(found).items():
        if isinstance(value, str) and name != "file" and value != entry[name]:
            entry[name] = ""


def _told(found: Found, value: dict[str, Any]) -> dict[str, Any]:
    """Of one input its base name, not where it lay on this machine."""
    value |= {"file": Path(found.file).name or found.file, "read_as": found.describe()}
    value["read_as"] = value["read_as"].replace(found.file, value["file"], 1)
    return value
