"""Nodes with ids and labels, and links: the common part of GraphML, GEXF, GML and node-link JSON.

If every node has a unique label, labels are the names of nodes; otherwise, ids are the names, and
labels the titles. An undirected link is stored as two links. A link to an unknown id is malformed,
unless the document declares no nodes.

A node or link takes a few microseconds. The whole graph is in memory; :func:`whole_text` refuses
input that does not fit.
"""

from __future__ import annotations

import re
from collections import Counter

from cocite.errors import InputError
from cocite.graph.spelling import REFUSED
from cocite.io.readers.contract import Job, Read
from cocite.io.readers.rows import LinkWriter
from cocite.resources import format_size

_LONGEST = 65_535
_TIMES = 20
"""Approximate maximum number of bytes of memory per byte of text."""
_REFUSED = re.compile(f"[{REFUSED}]")


def whole_text(job: Job) -> bytes:
    """Return the decompressed input; raise :class:`InputError` if it does not fit in memory."""
    most, source = job.memory // _TIMES, job.source
    with source.reading() as (stream, raw):
        found: bytes = stream.read(most + 1)
        job.progress("reading " + source.short, raw.tell(), source.nbytes)
    if len(found) > most:
        raise InputError(
            f"{source.label} has more than {format_size(most)}; reading it takes {_TIMES} times as "
            "much memory. Raise the limit with --memory (memory=...), or write its links as rows "
            "of source and target"
        )
    return found


class LabeledGraph:
    """Collects nodes and links in any order, each with its line or number."""

    def __init__(self, job: Job, title: str) -> None:
        self._job, self._title = job, title
        self.weighted = bool(job.options.weight) and job.wanted == 2
        self._nodes: list[tuple[str, str, int]] = []
        self._links: list[tuple[str, str, str, bool, int]] = []
        self._bad: list[tuple[str, int, str, str]] = []

    def node(self, name: str, label: str | None, line: int) -> None:
        """Add a node by its id; the label may be None."""
        self._nodes.append((name, _one_line(label), line))

    def link(self, source: str, target: str, weight: str, both: bool, line: int) -> None:
        """Add a link between ids; ``both`` says whether the link is undirected."""
        if self._job.wanted == 2:
            self._links.append((source, target, weight, both, line))

    def bad(self, kind: str, line: int, what: str, content: str) -> None:
        """Record an invalid node or link."""
        self._bad.append((kind, line, what, content))

    def finish(self, *, all_both: bool = False) -> Read:
        """Return the relations and the report; ``all_both`` says that all links are undirected."""
        job, labels = self._job, dict[str, str]()
        with LinkWriter(job, weighted=self.weighted) as out:
            for bad in self._bad:
                out.links.leave_out(*bad)
            for name, label, line in self._nodes:
                if name and name in labels:
                    out.links.leave_out("node again", line, "a repeated node", name)
                labels.setdefault(name, label)
            why = _no_names(labels)
            by_label = not why and any(labels.values())
            for name, label, line in self._nodes:
                out.nodes.add((label if by_label and name else name,), line)
                if why and job.wanted == 2 and 0 < len(label.encode()) <= _LONGEST:
                    job.titles.add(name, label)
            out.nodes.flush()  # nodes come first, and so do their errors
            called = labels if by_label else dict.fromkeys(labels)
            twice = 0
            for source, target, weight, both, line in self._links:
                if labels and not (source in labels and target in labels) and source and target:
                    what, content = "a link to or from a missing node", (source, target)
                    out.links.leave_out("unknown node", line, what, " -> ".join(content))
                    continue
                a, b = (called.get(end) or end for end in (source, target))
                values = (weight,) if self.weighted else ()
                out.links.add((a, b, *values), line)
                if (both or all_both) and source != target:
                    twice += 1
                    if not job.options.undirected:
                        out.links.add((b, a, *values), line)
            if job.wanted == 1 and not labels:
                raise InputError(f"{job.source.label} declares no nodes")
            kind = "labels" if by_label else "ids"
            notes = [f"nodes are named by their {kind}"] if labels else []
            if why:
                notes[-1] += f" and shown with their labels, because {why}"
            if twice:
                notes.append("links without direction are stored both ways")
            return out.finish(self._title, "; ".join(notes), named=bool(labels))


def _no_names(labels: dict[str, str]) -> str:
    """Return why labels cannot be node names; "" if they can, or if there are none."""
    each = Counter(filter(None, labels.values()))
    long = sum(len(label.encode()) > _LONGEST for label in each)
    if not each or (len(each) == len(labels) and not long):
        return ""
    if each.total() < len(labels):
        return f"labels are missing ({len(labels) - each.total():,})"
    if long:
        return f"labels are too long ({long:,})"
    shared = min(label for label, count in each.items() if count > 1)
    return f"several have the same label, such as {shared[:60]!r}"


def _one_line(label: str | None) -> str:
    """Normalize a label's blanks, and remove characters that names cannot have."""
    text = _REFUSED.sub("", " ".join((label or "").split()))
    return text.encode("utf-8", "replace").decode("utf-8")
