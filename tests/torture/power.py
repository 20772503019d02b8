"""Power loss: data that was written but not synced survives in parts, or not at all.

An operation (``operations.py``) is recorded once: at the start and end of every call of
``storage/disk.py``, the contents of all directories and files of its folder, whoever wrote them,
and what was synced. From that follows what a disk may hold after a crash at any moment, if the file
system keeps no order (as one without a journal):

* a name in a directory is as of the last sync of the directory, or any later version: names are
  independent, so that half of a rename may survive;
* a block of 512 bytes of a file is as of the last sync of the file, or any later version, or zeros
  if it did not exist yet; so is the file's length.

A *seed* is a moment, and a choice for each name and block: with a probability p the last version,
else any; p itself is drawn, so that all, nothing or anything between survives. p = 1 is a kill.

The resulting folder must hold the complete old generation, the complete new one, or one that is
detected as neither; and the next run must continue from it.

Cost: a snapshot reads the folder, of some 100 kB; a seed takes milliseconds, a repeated state none.
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
"""For all operations together, if time allows."""
_BLOCK = 512
_CHANCES = (0.0, 0.1, 0.5, 0.9, 0.99, 1.0)
_SYNCS = "sync_file", "sync_directory", "sync_all"
_Names = dict[str, int]
_Tree = dict[str, Any]


@dataclass
class Recording:
    """The contents of directories and files over time, and when each was synced. Each has a number
    of its own, as the system reuses ``inodes``: one without a name at a moment is a new one
    afterwards. The folder itself has the number 0.
    """

    moments: int = 0
    inodes: list[int] = field(default_factory=list)
    now: dict[int, int] = field(default_factory=dict)
    folders: dict[int, list[tuple[int, _Names]]] = field(default_factory=dict)
    files: dict[int, list[tuple[int, bytes]]] = field(default_factory=dict)
    synced: dict[int, list[int]] = field(default_factory=dict)

    def look(self, folder: Path) -> None:
        """Record the current state."""
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
            except FileNotFoundError:  # a file that another library just removed
                continue
        self._note(self.folders, folder, names)

    def _note(self, where: dict[int, list[tuple[int, Any]]], number: int, value: Any) -> None:
        held = where.setdefault(number, [])
        if not held or held[-1][1] != value:
            held.append((self.moments, value))

    def sync(self, inode: int | None) -> None:
        """Note that the last state of a file is on the disk; of all files if ``inode`` is None."""
        for each in [inode] if inode is not None else [*self.now]:
            if each in self.now:  # else it is outside the folder
                self.synced.setdefault(self.now[each], []).append(self.moments)

    # -- after a crash --------------------------------------------------------------------

    def crashed(self, chance: random.Random) -> tuple[_Tree, _Names]:
        """What the disk may hold: names -> bytes or subtrees; and the inodes of these names.

        The first moment is before the operation, when all is synced.
        """
        at, likely = chance.randrange(1, self.moments), chance.choice(_CHANCES)
        self._numbers: _Names = {}
        return self._folder(0, at, likely, chance, 0), self._numbers

    def _since(self, held: list[tuple[int, Any]], number: int, at: int, none: Any) -> list[Any]:
        """The version at the last sync before a moment (``none`` if never synced), and the later
        ones, in order.
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
            chosen = _chosen([state.get(name) for state in states], likely, chance)
            if depth == 0 and chosen is not None:
                self._numbers[name] = self.inodes[chosen]
            if chosen in self.folders and depth < 8:
                tree[name] = self._folder(chosen, at, likely, chance, depth + 1)
            elif chosen in self.files:
                tree[name] = self._file(chosen, at, likely, chance)
        return tree

    def _file(self, number: int, at: int, likely: float, chance: random.Random) -> bytes:
        states: list[bytes] = self._since(self.files[number], number, at, b"")
        if all(state == states[-1] for state in states):
            return states[-1] if states else b""
        size = len(_chosen(states, likely, chance))
        blocks = []
        for low in range(0, size, _BLOCK):
            count = min(_BLOCK, size - low)
            block = _chosen(states, likely, chance)[low : low + count]
            blocks.append(block + bytes(count - len(block)))
        return b"".join(blocks)


def _chosen(states: list[Any], likely: float, chance: random.Random) -> Any:
    return states[-1] if chance.random() < likely else chance.choice(states)


@contextmanager
def recorded(folder: Path) -> Iterator[Recording]:
    """Record all changes in a folder; its initial contents count as synced."""
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
    """Lose power in all operations, in turns, :data:`_SEEDS` times in all."""
    count = given.count(_SEEDS) // max(sum(given.only in name for name in OPERATIONS), 1) + 1
    seeds = range(given.seed * _SEEDS, given.seed * _SEEDS + count)

    def losses(name: str, row: Row) -> Iterator[str]:
        folder = given.folder / "power" / name
        yield from lose_power(prepared(OPERATIONS[name], folder), folder, seeds, 20, row)

    return given.in_turns(OPERATIONS, losses)


def lose_power(target: Prepared, folder: Path, seeds: range, every: int, row: Row) -> Iterator[str]:
    """Lose power with each seed; yield what is wrong afterwards. After each ``every``-th different
    state the command runs again.
    """
    recorded_folder = target.copy(folder / "recorded")
    with recorded(recorded_folder) as recording:
        assert target.operation.run(recorded_folder) == 0
    known, pieces = dict[str, str](), _pieces(recording)
    for seed in seeds:
        tree, numbers = recording.crashed(random.Random(seed))
        digest = _digest(tree)
        if digest not in known:
            repeat = len(known) % every == 0
            shutil.rmtree(recorded_folder)
            _make(recorded_folder, tree)
            _renumber(recorded_folder, numbers)
            known[digest] = _wrong_pieces(recorded_folder, pieces) or wrong_after(
                target, recorded_folder, row, repeat
            )
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
    """Update the inode that an unfinished run's directory may note for its published output: the
    copy has another one.
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
    """The longest recorded journal, or empty bytes."""
    names = (names for held in recording.folders.values() for _, names in held)
    numbers = {each["pieces"] for each in names if "pieces" in each}
    journals = [data for number in numbers for _, data in recording.files.get(number, ())]
    return max(journals, key=len, default=b"")


def _wrong_pieces(folder: Path, whole: bytes) -> str:
    """What is wrong with the records that a journal accepts as complete."""
    for path in sorted(folder.glob("*.building/pieces")):
        with Journal(path) as journal:
            if not whole.startswith(path.read_bytes()[: sum(journal.sizes)]):
                return "a journal accepts a record that nobody wrote"
    return ""
