"""Whole studies on a tiny generated web: every table, the figures, the suites, the errors."""

import gzip
import re
from dataclasses import replace
from pathlib import Path

import pytest
from benchmarks.studies.checks import graph_of
from benchmarks.studies.run import run_suite
from benchmarks.studies.study import LONG_TITLES, SuiteStudy, long_rows, tables_of
from benchmarks.studies.suite import built_in_suites, load_suite

from cocite.errors import InputError, UsageError
from cocite.evaluation.truth import read_truth

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

[[sweep]]
setting = "hubs"
values = ["plain", "idf"]
measures = ["psimrank"]

[[sweep]]
setting = "seed"
values = [0, 1]
measures = ["psimrank"]

[best]

[accuracy]
measures = ["simrank", "xjaccard"]
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
def study(suite_file: Path, tmp_path_factory: pytest.TempPathFactory) -> SuiteStudy:
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
    remaining = {path.name for path in work.iterdir() if path.suffix == ".index"}
    assert len(remaining) == 1  # of the blend
    return found


@pytest.mark.long
def test_run_suite_produces_every_table(study: SuiteStudy) -> None:
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
    assert list(study.sweeps) == ["length", "decay", "samples", "hubs", "seed"]
    (length,) = study.sweeps["length"]
    assert list(length.results) == [1, 10]
    assert study.notes == [
        "psimrank at length 16 is left out: it takes a whole number from 1 to 15"
    ]
    (decay,) = study.sweeps["decay"]  # cocitation has none
    assert decay.method == "psimrank in"
    assert study.facts["queries"] == 40
    assert [(each.measure, each.samples) for each in study.accuracy] == [
        ("simrank", 10),
        ("simrank", 100),
        ("xjaccard", 10),
        ("xjaccard", 100),
    ]
    assert [size.length for size in study.trees[0].sizes] == [1, 2, 3, 4]


@pytest.mark.long
def test_run_suite_best_splits_selection_and_judgment(study: SuiteStudy) -> None:
    best = study.best
    assert best is not None
    assert (best.by, best.chosen_by, best.judged_by) == ("precision@10", 20, 20)
    names = [result.name for result in best.results]
    assert [result.point.measure for result in best.results if result.point] == [
        *("psimrank", "simrank", "cocitation")
    ]
    assert names[3:] == ["vectors", "blend"]
    assert set(best.differences) == {*names} - {"vectors"}
    winner = best.results[0].point
    assert winner is not None
    assert winner.settings["seed"] == 0  # the seed is luck, not a setting
    swept = {
        result.point
        for setting, series in study.sweeps.items()
        for each in series
        for result in each.results.values()
        if setting != "seed"
    }
    methods = {result.point for result in study.methods}
    if winner not in swept | methods:  # then it has the best value of every setting
        assert winner.direction == "in"
        for setting, (series,) in study.sweeps.items():
            if setting != "seed":
                values = {v: r.figures["precision@10"].value for v, r in series.results.items()}
                assert values[winner.settings[setting]] == max(values.values())


# -- suites ---------------------------------------------------------------------------------------


def test_built_in_suites_load() -> None:
    assert built_in_suites() == [
        *("cit-hepph", "cora", "hollins", "polblogs", "web", "wikispeedia")
    ]
    for name in built_in_suites():
        assert load_suite(name).methods()


def test_evaluation_page_lists_suites_and_loadable_example(tmp_path: Path) -> None:
    text = (Path(__file__).parents[2] / "docs" / "evaluation.md").read_text("utf-8")
    assert sorted(
        re.findall(
            r"^\| `([a-z-]+)` \|.*\|.*\|$", text.split("### Suites")[1].split("\n## ")[0], re.M
        )
    ) == (built_in_suites())
    (tmp_path / "example.toml").write_text(re.findall(r"```toml\n(.*?)```", text, re.S)[0])
    found = load_suite(str(tmp_path / "example.toml"))
    assert "psimrank both hubs=idf decay=0.2" in found.methods()
    assert found.best is not None


DATA = {
    "cora": {"cora.cites": "a\tb\na\tc\n", "labels.tsv": "# id\tclass\na\tx.y\nb\tz\n"},
    "polblogs": {"edges.tsv": "b\ta\nc\ta\n", "labels.tsv": "a\tA\tx.y\tq\nb\tB\tz\tq\n"},
    "cit-hepph": {"cit-HepPh.txt.gz": "# a comment\nb\ta\nc\ta\n"},
    "wikispeedia": {
        "links.tsv": "# a comment\n\nb\ta\nc\ta\n",
        "categories.tsv": "# a comment\n\na\tx.y\nb\tz\n",
    },
}


@pytest.mark.parametrize("name", DATA)
def test_load_suite_reads_published_data(name: str, tmp_path: Path) -> None:
    """Page b links to a in each; Cora has the cited paper first."""
    for file, text in DATA[name].items():
        packed = gzip.compress(text.encode()) if file.endswith(".gz") else text.encode()
        (tmp_path / file).write_bytes(packed)
    suite = load_suite(name)
    plan = replace(suite.data, texts="")
    graph, _ = graph_of(plan, tmp_path, tmp_path / "w", lambda *arguments: None)
    cited = graph.names.id("a")
    counts = graph.in_offsets[cited + 1] - graph.in_offsets[cited]
    assert counts == graph.edges == 2
    truth = read_truth(graph.names, plan, suite.judge, tmp_path)
    if not plan.labels:
        assert truth.queries.size == 3
        return
    assert truth.labels is not None
    flat = name != "wikispeedia"
    assert set(truth.labels.paths) == {("x.y",) if flat else ("x", "y"), ("z",)}
    assert graph.names.names(truth.queries) == ["a", "b"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x = 1", "the suite has no key 'x'"),
        ("[data]\nlinks = 3", r"\[data\], links: str was expected, found 3"),
        ("[[method]]\nmeasures = ['x']", "no measure is called 'x'"),
        ("[[method]]\ndirections = ['up']", "direction is 'up'"),
        (
            "[[method]]\nsettings = {decay = 2}",
            "decay is 2; it must be a number above 0 and below 1",
        ),
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
def test_load_suite_reports_invalid_suite(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "tiny.toml").write_text(text)
    with pytest.raises(InputError, match=message):
        load_suite(str(tmp_path / "tiny.toml"))


def test_load_suite_reports_unknown_suite_and_missing_data(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"no suite is called 'x'; there are cit-hepph, cora"):
        load_suite("x")
    with pytest.raises(InputError, match="cannot be read"):
        load_suite(str(tmp_path / "none.toml"))
    with pytest.raises(UsageError, match="name the folder"):
        run_suite(load_suite("wikispeedia"), None, tmp_path)


def test_long_rows_contain_every_figure(study: SuiteStudy) -> None:
    rows = list(long_rows(study))
    assert all(len(row) == len(LONG_TITLES) for row in rows)
    assert {row[0] for row in rows} == {
        *("methods", "differences", "best", "best differences", "sweeps", "accuracy", "trees")
    }
    headings = [table.heading for table in tables_of(study)]
    assert headings[0] == "Methods"
    assert "Each measure at its best setting" in headings
