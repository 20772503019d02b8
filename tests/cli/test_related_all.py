"""``cocite related-all``: options, messages, exit codes."""

import csv
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import cocite
from cocite.cli.main import main
from cocite.options.query import DEFAULT_K
from cocite.search.batch import pieces, run
from cocite.storage import Journal
from tests.conftest import Shell
from tests.terminal import run_on_terminal


@pytest.fixture
def index(hub: Path) -> Path:
    return hub / "i"


def test_related_all_equals_related_and_reports(index: Path, tmp_path: Path, shell: Shell) -> None:
    output = tmp_path / "all.csv"
    arguments = ["related-all", index, "-o", output, "-k", 2, "--decay", 0.5, "--format", "json"]
    printed = shell(list(map(str, arguments)))
    assert printed.err == f"{output}: up to 2 hits for each of 5 nodes\n"
    with output.open() as file:
        rows = list(csv.reader(file))
    opened = cocite.open(index)
    expected = [
        [node, str(i), hit.node, str(hit.score), str(hit.stderr)]
        for node in opened.nodes
        for i, hit in enumerate(opened.related(node, 2, decay=0.5), 1)
    ]
    assert rows == [["node", "rank", "related", "score", "stderr"], *expected]
    facts = json.loads(printed.out)
    assert list(facts) == ["output", "nodes", "rows", "nodes_without_results", "seconds", "bytes"]
    assert (facts["nodes"], facts["rows"]) == (5, len(expected))
    assert (
        facts["nodes_without_results"] == len(set(opened.nodes) - {row[0] for row in expected}) == 2
    )
    assert facts["bytes"] == output.stat().st_size


def test_related_all_nodes_reads_file(
    index: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "nodes").write_text("two\n\none\n")
    command = ["related-all", str(index), "-o", str(tmp_path / "x.tsv"), "-k", "1"]
    assert main([*command, "--nodes", str(tmp_path / "nodes")]) == 0
    lines = (tmp_path / "x.tsv").read_text().splitlines()
    assert [line.split("\t")[0] for line in lines] == ["node", "two", "one"]
    assert "2 of 2 in" in capsys.readouterr().out
    (tmp_path / "nodes").write_text("two\nfour\n")
    command[3] = str(tmp_path / "y.tsv")
    assert main([*command, "--nodes", str(tmp_path / "nodes")]) == 2
    assert "no node is named 'four'" in capsys.readouterr().err
    assert not list(tmp_path.glob("y.*"))


def test_related_all_counts_nodes_without_hits(
    index: Path, tmp_path: Path, shell: Shell, capsys: pytest.CaptureFixture[str]
) -> None:
    """The count is omitted if all nodes have hits."""
    command = ["related-all", str(index), "-o", str(tmp_path / "x.csv"), "--overwrite"]
    assert main(command) == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert "without results 2 nodes; cocite related INDEX NODE says why" in printed
    reply = shell([*command, "--min-score", "0.99", "--format", "json"])
    assert json.loads(reply.out)["nodes_without_results"] == 5
    (tmp_path / "nodes").write_text("two\none\n")
    assert "without results" not in shell([*command, "--nodes", tmp_path / "nodes"]).out


