"""The results of a run as part of a document: a table of promises and attacks."""

import platform
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tests.torture.kinds import KINDS
from tests.torture.results import Row

BEGIN = "<!-- what came of it: make torture -->"
END = "<!-- end of what came of it -->"


@dataclass(frozen=True)
class Ran:
    """A run: its seed, its duration, and the rows of each kind by target."""

    seed: int
    seconds: float
    rows: dict[str, dict[str, Row]]

    def to_json(self) -> dict[str, Any]:
        """All results; the targets are under ``of``."""
        kinds = {}
        for kind, rows in self.rows.items():
            described = {"promise": KINDS[kind].promise, "test": KINDS[kind].how}
            of = {name: row.to_json() for name, row in rows.items()}
            kinds[kind] = described | Row.sum([*rows.values()]).to_json() | {"of": of}
        return {"seed": self.seed, "seconds": round(self.seconds), "kinds": kinds}

    def to_markdown(self) -> str:
        """A table of promises and attacks."""
        sums = {kind: Row.sum([*rows.values()]) for kind, rows in self.rows.items()}
        total = Row.sum([*sums.values()])
        lines = [
            f"Results of a {self.seconds / 60:.0f}-minute run, {datetime.now(UTC):%Y-%m-%d}, "
            f"Python {platform.python_version()}, seed {self.seed}: {total.injected:,} faults, "
            f"{len(total.lost):,} lost.",
            "",
            "| promise | how it is attacked | `tests/torture/` | faults injected | survived "
            "| reported | lost |",
            "| --- | --- | --- | ---: | ---: | ---: | ---: |",
        ]
        for kind, row in sums.items():
            entry = KINDS[kind]
            lines.append(
                f"| {entry.promise} | {entry.how} (`{kind}`) | `tests/torture/{entry.file}` "
                f"| {row.injected:,} "
                f"| {row.survived:,} | {row.reported:,} | {len(row.lost):,} |"
            )
        lines += ["", "Number of attacks by target:", ""]
        for kind, rows in self.rows.items():
            targets = [f"{name} {row.injected:,}" for name, row in rows.items()]
            lines.append(f"* `{kind}`: {'; '.join(targets)}.")
        return "\n".join(lines)


def check_report(path: Path) -> None:
    """Check, before any work, that the document has a place for the tables."""
    text = path.read_text("utf-8") if path.exists() else ""
    if not 0 <= text.find(BEGIN) < text.find(END):
        raise SystemExit(f"{path} has no lines {BEGIN} and {END}: put them where the tables go")


def write_report(path: Path, ran: Ran) -> None:
    """Put the tables between the two lines of a document."""
    text = path.read_text("utf-8")
    head, tail = text[: text.index(BEGIN)], text[text.index(END) :]
    path.write_text(f"{head}{BEGIN}\n{ran.to_markdown()}\n{tail}", "utf-8")
