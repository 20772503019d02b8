"""Names are data: whatever is in one, a terminal shows it and does nothing."""

import json

import pytest

from cocite.cli.console import printable, printable_json
from cocite.cli.main import main
from tests.conftest import MakeGraph, Shell

READ = [chr(code) for code in (*range(9), *range(11, 32), *range(127, 160))]
READ += ["\u202e", "\u2066", "\u2028", "\u061c", "\ufeff"]
EVIL = ["a\u2028b", "web\u061cgpj.exe", "\ufeffx"]
"""Names that may be stored; those that ``ingest`` refuses are in ``io/test_unnamed.py``."""
PLAIN = ["plain", "Ünïcode", "日本語", "עברית", "العربية", "a b\nc\td", "e\u0301", "👩\u200d💻"]


@pytest.mark.parametrize("sign", READ)
def test_no_sign_that_is_read_is_printed(sign: str) -> None:
    code = ord(sign)
    assert printable(f"a{sign}b") == (f"a\\x{code:02x}b" if code < 256 else f"a\\u{code:04x}b")
    told = printable_json(json.dumps(f"a{sign}b", ensure_ascii=False))
    assert sign not in told
    assert json.loads(told) == f"a{sign}b"


@pytest.mark.parametrize("text", PLAIN)
def test_text_is_what_it_was(text: str) -> None:
    assert printable(text) == text
    assert printable_json(text) == text


@pytest.mark.parametrize("way", ["table", "json"])
def test_names_are_shown_and_not_obeyed(make_graph: MakeGraph, way: str, shell: Shell) -> None:
    graph = make_graph([(a, b) for a in EVIL for b in EVIL if a != b])
    path = str(graph.path)
    printed = [
        shell(["nodes", path, "--format", way]),
        shell(["related", path, EVIL[0], "--measure", "cocitation", "--format", way]),
        shell(["related", path, EVIL[1] + "?", "--format", way], 2),
    ]
    out, err = "".join(each.out for each in printed), "".join(each.err for each in printed)
    assert not set(READ).intersection(out + err)
    assert "web\\u061cgpj.exe" in out
    assert "web\\u061cgpj.exe" in err


def test_text_of_wrong_calls_is_shown_not_obeyed(capsys: pytest.CaptureFixture[str]) -> None:
    for words in (["\x9b31m"], ["--\x1b[31m"], ["info", "\u202egraph"], ["info", "-\x1b", "x"]):
        for voice in ([], ["--log-json"]):
            assert main([*words, *voice]) != 0
    assert not set(READ).intersection(capsys.readouterr().err)
