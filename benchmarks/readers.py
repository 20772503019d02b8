"""Reading speed for notes, OpenAlex works and triples.

    python -m benchmarks.readers [--notes 10000] [--works 50000] [--triples 500000]

Generates a vault with notes of 2 KB, JSON lines with works of 5 KB, and N-Triples, and ingests each
on one thread and on all. Prints seconds, CPU seconds of all processes, and items per second.
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import cocite

WORDS = ("lorem", "ipsum", "dolor", "sit", "amet", "consectetur", "adipiscing", "elit", "sed", "do")


def notes(folder: Path, count: int, draw: random.Random) -> Path:
    """A vault: front matter, headings, prose, wiki links and Markdown links, lists, code."""
    for number in range(count):
        parts = [f"---\ntitle: Title {number}\ntags: [a, b{number % 7}]\n---\n# Head {number}\n"]
        for place in range(5):
            text = " ".join(draw.choices(WORDS, k=50)).capitalize() + "."
            a, b = draw.randrange(count), draw.randrange(count)
            link = f" See [[Note {a}]] and [other](../f{b % 100}/Note%20{b}.md), **bold** `code`."
            parts.append(text + (link if place < 3 else "") + "\n")
        parts.append("- item\n- [ ] task [[Note 1|x]]\n  - sub\n\n```python\nx = [[1]]\n```\n")
        path = folder / "vault" / f"f{number % 100}" / f"Note {number}.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("\n".join(parts), "utf-8")
    return folder / "vault"


def works(folder: Path, count: int, draw: random.Random) -> Path:
    """JSON lines: identifiers, titles, citations, and an abstract that is not read."""
    with (folder / "works.jsonl").open("w", encoding="utf-8") as out:
        for number in range(count):
            cited = [f"https://openalex.org/W{draw.randrange(count)}" for _ in range(20)]
            abstract = {word: draw.choices(range(500), k=80) for word in WORDS}
            work = {"id": f"https://openalex.org/W{number}", "display_name": f"On {number}"}
            work |= {"abstract_inverted_index": abstract, "referenced_works": cited}  # type: ignore[dict-item]
            out.write(json.dumps(work) + "\n")
    return folder / "works.jsonl"


def triples(folder: Path, count: int, draw: random.Random) -> Path:
    """N-Triples of ten predicates."""
    with (folder / "data.nt").open("w", encoding="utf-8") as out:
        for _ in range(count):
            a, b = draw.randrange(count // 10), draw.randrange(count // 10)
            out.write(f"<http://e.org/Q{a}> <http://e.org/P{a % 10}> <http://e.org/Q{b}> .\n")
    return folder / "data.nt"


def _processor_seconds() -> float:
    each = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(use.ru_utime + use.ru_stime for use in each)


def main() -> None:
    """Make, ingest, and print."""
    kinds: dict[str, tuple[Callable[[Path, int, random.Random], Path], int]] = {
        "notes": (notes, 10_000),
        "works": (works, 50_000),
        "triples": (triples, 500_000),
    }
    parser = argparse.ArgumentParser(description=__doc__)
    for name, (_, count) in kinds.items():
        parser.add_argument(f"--{name}", type=int, default=count, help="0 leaves them out")
    given = vars(parser.parse_args())
    for name, (make, _) in kinds.items():
        if not given[name]:
            continue
        with tempfile.TemporaryDirectory() as folder:
            source = make(Path(folder), given[name], random.Random(1))
            for threads in (1, None):
                begun, used = time.perf_counter(), _processor_seconds()
                cocite.ingest(source, threads=threads)
                took, used = time.perf_counter() - begun, _processor_seconds() - used
                print(
                    f"{name}: {given[name]:,} on {threads or 'all'} threads: {took:.1f} s, "
                    f"{used:.1f} s of processor, {given[name] / used:,.0f} a processor second",
                    flush=True,
                )


if __name__ == "__main__":
    main()