def test_related_all_resumes_after_interruption(
    index: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    shell: Shell,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(pieces, "_MOST", 2)
    real = Journal.append

    def append(self: Journal, piece: bytes) -> None:
        if self.sizes:
            raise KeyboardInterrupt
        real(self, piece)

    output = tmp_path / "x.parquet"
    command = ["related-all", str(index), "-o", str(output)]
    with monkeypatch.context() as patched:
        patched.setattr(Journal, "append", append)
        assert main(command) == 130
    assert capsys.readouterr().err.splitlines()[-1] == (
        f"interrupted; the hits of 2 of 5 nodes are saved in {output}.building: repeat the "
        "command to continue"
    )
    printed = shell(command)
    assert printed.err == (
        f"{output}: up to {DEFAULT_K} hits for each of 5 nodes; "
        "resuming after 2 finished by an earlier run\n"
    )
    assert "3 of 5 in" in printed.out
    assert "2 nodes; cocite related INDEX NODE says" in " ".join(printed.out.split())
    assert "exists. Choose another output, or pass --overwrite" in shell(command, 1).err


FILTERED = (
    ["--min-score", "0.2"],
    ["--min-confidence", "0.9", "--interval", "hoeffding"],
    ["--prefix", "t", "--order", "pagerank"],
    ["--exclude-prefix", "t", "--order", "score*pagerank", "--candidates", "2"],
)


@pytest.mark.parametrize("options", FILTERED)
def test_related_all_filters_equal_related(
    index: Path, tmp_path: Path, shell: Shell, options: list[str]
) -> None:
    shell(["related-all", index, "-o", tmp_path / "all.jsonl", *options])
    for line in (tmp_path / "all.jsonl").read_text().splitlines():
        page = json.loads(line)
        reply = shell(["related", index, page["node"], *options, "--format", "json"])
        found = json.loads(reply.out)["hits"]
        names = "node", "score", "stderr"
        assert page["hits"] == [{name: hit[name] for name in names} for hit in found]


def test_related_all_applies_only_and_exclude_same_site(tmp_path: Path, shell: Shell) -> None:
    pages = [f"http://{host}/{page}" for host in ("a.org", "b.org") for page in range(4)]
    links = [f"http://c.org/hub\t{page}\n" for page in pages]
    (tmp_path / "links.tsv").write_text("".join(links))
    (tmp_path / "some").write_text("\n".join(pages[1:6]))
    command = ["related-all", str(tmp_path / "links.tsv"), "-o", "-", "--exclude-same-site"]
    reply = shell([*command, "--only", tmp_path / "some"])
    found = {page["node"]: page for page in map(json.loads, reply.out.splitlines())}
    assert {hit["node"] for hit in found[pages[0]]["hits"]} == set(pages[4:6])
    assert {hit["node"] for hit in found[pages[7]]["hits"]} == set(pages[1:4])


def test_related_all_accepts_graph(index: Path, tmp_path: Path) -> None:
    graph = str(index.with_name("g"))
    settings = ["--measure", "psimrank", "--samples", "40", "--seed", "1", "--decay", "0.5"]
    assert main(["related-all", graph, "-o", str(tmp_path / "g.csv"), *settings]) == 0
    assert main(["related-all", str(index), "-o", str(tmp_path / "i.csv"), *settings[-2:]]) == 0
    assert (tmp_path / "g.csv").read_bytes() == (tmp_path / "i.csv").read_bytes()


@pytest.mark.parametrize("kind", ["jsonl", "csv", "tsv"])
def test_related_all_stdout_equals_file(
    index: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfdbinary: pytest.CaptureFixture[bytes],
    kind: str,
) -> None:
    monkeypatch.setattr(run, "_WINDOW", 2)
    (tmp_path / "nodes").write_text("two\nhub\n[red]three[/]\none\nother\n")
    options = ["-k", "2", "--nodes", str(tmp_path / "nodes")]
    assert main(["related-all", str(index), "-o", str(tmp_path / f"x.{kind}"), *options]) == 0
    capfdbinary.readouterr()
    assert main(["related-all", str(index), "-o", "-", "--output-format", kind, *options]) == 0
    printed = capfdbinary.readouterr()
    assert printed.out == (tmp_path / f"x.{kind}").read_bytes()
    assert re.search(rb"^output +standard output, ", printed.err, re.M)
    assert main(["related-all", str(index), "-o", "-", "--format", "json", *options]) == 0
    printed = capfdbinary.readouterr()
    assert [json.loads(line)["node"] for line in printed.out.splitlines()] == [
        "two", "hub", "[red]three[/]", "one", "other",
    ]  # fmt: skip
    assert json.loads(printed.err.partition(b"\n")[2])["nodes"] == 5


def test_related_all_writes_folder(index: Path, tmp_path: Path, shell: Shell) -> None:
    reply = shell(["related-all", index, "-o", f"{tmp_path}/all/", "--format", "json"])
    facts = json.loads(reply.out)
    assert json.loads((tmp_path / "all" / "pages" / "two.json").read_text())["node"] == "two"
    files = (entry for entry in (tmp_path / "all").rglob("*") if entry.is_file())
    assert facts["bytes"] == sum(file.stat().st_size for file in files)


# -- progress -----------------------------------------------------------------------------

_SLOW = """
import sys
from cocite.cli import console as progress
from cocite.cli.main import main
from cocite import deadline
from cocite.search.batch import pieces
from cocite.search.batch.pieces import Question
from tests.clock import Clock

deadline._now = progress.time = pieces.time = clock = Clock()
bars, call, real = progress._bars, progress.Stages.__call__, Question.each

def clocked_bars():
    created = bars()
    created.get_time = clock
    return created

def refreshed(self, *arguments):
    call(self, *arguments)
    if self._bars is not None:
        self._bars.refresh()

def each(self, nodes):
    for hits in real(self, nodes):
        clock.sleep(30)
        yield hits

progress._bars, progress.Stages.__call__, Question.each = clocked_bars, refreshed, each
sys.exit(main(sys.argv[1:]))
"""
"""The program, with a clock that advances only by queries: 30 s each."""


@pytest.mark.process
@pytest.mark.chosen
def test_stages_log_times_to_pipe(index: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-c", _SLOW, "related-all", str(index), "--threads", "1", "-o"]
    result = subprocess.run(
        [*command, str(tmp_path / "x.csv")], capture_output=True, text=True, check=True
    )
    lines = re.findall(
        r"^relating \(([\d.]+ \w+)\): (\d) of 5 nodes(?:, about ([\d.]+ \w+) left)?$",
        result.stderr,
        re.M,
    )
    assert len(lines) >= 2
    assert "about" in result.stderr
    assert [int(line[1]) for line in lines] == sorted(int(line[1]) for line in lines)
    assert "\x1b" not in result.stderr


@pytest.mark.process
def test_stages_show_remaining_time_on_terminal(index: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-c", _SLOW, "related-all", str(index), "--threads", "1", "-o"]
    for width in ("120", "50"):
        env = os.environ | {"TERM": "xterm", "COLUMNS": width}
        code, shown = run_on_terminal([*command, str(tmp_path / f"{width}.csv")], env)
        assert code == 0
        shown = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", shown)
        assert re.search(r"0:0[12]:\d\d left", shown), (width, shown)
        assert re.search(r"\d of 5 nodes", shown), (width, shown)
