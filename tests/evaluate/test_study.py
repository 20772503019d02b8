"""Whole studies on a tiny generated web: every table, the report, the command line, the errors."""

from __future__ import annotations

import base64
import csv
import json
import re
import sys
from pathlib import Path

import pytest

import cocite
from cocite.cli.main import main
from cocite.errors import InputError, UsageError
from cocite.evaluate import Study, built_in_suites, embed, load_suite, run_suite
from cocite.evaluate.report import LONG_TITLES, long_rows, write_report
from cocite.measures import MEASURES

SUITE = """
about = "A tiny <web>"
baseline = "vectors"

[data]
web = {nodes = 600, links = 4000, seed = 3}

[judge]
queries = 40
sweep_queries = 20
resamples = 50
cutoffs = [1, 10]

[settings]
samples = 10

[[method]]
measures = ["psimrank", "simrank", "cocitation"]
directions = ["in", "both"]

[[method]]
measures = ["psimrank"]
settings = {decay = 0.2}

[[embedding]]
name = "vectors"
dimensions = 8

[[blend]]
name = "blend"
of = ["psimrank in", "vectors"]
weights = [2.0, 1.0]
scale = "rank"

[[sweep]]
setting = "length"
values = [1, 10, 16]
measures = ["psimrank"]

[[sweep]]
setting = "decay"
values = [0.2, 0.6]
measures = ["psimrank", "cocitation"]

[[sweep]]
setting = "samples"
values = [5, 10, 30]
measures = ["psimrank"]

[accuracy]
measures = ["simrank"]
samples = [10, 100]
queries = 30

[structure]
measures = ["psimrank"]
samples = 2
length = 4
"""


@pytest.fixture(scope="module")
def suite_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("suite") / "tiny.toml"
    path.write_text(SUITE)
    return path


@pytest.fixture(scope="module")
def study(suite_file: Path, tmp_path_factory: pytest.TempPathFactory) -> Study:
    pytest.importorskip("sklearn")
    stages: list[str] = []
    work = tmp_path_factory.mktemp("work")
    found = run_suite(
        load_suite(str(suite_file)),
        None,
        work,
        threads=2,
        progress=lambda stage, done, total: stages.append(stage),
    )
    assert {stage.split(" ")[0] for stage in stages} >= {
        "building",
        "judging",
        "embedding",
        "solving",
    }
    left = {path.name for path in work.iterdir() if path.suffix == ".index"}
    assert len(left) == 1  # that of the blend
    return found


def test_every_table_is_there(study: Study) -> None:
    assert [result.name for result in study.methods] == [
        "psimrank in",
        "psimrank both",
        "simrank in",
        "simrank both",
        "cocitation in",
        "cocitation both",
        "psimrank in decay=0.2",
        "vectors",
        "blend",
    ]
    assert set(study.differences) == {r.name for r in study.methods} - {"vectors"}
    assert list(study.sweeps) == ["length", "decay", "samples"]
    (length,) = study.sweeps["length"]
    assert list(length.results) == [1, 10]
    assert study.notes == [
        "psimrank at length 16 is left out: it takes a whole number from 1 to 15"
    ]
    (decay,) = study.sweeps["decay"]  # cocitation takes none
    assert decay.method == "psimrank in"
    assert study.facts["queries"] == 40
    assert [each.samples for each in study.accuracy] == [10, 100]
    assert [size.length for size in study.trees[0].sizes] == [1, 2, 3, 4]


def test_figures_are_in_their_range_and_in_their_intervals(study: Study) -> None:
    for result in study.methods:
        for title, found in result.figures.items():
            assert found.low <= found.high
            if title != "hits":
                assert found.low >= -1
                assert found.high <= 1
        assert result.pairs > 0
    by_name = {result.name: result for result in study.methods}
    assert by_name["psimrank in"].bytes is not None
    # Planted topics are found far better than by chance: the largest class has under 40 % of pages.
    assert by_name["psimrank in"].figures["precision@10"].low > 0.5


def test_what_does_not_depend_on_the_decay(study: Study) -> None:
    """000: the decay changes the order, the number of pairs hardly; more samples, more pairs."""
    (decay,) = study.sweeps["decay"]
    hits = {result.figures["hits"].value for result in decay.results.values()}
    assert len(hits) == 1
    (samples,) = study.sweeps["samples"]
    pairs = [result.pairs for result in samples.results.values()]
    assert pairs == sorted(pairs)
    assert pairs[0] < pairs[-1]


