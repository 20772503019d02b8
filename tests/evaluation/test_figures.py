"""The table of docs/tuning.md is that of the results, and what is said of it holds."""

import json

from benchmarks import tune


def test_the_table_is_that_of_the_results() -> None:
    text = tune.BLOCK.document.read_text("utf-8")
    results = json.loads(tune.BLOCK.results.read_text("utf-8"))
    assert tune.BLOCK.within(text, results) == text
    assert [suite["graph"] for suite in results["suites"]] == list(tune.SUITES)


def test_company_agrees_with_labels_and_links_do_not() -> None:
    suites = json.loads(tune.BLOCK.results.read_text("utf-8"))["suites"]
    company = [tune.agreement(suite["rows"], "company@50") for suite in suites]
    links = [tune.agreement(suite["rows"], "links@50") for suite in suites]
    assert sorted(found["spearman"] for found in company)[1] > 0.7
    assert min(found["spearman"] for found in company) > 0.4
    ahead = [
        mine["spearman"] - other["spearman"] for mine, other in zip(company, links, strict=True)
    ]
    assert min(ahead) > -0.01  # level where both rank measures as labels do
    assert sorted(ahead)[1] > 0.3
    assert max(found["regret"] for found in company) < max(f["regret"] for f in links) / 3
    losses = [suite["chosen"]["difference"] for suite in suites]  # docs/tuning.md says where
    assert sum(high < 0 for _, _, high in losses) <= 1
    assert min(difference for difference, _, _ in losses) > -0.02
