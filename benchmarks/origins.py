"""The page of the documentation that lists where its figures come from.

``docs/conf.py`` writes the page ``reference/results``, which Git ignores, before Sphinx reads its
sources. Each block of figures has a row. A block is enclosed in two marks, the first of which is
the command that writes the block; results are files in ``benchmarks/results``. Results are *older*
if the code that they measure has changed since.
"""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "benchmarks" / "results"
MARK = re.compile(r"<!-- \w+: python -m (benchmarks[\w.]*)([^>]*?) --write -->")
_ANSWERS = ("kernels", "engine", "index", "measures", "search")
MEASURED: dict[str, tuple[str, ...]] = {
    "benchmarks": ("kernels", "engine", "index", "ranking", "search", "graph", "io", "storage"),
    "benchmarks.defaults": _ANSWERS,
    "benchmarks.embeddings": _ANSWERS,
    "benchmarks.generator": ("graph",),
    "benchmarks.glossary": (),
    "benchmarks.growth": ("kernels", "engine", "index", "ranking", "search", "graph"),
    "benchmarks.intervals": ("search/intervals.py", "kernels"),
    "benchmarks.limits": ("kernels", "engine", "ranking"),
    "benchmarks.measures": _ANSWERS,
    "benchmarks.papers": ("kernels", "engine", "index", "ranking", "search", "graph"),
    "benchmarks.peers": (*_ANSWERS, "ranking", "allpairs"),
    "benchmarks.related_all": _ANSWERS,
    "benchmarks.reproduction": (*_ANSWERS, "ranking", "allpairs"),
    "benchmarks.simulator": ("cluster", "engine"),
    "benchmarks.suites": _ANSWERS,
    "benchmarks.texts": (*_ANSWERS, "integrations"),
    "benchmarks.tune": (*_ANSWERS, "evaluation"),
    "benchmarks.turns": (*_ANSWERS, "ranking", "allpairs", "evaluation", "io"),
}
"""The source that each command measures, below ``src/cocite``."""
FILES = {"benchmarks": "20", "benchmarks.simulator": "cluster"}
"""How the names of a command's results begin, where it is not by its own name."""


@dataclass(frozen=True)
class Origin:
    """A block of figures, and what measured it."""

    page: str
    command: str
    results: Path | None
    """The newest file of results, or None if the command keeps none."""

    @property
    def module(self) -> str:
        """The module that the command runs."""
        return self.command.split()[2]

    @property
    def about(self) -> dict[str, str]:
        """The ``date``, ``machine`` and ``commit`` of the newest of the results."""
        if self.results is None:
            return {}
        found = list(_runs(json.loads(self.results.read_text("utf-8"))))
        return max(found, key=lambda run: run["date"])

    @property
    def commit(self) -> str:
        """The commit whose code was measured, or that in which the figures were kept."""
        stated = self.about.get("commit", "").removesuffix("-dirty")
        if stated or self.results is None:
            return stated
        return _git("log", "-1", "--format=%h", "--", str(self.results))

    @property
    def changes(self) -> int:
        """How many commits have changed the measured source since."""
        paths = [f"src/cocite/{name}" for name in MEASURED[self.module]]
        if not paths or not self.commit:
            return 0
        return int(_git("rev-list", "--count", f"{self.commit}..HEAD", "--", *paths) or 0)


def _git(*arguments: str) -> str:
    """Return what git says, or nothing where there is no repository or no such commit."""
    command = ["git", "-C", str(ROOT), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.stdout.strip() if done.returncode == 0 else ""


def _runs(results: Any) -> Iterator[dict[str, str]]:
    if isinstance(results, dict):
        if isinstance(results.get("date"), str):
            yield results
        for each in results.values():
            yield from _runs(each)


def origins() -> list[Origin]:
    """Return the blocks of figures of all documents, in the order of their pages."""
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
    found = [
        Origin(
            "docs/reproduction.md",
            "python -m benchmarks.reproduction",
            _newest("benchmarks.reproduction"),
        )
    ]
    for path in pages:
        page = path.relative_to(ROOT).as_posix()
        for module, rest in MARK.findall(path.read_text("utf-8")):
            if MEASURED[module]:
                found.append(Origin(page, f"python -m {module}{rest}", _newest(module)))
    return sorted(found, key=lambda origin: origin.page)


def _newest(module: str) -> Path | None:
    begin = FILES.get(module, module.rpartition(".")[2].replace("_", "-"))
    return max(RESULTS.glob(f"{begin}*.json"), default=None)


def write_page(path: Path) -> None:
    """Write the page of results."""
    rows = ["| page | command | measured | commits since |", "| --- | --- | --- | --- |"]
    for origin in origins():
        about = origin.about
        name = Path(origin.page).name
        link = f"[{name}](../{name})" if origin.page.startswith("docs/") else name
        when = ", ".join(filter(None, (about.get("date"), about.get("machine"))))
        since = f"**older**: {origin.changes}" if origin.changes else "none"
        measured = f"{when}, at {origin.commit}" if origin.results else "not dated"
        rows.append(f"| {link} | `{origin.command}` | {measured} | {since} |")
    path.write_text(
        "# Where figures come from\n\n"
        "Each block of figures was written by a command, from results in `benchmarks/results`.\n"
        "The last column counts the commits that have changed the measured code since then.\n\n"
        + "\n".join(rows)
        + "\n",
        "utf-8",
    )
