"""A journal: whatever is torn or rotten, it holds a beginning of what it got."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cocite.storage import Journal

PIECES = [b"one", b"", b"three" * 1000, b"4"]


def written(path: Path) -> None:
    with Journal(path) as journal:
        for piece in PIECES:
            journal.append(piece)


def test_pieces_come_back(tmp_path: Path) -> None:
    written(tmp_path / "j")
    with Journal(tmp_path / "j") as journal:
        assert journal.sizes == [3, 0, 5000, 1]
        assert journal.begins == [0, 3, 3, 5003]
        journal.append(b"five")
    assert (tmp_path / "j").read_bytes() == b"".join(PIECES) + b"five"


@given(data=st.data(), which=st.sampled_from(["j", "j.log"]), change=st.booleans())
def test_damage_cut_off(tmp_path: Path, data: st.DataObject, which: str, change: bool) -> None:
    for old in tmp_path.iterdir():
        old.unlink()
    written(tmp_path / "j")
    content = bytearray((tmp_path / which).read_bytes())
    at = data.draw(st.integers(0, len(content) - 1))
    if change:
        content[at] ^= data.draw(st.integers(1, 255))
    else:
        del content[at:]
    (tmp_path / which).write_bytes(content)
    with Journal(tmp_path / "j") as journal:
        kept = len(journal.sizes)
        assert kept < len(PIECES)
        for piece in PIECES[kept:]:
            journal.append(piece)
    with Journal(tmp_path / "j") as journal:
        assert journal.sizes == [len(piece) for piece in PIECES]
    assert (tmp_path / "j").read_bytes() == b"".join(PIECES)


@pytest.mark.parametrize("line", [b"x y\n", b"-1 ab\n", b"99 \xff\n", b"3\n", b"\n"])
def test_a_strange_line_ends_it(tmp_path: Path, line: bytes) -> None:
    written(tmp_path / "j")
    with (tmp_path / "j.log").open("ab") as log:
        log.write(line)
    with Journal(tmp_path / "j") as journal:
        assert len(journal.sizes) == len(PIECES)
