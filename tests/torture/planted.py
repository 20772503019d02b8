"""Planted caches: an attacker puts something in the place of the cache of links, or the file
changes; then the file is queried (``search/cache.py``).

A case is survived if the answer is that of the file, reported if it is refused with an error, and
lost if the answer differs, if a file that only the plant names is read, or if a file outside
changes.
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
    """A folder with links, other links, and its own cache."""

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
        """The exit code, the answer, and stderr."""
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
        """The cache entry of a file."""
        return next(self.cache.glob(f"cocite/links/{file.name}-*"))

    def outside(self) -> dict[str, bytes]:
        """The files that must not change."""
        paths = (self.links, self.other, self.titles, self.victim / "precious")
        return {str(path): path.read_bytes() for path in paths}


def plant_caches(given: Given) -> dict[str, Row]:
    """Plant random caches until the time is over."""
    chance, rows = random.Random(given.seed), {name: Row() for name in _PLANTS}
    clean = _Place(given.folder / "whole")
    answers = [json.loads(clean.ask(file)[1])["hits"] for file in (clean.links, clean.other)]
    assert answers[0] != answers[1]
    names = list(_PLANTS)
    for number in given.cases(_CASES, *rows.values()):
        name, place = names[number % len(names)], _Place(given.folder / f"planted-{number}")
        for file in (place.links, place.other):
            place.ask(file)
        expected = answers[int(_PLANTS[name](place, chance) is True)]
        before = place.outside()
        code, out, err = place.ask(place.links)
        rows[name].add(f"{name} {number}", _wrong(code, out, err, expected), reported=code != 0)
        if place.outside() != before:
            rows[name].lost.append(f"{name} {number}: files outside of the cache changed")
        shutil.rmtree(place.folder)
    return rows


def _wrong(code: int, out: str, err: str, expected: object) -> str:
    """What is wrong with an answer, if anything."""
    if "Traceback" in err or code not in (0, 1, 2):
        return err
    if _SECRET in out + err:
        return "a file was read that only the plant names"
    if code == 0 and json.loads(out)["hits"] != expected:
        return f"another answer: {out}"
    return ""


# -- plants: each returns True if the file now has the other content --------------------------


def _beside(place: _Place, chance: random.Random) -> None:
    """A folder beside the file, where caches once were, with the entry of other links."""
    planted = place.folder / "links.tsv.cocite"
    shutil.copytree(place.entry(place.other), planted)
    entry = json.loads((place.entry(place.links) / ENTRY).read_text())
    entry["titles"] = [[str(place.titles), "0"]]
    for name in (ENTRY, "made-of.json"):
        (planted / name).write_text(json.dumps(entry))
    shutil.rmtree(place.entry(place.links))


def _foreign(place: _Place, chance: random.Random) -> None:
    """An entry owned by or writable for another user, with the index of other links."""
    folder = place.entry(place.links)
    shutil.rmtree(folder / "index")
    shutil.copytree(place.entry(place.other) / "index", folder / "index")
    attacks = ["folder", "above"] + ["owner"] * (os.geteuid() == 0)
    match chance.choice(attacks):
        case "owner":
            os.chown(folder, _STRANGER, _STRANGER)
        case "folder":
            folder.chmod(chance.choice((0o777, 0o775, 0o722, 0o702)))
        case "above":
            folder.parent.chmod(chance.choice((0o777, 0o775, 0o702)))


def _link(place: _Place, chance: random.Random) -> None:
    """A symbolic link in the place of the entry, or of its parts."""
    folder = place.entry(place.links)
    shutil.rmtree(folder)
    folder.symlink_to(chance.choice((place.entry(place.other), place.victim)))


def _metadata(place: _Place, chance: random.Random) -> None:
    """Other values in the entry's metadata, and titles that only it names."""
    path = place.entry(place.links) / ENTRY
    entry = json.loads(path.read_text())
    entry["titles"] = [[str(place.titles), "0"]]
    for key in chance.sample([*entry, "more"], chance.randrange(1, 4)):
        entry[key] = chance.choice(_VALUES)
    whole = json.dumps(entry)
    cut, other = whole[: chance.randrange(len(whole))], whole.replace('"', chance.choice("'\x00"))
    path.write_text(chance.choice((whole, cut, "[" * 100_000, other)))


def _stale(place: _Place, chance: random.Random) -> bool:
    """Other content of the same size and time, in the same file or a replacement."""
    status = place.links.stat()
    content = place.other.read_bytes()
    assert len(content) == status.st_size
    if chance.random() < 0.5:
        place.links.write_bytes(content)
    else:
        new = place.folder / "new"
        new.write_bytes(content)
        new.replace(place.links)
    os.utime(place.links, ns=(status.st_atime_ns, status.st_mtime_ns))
    return True


_PLANTS: dict[str, Callable[[_Place, random.Random], bool | None]] = {
    "a folder beside the file": _beside,
    "an entry of others": _foreign,
    "a symbolic link": _link,
    "what an entry says": _metadata,
    "another content": _stale,
}
