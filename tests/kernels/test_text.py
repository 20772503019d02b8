"""The cleaning kernel against a plain reader of the same bytes."""

import re
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from cocite.kernels import text as k


def normalize(data: bytes, delimiter: str = "\t", **rules: int) -> tuple[bytes, Any, Any]:
    words = np.full(k.RULES, -1, np.int64)
    words[[k.DELIMITER, k.QUOTES, k.EXPECTED, k.FIRST, k.SECOND, k.COMMENT]] = [
        ord(delimiter),
        delimiter in ",;",
        rules.get("expected", 2),
        rules.get("first", 0),
        rules.get("second", 1),
        ord("#"),
    ]
    words[k.WEIGHT] = rules.get("weight", -1)
    words[k.UNFINISHED] = rules.get("unfinished", -1)
    out = np.empty(len(data) + 1, np.uint8)
    bad = np.zeros((100, k.BAD_FIELDS), np.int64)
    tally = np.zeros(k.TALLY, np.int64)
    tally[k.T_INTEGER] = 1
    count = k.normalize(np.frombuffer(data, np.uint8), words, out, bad, tally)
    return out[: tally[k.T_BYTES]].tobytes(), bad[:count], tally


def read_plainly(data: bytes) -> tuple[bytes, list[int]]:
    """Clean rows of tab-separated text, and the lines of the bad ones."""
    rows, bad = b"", []
    lines = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
    for number, line in enumerate(lines, 1):
        fields = [field.strip(b" ") for field in line.split(b"\t")]
        if not line.strip(b" \t") or line.strip(b" \t").startswith(b"#"):
            continue
        try:
            names = [field.decode() for field in fields]
        except UnicodeDecodeError:
            names = []
        if len(names) == 2 and all(names) and not any(map(REFUSED.search, names)):
            rows += b"\t".join(fields) + b"\n"
        else:
            bad.append(number)
    return rows, bad


