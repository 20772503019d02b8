"""A newcomer's first ten minutes, as a script: no HOME, a narrow terminal, pipes.

One person types all of this, one command after the other, in a folder of their own. What is kept
between two commands is what the first of them left.
"""

import json
import os
import stat
import subprocess
import sys
import unicodedata
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.terminal import on_a_terminal

pytestmark = pytest.mark.long
COLUMNS = 50
PYTHON = ("PYTHONPATH", "PYTHONPYCACHEPREFIX")
"""Where modules are, and what they were compiled to."""
LINKS = Path(__file__).parents[1] / "examples" / "animals.tsv"


class Said(NamedTuple):
    """What a command wrote, and how it ended."""

    code: int
    out: str
    err: str


class Newcomer:
    """Somebody who has a file of links, and types."""

    def __init__(self, folder: Path) -> None:
        self.home = folder / "work"
        self.temporary = folder / "tmp"
        self.home.mkdir()
        self.temporary.mkdir()
        (self.home / "links.tsv").write_bytes(LINKS.read_bytes())
        self.env = {
            "PATH": os.environ["PATH"],
            "TMPDIR": str(self.temporary),
            "COLUMNS": str(COLUMNS),
            **{name: os.environ[name] for name in PYTHON if name in os.environ},
        }

    def types(self, line: str, given: str = "") -> Said:
        """A command whose input and outputs are pipes; blanks part its words."""
        done = subprocess.run(
            [sys.executable, "-m", "cocite", *line.split()[1:]],
            cwd=self.home,
            env=self.env,
            input=given,
            capture_output=True,
            text=True,
            check=False,
        )
        assert "Traceback" not in done.stderr
        assert "\x1b" not in done.stdout + done.stderr
        assert "\r" not in done.stdout + done.stderr
        return Said(done.returncode, done.stdout, done.stderr)

    def types_on_a_terminal(self, line: str) -> tuple[int, str]:
        """A command that has a terminal: how it ended, and all that the terminal saw."""
        return on_a_terminal(
            [sys.executable, "-m", "cocite", *line.split()[1:]],
            {**self.env, "TERM": "xterm"},
            columns=COLUMNS,
            folder=self.home,
            whole=True,
        )


@pytest.fixture(scope="module")
def newcomer(tmp_path_factory: pytest.TempPathFactory) -> Newcomer:
    """Has typed the first command; what it said is in ``first``."""
    return Newcomer(tmp_path_factory.mktemp("newcomer"))


@pytest.fixture(scope="module")
def first(newcomer: Newcomer) -> Said:
    return newcomer.types("cocite related links.tsv Zebra -k 5")


def width(line: str) -> int:
    return sum(1 + (unicodedata.east_asian_width(sign) in "WF") for sign in line)


def fits(shown: str) -> bool:
    """Whether each row of a table, its titles and the rule below them, has room; sentences below a
    table wrap.
    """
    titles, rule, *rest = shown.splitlines()
    assert set(rule) == {"─"}
    rows = [titles, rule, *(row for row in rest if row.split()[0].isdigit())]
    return max(map(width, rows)) <= COLUMNS


@pytest.mark.process
def test_cocite_alone_leads_on(newcomer: Newcomer) -> None:
    code, out, err = newcomer.types("cocite")
    assert (code, err, len(out.splitlines())) == (0, "", 3)
    assert out.startswith("cocite related links.tsv PAGE")


@pytest.mark.process
def test_first_answer_comes_and_nothing_is_silent(newcomer: Newcomer, first: Said) -> None:
    code, out, err = first
    assert code == 0
    assert [line.split()[-1] for line in out.splitlines()[2:7]] == [
        "Giraffe",
        "Savanna",
        "Antelope",
        "Kenya",
        "Lion",
    ]
    assert fits(out)
    assert err.count("are cached until it changes") == 1
    assert "the first link is Africa -> Savanna" in err


@pytest.mark.process
def test_second_answer_is_equal_and_makes_nothing(newcomer: Newcomer, first: Said) -> None:
    code, out, err = newcomer.types("cocite related links.tsv Zebra -k 5")
    assert (code, out) == (0, first.out)
    assert "links.tsv: unchanged, so the cached index is used" in err


