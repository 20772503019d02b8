"""``cocite ingest``, ``generate``, ``info`` and ``verify``: text output and JSON."""

import csv
import io
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from cocite import Graph
from cocite.cli.main import main
from tests.conftest import Shell
from tests.io.plain import links

LINKS = "a\tb\na\tb\nb\tc\nc\tc\n"


@pytest.fixture
def workdir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory, with links.tsv."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "links.tsv").write_text(LINKS)
    return tmp_path


@pytest.fixture
def graph(workdir: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    assert main(["ingest", "links.tsv", "-o", "g"]) == 0
    capsys.readouterr()
    return workdir / "g"


def run(stdin: bytes, *arguments: str) -> subprocess.CompletedProcess[bytes]:
    result = subprocess.run(
        [sys.executable, "-m", "cocite", *arguments], input=stdin, capture_output=True, check=False
    )
    # Progress lines depend on the speed of the machine.
    result.stderr = re.sub(rb"(?m)^[a-z ]+ \(\d+ (s|min)\).*\n", b"", result.stderr)
    return result


def test_ingest_prints_summary(workdir: Path, shell: Shell) -> None:
    out, err = shell("ingest links.tsv -o g")
    assert err == (
        "read links.tsv: tab-separated, no header; the first link is a -> b (if these name the "
        "columns: --header yes)\n"
    )
    assert out.splitlines() == [
        "graph              g",
        "nodes              3, named by text",
        "links              2, 0.7 per node",
        "most linked to     1 (b)",
        "most links         1 (a)",
        "without in-links   1",
        "without out-links  1",
        "isolated           0",
        "links read         4",
        "dropped            1 duplicates, 1 self-loops, 0 bad rows",
        f"on disk            {Graph.open('g').info().bytes} B",
    ]


def test_info_json_and_csv_hold_all_facts(graph: Path, shell: Shell) -> None:
    found = json.loads(shell("info g --format json").out)
    opened = Graph.open(graph)
    assert found == {
        "kind": "graph",
        "path": "g",
        "nodes": 3,
        "edges": 2,
        "without_in_links": 1,
        "without_out_links": 1,
        "isolated": 0,
        "largest_in_degree": 1,
        "largest_in_degree_node": "b",
        "largest_out_degree": 1,
        "largest_out_degree_node": "a",
        "names": "text",
        "rows": 4,
        "undirected": False,
        "duplicates": 1,
        "self_loops": 1,
        "bad_rows": 0,
        "smallest_weight": None,
        "largest_weight": None,
        "total_weight": None,
        "bytes": opened.store.nbytes,
        "digest": opened.digest,
        "hubs": [],
        "sources": opened.store.facts["sources"],
    }
    rows = list(csv.reader(io.StringIO(shell("info g --format csv").out)))
    assert rows[0] == ["fact", "value"]
    expected = {key: "" if value is None else str(value) for key, value in found.items()}
    assert dict(rows[1:]) == expected | {"sources": json.dumps(found["sources"])}


@pytest.mark.process
@pytest.mark.chosen
def test_ingest_reads_stdin(workdir: Path) -> None:
    result = run(b"x,y\n1,2\n", "ingest", "-", "-o", "g", "--format", "json")
    assert result.returncode == 0
    *progress, message = result.stderr.decode().splitlines()  # on a slow machine
    assert all(line.startswith("reading standard input (") for line in progress)
    assert message == (
        "read standard input: comma-separated, a header ('x', 'y'; if these are a link: "
        "--header no)"
    )
    assert json.loads(result.stdout)["edges"] == 1
    assert links(Graph.open("g")) == [("1", "2")]


@pytest.mark.process
def test_ingest_names_stdin_in_errors(workdir: Path) -> None:
    result = run(b"a\tb\nc\n", "ingest", "-", "-o", "g")
    assert result.returncode == 1
    assert result.stderr.startswith(b"Error: standard input:2: not 2 tab-separated columns: 'c'.")
    assert result.stdout == b""
    result = run(b"PAR1....", "ingest", "-", "-o", "g")
    assert result.stderr == (
        b"Error: standard input is Parquet, which cannot be read as a stream: "
        b"pass the file itself\n"
    )


def test_ingest_bad_rows_lists_skipped_rows(workdir: Path, shell: Shell) -> None:
    (workdir / "bad.tsv").write_text("a\tb\nc\n\td\n")
    reply = shell("ingest bad.tsv -o g --bad-rows few", 1)
    assert reply.err == (
        "Error: bad.tsv has 2 bad rows and 1 good ones: it may not be an edge list, or may need "
        "other options. The first bad row is line 2: not 2 tab-separated columns: 'c'. To skip "
        "all bad rows: --bad-rows all\n"
    )
    reply = shell("ingest bad.tsv -o g --bad-rows all")
    assert reply.err.splitlines() == [
        "read bad.tsv: tab-separated, no header; the first link is a -> b (if these name the "
        "columns: --header yes)",
        "  skipped bad rows: 1 columns, 1 empty name",
        "    line 2: not 2 tab-separated columns: 'c'",
        "    line 3: an empty name: '\\td'",
    ]


def test_ingest_overwrite_replaces_graph(graph: Path) -> None:
    (graph.parent / "links.tsv").write_text("x\ty\n")
    assert main(["ingest", "links.tsv", "-o", "g", "--overwrite"]) == 0
    assert links(Graph.open(graph)) == [("x", "y")]


def test_verify_finds_damage_in_each_file(graph: Path, shell: Shell) -> None:
    store = Graph.open(graph).store
    assert shell("verify g").out == f"g  graph, 7 files, {store.nbytes} B: all intact\n"
    reply = shell("verify g --format json")
    assert json.loads(reply.out) == {
        "path": "g",
        "kind": "graph",
        "files": 7,
        "bytes": store.nbytes,
        "sound": True,
        "faults": [],
    }
    for name in store.manifest.files:
        path = graph / name
        content = path.read_bytes()
        path.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
        out, err = shell("verify g", 1)
        assert out == ""
        assert err.startswith(f"Error: 1 of 7 files are damaged:\n  g/{name} has checksum ")
        path.write_bytes(content)


@pytest.mark.process
def test_info_tolerates_closed_stdout(graph: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "cocite", "info", "g"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=os.environ | {"PYTHONUNBUFFERED": ""},
    )
    assert process.stdout is not None
    process.stdout.close()
    _, err = process.communicate()
    assert (process.returncode, err) == (0, b"")


# -- generated graphs ------------------------------------------------------------------


WEB = ["generate", "web", "--pages", "300", "--links", "2000", "--seed", "7", "-o", "g"]


def test_generate_web_prints_summary(workdir: Path, shell: Shell) -> None:
    out, err = shell(WEB)
    assert "Error" not in err  # there is progress if kernels are compiled
    shown = dict(re.split(r" {2,}", line, maxsplit=1) for line in out.splitlines())
    assert shown["graph"] == "g"
    assert shown["nodes"] == "300, named by text"
    assert shown["links"] == "2,000, 6.7 per node"
    assert shell("info g").out == out
    assert main(["verify", "g"]) == 0


def test_generate_web_prints_json_and_csv(workdir: Path, shell: Shell) -> None:
    found = json.loads(shell([*WEB, "--names", "integers", "--format", "json"]).out)
    assert (found["nodes"], found["edges"], found["names"]) == (300, 2000, "integers 0 to n - 1")
    reply = shell([*WEB, "--overwrite", "--format", "csv"])
    assert reply.out.startswith("fact,value\nkind,graph\n")


def test_generate_web_writes_labels(workdir: Path) -> None:
    assert main([*WEB, "--labels", "topics.tsv"]) == 0
    rows = [row.split("\t") for row in (workdir / "topics.tsv").read_text().splitlines()]
    assert [name for name, _ in rows] == list(Graph.open("g").names)
    assert all(re.fullmatch(r"topic\.\d\.\d\.\d", topic) for _, topic in rows)
    assert sorted(path.name for path in workdir.iterdir()) == ["g", "links.tsv", "topics.tsv"]
