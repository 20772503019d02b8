"""The README, docs/index.md and docs/start.md are true: their transcripts are what commands print,
and their figures those of the results.

``COCITE_WRITE_README=1 pytest tests/test_readme.py`` rewrites the transcripts from real output.
"""

import io
import itertools
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from types import ModuleType

import click
import pytest
from benchmarks.report import DOCUMENTS, newest, with_figures

from benchmarks import defaults, embeddings, intervals, landing, related_all, suites
from cocite.cli.main import main
from cocite.options.query import INTERVALS
from cocite.resources import cores

ROOT = Path(__file__).parents[1]
README, START = ROOT / "README.md", ROOT / "docs" / "start.md"
LANDING = ROOT / "docs" / "index.md"
CONSOLE = re.compile(r"```console\n\$ (?P<command>[^\n]+)\n(?P<output>.*?)```", re.S)
PYTHON = re.compile(r"```python\n(?P<code>.*?)```\n\n```text\n(?P<output>.*?)```", re.S)
SECONDS = re.compile(r"\b[0-9.]+ (s|min)\b")
PROGRESS = re.compile(r"^[a-z]+ing[^:\n]*: [0-9.,]+ .*\n", re.M)
SIZE = re.compile(r"[0-9.]+ kB on disk, M")  # estimated from the first sample of each thread
MEMORY = re.compile(r"[0-9.]+ MB of memory(?: on [0-9]+ threads?|, which holds)")


def comparable(text: str) -> str:
    """A transcript without times, memory, and progress, which depend on the machine. The documents
    are written on two cores; on others, forms and sizes may differ too.
    """
    text = MEMORY.sub("M", SECONDS.sub("T", PROGRESS.sub("", text)))
    return text if cores() == 2 else SIZE.sub("B on disk, M", text.replace("M then M", "M"))


def run(command: list[str], folder: Path) -> str:
    """The output of a command: standard error, then standard output."""
    environment = os.environ | {"COLUMNS": "100"}
    done = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, env=environment, check=False
    )
    return done.stderr + done.stdout


def run_here(arguments: list[str]) -> str:
    """The same for ``cocite`` in this process, which saves a second each."""
    out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True) for _ in range(2))
    with redirect_stdout(out), redirect_stderr(err):
        main(arguments)
    return b"".join(stream.buffer.getvalue() for stream in (err, out)).decode()


def with_real_output(text: str, folder: Path) -> str:
    """A document with the current output of its commands."""

    def console(match: re.Match[str]) -> str:
        program, *arguments = match["command"].split()
        assert program == "cocite"
        if "MB of memory" in match["output"]:  # of the whole process
            printed = run([sys.executable, "-m", "cocite", *arguments], folder)
        else:
            printed = run_here(arguments)
        return f"```console\n$ {match['command']}\n{printed}```"

    def python(match: re.Match[str]) -> str:
        printed = run([sys.executable, "-c", match["code"]], folder)
        return f"```python\n{match['code']}```\n\n```text\n{printed}```"

    return PYTHON.sub(python, CONSOLE.sub(console, text))


