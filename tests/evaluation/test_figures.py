"""The table of docs/tuning.md is that of the results, and what is said of it holds."""

import json
from typing import Any

import pytest

from benchmarks import tune


def test_the_table_is_that_of_the_results() -> None:
    text = tune.BLOCK.document.read_text("utf-8")
    results = json.loads(tune.BLOCK.results.read_text("utf-8"))
    assert tune.BLOCK.within(text, results) == text
    assert [suite["graph"] for suite in results["suites"]] == list(tune.SUITES)


@pytest.fixture
def suites() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(tune.BLOCK.results.read_text("utf-8"))["suites"]
    return found


def test_company_agrees_with_labels(suites: list[dict[str, Any]]) -> None:
    company = [tune.agreement(suite["rows"], "company@50") for suite in suites]
    links = [tune.agreement(suite["rows"], "links@50") for suite in suites]
    assert min(found["spearman"] for found in company) > 0.4
    assert max(found["regret"] for found in company) < max(f["regret"] for f in links) / 3


@pytest.mark.xfail(reason="since fusion is the default: .72 on polblogs, .49 on web", strict=True)
def test_company_agrees_closely_with_labels_on_three_graphs(suites: list[dict[str, Any]]) -> None:
    company = [tune.agreement(suite["rows"], "company@50") for suite in suites]
    assert sorted(found["spearman"] for found in company)[1] > 0.75


@pytest.mark.xfail(reason="on cora links@50 agrees as well: .964 beside .960", strict=True)
def test_company_agrees_with_labels_better_than_links(suites: list[dict[str, Any]]) -> None:
    for suite in suites:
        mine, theirs = (tune.agreement(suite["rows"], by) for by in ("company@50", "links@50"))
        assert mine["spearman"] > theirs["spearman"]


@pytest.mark.xfail(reason="on web tuning leaves fusion for a worse measure", strict=True)
def test_what_tuning_chooses_is_not_worse_than_the_default(suites: list[dict[str, Any]]) -> None:
    assert all(suite["chosen"]["difference"][2] >= 0 for suite in suites)
