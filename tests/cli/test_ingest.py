"""``cocite ingest``, ``generate``, ``info`` and ``verify`` as a person or a program meets them."""

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
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder to work in, with links.tsv."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "links.tsv").write_text(LINKS)
    return tmp_path


@pytest.fixture
def graph(here: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    assert main(["ingest", "links.tsv", "-o", "g"]) == 0
    capsys.readouterr()
    return here / "g"


def run(stdin: bytes, *arguments: str) -> subprocess.CompletedProcess[bytes]:
    done = subprocess.run(
        [sys.executable, "-m", "cocite", *arguments], input=stdin, capture_output=True, check=False
    )
    # On a busy machine a log says how far it is: not what is tested.
    done.stderr = re.sub(rb"(?m)^[a-z ]+ \(\d+ (s|min)\).*\n", b"", done.stderr)
    return done


def test_ingest_prints_what_it_did(here: Path, shell: Shell) -> None:
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


def test_info_for_programs_has_the_numbers(graph: Path, shell: Shell) -> None:
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
def test_standard_input_is_a_file_too(here: Path) -> None:
    done = run(b"x,y\n1,2\n", "ingest", "-", "-o", "g", "--format", "json")
    assert done.returncode == 0
    *progress, told = done.stderr.decode().splitlines()  # a busy machine says how far it is
    assert all(line.startswith("reading standard input (") for line in progress)
    assert told == (
        "read standard input: comma-separated, a header ('x', 'y'; if these are a link: "
        "--header no)"
    )
    assert json.loads(done.stdout)["edges"] == 1
    assert links(Graph.open("g")) == [("1", "2")]


@pytest.mark.process
def test_a_fault_of_standard_input_is_named_so(here: Path) -> None:
    done = run(b"a\tb\nc\n", "ingest", "-", "-o", "g")
    assert done.returncode == 1
    assert done.stderr.startswith(b"Error: standard input:2: not 2 tab-separated columns: 'c'.")
    assert done.stdout == b""
    done = run(b"PAR1....", "ingest", "-", "-o", "g")
    assert done.stderr == (
        b"Error: standard input is Parquet, which cannot be read as a stream: "
        b"pass the file itself\n"
    )


def test_bad_rows_left_out_are_shown(here: Path, shell: Shell) -> None:
    (here / "bad.tsv").write_text("a\tb\nc\n\td\n")
    reply = shell("ingest bad.tsv -o g --bad-rows few", 1)
    assert reply.err == (
        "Error: bad.tsv has 2 bad rows and 1 good ones: it may not be an edge list, or may need "
        "other options. The first bad row is line 2: not 2 tab-separated columns: 'c'. To omit "
        "them anyway: --bad-rows all\n"
    )
    reply = shell("ingest bad.tsv -o g --bad-rows all")
    assert reply.err.splitlines() == [
        "read bad.tsv: tab-separated, no header; the first link is a -> b (if these name the "
        "columns: --header yes)",
        "  skipped bad rows: 1 columns, 1 empty name",
        "    line 2: not 2 tab-separated columns: 'c'",
        "    line 3: an empty name: '\\td'",
    ]


def test_overwrite_replaces_the_graph(graph: Path) -> None:
    (graph.parent / "links.tsv").write_text("x\ty\n")
    assert main(["ingest", "links.tsv", "-o", "g", "--overwrite"]) == 0
    assert links(Graph.open(graph)) == [("x", "y")]


def test_verify_reads_every_byte(graph: Path, shell: Shell) -> None:
    store = Graph.open(graph).store
    assert shell("verify g").out == f"g  graph, 7 files, {store.nbytes} B: all whole\n"
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
        whole = path.read_bytes()
        path.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
        out, err = shell("verify g", 1)
        assert out == ""
        assert err.startswith(f"Error: 1 of 7 files are damaged:\n  g/{name} has checksum ")
        path.write_bytes(whole)


@pytest.mark.process
def test_a_reader_that_has_enough_is_no_error(graph: Path) -> None:
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


def test_it_prints_the_graph_that_it_made(here: Path, shell: Shell) -> None:
    out, err = shell(WEB)
    assert "Error" not in err  # where kernels are compiled first there is progress
    shown = dict(re.split(r" {2,}", line, maxsplit=1) for line in out.splitlines())
    assert shown["graph"] == "g"
    assert shown["nodes"] == "300, named by text"
    assert shown["links"] == "2,000, 6.7 per node"
    assert shell("info g").out == out
    assert main(["verify", "g"]) == 0


def test_its_facts_are_for_programs_too(here: Path, shell: Shell) -> None:
    found = json.loads(shell([*WEB, "--names", "integers", "--format", "json"]).out)
    assert (found["nodes"], found["edges"], found["names"]) == (300, 2000, "integers 0 to n - 1")
    reply = shell([*WEB, "--overwrite", "--format", "csv"])
    assert reply.out.startswith("fact,value\nkind,graph\n")


def test_labels_are_written_beside(here: Path) -> None:
    assert main([*WEB, "--labels", "topics.tsv"]) == 0
    rows = [row.split("\t") for row in (here / "topics.tsv").read_text().splitlines()]
    assert [name for name, _ in rows] == list(Graph.open("g").names)
    assert all(re.fullmatch(r"topic\.\d\.\d\.\d", topic) for _, topic in rows)
    assert sorted(path.name for path in here.iterdir()) == ["g", "links.tsv", "topics.tsv"]