@pytest.mark.process
@pytest.mark.parametrize(("document", "minimum"), [(README, 2), (LANDING, 1), (START, 12)])
def test_transcripts_equal_command_output(
    document: Path, minimum: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    text = document.read_text("utf-8")
    real = with_real_output(text, tmp_path)
    if os.environ.get("COCITE_WRITE_README"):
        document.write_text(real, "utf-8")
    transcripts = CONSOLE.findall(text)
    assert len(transcripts) >= minimum
    command, _ = transcripts[0]
    program = [sys.executable, "-m", *command.split()]
    assert comparable(run(program, tmp_path)) == comparable(run_here(command.split()[1:]))
    assert comparable(real) == comparable(text)


def test_readme_is_short() -> None:
    assert len(README.read_text("utf-8").splitlines()) <= 150


def test_docs_figures_match_newest_results() -> None:
    for document, brief in DOCUMENTS.items():
        text = document.read_text("utf-8")
        assert with_figures(text, newest(), brief) == text


def test_landing_chart_matches_results() -> None:
    rows = json.loads(landing.RESULTS.read_text("utf-8"))
    for theme in landing.THEMES:
        file = ROOT / f"docs/landing-{theme}.svg"
        assert landing.drawn(rows, theme) == file.read_text("utf-8")


@pytest.mark.parametrize(
    "study",
    [defaults, embeddings, suites, related_all, intervals],
    ids=["defaults", "embeddings", "suites", "related_all", "intervals"],
)
def test_study_tables_match_results(study: ModuleType) -> None:
    text = study.BLOCK.document.read_text("utf-8")
    assert study.BLOCK.begin in text
    assert study.BLOCK.within(text, json.loads(study.BLOCK.results.read_text("utf-8"))) == text


def test_start_doc_states_batch_speed_of_results() -> None:
    results = json.loads(related_all.BLOCK.results.read_text("utf-8"))
    assert related_all.in_words(results) in " ".join(START.read_text("utf-8").split())


def test_intervals_are_narrow_and_keep_coverage() -> None:
    results = json.loads(intervals.BLOCK.results.read_text("utf-8"))
    rows = {(row["pairs"], row["samples"], row["bound"]): row for row in results["rows"]}
    assert len(rows) == 12
    for row in rows.values():
        assert row["intervals"] == 100_000
        assert all(share >= float(level) for level, share in row["inside"].items())
    betting, bernstein = (rows["hits", 100, bound]["width"]["0.95"] for bound in INTERVALS[:2])
    assert betting <= bernstein / 2
    assert rows["hits", 1000, "betting"]["certain"] >= 0.3


@pytest.mark.process
def test_stdlib_demo_prints_related_modules(tmp_path: Path) -> None:
    """``make demo`` without its environment."""
    printed = run([sys.executable, str(ROOT / "examples" / "stdlib_demo.py")], tmp_path)
    assert re.search(r"^  threading +\w[\w.]* 0\.\d\d,", printed, re.M), printed
    assert "queries for the 20 most related modules" in printed


def test_readme_uses_existing_commands() -> None:
    from cocite.cli.main import _COMMANDS

    used = set(re.findall(r"(?<![=.\w])cocite ([a-z][a-z-]+)\b", README.read_text("utf-8")))
    assert used <= set(_COMMANDS) | {"related"}
    assert {"ingest", "index", "related", "why"} <= used


def test_readme_pictures_are_described_and_small() -> None:
    pictures = re.findall(r"!\[([^\]]+)\]\(([^)]+)\)", README.read_text("utf-8"))
    assert pictures
    for description, name in pictures:
        assert len(description) > 20  # for readers who cannot see it
        assert (README.parent / name).stat().st_size < 150_000


def printed_commands() -> list[tuple[str, str]]:
    """(document, command) of all code lines and inline code that begin with ``cocite VERB``."""
    found = []
    for path in [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("src/**/*.py")]:
        if path.name == "CHANGELOG.md":  # describes old releases
            continue
        text, name = path.read_text("utf-8"), str(path.relative_to(ROOT))
        for block in re.findall(r"^```\w*\n(.*?)^```", text, re.M | re.S):
            lines = re.sub(r" *\\\n *", " ", block).splitlines()
            found += [(name, line) for line in lines if re.match(r"(\$ )?cocite [a-z]", line)]
        text = re.sub(r"^```.*?^```", "", text, flags=re.M | re.S)
        found += [
            (name, " ".join(code.split())) for code in re.findall(r"`(cocite [a-z][^`]+)`", text)
        ]
    return found


def test_docs_commands_have_valid_options() -> None:
    """Every command exists and takes its options with their values, even if no test runs it."""
    from cocite.cli.main import cli

    count, errors = 0, []
    for name, line in printed_commands():
        typed = re.split(r" {2,}|; then", line.removeprefix("$ "))[0]
        _, verb, *words = shlex.split(typed, comments=True)
        words = list(itertools.takewhile(lambda word: word not in ("|", ">", "<", "&&"), words))
        if words and words[-1].startswith("-"):  # an option named without its value
            words.append("...")
        command = cli.get_command(click.Context(cli), verb)
        if command is None:
            errors.append((name, line, "no such verb"))
            continue
        count += 1
        try:
            command.make_parser(click.Context(command)).parse_args(words)
        except click.UsageError as error:
            errors.append((name, line, error.format_message()))
    assert errors == []
    assert count > 200
