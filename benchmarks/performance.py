"""Write the measured blocks of docs/performance.md from the newest results of each study.

    python -m benchmarks.performance [--write]

Prints the document, or writes it with ``--write``. A study writes its block in the same way
(``python -m benchmarks.peers --write``; also ``growth``, ``limits``, ``papers``, ``turns``). A
block without results says so.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from benchmarks.block import ROOT, add_write, edit
from benchmarks.kept import Parts, ResultStore

DOCUMENT = ROOT / "docs" / "performance.md"
STUDIES: Mapping[str, str] = {
    "peers": "benchmarks.peers.document",
    "growth": "benchmarks.growth_table",
    "limits": "benchmarks.limits_table",
    "papers": "benchmarks.papers_table",
    "turns": "benchmarks.turns",
}
"""Studies, and the module whose ``figures(parts)`` makes the block."""


def marks(name: str) -> tuple[str, str]:
    """Before and after a block."""
    return f"<!-- table: python -m benchmarks.{name} --write -->", f"<!-- end of {name} -->"


def block(name: str, parts: Parts) -> str:
    """What a study has to say."""
    if not parts:
        return f"Not measured yet: `python -m benchmarks.{name} --write`."
    figures: Callable[[Any], str] = import_module(STUDIES[name]).figures
    return figures(parts)


def whole(text: str, results: Callable[[str], Parts]) -> str:
    """The document's ``text`` with all blocks replaced; ``results`` gives those of a study."""
    for name in STUDIES:
        begin, end = marks(name)
        head, found, rest = text.partition(begin)
        if not found:
            raise ValueError(f"{DOCUMENT.name} has no mark {begin}")
        tail = rest.partition(end)[2]
        text = f"{head}{begin}\n{block(name, results(name))}\n{end}{tail}"
    return text


def newest(name: str) -> Parts:
    """Return the newest results of a study."""
    return ResultStore(name).newest()


def write(document: Path = DOCUMENT) -> None:
    """Write the stored results to the document."""
    edit(document, whole(document.read_text("utf-8"), newest), write=True)


def main() -> None:
    """Print or write."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.performance", description=__doc__)
    add_write(parser, "docs/performance.md, made of the kept results")
    if parser.parse_args().write:
        write()
    else:
        print(whole(DOCUMENT.read_text("utf-8"), newest), end="")


if __name__ == "__main__":
    main()
