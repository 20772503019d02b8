"""``cocite related --draft`` and ``cocite why --draft``: what they print, and what they refuse."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest

import cocite
from tests.conftest import Ask, MakeGraph, listed

LINKS = [(a, b) for a in "abcdef" for b in "uvwxyz" if (ord(a) * ord(b)) % 5 != 1]


@pytest.fixture
def index(make_graph: MakeGraph, tmp_path: Path) -> str:
    cocite.build(make_graph([*LINKS, ("u", "a"), ("v", "b")]), tmp_path / "i")
    return str(tmp_path / "i")


def test_a_draft_from_a_file_and_from_standard_input(
    index: str, tmp_path: Path, ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "draft.txt"
    file.write_text("u\n-> w\n<- v\n")
    code, told, _ = ask("related", index, "--draft", str(file), "--format", "json", "-k", "4")
    found = json.loads(told)
    expected = cocite.open(index).related_to(["u", "w"], ["v"], 4)
    assert code == 0
    assert found["node"] == "draft"
    assert listed(found) == expected
    stdin = io.TextIOWrapper(io.BytesIO(file.read_bytes()))
    monkeypatch.setattr("sys.stdin", stdin)
    again = ask("related", index, "--draft", "-", "--format", "json", "-k", "4")
    assert again[:2] == (0, told)
    code, told, _ = ask("related", index, "--draft", str(file), "--exclude-prefix", "u", "-k", "99")
    assert code == 0
    assert " w\n" in told
    assert " u\n" not in told
    code, told, _ = ask("why", index, "w", "--draft", str(file), "--draft-name", "mine")
    assert code == 0
    assert "the score of mine and w is" in told


def test_what_is_refused(
    index: str, tmp_path: Path, ask: Ask, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "draft.txt"
    file.write_text("u\nunheard of\n")
    draft = ("--draft", str(file))
    for arguments, said in (
        (("related", index, *draft), "1 page that no node is: 'unheard of'"),
        (("why", index, "u", *draft), "1 page that no node is: 'unheard of'"),
        (("related", index, "u", *draft), "'u' is named beside a draft"),
        (("why", index, "u", "v", *draft), "'u' is named beside a draft"),
        (("related", index), "no node is named: name one, or give a page of your own"),
        (("why", index, "u"), "why takes two nodes, and only 'u' is named"),
        (("related", index, "u", "--skip-unknown"), "--skip-unknown goes with a draft"),
        (("related", index, "u", "--draft-name", "x"), "--draft-name goes with a draft"),
        (("related", index, *draft, "--skip-unknown", "--draft-name", "v"), "a node is named 'v'"),
    ):
        code, _, error = ask(*arguments)
        assert code == 2
        assert said in error
    assert ask("related", index, *draft, "--skip-unknown")[0] == 0
    assert "left out of the draft" in caplog.text
    file.write_text("u\tfar\n")
    code, _, error = ask("related", index, *draft)
    assert code == 1
    assert "draft.txt:1: 'u\\tfar' is no link of a draft" in error
    file.write_text("\n")
    assert ask("related", index, *draft)[0] == 2


def test_a_draft_without_the_links_that_are_looked_at_is_told_so(
    make_graph: MakeGraph, tmp_path: Path, ask: Ask
) -> None:
    cocite.build(make_graph(LINKS), tmp_path / "i", measure="psimrank")
    file = tmp_path / "draft.txt"
    file.write_text("u\nv\n")
    code, told, _ = ask("related", str(tmp_path / "i"), "--draft", str(file))
    assert code == 0
    assert told == (
        "no node is related to draft by psimrank: the draft has no in-links, which the index looks "
        "at\n"
    )
    file.write_text("<- a\n")
    code, told, _ = ask("related", str(tmp_path / "i"), "--draft", str(file))
    assert "which the index looks at" not in told
