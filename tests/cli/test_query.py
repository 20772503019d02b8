"""``cocite index``, ``related`` and ``similarity``: formats, exit codes, messages."""

import csv
import io
import json
import re
import subprocess
import sys
from pathlib import Path

import click
import duckdb
import pytest
from click.testing import CliRunner

import cocite
from cocite.cli.commands.related import numbers
from cocite.cli.flags import SETTINGS, flag_of
from cocite.cli.help import Sectioned
from cocite.cli.main import _COMMANDS, cli, main
from cocite.measures import MEASURES
from cocite.measures.ppr import MAX_EDGES, MIN_RESULTS
from cocite.search.cache import cached_stores
from tests.conftest import Ask, Shell, json_hits


@pytest.fixture
def index(hub: Path) -> Path:
    return hub / "i"


def test_related_json_equals_python(index: Path, ask: Ask) -> None:
    code, out, _ = ask("related", index, "one", "--format", "json", "--decay", "0.5")
    assert code == 0
    answer, expected = json.loads(out), cocite.open(index).related("one", decay=0.5)
    assert json_hits(answer) == expected
    settings = {"samples": 40, "length": 10, "seed": 1, "hubs": "plain", "decay": 0.5}
    assert answer == {
        "node": "one",
        "measure": "psimrank",
        "direction": "in",
        "settings": settings,
        "confidence": 0.95,
        "interval": "betting",
        "refined": False,
        "certain_ranks": expected.certain_ranks,
        "complete": True,
        "hits": answer["hits"],
    }


def test_related_csv_has_row_per_hit(index: Path, ask: Ask) -> None:
    _, out, _ = ask("related", index, "one", "-k", "1", "--format", "csv")
    titles, (rank, node, *_) = csv.reader(io.StringIO(out))
    assert titles == ["rank", "node", "score", "stderr", "low", "high"]
    assert (rank, node) == ("1", "two")


WITHOUT_FILTERS = ". Without filters, the best hit is two, with a score of 0.6\n"
TIE = "the order is not certain from rank 1 on, as ranks 1 and 2 have the same score\n"


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        (
            "related i one --min-score 0.99",
            f"no node scores 0.99 or more with one{WITHOUT_FILTERS}",
        ),
        (
            "related i one --prefix nobody",
            f"none of the requested nodes is related to one by psimrank{WITHOUT_FILTERS}",
        ),
        (
            "related i one --prefix t --min-score 0.99",
            f"no requested node scores 0.99 or more with one{WITHOUT_FILTERS}",
        ),
        ("related i one --offset 9", "one has no hit after rank 9\n"),
        (
            "related i hub",
            "no node is related to hub by psimrank. It has no in-links, which the index uses, but "
            "3 out-links: build the index with --measure fusion, or use --direction any\n",
        ),
        ("related g [red]three[/] --measure cocitation", TIE),
        ("related g one --measure cocitation", "\nthe order is certain\n"),
        ("similarity g one two --measure cocitation", ", for certain\n"),
        ("related g two --measure cocitation --prefix [ -k 1", "   [red]three[/]\n"),
        ("related i one -k 1", "   two\n"),  # one hit has no order
    ],
)
def test_related_text_ends_with_note(
    index: Path, shell: Shell, monkeypatch: pytest.MonkeyPatch, command: str, expected: str
) -> None:
    """Square brackets in names are not markup. An empty list prints only its explanation."""
    monkeypatch.chdir(index.parent)
    out = shell(command).out
    assert out.endswith(expected)
    assert out == expected or "\n─" in out or command.startswith("similarity")


def test_table_text_fits_terminal_and_keeps_names(monkeypatch: pytest.MonkeyPatch) -> None:
    from cocite.cli import output

    monkeypatch.setenv("COLUMNS", "30")
    table = output.table_text(["rank", "node"], [("1", "x" * 100), ("20", "y")])
    assert table.splitlines() == ["rank   node", "─" * 30, "   1   " + "x" * 100, "  20   y"]