def test_a_point_is_the_same_by_itself_and_in_a_sweep(study: Study) -> None:
    """Ten samples are the first ten of thirty, and length 10 is the default."""
    (length,), (samples,) = study.sweeps["length"], study.sweeps["samples"]
    assert length.results[10] is samples.results[10]


def test_more_samples_are_nearer_to_the_truth(study: Study) -> None:
    few, many = (each.found for each in study.accuracy)
    assert many.mean_error < few.mean_error
    assert many.precision[10] >= few.precision[10]


def test_the_report_needs_nothing_else(study: Study, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    path = write_report(study, tmp_path / "new" / "report.html")
    names = {file.name for file in path.parent.iterdir()}
    assert names == {"report.html", "report.md", "report.csv"}
    page = path.read_text("utf-8")
    pictures = re.findall(r'src="data:image/svg\+xml;base64,([^"]+)"', page)
    assert len(pictures) == 6
    svgs = [base64.b64decode(each).decode() for each in pictures]
    outside = re.compile(
        r"(?:src|href)\s*=\s*[\"'](?!data:image|#)|url\((?!#)|@import|<script|<link"
    )
    for text in (page, *svgs):
        assert not outside.search(text)
    assert "://" not in page
    assert "A tiny &lt;web&gt;" in page
    for result in study.methods:
        assert f"<td>{result.name}</td>" in page
        assert f"| {result.name} |" in path.with_suffix(".md").read_text("utf-8")
    rows = list(csv.reader(path.with_suffix(".csv").read_text("utf-8").splitlines()))
    assert tuple(rows[0]) == LONG_TITLES
    assert len(rows) == 1 + len(list(long_rows(study)))
    assert {row[0] for row in rows[1:]} == {"methods", "differences", "sweeps", "accuracy", "trees"}


def test_a_report_is_not_overwritten_unless_asked(
    study: Study, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cocite.evaluate.report.pictures", lambda study: {})
    (tmp_path / "r.csv").write_text("mine")
    with pytest.raises(cocite.CociteError, match=r"r.csv exists. Choose another output"):
        write_report(study, tmp_path / "r.html")
    with pytest.raises(UsageError, match=r"a report ends in \.html"):
        write_report(study, tmp_path / "r.pdf")
    assert (tmp_path / "r.csv").read_text() == "mine"
    write_report(study, tmp_path / "r.html", overwrite=True)
    assert (tmp_path / "r.csv").read_text() != "mine"


# -- suites ---------------------------------------------------------------------------------------


def test_the_suites_that_come_along_are_sound() -> None:
    assert built_in_suites() == ["cit-hepph", "cora", "graph", "polblogs", "web", "wikispeedia"]
    for name in built_in_suites():
        assert load_suite(name).methods()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x = 1", "the suite has no key 'x'"),
        ("[data]\nlinks = 3", r"\[data\], links: str was expected, found 3"),
        ("[[method]]\nmeasures = ['x']", "no measure is called 'x'"),
        ("[[method]]\ndirections = ['up']", "direction is 'up'"),
        ("[[method]]\nsettings = {decay = 2}", "decay is 2; it is a number between 0 and 1"),
        ("[[embedding]]\nkind = 'spectral'", r"\[\[embedding\]\] lacks name"),
        ("[[embedding]]\nname = 'e'\nkind = 'x'", "kind is one of spectral, walks"),
        ("[[blend]]\nname = 'b'\nof = ['x']", "blend b: no method is called x"),
        ("baseline = 'x'", "baseline is 'x'"),
        ("[[sweep]]\nsetting = 'length'", r"\[\[sweep\]\] lacks values"),
        ("[accuracy]\nmeasures = ['ppr']", r"\[accuracy\] takes samples, and measures out of"),
        ("[data]\nlinks = 'a'\ngraph = 'b'", "more than one of links, graph and web"),
        ("[data", "tiny.toml: "),
        ("data = 3", r"\[data\] is not a table"),
        ("method = {}", r"write \[\[method\]\]"),
    ],
)
def test_what_is_wrong_with_a_suite_is_said(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "tiny.toml").write_text(text)
    with pytest.raises(InputError, match=message):
        load_suite(str(tmp_path / "tiny.toml"))


def test_unknown_suites_and_missing_data(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"no suite is called 'x'; there are graph"):
        load_suite("x")
    with pytest.raises(InputError, match="cannot be read"):
        load_suite(str(tmp_path / "none.toml"))
    with pytest.raises(UsageError, match="name the folder"):
        run_suite(load_suite("wikispeedia"), None, tmp_path)


