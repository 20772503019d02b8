"""Planted caches: a stranger has put something where the cache of links is looked for, or the file
has another content; then the file is asked (``search/cache.py``).

A case is survived if the answer is that of the file, told if it is refused with an error, and lost
if it is another answer, if a file was read that only the plant names, or if a file outside changed.
"""

import contextlib
import io
import json
import os
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from unittest import mock

from cocite.cli.main import main
from cocite.search.cache import ENTRY
from tests.torture.results import Given, Row

_SECRET = "A title that nobody asked for"
_STRANGER = 54321
_CASES = 300
_VALUES: tuple[object, ...] = (
    *(None, True, -1, 1e308),
    *("", "/", "..", "\0", "x" * 9999),
    *([], {}, [[]], [["/etc/passwd", "0"]]),
)


class _Place:
    """A folder with links and a cache of its own, an entry of it, and one of other links."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.cache = folder, folder / "cache"
        self.links, self.other = folder / "links.tsv", folder / "other.tsv"
        self.titles, self.victim = folder / "secret.tsv", folder / "victim"
        folder.mkdir()
        self.links.write_text("a\tx\nb\tx\nc\tx\na\ty\nb\ty\nz\ty\n")
        self.other.write_text("a\tx\nq\tx\nq\ta\nr\tx\nr\ty\ns\ty\n")
        self.titles.write_text("".join(f"{node}\t{_SECRET}\n" for node in "abcxyz"))
        self.victim.mkdir()
        (self.victim / "precious").write_text("precious")

    def ask(self, file: Path) -> tuple[int, str, str]:
        """The exit code, the answer, and what was said."""
        out, err = io.StringIO(), io.StringIO()
        environ = {"XDG_CACHE_HOME": str(self.cache)}
        with (
            mock.patch.dict(os.environ, environ),
            contextlib.redirect_stdout(out),
            contextlib.redirect_stderr(err),
        ):
            code = main(["related", str(file), "x", "--format", "json"])
        return code, out.getvalue(), err.getvalue()

    def entry(self, file: Path) -> Path:
        """What the cache holds of a file."""
        return next(self.cache.glob(f"cocite/links/{file.name}-*"))

    def outside(self) -> dict[str, bytes]:
        """The files that nothing may change."""
        kept = (self.links, self.other, self.titles, self.victim / "precious")
        return {str(path): path.read_bytes() for path in kept}


def plant_caches(given: Given) -> dict[str, Row]:
    """Plant caches, drawn by the seed, until the time is up."""
    chance, rows = random.Random(given.seed), {name: Row() for name in _PLANTS}
    whole = _Place(given.folder / "whole")
    wanted = [json.loads(whole.ask(file)[1])["hits"] for file in (whole.links, whole.other)]
    assert wanted[0] != wanted[1]
    names = list(_PLANTS)
    for number in given.cases(_CASES, *rows.values()):
        name, here = names[number % len(names)], _Place(given.folder / f"planted-{number}")
        for file in (here.links, here.other):
            here.ask(file)
        expected = wanted[int(_PLANTS[name](here, chance) is True)]
        before = here.outside()
        code, out, err = here.ask(here.links)
        rows[name].add(f"{name} {number}", _wrong(code, out, err, expected), told=code != 0)
        if here.outside() != before:
            rows[name].lost.append(f"{name} {number}: files outside of the cache changed")
        shutil.rmtree(here.folder)
    return rows


def _wrong(code: int, out: str, err: str, expected: object) -> str:
    """What is wrong with an answer; "" if nothing is."""
    if "Traceback" in err or code not in (0, 1, 2):
        return err
    if _SECRET in out + err:
        return "a file was read that only the plant names"
    if code == 0 and json.loads(out)["hits"] != expected:
        return f"another answer: {out}"
    return ""


# -- plants: each returns True if the file has become the other one ---------------------------


def _beside(here: _Place, chance: random.Random) -> None:
    """A folder beside the file, as it was once looked for, with the entry of other links."""
    planted = here.folder / "links.tsv.cocite"
    shutil.copytree(here.entry(here.other), planted)
    entry = json.loads((here.entry(here.links) / ENTRY).read_text())
    entry["titles"] = [[str(here.titles), "0"]]
    for name in (ENTRY, "made-of.json"):
        (planted / name).write_text(json.dumps(entry))
    shutil.rmtree(here.entry(here.links))


def _of_others(here: _Place, chance: random.Random) -> None:
    """An entry of a stranger, or one that strangers can write to, with the index of other links."""
    folder = here.entry(here.links)
    shutil.rmtree(folder / "index")
    shutil.copytree(here.entry(here.other) / "index", folder / "index")
    ways = ["folder", "above"] + ["owner"] * (os.geteuid() == 0)
    match chance.choice(ways):
        case "owner":
            os.chown(folder, _STRANGER, _STRANGER)
        case "folder":
            folder.chmod(chance.choice((0o777, 0o775, 0o722, 0o702)))
        case "above":
            folder.parent.chmod(chance.choice((0o777, 0o775, 0o702)))


def _link(here: _Place, chance: random.Random) -> None:
    """A symbolic link in the place of the entry, or of its parts."""
    folder = here.entry(here.links)
    shutil.rmtree(folder)
    folder.symlink_to(chance.choice((here.entry(here.other), here.victim)))


def _told(here: _Place, chance: random.Random) -> None:
    """Other values in what the entry says of itself, and titles that only it names."""
    path = here.entry(here.links) / ENTRY
    entry = json.loads(path.read_text())
    entry["titles"] = [[str(here.titles), "0"]]
    for key in chance.sample([*entry, "more"], chance.randrange(1, 4)):
        entry[key] = chance.choice(_VALUES)
    whole = json.dumps(entry)
    cut, other = whole[: chance.randrange(len(whole))], whole.replace('"', chance.choice("'\x00"))
    path.write_text(chance.choice((whole, cut, "[" * 100_000, other)))


def _stale(here: _Place, chance: random.Random) -> bool:
    """Another content of the same size and time, in the same file or one that takes its name."""
    found = here.links.stat()
    content = here.other.read_bytes()
    assert len(content) == found.st_size
    if chance.random() < 0.5:
        here.links.write_bytes(content)
    else:
        new = here.folder / "new"
        new.write_bytes(content)
        new.replace(here.links)
    os.utime(here.links, ns=(found.st_atime_ns, found.st_mtime_ns))
    return True


_PLANTS: dict[str, Callable[[_Place, random.Random], bool | None]] = {
    "a folder beside the file": _beside,
    "an entry of others": _of_others,
    "a symbolic link": _link,
    "what an entry says": _told,
    "another content": _stale,
}