def test_related_reports_complete_list(index: Path, ask: Ask) -> None:
    """``complete`` in Python and JSON for any k; in text if fewer than k are listed."""
    python = cocite.open(index)
    for options, total in (({}, 2), ({"prefix": "t"}, 1), ({"offset": 1}, 1)):
        found = [python.related("one", k, **options) for k in (1, 2, 3)]
        assert [len(hits) for hits in found] == [min(k, total) for k in (1, 2, 3)]
        assert [hits.complete for hits in found] == [k >= total for k in (1, 2, 3)]
        assert not found[2][:1].complete
    line = "\nthe list is complete: no other node scores above 0 by psimrank\n"
    for k in (1, 2, 3):
        _, out, _ = ask("related", index, "one", "-k", k)
        assert (line in out) == (k > 2)
        _, out, _ = ask("related", index, "one", "-k", k, "--format", "json")
        assert json.loads(out)["complete"] == (k > 1)
    _, out, _ = ask("related", index, "one", "--prefix", "t", "--min-score", "0.1")
    assert "complete: no other requested node scores 0.1 or more by psimrank\n" in out


@pytest.mark.parametrize(
    ("measure", "direction", "shown"),
    [
        ("cocitation", None, "cocitation, in-links"),
        ("coupling", None, "coupling, out-links"),
        ("coupling", "out", "coupling, in-links"),
        ("ppr", None, "ppr, out-links"),
        ("snn", None, "snn, both directions"),
    ],
)
def test_index_and_info_name_link_direction(
    index: Path, tmp_path: Path, ask: Ask, measure: str, direction: str | None, shown: str
) -> None:
    options = ("--direction", direction) if direction else ()
    arguments = ("index", index.parent / "g", "-o", tmp_path / "i", "--measure", measure, *options)
    assert shown in ask(*arguments)[1]
    assert shown in ask("info", tmp_path / "i")[1]


def test_index_prints_estimate_and_cost(index: Path, tmp_path: Path, ask: Ask) -> None:
    arguments = ["--samples", "30", "--measure", "simrank", "--format", "json"]
    code, out, err = ask("index", index.parent / "g", "-o", tmp_path / "x", *arguments)
    assert code == 0
    assert "on disk" in err
    assert "of memory on" in err
    report = json.loads(out)
    assert (report["samples"], report["samples_made"], report["measure"]) == (30, 30, "simrank")
    assert cocite.open(tmp_path / "x").samples == 30


@pytest.mark.parametrize("verb", sorted(_COMMANDS))
def test_help_all_explains_every_option(verb: str) -> None:
    result = CliRunner().invoke(cli, [verb, "--help-all"])
    printed = (
        CliRunner().invoke(cli, [verb, "--help"]).output if result.exit_code else result.output
    )
    command = cli.get_command(None, verb)  # type: ignore[arg-type]
    assert command is not None
    for parameter in command.params:
        if isinstance(parameter, click.Option) and not parameter.hidden:
            assert parameter.opts[-1] in printed
            assert getattr(parameter, "help", None), parameter.name
    assert (command.help or "").split("\n")[0].strip()


def test_related_graph_accepts_every_link_measure(index: Path, ask: Ask) -> None:
    for measure in MEASURES:
        code, _, err = ask("related", index.parent / "g", "one", "--measure", measure)
        assert code == (2 if measure == "tfidf" else 0), err
        assert (measure == "tfidf") == ("tfidf needs an index with texts: cocite index" in err)


@pytest.mark.parametrize("columns", [60, 80, 120])
def test_measures_fit_terminal(monkeypatch: pytest.MonkeyPatch, shell: Shell, columns: int) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    out = shell("measures").out
    blend = out.splitlines()[-1]
    assert all(len(line) <= columns for line in out.splitlines() if line != blend)
    words = out.split()
    for measure in MEASURES.values():
        assert {s.name for s in measure.build + measure.ask} <= {w.strip(";") for w in words}
        assert set(measure.summary.split()) <= set(words)


