"""The exceptions that cocite raises.

    CociteError
    ├── UsageError              the call itself is wrong             exit code 2
    │   ├── UnknownNode         a name that is not in the graph
    │   └── UnrecognizedInput   an input with an unknown or ambiguous format
    ├── InputError              invalid input
    │   └── MalformedRow        one row of an edge list: file, line, content
    ├── StoreError              a graph or index on disk
    │   ├── NotAStore           a missing path, or a path that is not a store
    │   ├── Damaged             a missing, truncated or altered file
    │   ├── WrongFormat         written by a release with another format
    │   ├── OutputExists        the output already exists
    │   └── Busy                another process is writing the output
    ├── NotConverged            a computation without a usable result
    ├── QueryTimeout            a query that exceeded its time limit
    ├── ClusterError            a cluster that is unreachable or cannot do the work
    │   └── WorkerLost          a task that failed after all retries
    └── ResourceError           not enough memory, disk space or node ids

A message states what was found, what is allowed, and what to do. The command line prints it and
exits with ``exit_code``; all other exceptions print a traceback.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

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
    "Fix the row, or pass --bad-rows few (bad_rows='few') to skip such rows and count them"
)
"""Advice for inputs with few malformed rows."""


class CociteError(Exception):
    """Base class of all errors that cocite raises."""

    exit_code = 1

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored, (type(self), self.args, dict(vars(self)))


def _restored(
    kind: type[CociteError], arguments: tuple[Any, ...], attributes: dict[str, Any]
) -> CociteError:
    """Restore a pickled error without its initializer, which may take other arguments."""
    error = kind.__new__(kind, *arguments)
    error.args = arguments
    vars(error).update(attributes)
    return error


class UsageError(CociteError, ValueError):
    """An option or argument has a value that is not allowed."""

    exit_code = 2


class UnknownNode(UsageError, KeyError):
    """No node has this name. ``suggestions`` are similar names, ``titled`` has the (name, title)
    pairs of nodes whose titles contain the name, and ``note`` adds details, such as which pages an
    index has.
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
            titles = [f"{title!r} is the title of {node!r}" for node, title in self.titled]
            message += f"; {', '.join(titles)}. Use the name of the node"
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
    """The input cannot be read as links."""


class UnrecognizedInput(UsageError, InputError):
    """The input is empty, has an unknown format, or could be read in several ways."""


class MalformedRow(InputError):
    """A row that is not a link. ``line`` counts from 1, including comments and blank lines."""

    def __init__(
        self, file: str, line: int, what: str, content: str, advice: str = SKIP_ADVICE
    ) -> None:
        self.file, self.line, self.what, self.content = file, line, what, content
        super().__init__(f"{file}:{line}: {what}: {content!r}. {advice}")


class StoreError(CociteError):
    """A graph or index directory cannot be used."""


class NotAStore(StoreError):
    """The path is not a graph or index, or is a graph where an index is needed, or vice versa."""

    @classmethod
    def in_the_way(cls, place: object, kind: str) -> Self:
        """Return the error for an output path that exists and is not a ``kind``."""
        return cls(
            f"{place} exists and is not a {kind}: it will not be overwritten. Choose another output"
        )


class Damaged(StoreError):
    """A file in the directory is missing, has the wrong size, or fails its checksum."""

    @classmethod
    def graph(cls, path: object, what: str) -> Self:
        """Return the error for an invalid graph."""
        return cls(f"{path} is damaged: {what}. See: cocite verify {path}; then rebuild it")


class WrongFormat(StoreError):
    """The directory has a format that this release cannot read."""


class OutputExists(StoreError):
    """The output already exists; nothing was changed."""

    @classmethod
    def already(cls, place: object) -> Self:
        """Return the error for an output that ``overwrite`` would replace."""
        return cls(
            f"{place} exists. Choose another output, or pass --overwrite (overwrite=True) to "
            "replace it when the new one is complete"
        )


class Busy(StoreError):
    """Another process is writing the same output."""


class NotConverged(CociteError):
    """An iteration diverged, or its error may be as large as the scores."""


class QueryTimeout(CociteError):
    """A query exceeded its time limit (see ``deadline.py``)."""


class ClusterError(CociteError):
    """The cluster is unreachable, or its nodes cannot do the work."""


class WorkerLost(ClusterError):
    """A task on a cluster lost its worker, and all retries failed."""


class ResourceError(CociteError):
    """Not enough memory, disk space, or node ids."""
