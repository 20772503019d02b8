"""The machine loses its power: what was written and not synced is there in parts, or not at all.

What an operation (``operations.py``) does to a disk is recorded once: at the begin and end of every
call of ``storage/disk.py``, what all directories and files of its folder held, whoever wrote it,
and what was synced. From that follows what a disk may hold after a crash at any moment, one whose
file system keeps no order (as one without a journal):

* a name in a directory is what it was when the directory was last synced, or anything that it has
  been since: names are not bound to each other, so that of a rename the one half may be there;
* a block of 512 bytes of a file is what it was when the file was last synced, or anything that it
  has been since, zeros if it was nothing yet; so is the file's length.

A *seed* is a moment, and a choice for each of them: with a probability p what came last, else any;
p itself is drawn, so that everything, nothing and all between survives. With p = 1 it is a kill.

What then is there is put into a folder, and must be the old generation whole, the new one whole, or
seen to be neither; and be what the next run goes on from.

Cost: a snapshot reads the whole folder, of some 100 kB; a seed takes milliseconds, equal ones none.
"""

import os
import random
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import xxhash

from cocite.storage.atomic import Journal
from tests.torture.kills import wrong_after
from tests.torture.operations import OPERATIONS, Prepared, prepared
from tests.torture.results import Given, Row
from tests.torture.shim import between

_SEEDS = 10_000
"""Over all operations, if there is time for all."""
_BLOCK = 512
_CHANCES = (0.0, 0.1, 0.5, 0.9, 0.99, 1.0)
_SYNCS = "sync_file", "sync_directory", "sync_all"
_Names = dict[str, int]
_Tree = dict[str, Any]


@dataclass
class Recording:
    """What directories and files, by numbers of ours, held from which moment on, and when each was
    synced. ``inodes`` are those of the system, which gives them to others when they are free:
    one that had no name at a moment is another one afterwards. The folder itself has the number 0.
    """

    moments: int = 0
    inodes: list[int] = field(default_factory=list)
    now: dict[int, int] = field(default_factory=dict)
    folders: dict[int, list[tuple[int, _Names]]] = field(default_factory=dict)
    files: dict[int, list[tuple[int, bytes]]] = field(default_factory=dict)
    synced: dict[int, list[int]] = field(default_factory=dict)

    def look(self, folder: Path) -> None:
        """Note what is there now."""
        self._seen: dict[int, int] = {}
        self._look(os.fspath(folder))
        self.now = self._seen
        self.moments += 1

    def _number(self, inode: int) -> int:
        number = self._seen.get(inode, self.now.get(inode))
        if number is None:
            number = len(self.inodes)
            self.inodes.append(inode)
        self._seen[inode] = number
        return number

    def _look(self, path: str) -> None:
        folder = self._number(os.stat(path).st_ino)
        names: _Names = {}
        try:
            entries = sorted(os.scandir(path), key=lambda entry: entry.name)
        except FileNotFoundError:
            return
        for entry in entries:
            try:
                status = entry.stat(follow_symlinks=False)
                number = self._number(status.st_ino)
                if stat.S_ISREG(status.st_mode):
                    with open(entry.path, "rb") as file:
                        self._note(self.files, number, file.read())
                elif stat.S_ISDIR(status.st_mode):
                    self._look(entry.path)
                names[entry.name] = number
            except FileNotFoundError:  # another library's, which has just removed it
                continue
        self._note(self.folders, folder, names)

    def _note(self, where: dict[int, list[tuple[int, Any]]], number: int, value: Any) -> None:
        held = where.setdefault(number, [])
        if not held or held[-1][1] != value:
            held.append((self.moments, value))

    def sync(self, inode: int | None) -> None:
        """What was there at the moment before is on the disk; of all files if none is named."""
        for each in [inode] if inode is not None else [*self.now]:
            if each in self.now:  # else it is in no folder of this one
                self.synced.setdefault(self.now[each], []).append(self.moments)

    # -- after a crash --------------------------------------------------------------------

    def crashed(self, chance: random.Random) -> tuple[_Tree, _Names]:
        """What the disk may hold: names -> bytes, or such a tree; and the inodes of these names.

        The first moment is before anything is done, when all is synced.
        """
        at, likely = chance.randrange(1, self.moments), chance.choice(_CHANCES)
        self._numbers: _Names = {}
        return self._folder(0, at, likely, chance, 0), self._numbers

    def _since(self, held: list[tuple[int, Any]], number: int, at: int, none: Any) -> list[Any]:
        """What it was when it was last synced before a moment (``none``, if it never was), and what
        it has been since, in order.
        """
        synced = max((s for s in self.synced.get(number, ()) if s <= at), default=-1)
        before = [none] if synced < 0 else [value for begin, value in held if begin < synced]
        return before[-1:] + [value for begin, value in held if synced <= begin <= at]

    def _folder(
        self, number: int, at: int, likely: float, chance: random.Random, depth: int
    ) -> _Tree:
        states: list[_Names] = self._since(self.folders.get(number, []), number, at, {})
        tree: _Tree = {}
        for name in sorted({name for state in states for name in state}):
            found = _chosen([state.get(name) for state in states], likely, chance)
            if depth == 0 and found is not None:
                self._numbers[name] = self.inodes[found]
            if found in self.folders and depth < 8:
                tree[name] = self._folder(found, at, likely, chance, depth + 1)
            elif found in self.files:
                tree[name] = self._file(found, at, likely, chance)
        return tree

    def _file(self, number: int, at: int, likely: float, chance: random.Random) -> bytes:
        states: list[bytes] = self._since(self.files[number], number, at, b"")
        if all(state == states[-1] for state in states):
            return states[-1] if states else b""
        size = len(_chosen(states, likely, chance))
        blocks = []
        for low in range(0, size, _BLOCK):
            most = min(_BLOCK, size - low)
            block = _chosen(states, likely, chance)[low : low + most]
            blocks.append(block + bytes(most - len(block)))
        return b"".join(blocks)


