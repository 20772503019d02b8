"""Blocks of documents that benchmarks write, and the results behind them.

A block is enclosed in two marks, the first of which is the command that writes the block. Results
are stored under results/, so that a test can compare the document with them.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shlex
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
DATA = Path(os.environ.get("COCITE_DATA", ROOT.parent / "shared" / "data"))
"""Real data sets: beside the checkout, or where COCITE_DATA says."""


def add_write(parser: argparse.ArgumentParser, what: str) -> None:
    """Add ``--write``, without which no benchmark edits a tracked file."""
    parser.add_argument("--write", action="store_true", help=f"edit tracked files: {what}")


def edit(path: Path, text: str, *, write: bool) -> None:
    """Replace the text of a tracked file, where ``--write`` says so."""
    if write:
        path.write_text(text, "utf-8")


def run_today() -> dict[str, str]:
    """When and where results are measured, of which code, and by which command."""
    commit = ["git", "describe", "--always", "--dirty"]
    spec = sys.modules["__main__"].__spec__
    module = Path(sys.argv[0]).stem if spec is None else spec.name
    return {
        "date": date.today().isoformat(),
        "machine": f"{os.cpu_count()} shared cores, Python {platform.python_version()}",
        "commit": subprocess.check_output(commit, cwd=ROOT, text=True).strip(),
        "command": shlex.join(["python", "-m", module.removesuffix(".__main__"), *sys.argv[1:]]),
    }


@dataclass(frozen=True)
class Block:
    """The block that ``python -m benchmarks.NAME --write`` puts into a document, up to the mark
    ``end``: what ``figures`` says of the results.
    """

    name: str
    document: Path
    end: str
    figures: Callable[[Any], str]

    @property
    def begin(self) -> str:
        """The mark before it."""
        return f"<!-- table: python -m benchmarks.{self.name} --write -->"

    @property
    def results(self) -> Path:
        """The file of results."""
        return Path(__file__).parent / "results" / f"{self.name.replace('_', '-')}.json"

    def within(self, text: str, results: Any) -> str:
        """The document's ``text`` with the block replaced."""
        head, _, rest = text.partition(self.begin)
        _, _, tail = rest.partition(self.end)
        return f"{head}{self.begin}\n{self.figures(results)}\n{self.end}{tail}"

    def parser(self, described: str | None) -> argparse.ArgumentParser:
        """The command line, with ``--write``."""
        parser = argparse.ArgumentParser(
            prog=f"python -m benchmarks.{self.name}",
            description=described,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        where = self.document.relative_to(ROOT)
        add_write(parser, f"keep the results under results/ and put them into {where}")
        return parser

    def keep(self, results: Any, chosen: argparse.Namespace) -> None:
        """Keep the results and put them into the document, where ``--write`` says so."""
        edit(self.results, json.dumps(results, indent=1) + "\n", write=chosen.write)
        text = self.document.read_text("utf-8")
        edit(self.document, self.within(text, results), write=chosen.write)