@pytest.mark.process
def test_a_terminal_shows_the_same_answer(newcomer: Newcomer, first: Said) -> None:
    code, seen = newcomer.types_on_a_terminal("cocite related links.tsv Zebra -k 5")
    assert code == 0
    lines = seen.replace("\r\n", "\n").split("\n")
    assert [line for line in first.out.splitlines() if line not in lines] == []
    code, seen = newcomer.types_on_a_terminal("cocite index links.tsv -o web.index")
    assert code == 0
    assert all(width(line.split("\r")[-1]) <= COLUMNS or "/" in line for line in seen.split("\n"))
    code, _ = newcomer.types_on_a_terminal("cocite related web.index Zebra")
    assert code == 0


@pytest.mark.process
def test_a_name_that_is_misspelt(newcomer: Newcomer, first: Said) -> None:
    code, out, err = newcomer.types("cocite related links.tsv Zepra")
    assert (code, out) == (2, "")
    assert "no node is named 'Zepra'; the nearest name is 'Zebra'" in err
    code, out, err = newcomer.types("cocite related links.tsv zebra")
    assert (code, out) == newcomer.types("cocite related links.tsv Zebra")[:2]
    assert "'zebra' is answered as 'Zebra'" in err


@pytest.mark.process
def test_why_is_shown_in_a_narrow_terminal(newcomer: Newcomer, first: Said) -> None:
    code, out, _ = newcomer.types("cocite why links.tsv Zebra Lion")
    assert code == 0
    assert fits(out)
    assert "the score of Zebra and Lion" in out


@pytest.mark.process
def test_many_names_from_a_pipe(newcomer: Newcomer, first: Said) -> None:
    code, out, _ = newcomer.types("cocite related links.tsv - -k 2", "Zebra\nLion\n")
    found = [json.loads(line) for line in out.splitlines()]
    assert code == 0
    assert [answer["node"] for answer in found] == ["Zebra", "Lion"]
    assert [hit["node"] for hit in found[0]["hits"]] == ["Giraffe", "Savanna"]


@pytest.mark.process
def test_a_reader_who_has_seen_enough_ends_it_quietly(newcomer: Newcomer, first: Said) -> None:
    done = subprocess.run(
        [f"{sys.executable} -m cocite related links.tsv Zebra --format csv | head -n 1"],
        shell=True,
        cwd=newcomer.home,
        env=newcomer.env,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "rank,node,score,stderr,low,high\n"
    assert "Traceback" not in done.stderr
    assert "Broken pipe" not in done.stderr


@pytest.mark.process
@pytest.mark.parametrize(
    ("name", "text", "called"),
    [
        ("page.html", "<!doctype html><html><body><a href='b.html'>b</a></body></html>", "HTML"),
        ("empty.tsv", "", "empty"),
        ("cities.txt", "New York  Los Angeles\nSan Jose  New York\n", "4 columns between blanks"),
    ],
)
def test_no_link_list(newcomer: Newcomer, first: Said, name: str, text: str, called: str) -> None:
    (newcomer.home / name).write_text(text)
    before = sorted(newcomer.home.iterdir())
    code, out, err = newcomer.types(f"cocite related {name} b")
    assert (code, out) == (2, "")
    assert called in err
    assert sorted(newcomer.home.iterdir()) == before


@pytest.mark.process
def test_the_long_way_gives_the_same_answer(newcomer: Newcomer, first: Said) -> None:
    for line in (
        "cocite ingest links.tsv -o web.graph",
        "cocite index web.graph -o own.index",
        "cocite related-all own.index -o all.csv",
        "cocite verify own.index",
    ):
        assert newcomer.types(line).code == 0, line
    assert newcomer.types("cocite related own.index Zebra -k 5").out == first.out
    assert fits(newcomer.types("cocite rank web.graph").out)
    assert (newcomer.home / "all.csv").read_text().startswith("node,rank,related,score")
    code, _, err = newcomer.types("cocite ingest links.tsv -o web.graph")
    assert code == 1
    assert "--overwrite" in err


@pytest.mark.process
def test_nothing_lies_about_when_all_is_done(newcomer: Newcomer, first: Said) -> None:
    private = newcomer.temporary / f"cocite-{os.geteuid()}"
    assert list(newcomer.temporary.iterdir()) == [private]
    assert stat.S_IMODE(private.stat().st_mode) == 0o700
    assert not [path for path in newcomer.home.iterdir() if path.name.startswith(".")]
