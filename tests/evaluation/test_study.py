"""Studies: figures as tables, the report, the command line, the errors."""

import csv
import html
import json
import os
import re
import shlex
import sys
from math import isnan
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow.ipc
import pytest

import cocite
from cocite.errors import OutputExists, UsageError
from cocite.evaluation import Study
from cocite.evaluation.report import TITLES, StudyDocument, long_rows
from cocite.measures import MEASURES
from tests.conftest import MakeGraph, Shell
from tests.oracles.quality import filled, relevance


@pytest.fixture(scope="module")
def web(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a graph, an index of it and its labels."""
    folder = tmp_path_factory.mktemp("web")
    graph = cocite.generate_web(
        folder / "g", nodes=300, links=2000, seed=1, labels=folder / "labels.tsv"
    )
    cocite.build(graph, folder / "i", samples=10, measure="psimrank")
    cocite.build(graph, folder / "j", samples=10, direction="both", measure="psimrank")
    names = graph.names.names(np.arange(2))
    (folder / "blank.tsv").write_text("".join(f"{name}\t1 .\n" for name in names))
    return folder


@pytest.fixture(scope="module")
def study(web: Path) -> Study:
    return cocite.evaluate(web / "i", web / "j", labels=web / "labels.tsv", queries=20).study


@pytest.mark.parametrize("kind", ["parquet", "csv", "tsv", "jsonl", "arrow"])
def test_study_document_writes_tables(study: Study, tmp_path: Path, kind: str) -> None:
    """Column types are the same for all studies, so tables can be combined."""
    document = StudyDocument(study)
    path = document.write(tmp_path / f"figures.{kind}")
    assert os.listdir(tmp_path) == [path.name]
    if kind == "arrow":
        found = pyarrow.ipc.open_file(path).read_all()
    else:
        reader = {"parquet": "read_parquet", "jsonl": "read_json"}.get(kind, "read_csv")
        options = "" if reader != "read_csv" else ", all_varchar = true"
        relation = duckdb.sql(f"FROM {reader}('{path}'{options})")
        assert relation is not None
        found = relation.to_arrow_table()
    assert found.column_names == list(TITLES)
    rows = [list(row.values()) for row in found.to_pylist()]
    expected_rows = list(long_rows(study.methods))
    assert len(rows) == len(expected_rows) > 20
    for row, expected in zip(rows, expected_rows, strict=True):
        texts = [str(value) if value not in (None, "") else None for value in expected[:4]]
        numbers = [None if v is None or isnan(v) else float(v) for v in expected[4:]]
        if kind != "jsonl":  # DuckDB infers numbers
            assert row[:4] == texts
        assert [None if value is None else float(value) for value in row[4:]] == numbers
    if kind in ("parquet", "arrow"):
        types = [str(field.type) for field in found.schema]
        assert types == ["string"] * 4 + ["double"] * 3
    document.write(tmp_path / "other", kind=kind)
    assert (tmp_path / "other").read_bytes() == path.read_bytes()
    with pytest.raises(OutputExists):
        document.write(path)


def test_study_document_refuses_unknown_format(study: Study, tmp_path: Path) -> None:
    with pytest.raises(
        UsageError, match=r"a report must end in \.html, and a table .* one of \.parquet"
    ):
        StudyDocument(study).write(tmp_path / "x.npy")
    with pytest.raises(UsageError, match="kind is 'npy'; it must be one of parquet, csv"):
        StudyDocument(study).write(tmp_path / "x", kind="npy")


def test_study_document_report_is_self_contained(study: Study, tmp_path: Path) -> None:
    path = StudyDocument(study).write(tmp_path / "new" / "report.html")
    names = {file.name for file in path.parent.iterdir()}
    assert names == {"report.html", "report.md", "report.csv"}
    page = path.read_text("utf-8")
    assert not re.search(r"(?:src|href)\s*=|url\(|@import|<script|<link|://", page)
    for result in study.methods:
        assert f"<td>{result.name}</td>" in page
        assert f"| {result.name} |" in path.with_suffix(".md").read_text("utf-8")
    rows = list(csv.reader(path.with_suffix(".csv").read_text("utf-8").splitlines()))
    assert tuple(rows[0]) == TITLES
    assert len(rows) == 1 + len(list(long_rows(study.methods)))


def test_study_document_overwrites_only_on_request(study: Study, tmp_path: Path) -> None:
    document = StudyDocument(study)
    (tmp_path / "r.csv").write_text("existing")
    with pytest.raises(cocite.CociteError, match=r"r.csv exists. Choose another output"):
        document.write(tmp_path / "r.html")
    assert (tmp_path / "r.csv").read_text() == "existing"
    document.write(tmp_path / "r.html", overwrite=True)
    assert (tmp_path / "r.csv").read_text() != "existing"


# -- the command line -----------------------------------------------------------------------------


def test_evaluate_compares_indexes(
    web: Path, shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "300")  # the names of indexes are paths, of any length
    command = ["evaluate", str(web / "i"), str(web / "j"), "--labels", str(web / "labels.tsv")]
    command += ["--queries", "30", "--set", "decay=0.3", "--cutoffs", "5"]
    value = json.loads(shell([*command, "--format", "json"]).out)
    assert value["facts"]["queries"] == 30
    assert {row["method"] for row in value["figures"]} == {str(web / "i"), str(web / "j")}
    assert {"gamma", "precision@5", "ndcg@5"} <= {row["figure"] for row in value["figures"]}
    table = shell(command).out.splitlines()
    assert table[0].split()[-1] == "method"
    assert table[2].endswith(str(web / "i"))
    assert re.search(r"\d\.\d{3} ±\d\.\d{3}", table[2])
    assert shell([*command, "--format", "csv"]).out.startswith(",".join(TITLES))


def test_evaluate_report_states_provenance_and_examples(
    web: Path, tmp_path: Path, shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(web)
    output = tmp_path / "r.html"
    command = ["evaluate", "i", "j", "--labels", "labels.tsv", "--queries", "30"]
    full_command = [*command, "-o", str(output)]
    assert "read labels.tsv: tab-separated, no header\n" in shell(full_command).err
    page, text = output.read_text("utf-8"), output.with_suffix(".md").read_text("utf-8")
    found = cocite.evaluate("i", "j", labels="labels.tsv", queries=30)
    assert isinstance(found, StudyDocument)
    for line in (
        "- graph: g",
        f"- cocite: {cocite.__version__}",
        f"- date: {found.study.date}",
        f"- command: {shlex.join(['cocite', *full_command])}",
        "- labels: labels.tsv: tab-separated, no header",
        "Sorted by precision@10, best first.",
    ):
        assert f"\n{line}\n" in text
        assert html.escape(line.removeprefix("- ").partition(": ")[2] or line) in page
    results = {result.name: result.figures["precision@10"].value for result in found.study.methods}
    rows = re.findall(r"^\| (i|j) \|", text, re.M)
    assert rows == sorted(results, key=lambda name: -results[name])
    index = cocite.open("i")
    truth = dict(line.split("\t") for line in Path("labels.tsv").read_text().splitlines())
    assert len(found.study.examples) == 3
    for example in found.study.examples:
        assert f"## Example: {example.name}\n\nLabeled {truth[example.name]}. " in text
        hits, own = example.hits["i"], truth[example.name]
        listed = [hit.node for hit in index.related(example.name, 10)]
        assert [hit.name for hit in hits] == listed[: len(hits)]
        assert [hit.alike for hit in hits] == [truth[hit.name] == own for hit in hits]
        first = example.hits[rows[0]][0]
        assert f"| 1 | {first.name}{' ✓' * bool(first.alike)} |" in text
    again = found.to_json()
    assert again["examples"][0]["hits"]["i"][0]["name"] == found.study.examples[0].hits["i"][0].name
    assert (again["graph"], again["cocite"]) == ("g", cocite.__version__)
    assert found.command == "cocite.evaluate('i', 'j', labels='labels.tsv', queries=30)"
    shell(full_command, 1)  # it is not overwritten


def test_evaluate_judges_short_lists_as_is_and_filled(
    make_graph: MakeGraph, tmp_path: Path, shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Components of three and five nodes, and an isolated node."""
    links = [(0, 1), (1, 2), (2, 0), (3, 4), (4, 5), (5, 6), (6, 7), (7, 3), (3, 5)]
    graph, classes = make_graph(links, range(9)), "aabaabbab"
    index = cocite.build(graph, tmp_path / "i")
    rows = [f"{node}\t{label}\n" for node, label in enumerate(classes)]
    (tmp_path / "labels.tsv").write_text("".join(rows))
    expected: dict[str, list[float]] = {}
    for query, label in enumerate(classes):
        listed = [int(hit.node) for hit in index.related(str(query), 9)]
        others = set(range(9)) - {query, *listed}
        alike = {node for node in range(9) if classes[node] == label} - {query}
        as_is, completed = relevance(listed, alike, 6), filled(listed, others, alike, 6)
        for kind, plain, extended in zip(
            ("precision", "recall", "ndcg"), as_is, completed, strict=True
        ):
            expected.setdefault(f"{kind}@6", []).append(plain)
            expected.setdefault(f"filled_{kind}@6", []).append(extended)
    means = {title: np.mean(values) for title, values in expected.items()}
    assert means["filled_precision@6"] > means["precision@6"] + 0.1
    monkeypatch.setenv("COLUMNS", "300")
    command = ["evaluate", str(tmp_path / "i"), "--labels", str(tmp_path / "labels.tsv")]
    command += ["--cutoffs", "6"]
    figures = json.loads(shell([*command, "--format", "json"]).out)["figures"]
    found = {row["figure"]: row["estimate"] for row in figures}
    assert {title: found[title] for title in means} == pytest.approx(means, rel=1e-12)
    titles, _, row, *_ = shell([*command, "-o", str(tmp_path / "r.html")]).out.splitlines()
    page = (tmp_path / "r.html").read_text("utf-8")
    for title, mean in means.items():
        assert title in titles.split()
        assert f"{mean:.3f} ±" in row
        assert f"<th>{title}</th>" in page
        assert f"<td>{mean:.3f} <small>" in page


def test_evaluate_gamma_least_drops_pairs(
    make_graph: MakeGraph, tmp_path: Path, shell: Shell
) -> None:
    """Two sibling classes of ten pages each, with hubs for both and for one of them."""
    rng = np.random.default_rng(3)
    edges = [(f"hub{i}", f"p{v}") for i in range(8) for v in rng.choice(20, 6).tolist()]
    edges += [(f"own{i}", f"p{v}") for i in range(4) for v in range(5 * i, 5 * i + 5)]
    cocite.build(make_graph(edges), tmp_path / "i", samples=200, measure="psimrank")
    (tmp_path / "labels.tsv").write_text("".join(f"p{v}\ta.{'xy'[v // 10]}\n" for v in range(20)))
    command = ["evaluate", str(tmp_path / "i"), "--labels", str(tmp_path / "labels.tsv")]

    def pairs(*options: str) -> int:
        figures = json.loads(shell([*command, "--format", "json", *options]).out)["figures"]
        return next(int(row["estimate"]) for row in figures if row["figure"] == "pairs")

    total, fewer = pairs(), pairs("--gamma-least", "0.1")
    assert 0 < fewer < total
    assert pairs("--gamma-least", "0") == total


def test_evaluate_reports_index_paths(web: Path, tmp_path: Path, shell: Shell) -> None:
    """A blend is an index like any other; a path is a name."""
    pytest.importorskip("sklearn")
    graph = cocite.Graph.open(web / "g")
    name = "blend:psimrank(direction=in)+cocitation(direction=both)"
    cocite.build(graph, tmp_path / "blend", measure=name, samples=5)
    texts = tmp_path / "texts.tsv"
    texts.write_text(
        "".join(f"{page}\tword{i % 7} word{i % 3}\n" for i, page in enumerate(graph.names))
    )
    for paths in ([web / "i"], [tmp_path / "blend"], [web / "i", tmp_path / "blend"]):
        output = tmp_path / f"{len(list(tmp_path.iterdir()))}.html"
        command = ["evaluate", *map(str, paths), "--texts", str(texts), "--queries", "10"]
        shell([*command, "-o", str(output)])
        page = output.read_text()
        assert all(str(path) in page for path in paths)
        title = "Indexes of one graph, side by side" if len(paths) > 1 else f"The index {paths[0]}"
        assert f"<h1>{title}</h1>" in page


@pytest.mark.long
def test_evaluate_graph_covers_all_measures(web: Path, tmp_path: Path, shell: Shell) -> None:
    output = tmp_path / "r.html"
    command = ["evaluate", str(web / "g"), "--labels", str(web / "labels.tsv"), "--queries", "10"]
    printed = shell([*command, "--set", "samples=5", "-o", str(output), "--format", "json"])
    found = {row["measure"] for row in json.loads(printed.out)["figures"]}
    assert found == set(MEASURES) - {"coupling", "tfidf"}
    assert output.exists()
    assert "the report" in printed.err


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        ([], 2, "pass a graph, or indexes of the same graph"),
        (["none"], 1, "none: no such file"),
        (["i", "g", "--labels", "labels.tsv"], 2, "pass either a graph, or indexes"),
        (["i", "--texts", "blank.tsv"], 1, "the 2 texts have no word of two or more letters"),
        (["i"], 2, "an evaluation needs labels or texts"),
        (["i", "--labels", "g"], 1, "is not a file"),
        (["i", "--labels", "labels.tsv", "--label-columns", "2,1"], 1, "has no labels for nodes"),
        (
            ["i", "--labels", "labels.tsv", "--label-columns", "2"],
            2,
            "there must be two label columns",
        ),
        (["i", "--labels", "labels.tsv", "--set", "form=x"], 2, "no setting 'form'"),
        (["i", "--labels", "labels.tsv", "--set", "decay"], 2, "must have the form NAME=VALUE"),
        (["i", "--labels", "labels.tsv", "-o", "r.pdf"], 2, "a report must end in .html"),
    ],
)
def test_evaluate_reports_errors(
    web: Path,
    arguments: list[str],
    code: int,
    message: str,
    monkeypatch: pytest.MonkeyPatch,
    shell: Shell,
) -> None:
    monkeypatch.chdir(web)
    assert message in shell(["evaluate", *arguments], code).err


