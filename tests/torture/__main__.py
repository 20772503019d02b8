"""``python -m tests.torture [KIND...]``: harm stores in all these ways, and print what came of it.

A table of one row a kind of fault, as JSON: how many cases, and what steps came to, by the columns
of ``children.py``. Every case that came to what none may is told on standard error. The exit code
is 1 if there was one, or if a kind had nothing to do.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from tests.torture import arrays, facts
from tests.torture.arrays import Harm
from tests.torture.children import FAULTS, Failure, Table, run_case
from tests.torture.stores import NAMES, copied, harmed
from tests.torture.verbs import steps_of, warm

KINDS: dict[str, Callable[[Path, random.Random], Iterator[Harm]]] = {
    "arrays": arrays.harms,
    "facts": facts.harms,
}
"""What is harmed -> what does it."""


def run(
    kinds: list[str], *, share: float, seed: int, seconds: float, only: str = "", case: str = ""
) -> dict[str, Table]:
    """Run kinds of faults, a ``share`` of the cases of each, drawn by ``seed``, each kind for so
    many ``seconds`` at most; ``only`` those stores, and cases with these words.
    """
    tables = {kind: Table() for kind in kinds}
    with tempfile.TemporaryDirectory() as folder:
        stores = Path(folder, "stores")
        command = [sys.executable, "-m", "tests.torture.stores", str(stores)]
        subprocess.run(command, check=True)
        for told in warm(stores, Path(folder, "warm"), _asked):
            print(f"whole, and yet: {told}", file=sys.stderr)
        paths = [path for path in harmed(stores) if only in path.name]
        for kind, table in tables.items():
            chance, begun = random.Random(seed), time.monotonic()
            found = [(p, harm) for p in paths for harm in KINDS[kind](p, random.Random(seed))]
            found = [(p, harm) for p, harm in found if case in harm[0]]
            chosen = chance.sample(found, max(1, round(share * len(found))))
            for number, (path, (told, harm)) in enumerate(chosen):
                if time.monotonic() - begun > seconds:
                    break
                place = Path(folder, f"case{number}")
                copy = copied(path, place)
                harm(copy)
                steps = steps_of(copy, stores, _asked(path))
                run_case(f"{path.name} {told}", steps, table)
                shutil.rmtree(place)
    return tables


def _asked(store: Path) -> tuple[str, str]:
    """Two names of a store."""
    if store.name in ("dense.graph",):
        return "3", "17"
    if store.name in ("integers.graph",):
        return "24", "122"
    return NAMES[30], NAMES[27 if store.name == "kept.index" else 7]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.torture", description=__doc__)
    parser.add_argument("kinds", nargs="*", default=list(KINDS), metavar="KIND")
    parser.add_argument("--share", type=float, default=1.0, help="of all cases")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--minutes", type=float, default=30.0, help="in all, at most")
    parser.add_argument("--only", default="", help="stores whose names have this")
    parser.add_argument("--case", default="", help="cases whose names have this")
    parser.add_argument("--shown", type=int, default=20, help="faults that are told")
    given = parser.parse_args()
    seconds = 60 * given.minutes / len(given.kinds)
    tables = run(
        given.kinds, share=given.share, seed=given.seed, seconds=seconds,
        only=given.only, case=given.case,
    )  # fmt: skip
    failures = [failure for table in tables.values() for failure in table.failures]
    alike: dict[tuple[str, str], list[Failure]] = {}
    for failure in failures:
        key = failure.outcome, "\n".join(failure.what.splitlines()[-4:])
        alike.setdefault(key, []).append(failure)
    for (outcome, _), some in sorted(alike.items(), key=lambda pair: -len(pair[1]))[: given.shown]:
        first = some[0]
        print(f"{len(some)} x {outcome}: {first.case}: {first.step}", file=sys.stderr)
        print(f"{first.what}\n", file=sys.stderr)
    print(json.dumps({kind: table.to_json() for kind, table in tables.items()}, indent=1))
    whole = all(table.cases for table in tables.values())
    return 0 if whole and not any(t.counts[c] for t in tables.values() for c in FAULTS) else 1


if __name__ == "__main__":
    sys.exit(main())
