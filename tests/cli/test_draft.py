"""``cocite related --draft`` and ``cocite why --draft``: output and errors; and
``cocite related INDEX -``: names from standard input, answers as lines of JSON.
"""

import io
import json
import subprocess
import sys
from pathlib import Path

import pytest

import cocite
from cocite.cli.main import main
from tests.conftest import Ask, MakeGraph, Shell, json_hits

LINKS = [(a, b) for a in "abcdef" for b in "uvwxyz" if (ord(a) * ord(b)) % 5 != 1]


@pytest.fixture
def index(make_graph: MakeGraph, tmp_path: Path) -> str:
    cocite.build(make_graph([*LINKS, ("u", "a"), ("v", "b")]), tmp_path / "i")
    return str(tmp_path / "i")


def test_draft_option_reads_file_or_stdin(
    index: str, tmp_path: Path, ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "draft.txt"
    file.write_text("u\n-> w\n<- v\n")
    code, stdout, _ = ask("related", index, "--draft", str(file), "--format", "json", "-k", "4")
    found = json.loads(stdout)
    expected = cocite.open(index).related_to(["u", "w"], ["v"], 4)
    assert code == 0
    assert found["node"] == "draft"
    assert json_hits(found) == expected
    stdin = io.TextIOWrapper(io.BytesIO(file.read_bytes()))
    monkeypatch.setattr("sys.stdin", stdin)
    again = ask("related", index, "--draft", "-", "--format", "json", "-k", "4")
    assert again[:2] == (0, stdout)
    code, stdout, _ = ask(
        "related", index, "--draft", str(file), "--exclude-prefix", "u", "-k", "99"
    )
    assert code == 0
    assert " w\n" in stdout
    assert " u\n" not in stdout
    code, stdout, _ = ask("why", index, "w", "--draft", str(file), "--draft-name", "mine")
    assert code == 0
    assert "the score of mine and w is" in stdout


def test_draft_option_refuses_unknown_or_malformed_links(
    index: str, tmp_path: Path, ask: Ask, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "draft.txt"
    file.write_text("u\nunheard of\n")
    draft = ("--draft", str(file))
    assert ask("related", index, *draft, "--skip-unknown")[0] == 0
    assert "omitted from the draft" in caplog.text
    file.write_text("u\tfar\n")
    code, _, error = ask("related", index, *draft)
    assert code == 1
    assert "draft.txt:1: 'u\\tfar' is not a link of a draft" in error
    file.write_text("\n")
    assert ask("related", index, *draft)[0] == 2


def test_draft_option_explains_missing_in_links(
    make_graph: MakeGraph, tmp_path: Path, ask: Ask
) -> None:
    cocite.build(make_graph(LINKS), tmp_path / "i", measure="psimrank")
    file = tmp_path / "draft.txt"
    file.write_text("u\nv\n")
    code, stdout, _ = ask("related", str(tmp_path / "i"), "--draft", str(file))
    assert code == 0
    assert stdout == (
        "no node is related to draft by psimrank: the draft has no in-links, which the index uses\n"
    )
    file.write_text("<- a\n")
    code, stdout, _ = ask("related", str(tmp_path / "i"), "--draft", str(file))
    assert "which the index uses" not in stdout


# -- names from standard input ---------------------------------------------------------


WEB_LINKS = [("a", "b"), ("a", "c"), ("d", "b"), ("d", "c"), ("e", "été")]


@pytest.fixture
def web(make_graph: MakeGraph, tmp_path: Path) -> str:
    cocite.build(make_graph(WEB_LINKS), tmp_path / "web.index")
    return str(tmp_path / "web.index")


def test_related_stdin_answers_equal_single_queries(
    web: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    expected = []
    for name in ("b", "été", "a"):
        assert main(["related", web, name, "-k", "2", "--format", "json"]) == 0
        expected.append(json.loads(capsys.readouterr().out))
    monkeypatch.setattr(sys, "stdin", io.StringIO("b\r\n\nété\na"))
    assert main(["related", web, "-", "-k", "2"]) == 0
    assert [json.loads(line) for line in capsys.readouterr().out.splitlines()] == expected


def test_related_stdin_reports_unknown_name(
    web: str, monkeypatch: pytest.MonkeyPatch, shell: Shell
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO("b\nnobody\nc\n"))
    printed = shell(["related", web, "-"], 2)
    first, second, third = map(json.loads, printed.out.splitlines())
    assert first["node"] == "b"
    assert second["node"] == "nobody"
    assert "no node is named 'nobody'" in second["error"]
    assert third["hits"]
    assert "1 of the names are not nodes" in printed.err


@pytest.mark.process
@pytest.mark.chosen
def test_related_stdin_answers_before_next_name(web: str) -> None:
    """A program can wait for each answer before it writes the next name."""
    command = [sys.executable, "-m", "cocite", "related", web, "-"]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        for name in ("b", "c"):
            process.stdin.write(f"{name}\n")
            process.stdin.flush()
            assert json.loads(process.stdout.readline())["node"] == name
        process.stdin.close()
        assert process.wait() == 0


def test_draft_option_reads_note(
    tmp_path: Path, ask: Ask, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    vault = tmp_path / "vault"
    (vault / "deep").mkdir(parents=True)
    for name in "abcdef":
        text = "".join(f"[[{other}]]\n" for other in "abcdef" if (ord(name) * ord(other)) % 3)
        (vault / "deep" / f"{name}.md").write_text(f"# Note {name.upper()}\n{text} #Tag")
    new = tmp_path / "new.md"
    new.write_text("---\ntitle: New\n---\n[[a]] [b](b.md) `[[c]]` [[gone]] [[#x]] #tag [[New]]\n")
    options = ("--format", "json", "-k", "4")
    draft = ("--draft", str(new), "--draft-name", "deep/New", *options)
    code, stdout, _ = ask("related", str(vault), *draft)
    assert code == 0
    assert "omitted from the draft: links that lead to no note (1), such as 'gone'" in caplog.text
    cocite.build(cocite.ingest(str(vault), tmp_path / "g"), tmp_path / "i")
    expected = cocite.open(tmp_path / "i").related_to(["deep/a", "deep/b"], k=4)
    assert json_hits(json.loads(stdout)) == expected
    assert ask("related", str(tmp_path / "i"), *draft)[1] == stdout
    stdin = io.TextIOWrapper(io.BytesIO(new.read_bytes()))
    monkeypatch.setattr("sys.stdin", stdin)
    piped = ("--draft", "-", "--draft-format", "note", "--draft-name", "deep/New")
    assert ask("related", str(vault), *piped, *options)[1] == stdout
    code, _, error = ask("related", str(vault), "--draft", str(new), "--draft-format", "names")
    assert code == 2
    assert "new.md" in error or "unknown page" in error
    new.write_text("nothing is linked here")
    code, _, error = ask("related", str(vault), "--draft", str(new))
    assert (code, "the draft has no link" in error) == (2, True)
    for query in ("A", "deep/a.md", "./deep/a.md", "note a", str(vault / "deep" / "a.md")):
        code, stdout, error = ask("related", str(vault), query, *options)
        assert code == 0, error
        assert json.loads(stdout)["node"] == "deep/a"