def _chosen(states: list[Any], likely: float, chance: random.Random) -> Any:
    return states[-1] if chance.random() < likely else chance.choice(states)


@contextmanager
def recorded(folder: Path) -> Iterator[Recording]:
    """A context in which all that happens in a folder is recorded; what was there is synced."""
    recording = Recording()
    recording.look(folder)
    recording.sync(None)

    def before(name: str, arguments: tuple[Any, ...]) -> None:
        recording.look(folder)

    def after(name: str, arguments: tuple[Any, ...]) -> None:
        if name in _SYNCS:
            inode = None
            if name == "sync_file":
                inode = os.fstat(arguments[0].fileno()).st_ino
            elif name == "sync_directory":
                inode = os.stat(arguments[0]).st_ino
            recording.sync(inode)
        recording.look(folder)

    with between(before, after):
        yield recording
    recording.look(folder)


def lose_all_power(given: Given) -> dict[str, Row]:
    """Lose it in all operations, in turns, :data:`_SEEDS` times in all."""
    count = given.count(_SEEDS) // max(sum(given.only in name for name in OPERATIONS), 1) + 1
    seeds = range(given.seed * _SEEDS, given.seed * _SEEDS + count)

    def losses(name: str, row: Row) -> Iterator[str]:
        folder = given.folder / "power" / name
        yield from lose_power(prepared(OPERATIONS[name], folder), folder, seeds, 20, row)

    return given.in_turns(OPERATIONS, losses)


def lose_power(told: Prepared, place: Path, seeds: range, every: int, row: Row) -> Iterator[str]:
    """Lose it at each seed; yields what is wrong after it. Where different things are left the
    command is given again after every so many-th of them.
    """
    folder = told.copy(place / "recorded")
    with recorded(folder) as recording:
        assert told.operation.run(folder) == 0
    known, pieces = dict[str, str](), _pieces(recording)
    for seed in seeds:
        tree, numbers = recording.crashed(random.Random(seed))
        digest = _digest(tree)
        if digest not in known:
            again = len(known) % every == 0
            shutil.rmtree(folder)
            _make(folder, tree)
            _renumber(folder, numbers)
            known[digest] = _wrong_pieces(folder, pieces) or wrong_after(told, folder, row, again)
            row.seen["different states"] = len(known)
        row.add(f"power lost, seed {seed}", known[digest])
        yield known[digest]


def _make(folder: Path, tree: _Tree) -> None:
    folder.mkdir()
    for name, value in tree.items():
        if isinstance(value, bytes):
            (folder / name).write_bytes(value)
        else:
            _make(folder / name, value)


def _renumber(folder: Path, numbers: _Names) -> None:
    """A directory of an unfinished run may note by its number what was published: the copy has
    another one.
    """
    for note in sorted(folder.glob("*.building/published")):
        words, output = note.read_bytes().split(), note.parent.with_suffix("")
        if len(words) == 3 and words[1] == b"%d" % numbers.get(output.name, -1):
            status = output.stat()
            note.write_text(f"{status.st_dev} {status.st_ino} {status.st_mtime_ns}")


def _digest(tree: _Tree) -> str:
    state = xxhash.xxh3_128()

    def add(tree: _Tree) -> None:
        for name, value in tree.items():
            state.update(f"{name}\0{type(value).__name__}{len(value)}\0".encode())
            if isinstance(value, bytes):
                state.update(value)
            else:
                add(value)

    add(tree)
    return state.hexdigest()


def _pieces(recording: Recording) -> bytes:
    """The longest journal that there was, "" if there was none."""
    names = (names for held in recording.folders.values() for _, names in held)
    numbers = {each["pieces"] for each in names if "pieces" in each}
    found = [data for number in numbers for _, data in recording.files.get(number, ())]
    return max(found, key=len, default=b"")


def _wrong_pieces(folder: Path, whole: bytes) -> str:
    """What is wrong with what a journal takes for whole."""
    for path in sorted(folder.glob("*.building/pieces")):
        with Journal(path) as journal:
            if not whole.startswith(path.read_bytes()[: sum(journal.sizes)]):
                return "a journal takes for whole what nobody wrote"
    return ""