@pytest.mark.parametrize("verb", ["related", "similarity", "why"])
def test_help_separates_options_that_index_refuses(index: Path, ask: Ask, verb: str) -> None:
    """An index refuses options that are for graphs only; others apply to some index."""
    command = cli.get_command(click.Context(cli), verb)
    assert command is not None
    sections: dict[str, list[Sectioned]] = {}
    for parameter in command.params:
        if isinstance(parameter, Sectioned):
            sections.setdefault(parameter.section, []).append(parameter)
    graph_options = sections["For a GRAPH or LINKS only (the settings of an INDEX are fixed)"]
    query_settings = {s.name for measure in MEASURES.values() for s in measure.ask}
    flags = {option.opts[0][2:].replace("-", "_") for option in sections[SETTINGS]}
    assert flags == query_settings
    assert len(graph_options) > 10
    for option in graph_options:
        value = {"--measure": ["simrank"], "--direction": ["in"]}.get(option.opts[0], ["1"])
        if isinstance(option.type, click.Choice):
            value = [str(option.type.choices[0])]
        names = ["one"] if verb == "related" else ["one", "two"]
        arguments = [] if option.is_flag else value
        code, out, err = ask(verb, index, *names, option.opts[0], *arguments)
        assert (code, out) == (2, ""), option.opts
        assert "fixed when" in err or "when building" in err or "has no setting" in err


def test_help_lists_every_command() -> None:
    printed = CliRunner().invoke(cli, ["--help"]).output
    for verb, (_, line) in _COMMANDS.items():
        assert verb in printed
        assert line in printed


