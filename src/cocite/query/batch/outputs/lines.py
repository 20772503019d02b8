"""JSON lines: a line a node.

    {"node": ..., "hits": [{"node": ..., "score": ..., "stderr": ...}, ...]}

With intervals hits have their ends, ``low`` and ``high``. A node without hits has a line, too.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from cocite.query.batch.outputs.output import Output, Pages, json_of
from cocite.store import check_file, disk, written_from

__all__ = ["output"]


class _Lines(Output):
    kind, streams = "jsonl", True

    def check(self, path: Path, overwrite: bool) -> Path:
        return check_file(path, overwrite)

    def write(
        self,
        path: Path,
        pages: Iterable[Pages],
        empty: Pages,
        scratch: Path,
        facts: dict[str, Any],
    ) -> int:
        size = 0
        with written_from(scratch, path) as file:
            for some in pages:
                content = self.text(some, False, scratch)
                disk.write(file, content)
                size += len(content)
        return size

    def text(self, pages: Pages, first: bool, scratch: Path) -> bytes:
        return "".join(map(json_of, pages.each())).encode(errors="surrogateescape")


def output(kind: str) -> Output:
    """The one kind that there is."""
    return _Lines()