# -- the command line -----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def web(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a graph, an index of it and its labels."""
    folder = tmp_path_factory.mktemp("web")
    graph = cocite.generate_web(
        folder / "g", nodes=300, links=2000, seed=1, labels=folder / "labels.tsv"
    )
    cocite.build(graph, folder / "i", samples=10)
    cocite.build(graph, folder / "j", samples=10, direction="both")
    return folder


def test_indexes_side_by_side(web: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["evaluate", str(web / "i"), str(web / "j"), "--labels", str(web / "labels.tsv")]
    command += ["--queries", "30", "--set", "decay=0.3", "--cutoffs", "5"]
    assert main([*command, "--format", "json"]) == 0
    value = json.loads(capsys.readouterr().out)
    assert value["facts"]["queries"] == 30
    assert {row["method"] for row in value["figures"]} == {str(web / "i"), str(web / "j")}
    assert {"gamma", "precision@5", "ndcg@5"} <= {row["figure"] for row in value["figures"]}
    assert main(command) == 0
    table = capsys.readouterr().out.splitlines()
    assert table[0].split()[-1] == "method"
    assert table[2].endswith(str(web / "i"))
    assert re.search(r"\d\.\d{3} ±\d\.\d{3}", table[2])
    assert main([*command, "--format", "csv"]) == 0
    assert capsys.readouterr().out.startswith(",".join(LONG_TITLES))


def test_indexes_are_drawn_whatever_they_are_called(
    web: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A blend is no measure that has a colour, and a path no name that a suite gives."""
    pytest.importorskip("matplotlib")
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
        assert main([*command, "-o", str(output)]) == 0
        page = output.read_text()
        assert all(str(path) in page for path in paths)
        assert page.count("<img") == 2
    capsys.readouterr()


def test_a_graph_is_evaluated_by_every_measure(
    web: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("matplotlib")
    output = tmp_path / "r.html"
    command = ["evaluate", str(web / "g"), "--labels", str(web / "labels.tsv"), "--queries", "10"]
    assert main([*command, "--set", "samples=5", "-o", str(output), "--format", "json"]) == 0
    printed = capsys.readouterr()
    found = {row["measure"] for row in json.loads(printed.out)["figures"]}
    assert found == set(MEASURES) - {"coupling"}
    assert output.exists()
    assert "the report" in printed.err


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        ([], 2, "name indexes, or a graph, or a --suite"),
        (["i"], 2, "nothing to judge by: give labels or texts"),
        (["i", "--labels", "g"], 1, "is not a file"),
        (["i", "--labels", "labels.tsv", "--label-columns", "2,1"], 1, "labels no node"),
        (["i", "--labels", "labels.tsv", "--label-columns", "2"], 2, "label columns are two"),
        (["i", "--labels", "labels.tsv", "--set", "form=x"], 2, "no setting 'form'"),
        (["i", "--labels", "labels.tsv", "--set", "decay"], 2, "is not NAME=VALUE"),
        (["--suite", "x"], 2, "no suite is called 'x'"),
        (["i", "--labels", "labels.tsv", "-o", "r.pdf"], 2, "a report ends in .html"),
    ],
)
def test_errors(
    web: Path,
    arguments: list[str],
    code: int,
    message: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(web)
    assert main(["evaluate", *arguments]) == code
    assert message in capsys.readouterr().err


def test_missing_extras_name_the_command(
    web: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    graph = cocite.Graph.open(web / "g")
    for name in ("scipy.sparse", "sklearn.feature_extraction.text", "matplotlib.figure", "gensim"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(UsageError, match=r"needs scipy.*pip install 'cocite\[evaluate\]'"):
        embed(graph)
    texts = tmp_path / "texts.tsv"
    texts.write_text("".join(f"{name}\twords\n" for name in graph.names))
    assert main(["evaluate", str(web / "i"), "--texts", str(texts)]) == 2
    assert "needs scikit-learn, which is not installed: pip install" in capsys.readouterr().err
    labels = str(web / "labels.tsv")
    output = str(tmp_path / "r.html")
    assert main(["evaluate", str(web / "i"), "--labels", labels, "-o", output]) == 2
    assert "matplotlib, which is not installed" in capsys.readouterr().err
    assert main(["evaluate", str(web / "i"), "--labels", labels, "--queries", "5"]) == 0
