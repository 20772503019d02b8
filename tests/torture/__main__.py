"""``python -m tests.torture [KIND...]``: attack what is promised, and print what came of it.

A table of one row a kind of fault (``kinds.py``), as JSON: how many faults were injected, how many
were survived, how many told, how many lost something (``results.py``), with the promise and what
was attacked. The minutes given are divided: each kind has its part of what is left when its turn
comes. What was lost is told on standard error, too. The exit code is 1 if anything was, or if a
kind had nothing to do. ``--report`` writes the table into a document (``report.py``).
"""

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

from tests.torture.kinds import KINDS
from tests.torture.report import Ran, check_report, write_report
from tests.torture.results import Given, Row, Until


def run(
    kinds: list[str],
    *,
    share: float | Mapping[str, float],
    seed: int,
    seconds: float,
    only: str = "",
    case: str = "",
) -> dict[str, dict[str, Row]]:
    """Run kinds of faults, a ``share`` of the cases of each (one for all, or one a kind), drawn by
    ``seed``, all within so many ``seconds``; ``only`` what has that in its name, and cases with
    these words. By kind, and by what was attacked, what came of it.
    """
    rows: dict[str, dict[str, Row]] = {}
    with tempfile.TemporaryDirectory() as folder:
        for kind, until in Until(seconds).parts(kinds):
            begun = time.monotonic()
            wanted = share[kind] if isinstance(share, Mapping) else share
            given = Given(Path(folder), until, wanted, seed, only, case)
            rows[kind] = KINDS[kind].run(given)
            row, took = Row.sum([*rows[kind].values()]), time.monotonic() - begun
            told = f"{row.injected:,} faults, {row.survived:,} survived, {row.told:,} told"
            print(f"{kind}: {told}, {len(row.lost)} lost; {took:.0f} s", file=sys.stderr)
    return rows


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.torture", description=__doc__)
    parser.add_argument("kinds", nargs="*", metavar="KIND", help=f"of {', '.join(KINDS)} [all]")
    parser.add_argument("--share", type=float, default=1.0, help="of all cases")
    parser.add_argument("--seed", type=int, default=1, help="what draws them [1]")
    parser.add_argument("--minutes", type=float, default=30.0, help="in all, at most [30]")
    parser.add_argument("--only", default="", help="stores or operations whose names have this")
    parser.add_argument("--case", default="", help="hostile contents whose names have this")
    parser.add_argument("--shown", type=int, default=20, help="losses that are told")
    parser.add_argument("--report", type=Path, help="put the table into this document")
    given = parser.parse_args()
    kinds = [kind for kind in KINDS if kind in given.kinds] if given.kinds else list(KINDS)
    if strange := set(given.kinds) - set(KINDS):
        parser.error(f"no such kind: {', '.join(strange)}; there are {', '.join(KINDS)}")
    if given.report:
        check_report(given.report)
    begun = time.monotonic()
    print(f"seed {given.seed}, {given.minutes:g} minutes at most", file=sys.stderr)
    rows = run(
        kinds, share=given.share, seed=given.seed, seconds=60 * given.minutes,
        only=given.only, case=given.case,
    )  # fmt: skip
    lost = [f"{kind}: {told}" for kind in rows for row in rows[kind].values() for told in row.lost]
    alike: dict[str, list[str]] = {}
    for told in lost:
        alike.setdefault("\n".join(told.splitlines()[1:][-4:]) or told, []).append(told)
    for some in sorted(alike.values(), key=len, reverse=True)[: given.shown]:
        print(f"{len(some)} x {some[0]}\n", file=sys.stderr)
    ran = Ran(given.seed, time.monotonic() - begun, rows)
    print(json.dumps(ran.to_json(), indent=1))
    if given.report:
        write_report(given.report, ran)
    return (
        0 if not lost and all(Row.sum([*some.values()]).injected for some in rows.values()) else 1
    )


if __name__ == "__main__":
    sys.exit(main())
