"""What is said where an option does nothing, is ignored, or is no number: in plain words."""

import io
from pathlib import Path

import pytest

import cocite
from cocite.cli.main import main
from cocite.search.cache import cached_stores
from tests.conftest import Shell


@pytest.fixture
def links(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "links.tsv").write_text("a\tx\nb\tx\nc\tx\na\ty\nb\ty\nz\ty\n")
    assert main(["related", "links.tsv", "x"]) == 0
    return "links.tsv"


@pytest.mark.parametrize(
    ("given", "said"),
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
def test_idle_option_names_another(links: str, shell: Shell, given: list[str], said: str) -> None:
    shell(["related", links, "x", *given])
    plain = shell(["related", links, "x", *given])
    for typed in (["--refine"], ["--target-error", "0.01"]):
        refined = shell(["related", links, "x", *given, *typed])
        assert refined.out == plain.out
        assert refined.err == f"{plain.err}{typed[0]} has no effect: {said}\n"
    reply = shell(["related", links, "x", "--measure", "simrank", "--refine"])
    assert "changes nothing" not in reply.err


@pytest.mark.parametrize(("given", "code"), [("table", 2), ("csv", 2), ("json", 0), (None, 0)])
def test_lines_of_json_are_not_called_something_else(
    links: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    given: str | None,
    code: int,
) -> None:
    capsys.readouterr()
    monkeypatch.setattr("sys.stdin", io.StringIO("x\n"))
    assert main(["related", links, "-", *(["--format", given] if given else [])]) == code
    out, err = capsys.readouterr()
    assert out.startswith('{"node": "x"') if code == 0 else "omit --format" in err


def test_an_arrow_without_a_blank_is_understood(links: str, tmp_path: Path, shell: Shell) -> None:
    (tmp_path / "draft").write_text("<-a\n-> y\n")
    reply = shell(["related", links, "--draft", "draft"], 2)
    assert "'<-a' (an arrow has a blank behind it: '<- a')" in reply.err


def test_textless_draft(links: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
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
    said = "the draft has no text: scores use only its links, which are 75% of a score\n"
    assert capsys.readouterr().err == said
    assert main(["related", links, "--draft", "draft"]) == 0
    assert "no text" not in capsys.readouterr().err