@pytest.mark.process
@pytest.mark.chosen
def test_main_help_imports_no_heavy_module() -> None:
    code = (
        "import sys; from cocite.cli.main import main; main(['--help']);"
        "print(sorted({'numba', 'duckdb', 'numpy', 'rich'} & set(sys.modules)), file=sys.stderr)"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert result.stderr == "[]\n"


def test_refine_option_prints_exact_answers(index: Path, tmp_path: Path, ask: Ask) -> None:
    graph = index.with_name("g")
    ready = tmp_path / "ready"
    build = ["index", graph, "-o", ready, "--measure", "simrank", "--samples", "5", "--refine"]
    code, out, _ = ask(*build)
    assert code == 0
    assert "ready for decay 0.6" in out
    assert "ready for decay 0.6" in ask("info", ready)[1]
    code, out, _ = ask("related", ready, "one", "--refine")
    assert code == 0
    # A tie has no probability.
    assert re.search(r"the order is not certain from rank 1 on(, as .* same score)?\n$", out)
    answer = json.loads(ask("related", ready, "one", "--refine", "--format", "json")[1])
    assert answer["refined"] is True
    assert answer["target_error"] == 0.001
    for command in (["similarity", ready, "one", "two"], ["related", ready, "one"]):
        assert "is not met" not in ask(*command, "--target-error", "0.9")[1]
    opened = cocite.open(ready)
    assert json_hits(answer) == opened.related("one", refine=True)
    code, out, _ = ask(
        "similarity", ready, "one", "two", "--target-error", "1e-5", "--format", "json"
    )
    pair = opened.similarity("one", "two", target_error=1e-5)
    answer = json.loads(out)
    assert (answer["a"], answer["b"], answer["refined"]) == ("one", "two", True)
    assert answer.items() >= pair._asdict().items()
    assert ask("related", ready, "one", "--target-error", "7")[0] == 2


def test_only_option_reads_editor_files(index: Path, tmp_path: Path, ask: Ask) -> None:
    """With a byte order mark, CRLF and empty lines; but no binary files."""
    names = tmp_path / "names.txt"
    names.write_bytes(b"\xef\xbb\xbftwo\r\n\r\n")
    code, out, _ = ask("related", index, "one", "--only", names, "--format", "csv")
    assert (code, [row.split(",")[1] for row in out.splitlines()]) == (0, ["node", "two"])
    names.write_bytes(b"two\n\x89PNG")
    commands = (
        ["related", index, "one", "--only"],
        ["related-all", index, "-o", "x.csv", "--nodes"],
    )
    for command in commands:
        code, _, error = ask(*command, names)
        assert code == 1
        assert "is not UTF-8 text (byte 4); it must contain names, one per line" in error


def test_related_suggests_option_that_narrows_intervals(tmp_path: Path, shell: Shell) -> None:
    """Errors are 0 and intervals are not, after a push with too few edges."""
    links = [(i, other % 97) for i in range(97) for other in (i * i + 1, 5 * i + 2)]
    graph = cocite.ingest(links, tmp_path / "g")
    cocite.build(graph, tmp_path / "i", measure="neighborhood")
    command = ["related", str(tmp_path / "i"), "3", "-k", "4"]
    edges, few = flag_of(MAX_EDGES.name), [flag_of(MIN_RESULTS.name), "1"]
    note = f"scores are not sampled; {edges} 300 narrows their intervals"
    assert note in shell([*command, edges, "30", *few]).out
    assert edges not in shell([*command, edges, "10000000"]).out
    pair = ["similarity", str(tmp_path / "i"), "3", "4", *few, edges, "30"]
    assert f"for certain; {edges} 300 narrows it" in shell(pair).out


def test_numbers_keep_small_error_visible() -> None:
    hit = cocite.Hit("a", 0.5, 0.00004, 0.4999, 0.5001)
    assert numbers(hit) == ["0.5000", "<0.0001", "0.4999", "0.5001"]
    assert numbers(hit._replace(stderr=0.0))[1] == "0.0000"
    assert numbers(hit._replace(stderr=0.00006))[1] == "0.0001"


def test_exit_codes_match_help(index: Path, tmp_path: Path, ask: Ask) -> None:
    help_text = " ".join(ask("--help")[1].split())
    assert "1 failed: a file is missing, damaged or malformed, an output already" in help_text
    assert (
        "2 wrong use: an invalid option, an unknown node, or a file of the wrong kind" in help_text
    )
    for code, *command in (
        (0, "related", index, "one"),
        (1, "related", tmp_path / "none.tsv", "one"),
        (2, "related", index, "one", "--none"),
    ):
        assert ask(*command)[0] == code, command


def test_related_all_reports_created_folder(index: Path, tmp_path: Path, ask: Ask) -> None:
    output = tmp_path / "new" / "folder" / "out.csv"
    message = f"created the folder {output.parent}"
    assert message in ask("related-all", index, "-o", output)[2]
    assert message not in ask("related-all", index, "-o", output.with_name("b.csv"))[2]


# -- many pairs ------------------------------------------------------------------------


PAIRS = [("one", "two"), ("two", "[red]three[/]"), ("one", "one"), ("hub", "one")]


def test_similarity_pairs_prints_and_writes(
    hub: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shell: Shell
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("pairs.tsv").write_text("".join(f"{a}\t{b}\n" for a, b in PAIRS))
    rows = "".join(f"{i},{b},{a}\n" for i, (a, b) in enumerate(PAIRS))
    Path("wide.csv").write_text("number,to,from\n" + rows)
    index = cocite.open(hub / "i")
    expected = [(a, b, *index.similarity(a, b, decay=0.5)) for a, b in PAIRS]
    command = ["similarity", str(hub / "i"), "--decay", "0.5", "--pairs"]
    document = json.loads(shell([*command, "pairs.tsv", "--format", "json"]).out)
    assert [tuple(pair.values()) for pair in document["pairs"]] == expected
    assert document["settings"]["decay"] == 0.5
    reply = shell([*command, "wide.csv", "--pair-columns", "from,to", "--format", "csv"])
    titles, *found = csv.reader(io.StringIO(reply.out))
    assert titles == ["a", "b", "score", "stderr", "low", "high"]
    assert [(a, b, *map(float, numbers)) for a, b, *numbers in found] == expected
    printed = shell([*command, "pairs.tsv"])
    assert len(printed.out.splitlines()) == 6
    assert "pairs.tsv: tab-separated, no header" in printed.err
    parquet = tmp_path / "pairs.parquet"
    assert "4 pairs" in shell([*command, "pairs.tsv", "-o", parquet, "--threads", "1"]).out
    assert duckdb.read_parquet(str(parquet)).fetchall() == expected
    again = tmp_path / "again.jsonl"
    reply = shell([*command, parquet, "-o", again, "--format", "json"])
    assert json.loads(reply.out)["pairs"] == 4
    lines = [tuple(json.loads(line).values()) for line in again.read_text().splitlines()]
    assert lines == expected
    assert main([*command, "pairs.tsv", "-o", str(again)]) == 1
    assert main([*command, "pairs.tsv", "-o", str(again), "--overwrite"]) == 0


def test_similarity_pairs_includes_titles(tmp_path: Path, shell: Shell) -> None:
    graph = cocite.ingest([("h", "x"), ("h", "y")], tmp_path / "g", titles={"x": "The page X"})
    cocite.build(graph, tmp_path / "i", measure="cocitation")
    (tmp_path / "pairs.tsv").write_text("x\ty\n")
    command = ["similarity", str(tmp_path / "i"), "--pairs", str(tmp_path / "pairs.tsv")]
    (pair,) = json.loads(shell([*command, "--format", "json"]).out)["pairs"]
    assert (pair["a_title"], pair["b_title"]) == ("The page X", None)
    assert main([*command, "-o", str(tmp_path / "out.jsonl")]) == 0
    assert json.loads((tmp_path / "out.jsonl").read_text()) == pair


# -- options without effect ------------------------------------------------------------


@pytest.fixture
def links(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "links.tsv").write_text("a\tx\nb\tx\nc\tx\na\ty\nb\ty\nz\ty\n")
    assert main(["related", "links.tsv", "x"]) == 0
    return "links.tsv"


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ([], "the scores of fusion are computed, not estimated"),
        (
            ["--measure", "ppr-symmetric"],
            "ppr-symmetric has no samples; a larger --max-edges narrows its intervals",
        ),
        (["--measure", "ppr"], "ppr has no samples; a smaller --tolerance narrows its intervals"),
        (["--measure", "cocitation"], "the scores of cocitation are computed, not estimated"),
    ],
)
def test_refine_option_without_effect_names_alternative(
    links: str, shell: Shell, given: list[str], reason: str
) -> None:
    shell(["related", links, "x", *given])
    plain = shell(["related", links, "x", *given])
    for option in (["--refine"], ["--target-error", "0.01"]):
        refined = shell(["related", links, "x", *given, *option])
        assert refined.out == plain.out
        assert refined.err == f"{plain.err}{option[0]} has no effect: {reason}\n"
    reply = shell(["related", links, "x", "--measure", "simrank", "--refine"])
    assert "has no effect" not in reply.err


