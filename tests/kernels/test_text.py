"""The cleaning kernel against a plain reading of the same bytes."""

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
    wrong = k.normalize(np.frombuffer(data, np.uint8), words, out, bad, tally)
    return out[: tally[k.T_BYTES]].tobytes(), bad[:wrong], tally


def plain(data: bytes) -> tuple[bytes, list[int]]:
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
def test_any_bytes_are_read_as_plainly(data: bytes) -> None:
    out, bad, tally = normalize(data)
    rows, lines = plain(data)
    assert out == rows
    assert bad[:, 0].tolist() == lines
    assert tally[k.T_BAD] == len(lines) == tally[k.T_BAD + 1 :].sum()
    assert tally[k.T_ROWS] == rows.count(b"\n")


@given(st.lists(st.one_of(st.integers(0x80, 0xFF), st.just(0x78)), max_size=8).map(bytes))
def test_utf8_is_what_python_says(data: bytes) -> None:
    try:
        reasons = [k.CONTROL] if REFUSED.search(data.decode()) else []
    except UnicodeDecodeError:
        reasons = [k.ENCODING]
    assert normalize(b"x" + data + b"\ty")[1][:, 3].tolist() == reasons


def test_every_character_is_taken_or_refused_as_the_table_says() -> None:
    for code in (*range(0x80, 0x3000), 0xFEFF, 0xFFFD, 0x1F600, 0xE0001):
        bad = normalize(f"x{chr(code)}y\tz".encode())[1][:, 3].tolist()
        turned = 0x202A <= code <= 0x202E or 0x2066 <= code <= 0x2069
        assert bad == ([k.CONTROL] if code < 0xA0 else [k.TURNED] if turned else []), hex(code)


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
def test_integers_are_those_below_2_to_the_64(name: str, integer: bool) -> None:
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
def test_quotes_are_undone_or_refused(line: str, out: str, reason: int) -> None:
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
def test_quoted_lines_join(text: str, rows: str, bad: list[tuple[int, int]], lines: int) -> None:
    found, wrong, tally = normalize(text.encode(), ",", expected=3)
    assert found.decode().replace("\t", ",").split() == rows.split()
    assert wrong[:, [0, 3]].tolist() == [list(row) for row in bad]
    assert tally[k.T_LINES] == lines


def test_a_row_that_goes_on_behind_the_piece_is_read_again() -> None:
    text = b'a,b\n"c",d\n"e\n'
    found, wrong, tally = normalize(text, ",", unfinished=1)
    assert (found, len(wrong)) == (b"a\tb\nc\td\n", 0)
    assert text[tally[k.T_REST] :] == b'"e\n'
    assert (tally[k.T_LINES], tally[k.T_ROWS]) == (2, 2)
    _, wrong, tally = normalize(text, ",")
    assert (tally[k.T_REST], wrong[:, [0, 3]].tolist()) == (-1, [[3, 5]])


def test_a_quote_is_closed_within_a_megabyte_or_never() -> None:
    text = b'a,"' + b"x\n" * k.MAX_RECORD + b"c,d\n"
    found, wrong, tally = normalize(text, ",", unfinished=1)
    assert found == b"c\td\n"
    assert (tally[k.T_REST], wrong[0, [0, 3]].tolist()) == (-1, [1, 5])


@pytest.mark.parametrize("line", ["a b", " a  b ", "\ta \t b\t", "a\tb"])
def test_runs_of_blanks_are_one_delimiter(line: str) -> None:
    assert normalize(line.encode(), " ")[0] == b"a\tb\n"


def test_fields_are_taken_where_asked() -> None:
    assert normalize(b"a\tb\tc\n", expected=3, first=2, second=0)[0] == b"c\ta\n"
    assert normalize(b"a\tb\tc\n", expected=3, first=1, second=-1)[0] == b"b\n"
    assert normalize(b"a\t\xff\tc\n", expected=3, first=0, second=2)[0] == b"a\tc\n"


def test_names_up_to_the_limit_are_kept() -> None:
    longest = b"x" * k.MAX_NAME
    assert normalize(longest + b"\ta")[0] == longest + b"\ta\n"
    assert normalize(longest + b"x\ta")[1][:, 3].tolist() == [6]


def test_every_reason_has_a_name_and_a_place_to_be_counted() -> None:
    assert sorted(k.REASONS) == list(range(1, len(k.REASONS) + 1))
    assert k.T_BAD + max(k.REASONS) < k.TALLY
