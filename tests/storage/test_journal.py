"""``Journal``: after any damage it holds a prefix of its pieces."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from xxhash import xxh3_128_hexdigest

from cocite.storage import Journal

TAB = f"0\t{xxh3_128_hexdigest(b'')}\n".encode()
PIECES = [b"one", b"", b"three" * 1000, b"4"]


def write_pieces(path: Path) -> None:
    with Journal(path) as journal:
        for piece in PIECES:
            journal.append(piece)


def test_journal_reads_appended_pieces(tmp_path: Path) -> None:
    write_pieces(tmp_path / "j")
    with Journal(tmp_path / "j") as journal:
        assert journal.sizes == [3, 0, 5000, 1]
        assert journal.begins == [0, 3, 3, 5003]
        journal.append(b"five")
    assert (tmp_path / "j").read_bytes() == b"".join(PIECES) + b"five"


@given(data=st.data(), which=st.sampled_from(["j", "j.log"]), change=st.booleans())
def test_journal_cuts_off_damage(
    tmp_path: Path, data: st.DataObject, which: str, change: bool
) -> None:
    for old in tmp_path.iterdir():
        old.unlink()
    write_pieces(tmp_path / "j")
    content = bytearray((tmp_path / which).read_bytes())
    position = data.draw(st.integers(0, len(content) - 1))
    if change:
        content[position] ^= data.draw(st.integers(1, 255))
    else:
        del content[position:]
    (tmp_path / which).write_bytes(content)
    with Journal(tmp_path / "j") as journal:
        count = len(journal.sizes)
        assert count < len(PIECES)
        for piece in PIECES[count:]:
            journal.append(piece)
    with Journal(tmp_path / "j") as journal:
        assert journal.sizes == [len(piece) for piece in PIECES]
    assert (tmp_path / "j").read_bytes() == b"".join(PIECES)


@pytest.mark.parametrize("line", [b"x y\n", b"-1 ab\n", b"99 \xff\n", b"3\n", b"\n", TAB])
def test_journal_ends_at_malformed_line(tmp_path: Path, line: bytes) -> None:
    write_pieces(tmp_path / "j")
    with (tmp_path / "j.log").open("ab") as log:
        log.write(line)
    with Journal(tmp_path / "j") as journal:
        assert len(journal.sizes) == len(PIECES)
