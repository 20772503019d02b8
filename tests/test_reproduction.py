"""``docs/reproduction.md`` is what ``python -m benchmarks.reproduction`` makes of its results."""

from __future__ import annotations

import json
import re

import pytest
from benchmarks.reproduction.__main__ import MEASUREMENTS, chosen
from benchmarks.reproduction.document import DOCUMENT, PAPERS, RESULTS_FILE, document

PRINTED = {
    "000": {"figure": 1, "table": 0},
    "001": {"figure": 5, "table": 0},
    "002": {"figure": 4, "table": 0},
    "003": {"figure": 8, "table": 7},
    "004": {"figure": 11, "table": 0},
}
"""How many figures and tables each paper has."""


def test_the_document_is_made_of_the_results() -> None:
    results = json.loads(RESULTS_FILE.read_text("utf-8"))
    assert set(results) == set(MEASUREMENTS)
    assert DOCUMENT.read_text("utf-8") == document(results)


@pytest.mark.parametrize("paper", PAPERS, ids=lambda paper: paper.number)
def test_every_figure_and_table_has_a_row(paper) -> None:  # type: ignore[no-untyped-def]
    told: dict[str, set[int]] = {"figure": set(), "table": set()}
    for row in paper.rows:
        for kind, numbers in re.findall(
            r"(figure|table)s? ([0-9]+[a-d]?(?:(?:, | and )[0-9]+[a-d]?)*)", row.figure.lower()
        ):
            told[kind] |= {int(n) for n in re.findall(r"[0-9]+", numbers)}
    assert told == {kind: set(range(1, count + 1)) for kind, count in PRINTED[paper.number].items()}


def test_keys_are_of_their_paper_and_lead_to_measurements() -> None:
    rows = [row for paper in PAPERS for row in paper.rows]
    assert len({row.key for row in rows}) == len(rows)
    for paper in PAPERS:
        for row in paper.rows:
            assert row.key.startswith(paper.number + ".")
            assert set(chosen(row.key)) == set(row.needs)
    assert chosen(None) == list(MEASUREMENTS)
    with pytest.raises(SystemExit, match="no row, paper or measurement"):
        chosen("005")


def test_what_is_not_reproduced_says_why() -> None:
    for paper in PAPERS:
        for row in paper.rows:
            if not row.needs and not row.command:
                why, holds = row.tell({})
                assert holds in ("nothing to reproduce", "**not reproduced**")
                assert len(why) > 10 or "the same" in why
