"""Every error that cocite raises on purpose, in one tree.

    CociteError
    ├── UsageError              the call itself is wrong             exit code 2
    │   ├── UnknownNode         a name that is not in the graph
    │   └── UnrecognizedInput            an input that is no list of links, or one in doubt
    ├── InputError              what was read is not what it should be
    │   └── MalformedRow        one row of an edge list: file, line, content
    ├── StoreError              a graph or index on disk
    │   ├── NotAStore           nothing there, or something else
    │   ├── Damaged             a file is missing, cut, or not what its checksum says
    │   ├── WrongFormat         written by a release with another format
    │   ├── OutputExists        the output is there already
    │   └── Busy                another process is building it
    ├── NotConverged            a computation that ends without a result that says anything
    ├── QueryTimeout             a question that took longer than it was given
    ├── ClusterError            a cluster that cannot be reached, or cannot do the work
    │   └── WorkerLost          work that was lost again and again
    └── ResourceError           it does not fit: memory, disk, ids

A message says what was found, what is allowed and what to do. The command line prints it
and exits with ``exit_code``; it prints a traceback for anything that is not in this tree.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

__all__ = [
    "Busy",
    "ClusterError",
    "CociteError",
    "Damaged",
    "InputError",
    "MalformedRow",
    "NotAStore",
    "NotConverged",
    "OutputExists",
    "QueryTimeout",
    "ResourceError",
    "StoreError",
    "UnknownNode",
    "UnrecognizedInput",
    "UsageError",
    "WorkerLost",
    "WrongFormat",
]


SKIP_ADVICE = (
    "Mend the row, or pass --bad-rows few (bad_rows='few') to omit such rows and count them"
)
"""Advice on a few malformed rows."""


class CociteError(Exception):
    """Base class of all errors that cocite raises."""

    exit_code = 1


class UsageError(CociteError, ValueError):
    """An option or argument has a value that is not allowed."""

    exit_code = 2


class UnknownNode(UsageError, KeyError):
    """No node has this name. ``suggestions`` holds similar names; ``titled`` holds names and titles
    of nodes whose titles contain it; ``note`` adds details, such as which pages an index keeps.
    """

    def __init__(
        self,
        name: object,
        suggestions: Sequence[str] = (),
        note: str = "",
        titled: Sequence[tuple[str, str]] = (),
    ) -> None:
        self.name = name
        self.suggestions, self.titled = tuple(suggestions), tuple(titled)
        message = f"no node is named {str(name)!r}"
        if self.titled:
            told = [f"{title!r} is the title of {node!r}" for node, title in self.titled]
            message += f"; {', '.join(told)}. Use the name of the node"
        elif self.suggestions:
            named = ", ".join(repr(n) for n in self.suggestions)
            message += (
                f"; the nearest name{'s are' if len(self.suggestions) > 1 else ' is'} {named}"
            )
        message += f". {note}" if note else ""
        super().__init__(message)

    def __str__(self) -> str:
        # KeyError would print the repr of its argument.
        return str(self.args[0])


class InputError(CociteError):
    """Input that cannot be read as a list of links."""


class UnrecognizedInput(UsageError, InputError):
    """An input that is no list of links but of another format, or empty, or that could be read in
    several ways: what is to be named is another file, or how this one is to be read.
    """


class MalformedRow(InputError):
    """One row that is not a link. ``line`` counts from 1, comments and blank lines included;
    ``advice`` says what to do where leaving such rows out would not help.
    """

    def __init__(
        self, file: str, line: int, what: str, content: str, advice: str = SKIP_ADVICE
    ) -> None:
        self.file, self.line, self.what, self.content = file, line, what, content
        super().__init__(f"{file}:{line}: {what}: {content!r}. {advice}")


class StoreError(CociteError):
    """A graph or index directory that cannot be used as asked."""


class NotAStore(StoreError):
    """The path holds no graph or index, or one of the other kind."""

    @classmethod
    def in_the_way(cls, place: object, kind: str) -> Self:
        """Return the error for an output path that holds something other than a ``kind``."""
        return cls(
            f"{place} exists and is not a {kind}: it will not be overwritten. Choose another output"
        )


class Damaged(StoreError):
    """A file of the directory is missing, has another size, or fails its checksum."""

    @classmethod
    def graph(cls, path: object, what: str) -> Self:
        """Return the error for an invalid graph."""
        return cls(f"{path} is damaged: {what}. See: cocite verify {path}; then make it again")


class WrongFormat(StoreError):
    """The directory was written in a format that this release does not read."""


class OutputExists(StoreError):
    """The output path is taken; nothing was changed."""

    @classmethod
    def already(cls, place: object) -> Self:
        """Return the error for an output that could be replaced."""
        return cls(
            f"{place} exists. Choose another output, or pass --overwrite (overwrite=True) to "
            "replace it when the new one is complete"
        )


class Busy(StoreError):
    """Another process is writing the same output."""


class NotConverged(CociteError):
    """An iteration diverges, or the error of its result may exceed the scores."""


class QueryTimeout(CociteError):
    """A question took longer than it was given (``deadline.py``)."""


class ClusterError(CociteError):
    """A cluster that cannot be reached, or whose nodes cannot do the work."""


class WorkerLost(ClusterError):
    """Work on a cluster whose workers were lost, more often than it is done again."""


class ResourceError(CociteError):
    """Memory, disk space or ids do not suffice."""
