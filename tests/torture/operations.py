"""Small operations that change a disk: make, replace or refresh a store, or write results.

A :class:`Prepared` operation has two folders: the files before it (``before``) and after it
(``after``). Whenever the process or the machine stops, :func:`generation` says which of the two the
output is, or that it is detected as neither.
"""

import contextlib
import io
import json
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import cocite
from cocite import Graph
from cocite.cli.main import main
from cocite.errors import CociteError, NotAStore
from cocite.index.verify import VerifyDocument

_PAGES = 24
_WALKS = ["--measure", "psimrank", "--samples", "9", "--length", "5", "--shard", "3"]
_PIECE = ["--measure", "psimrank", "--length", "5", "--sample-range"]
_DAY = ["--date", "2026-11-21"]


def _rows(factor: int, pages: int) -> str:
    half = pages // 2
    names = [f"p{i}" for i in range(half)] + [f"http://a.org/{i}" for i in range(half)]
    links = {(i, (i * factor + j * j) % len(names)) for i in range(len(names)) for j in range(4)}
    return "".join(f"{names[a]}\t{names[b]}\n" for a, b in sorted(links) if a != b)


@dataclass(frozen=True)
class Operation:
    """``command`` makes ``output``; the commands of ``first`` run before it. Words with ``@`` are
    paths in the operation's folder.
    """

    output: str
    command: Sequence[str]
    first: Sequence[Sequence[str]] = ()

    @property
    def is_once(self) -> bool:
        """Whether it refuses to replace its output."""
        return "--overwrite" not in self.command and self.command[0] != "refresh"

    def run(self, folder: Path) -> int:
        """Run it; return the exit code."""
        return self.run_with_stderr(folder)[0]

    def run_with_stderr(self, folder: Path) -> tuple[int, str]:
        """Run it; return the exit code and stderr."""
        stderr = io.StringIO()
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(stderr):
            code = main(self.arguments(folder))
        return code, stderr.getvalue()

    def arguments(self, folder: Path) -> list[str]:
        """The arguments of ``cocite``."""
        return [f"{folder}/{word[1:]}" if word.startswith("@") else word for word in self.command]


_INDEX = ["index", "@old.graph", "-o", "@x.index", *_WALKS]
_PIECES = [
    ["index", "@old.graph", "-o", "@one.index", *_PIECE, "0..4"],
    ["index", "@old.graph", "-o", "@two.index", *_PIECE, "5..8"],
]
_MANY = ["related-all", "@given.index", "-k", "4", "-o"]
OPERATIONS: dict[str, Operation] = {
    "ingest": Operation("x.graph", ["ingest", "@new.tsv", "-o", "@x.graph"]),
    "ingest --overwrite": Operation(
        "x.graph",
        ["ingest", "@new.tsv", "-o", "@x.graph", "--overwrite"],
        [["ingest", "@old.tsv", "-o", "@x.graph"]],
    ),
    "index": Operation("x.index", _INDEX),
    "index, several parts": Operation("x.index", ["index", "@old.graph", "-o", "@x.index"]),
    "index --overwrite": Operation(
        "x.index", ["index", "@new.graph", *_INDEX[2:], "--overwrite"], [_INDEX]
    ),
    "refresh": Operation(
        "x.index", ["refresh", "@x.index", "@new.graph", "--fraction", "0.5", *_DAY], [_INDEX]
    ),
    "merge": Operation("x.index", ["merge", "@one.index", "@two.index", "-o", "@x.index"], _PIECES),
    "rank, a table": Operation("r.csv", ["rank", "@old.graph", "-o", "@r.csv"]),
    "rank --overwrite, an array": Operation(
        "r.npy",
        ["rank", "@new.graph", "-o", "@r.npy", "--overwrite"],
        [["rank", "@old.graph", "-o", "@r.npy"]],
    ),
    "related-all, lines": Operation("r.jsonl", [*_MANY, "@r.jsonl"]),
    "related-all --overwrite, a table": Operation(
        "r.parquet",
        [*_MANY, "@r.parquet", "--overwrite"],
        [[*_MANY[:2], "-k", "2", "-o", "@r.parquet"]],
    ),
    "related-all, a folder": Operation("pages", [*_MANY, "@pages/"]),
}
"""Name -> operation."""


@dataclass(frozen=True)
class Prepared:
    """An operation, with the folders before and after it."""

    operation: Operation
    before: Path
    after: Path

    def copy(self, place: Path) -> Path:
        """A copy of the files before it."""
        shutil.copytree(self.before, place, symlinks=True)
        return place


def prepared(operation: Operation, folder: Path, pages: int = _PAGES) -> Prepared:
    """Run it once, undisturbed, on graphs of ``pages`` nodes."""
    before, after = folder / "before", folder / "after"
    before.mkdir(parents=True)
    for name, factor in (("old", 5), ("new", 7)):
        (before / f"{name}.tsv").write_text(_rows(factor, pages))
        cocite.ingest(before / f"{name}.tsv", before / f"{name}.graph")
    setup = [[*_INDEX[:3], "@given.index", *_WALKS]] if "@given.index" in operation.command else []
    for command in (*setup, *operation.first):
        assert Operation("", command).run(before) == 0
    shutil.copytree(before, after)
    assert operation.run(after) == 0
    return Prepared(operation, before, after)


# -- state of the output -----------------------------------------------------------------


def contents(path: Path) -> dict[str, bytes] | None:
    """All files by relative path; None if the path does not exist."""
    if path.is_file():
        return {"": path.read_bytes()}
    if not path.is_dir():
        return None
    return {
        str(each.relative_to(path)): each.read_bytes()
        for each in sorted(path.rglob("*"))
        if each.is_file()
    }


def generation(target: Prepared, folder: Path) -> str:
    """``old``, ``new``, ``unfinished`` or ``damaged`` if detected; else ``wrong``."""
    name = target.operation.output
    path = folder / name
    opened: dict[str, Callable[[Path], object]] = {".graph": Graph.open, ".index": cocite.open}
    if path.suffix not in opened or not path.exists():
        return _same(target, contents(path))
    try:
        opened[path.suffix](path)
        verified = VerifyDocument.of(path)
    except NotAStore:
        return "unfinished"
    except CociteError:
        return "damaged"
    if verified.faults:
        return "damaged"
    listed = {"manifest.json", *json.loads((path / "manifest.json").read_bytes())["files"]}
    present = {name: data for name, data in (contents(path) or {}).items() if name in listed}
    return _same(target, present)


def _same(target: Prepared, actual: dict[str, bytes] | None) -> str:
    for word, folder in (("old", target.before), ("new", target.after)):
        if actual == contents(folder / target.operation.output):
            return word
    return "wrong"