REFUSED = re.compile("[\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
PARTS = [b"\xc2\x80", b"\xc2\xa0", b"\xe2\x80", b"\xe2\x81\xa6", b"\xe2\x80\xaa", b"\xe2\x80\xaf"]
PARTS += [
    b"a",
    b"b",
    b"\t",
    b"\t",
    b" ",
    b"\n",
    b"\r",
    b"#",
    b"\x00",
    b"\xc3\xa9",
    b"\xc3",
    b"\x7f",
]


@given(st.one_of(st.binary(max_size=40), st.lists(st.sampled_from(PARTS)).map(b"".join)))
@example(b"\xef\xbf\xbf\t\xf4\x8f\xbf\xbf")
@example(b"\xf4\x90\x80\x80\ta\n\xed\xa0\x80\ta\n\xc0\x80\ta\n\xe0\x80\x80\ta\n\xf0\x80\x80\x80\ta")
def test_normalize_equals_plain_reader(data: bytes) -> None:
    out, bad, tally = normalize(data)
    rows, lines = read_plainly(data)
    assert out == rows
    assert bad[:, 0].tolist() == lines
    assert tally[k.T_BAD] == len(lines) == tally[k.T_BAD + 1 :].sum()
    assert tally[k.T_ROWS] == rows.count(b"\n")


@given(st.lists(st.one_of(st.integers(0x80, 0xFF), st.just(0x78)), max_size=8).map(bytes))
def test_normalize_checks_utf8_as_python_does(data: bytes) -> None:
    try:
        reasons = [k.CONTROL] if REFUSED.search(data.decode()) else []
    except UnicodeDecodeError:
        reasons = [k.ENCODING]
    assert normalize(b"x" + data + b"\ty")[1][:, 3].tolist() == reasons


def test_normalize_refuses_control_characters_only() -> None:
    for code in (*range(0x80, 0x3000), 0xFEFF, 0xFFFD, 0x1F600, 0xE0001):
        bad = normalize(f"x{chr(code)}y\tz".encode())[1][:, 3].tolist()
        direction = 0x202A <= code <= 0x202E or 0x2066 <= code <= 0x2069
        assert bad == ([k.CONTROL] if code < 0xA0 else [k.TURNED] if direction else []), hex(code)


@pytest.mark.parametrize(
    ("name", "integer"),
    [
        ("0", True),
        ("7", True),
        ("18446744073709551615", True),
        ("18446744073709551616", False),
        ("18446744073709551620", False),
        ("99999999999999999999", False),
        ("111111111111111111111", False),
        ("007", False),
        ("00", False),
        ("-1", False),
        ("1.0", False),
        ("٣", False),
    ],
)
def test_normalize_detects_integers_below_2_to_64(name: str, integer: bool) -> None:
    assert bool(normalize(f"1\t{name}\n".encode())[2][k.T_INTEGER]) is integer
    assert bool(normalize(f"1\t1\n{name}\t1\n2\t2".encode())[2][k.T_INTEGER]) is integer


@pytest.mark.parametrize(
    ("line", "out", "reason"),
    [
        ('"a","b"', "a\tb", 0),
        ('"a""b",c', 'a"b\tc', 0),
        ('""""," b "', '"\t b ', 0),
        (' "a" , b ', "a\tb", 0),
        ('a"b",c"', 'a"b"\tc"', 0),
        ('"a,b', "", 5),
        ('"a"b,c', "", 5),
        ('"",b', "", 2),
        ("a,", "", 2),
        (",", "", 2),
        ("a", "", 1),
        ("a,b,", "", 1),
    ],
)
def test_normalize_unquotes_or_refuses_fields(line: str, out: str, reason: int) -> None:
    found, bad, _ = normalize(line.encode(), ",")
    assert found.decode() == (out + "\n" if out else "")
    assert bad[:, 3].tolist() == ([reason] if reason else [])


@pytest.mark.parametrize(
    ("text", "rows", "bad", "lines"),
    [
        ('a,b,"x\ny"\nc,d,e\n', "a,b c,d", [], 3),
        ('a,b,"x\r\n\r\ny"\r\nc,d,e', "a,b c,d", [], 4),
        ('a,b,"x\r""y""\r"\rc,d,e', "a,b c,d", [], 4),
        ('a,b,"\n"\n"c",d,"\n""\n"\n', "a,b c,d", [], 5),
        ('a,b,"\n#\n\n" \nc,d,e', "a,b c,d", [], 5),
        ('"x\ny",b,c\nc,d,e', "c,d", [(1, 3)], 3),
        ('a,"\nb,c\nd,"e\nf,g,h\n', "f,g", [(1, 5), (2, 1), (3, 5)], 4),
        ('a,b,"x\nc,d,e\n', "c,d", [(1, 5)], 2),
        ('a,b,"x\nc,d,e""', "c,d", [(1, 5)], 2),
    ],
)
def test_normalize_joins_quoted_lines(
    text: str, rows: str, bad: list[tuple[int, int]], lines: int
) -> None:
    found, reported, tally = normalize(text.encode(), ",", expected=3)
    assert found.decode().replace("\t", ",").split() == rows.split()
    assert reported[:, [0, 3]].tolist() == [list(row) for row in bad]
    assert tally[k.T_LINES] == lines


def test_normalize_leaves_unfinished_row_to_next_piece() -> None:
    text = b'a,b\n"c",d\n"e\n'
    found, bad, tally = normalize(text, ",", unfinished=1)
    assert (found, len(bad)) == (b"a\tb\nc\td\n", 0)
    assert text[tally[k.T_REST] :] == b'"e\n'
    assert (tally[k.T_LINES], tally[k.T_ROWS]) == (2, 2)
    _, bad, tally = normalize(text, ",")
    assert (tally[k.T_REST], bad[:, [0, 3]].tolist()) == (-1, [[3, 5]])


def test_normalize_closes_quote_within_max_record() -> None:
    text = b'a,"' + b"x\n" * k.MAX_RECORD + b"c,d\n"
    found, bad, tally = normalize(text, ",", unfinished=1)
    assert found == b"c\td\n"
    assert (tally[k.T_REST], bad[0, [0, 3]].tolist()) == (-1, [1, 5])


@pytest.mark.parametrize("line", ["a b", " a  b ", "\ta \t b\t", "a\tb"])
def test_normalize_takes_blanks_as_one_delimiter(line: str) -> None:
    assert normalize(line.encode(), " ")[0] == b"a\tb\n"


def test_normalize_takes_selected_fields() -> None:
    assert normalize(b"a\tb\tc\n", expected=3, first=2, second=0)[0] == b"c\ta\n"
    assert normalize(b"a\tb\tc\n", expected=3, first=1, second=-1)[0] == b"b\n"
    assert normalize(b"a\t\xff\tc\n", expected=3, first=0, second=2)[0] == b"a\tc\n"


def test_normalize_keeps_names_up_to_max_name() -> None:
    longest = b"x" * k.MAX_NAME
    assert normalize(longest + b"\ta")[0] == longest + b"\ta\n"
    assert normalize(longest + b"x\ta")[1][:, 3].tolist() == [6]


def test_reasons_are_numbered_and_fit_tally() -> None:
    assert sorted(k.REASONS) == list(range(1, len(k.REASONS) + 1))
    assert k.T_BAD + max(k.REASONS) < k.TALLY