def test_evaluate_names_missing_extra(
    web: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shell: Shell
) -> None:
    graph = cocite.Graph.open(web / "g")
    monkeypatch.setitem(sys.modules, "sklearn.feature_extraction.text", None)
    texts = tmp_path / "texts.tsv"
    texts.write_text("".join(f"{name}\twords\n" for name in graph.names))
    refused = shell(["evaluate", str(web / "i"), "--texts", str(texts)], 2)
    assert "needs scikit-learn, which is not installed: pip install" in refused.err
    shell(["evaluate", str(web / "i"), "--labels", str(web / "labels.tsv"), "--queries", "5"])


def test_evaluate_applies_label_options(
    tmp_path: Path, shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    pages = [f"p{v}" for v in range(8)]
    links = [f"{a}\t{b}\n" for a in pages for b in pages if a != b and (a < "p4") == (b < "p4")]
    Path("links.tsv").write_text("".join(links))
    Path("titles.tsv").write_text("".join(f"{page}\tPage {page[1]}\n" for page in pages))
    cocite.build(cocite.ingest("links.tsv", "g", titles="titles.tsv"), "i")
    rows = [f"{v};{'ab'[v > 3]};p{v}" for v in range(8)]
    Path("labels").write_text("\n".join(["id;topic;page", *rows[:5], "broken", *rows[5:]]))
    command = ["evaluate", "i", "--labels", "labels", "--label-columns", "page,topic"]
    refused = shell([*command, "--delimiter", "semicolon"], 1).err
    assert "labels:7: only 1 of 3 columns: 'broken'" in refused
    stderr = shell([*command, "--bad-rows", "few", "--delimiter", "semicolon"]).err
    assert "read labels: semicolon-separated, a header ('page', 'topic'; if these" in stderr
    assert "left out 1 bad row, such as line 7: only 1 of 3 columns" in stderr
    refused = shell([*command, "--bad-rows", "few", "--header", "no"], 2).err
    assert "are column names, but header is no" in refused
    found = cocite.evaluate("i", labels="labels", label_columns=(3, 2), bad_rows="few")
    assert isinstance(found, StudyDocument)
    for page in found.study.examples:
        nodes: list[Any] = [page, *page.hits["i"]]
        for node in nodes:
            assert node.title == f"Page {node.name[1]}"
    text = found.write("r.html").with_suffix(".md").read_text("utf-8")
    first = found.study.examples[0]
    assert f"## Example: Page {first.name[1]} ({first.name})\n" in text