@pytest.mark.parametrize(
    ("output_format", "code"), [("table", 2), ("csv", 2), ("json", 0), (None, 0)]
)
def test_related_stdin_refuses_other_formats(
    links: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    output_format: str | None,
    code: int,
) -> None:
    capsys.readouterr()
    monkeypatch.setattr("sys.stdin", io.StringIO("x\n"))
    assert (
        main(["related", links, "-", *(["--format", output_format] if output_format else [])])
        == code
    )
    out, err = capsys.readouterr()
    assert out.startswith('{"node": "x"') if code == 0 else "omit --format" in err


def test_draft_option_hints_missing_blank_after_arrow(
    links: str, tmp_path: Path, shell: Shell
) -> None:
    (tmp_path / "draft").write_text("<-a\n-> y\n")
    reply = shell(["related", links, "--draft", "draft"], 2)
    assert "'<-a' (put a blank after the arrow: '<- a')" in reply.err


def test_draft_option_warns_without_text(
    links: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("sklearn")
    (tmp_path / "texts").mkdir()
    for name in "abcxyz":
        (tmp_path / "texts" / name).write_text(f"words of page {name * 3} and of others\n" * 3)
    path, *_ = map(str, cached_stores("links.tsv"))
    graph = cocite.Graph.open(path)
    cocite.build(graph, "t.index", texts="texts", text_fraction=0.25, min_df=1, max_df=1.0)
    (tmp_path / "draft").write_text("<- a\n<- b\n")
    capsys.readouterr()
    assert main(["related", "t.index", "--draft", "draft", "--graph", path]) == 0
    message = "the draft has no text: scores use only its links, which are 75% of a score\n"
    assert capsys.readouterr().err == message
    assert main(["related", links, "--draft", "draft"]) == 0
    assert "no text" not in capsys.readouterr().err


def test_related_accepts_name_after_double_dash(tmp_path: Path, ask: Ask) -> None:
    (tmp_path / "l.tsv").write_text("h\t-k\nh\tb\n")
    graph = cocite.ingest(tmp_path / "l.tsv", tmp_path / "g")
    cocite.build(graph, tmp_path / "i", samples=3, measure="psimrank")
    code, out, _ = ask("related", tmp_path / "i", "--format", "csv", "--", "-k")
    assert code == 0
    assert out.splitlines()[1].startswith("1,b,")
