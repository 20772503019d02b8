"""``python -m tests.torture [KIND...]``: attack the promises of cocite, and print the outcomes.

The output is a JSON table with one row per kind of fault (``kinds.py``): the numbers of faults
injected, survived, reported and lost (``results.py``), with the promise and the attack. Each kind
gets an equal part of the time left when its turn comes. Losses are printed to stderr, too. The exit
code is 1 if there was a loss, or if a kind had no case. ``--report`` writes the table into a
document (``report.py``).
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
    """Run kinds of faults, a ``share`` of the cases of each (for all, or per kind), drawn by
    ``seed``, within ``seconds`` in all; ``only`` selects targets by name, and ``case`` cases.
    Return the rows by kind and target.
    """
    rows: dict[str, dict[str, Row]] = {}
    with tempfile.TemporaryDirectory() as folder:
        for kind, until in Until(seconds).parts(kinds):
            start = time.monotonic()
            kind_share = share[kind] if isinstance(share, Mapping) else share
            given = Given(Path(folder), until, kind_share, seed, only, case)
            rows[kind] = KINDS[kind].run(given)
            row, took = Row.sum([*rows[kind].values()]), time.monotonic() - start
            summary = (
                f"{row.injected:,} faults, {row.survived:,} survived, {row.reported:,} reported"
            )
            print(f"{kind}: {summary}, {len(row.lost)} lost; {took:.0f} s", file=sys.stderr)
    return rows


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.torture", description=__doc__)
    parser.add_argument("kinds", nargs="*", metavar="KIND", help=f"of {', '.join(KINDS)} [all]")
    parser.add_argument("--share", type=float, default=1.0, help="share of all cases")
    parser.add_argument("--seed", type=int, default=1, help="what draws them [1]")
    parser.add_argument("--minutes", type=float, default=30.0, help="in all, at most [30]")
    parser.add_argument("--only", default="", help="stores or operations whose names have this")
    parser.add_argument("--case", default="", help="hostile contents whose names have this")
    parser.add_argument("--shown", type=int, default=20, help="number of losses to print")
    parser.add_argument("--report", type=Path, help="put the table into this document")
    arguments = parser.parse_args()
    kinds = [kind for kind in KINDS if kind in arguments.kinds] if arguments.kinds else list(KINDS)
    if unknown := set(arguments.kinds) - set(KINDS):
        parser.error(f"no such kind: {', '.join(unknown)}; there are {', '.join(KINDS)}")
    if arguments.report:
        check_report(arguments.report)
    start = time.monotonic()
    print(f"seed {arguments.seed}, {arguments.minutes:g} minutes at most", file=sys.stderr)
    rows = run(
        kinds, share=arguments.share, seed=arguments.seed, seconds=60 * arguments.minutes,
        only=arguments.only, case=arguments.case,
    )  # fmt: skip
    lost = [f"{kind}: {loss}" for kind in rows for row in rows[kind].values() for loss in row.lost]
    similar: dict[str, list[str]] = {}
    for loss in lost:
        similar.setdefault("\n".join(loss.splitlines()[1:][-4:]) or loss, []).append(loss)
    for group in sorted(similar.values(), key=len, reverse=True)[: arguments.shown]:
        print(f"{len(group)} x {group[0]}\n", file=sys.stderr)
    ran = Ran(arguments.seed, time.monotonic() - start, rows)
    print(json.dumps(ran.to_json(), indent=1))
    if arguments.report:
        write_report(arguments.report, ran)
    return (
        0 if not lost and all(Row.sum([*group.values()]).injected for group in rows.values()) else 1
    )


if __name__ == "__main__":
    sys.exit(main())
