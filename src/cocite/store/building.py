"""The directory in which an output grows: ``<output>.building``, locked, and whose it is.

A lock on it keeps a second builder out. A process that is killed leaves it behind, and
the next run takes it over: it continues in it if the builder knows how to resume, and else
empties it. One that does writes down first what it is to make (``plan.json``): with the same plan
what is there is gone on with; with another one what is there is not thrown away unasked, unless
nothing was finished.

It is known by its mark: there, on the disk, before anything else in it, and gone after all else. So
whatever a process that was killed, or a machine that lost its power, leaves of it is known for
ours. A process that is killed when the output has its place, and before this directory is gone,
leaves a note of what it published, by which the next run sees that nothing in here is wanted.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Self

from cocite.errors import Busy, StoreError, UsageError
from cocite.store import disk
from cocite.store.beside import MARK, is_private, written_beside
from cocite.store.locks import is_still, lock, unclaimed

__all__ = ["MARK", "Building", "publishing", "remove_building", "written_from"]

_PLAN = "plan.json"
_PUBLISHED = "published"
_TRIES = 5
_LONGEST = 100
_FOLLOWING = ("/format", "/piece")
"""What in a plan follows from the release, or from other settings."""
_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/+[^/]")
"""As it is, or as a path, which has lost a stroke."""
_DIGEST = re.compile("[0-9a-f]{32}")


class Building:
    """``with Building(output) as building: ... building.path ... building.done()``.

    On an error the directory is kept if ``resumable`` and removed if not. Raises :class:`Busy` if
    another process is building it, and :class:`StoreError` if the directory cannot be made.
    """

    def __init__(self, output: str | Path, *, resumable: bool = False) -> None:
        self.output = Path(output)
        if _URL.match(str(output)):
            raise UsageError(
                f"{output} is a URL, where this cannot be made: choose a directory. cocite index, "
                "ingest and merge, and tables, can be made at a URL"
            )
        if not self.output.name:
            raise UsageError(f"{str(output)!r} names no directory that could be made")
        self.path = self.output.with_name(self.output.name + ".building")
        self._resumable = resumable
        self._published = False
        self._lock = -1

    def __enter__(self) -> Self:
        for _ in range(_TRIES):
            try:
                disk.make_folder(self.output.parent)
                disk.make_own_folder(self.path)
                self._lock = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
            except OSError as error:
                raise StoreError(
                    f"{self.path} cannot be made: {error.strerror}. Choose another output"
                ) from error
            if not lock(self._lock):
                os.close(self._lock)
                raise Busy(f"another process is building {self.output}; wait for it")
            if is_still(self.path, self._lock):
                break
            os.close(self._lock)  # it was published or removed before we had the lock
        else:
            raise Busy(f"other processes keep building {self.output}")
        try:
            self._take_over()
        except BaseException as error:
            self.__exit__(type(error), error, error.__traceback__)
            raise
        return self

    def _take_over(self) -> None:
        """Make the directory ours: what an earlier run left in it may go, other files may not."""
        found = {entry.name for entry in self.path.iterdir()}
        if found and (MARK not in found or (self.path / MARK).is_symlink()):
            raise StoreError(
                f"{self.path} is in the way: it holds files that no unfinished build has left "
                f"({', '.join(sorted(found)[:3])}). Move it, or choose another output"
            )
        if MARK not in found:
            disk.touch(self.path / MARK)
            disk.sync_directory(self.path)
        for name in filter(is_private, found):
            disk.remove(self.path / name)
        if not self._resumable or self._is_old():
            self.clear()

    def _is_old(self) -> bool:
        """Whether what is there is no unfinished run's, but what a finished one has left."""
        return False

    def clear(self) -> None:
        """Remove what an earlier, unfinished run left."""
        for entry in self.path.iterdir():
            if entry.name != MARK:
                disk.remove(entry)

    @property
    def plan(self) -> dict[str, Any] | None:
        """What an earlier, unfinished run was to make; None if there is none that says so."""
        try:
            found = json.loads((self.path / _PLAN).read_bytes())
        except FileNotFoundError:
            return None
        except ValueError:
            return None  # killed while writing it: nothing else is there yet
        return found if isinstance(found, dict) else {}

    def goes_on(self, plan: dict[str, Any], what: str, *, restart: bool) -> bool:
        """Whether an earlier run was to make the same; else a new ``plan`` begins, all else gone.

        ``plan`` is everything that the result depends on, as JSON has it. Raises
        :class:`UsageError` if there is an unfinished ``what`` (a word) with another plan, unless it
        is to ``restart``.
        """
        found = self.plan
        if not restart and found is not None and (found == plan or not self._is_bare()):
            if found == plan:
                return True
            raise UsageError(
                f"{self.path} holds an unfinished {what} with other settings: "
                f"{'; '.join(_differences(found, plan)) or 'its plan is damaged'}. Repeat that "
                f"{what}'s settings to go on with it, or pass --restart (restart=True) to begin "
                "anew"
            )
        self.clear()
        with written_beside(self.path / _PLAN) as file:
            disk.write(file, json.dumps(plan).encode())
        return False

    def _is_bare(self) -> bool:
        """Whether nothing is there that anybody could go on with: a plan, and empty files."""
        others = [entry for entry in self.path.iterdir() if entry.name not in (MARK, _PLAN)]
        return not any(entry.is_dir() or entry.lstat().st_size for entry in others)

    def done(self) -> None:
        """The output has its place: the directory goes."""
        remove_building(self.path)
        self._published = True

    def sweep(self) -> None:
        """Remove what a run has left that was killed when its output had its place."""
        if not os.path.lexists(self.output) or self.path.is_symlink():
            return
        with unclaimed(self.path) as free:
            if not free or not (self.path / MARK).is_file():
                return
            bare = [entry.name for entry in self.path.iterdir()] == [MARK]
            if bare or _known(self.output) == _told(self.path / _PUBLISHED):
                remove_building(self.path)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            if not self._published and is_still(self.path, self._lock):
                found = {entry.name for entry in self.path.iterdir()}
                ours = not found or MARK in found
                # A plan stays that nothing went wrong with: others may be making what is in it.
                bare = found <= ({MARK} if kind is None else {MARK, _PLAN})
                if ours and (bare or not self._resumable):
                    remove_building(self.path)
        finally:
            os.close(self._lock)


def _differences(theirs: dict[str, Any], ours: dict[str, Any]) -> list[str]:
    """What differs between two plans, in words: the setting, its value there, and here. Of another
    measure, settings that only one of the two takes are left out; and what follows from others.
    """
    there, here = (dict(_leaves("", plan)) for plan in (theirs, ours))
    differing = [place for place in there | here if there.get(place) != here.get(place)]
    if any(place.endswith("/measure") for place in differing):
        differing = [place for place in differing if place in there and place in here]
    differing = [place for place in differing if place not in _FOLLOWING] or differing
    found = []
    for place in differing:
        name = place.rpartition("/")[2].replace("_", " ")
        before, now = _in_words(there.get(place)), _in_words(here.get(place))
        opaque = _DIGEST.fullmatch(before) or _DIGEST.fullmatch(now)
        found.append(f"{name}: not the same" if opaque else f"{name}: {before}, here {now}")
    return list(dict.fromkeys(found))


def _leaves(place: str, value: Any) -> Iterator[tuple[str, Any]]:
    """The values of a plan that hold no others, by where they stand."""
    inner: Iterable[tuple[Any, Any]] = ()
    if isinstance(value, dict):
        inner = value.items()
    elif isinstance(value, list) and any(isinstance(each, dict) for each in value):
        inner = enumerate(value)
    else:
        yield place, value
    for key, each in inner:
        yield from _leaves(f"{place}/{key}", each)


def _in_words(value: Any) -> str:
    if isinstance(value, list):
        value = ", ".join(map(_in_words, value))
    if value is None or value == "":
        return "none"
    text = str(value).lower() if isinstance(value, bool) else str(value)
    return text if len(text) <= _LONGEST else text[:_LONGEST] + "..."


def remove_building(path: Path) -> None:
    """Remove the directory; it is known by its mark to the last."""
    disk.remove_tree(path, _PUBLISHED, MARK)


@contextmanager
def written_from(building: Path, path: Path) -> Iterator[BinaryIO]:
    """As :func:`written_beside`, in the directory of a run, whose output it is."""
    with written_beside(path, building) as file:
        yield file
        publishing(Path(file.name), building)


def publishing(made: Path, building: Path) -> None:
    """Note in a directory what is going to have the place of its output: the file or the folder
    that is called ``made`` until then.
    """
    with written_beside(building / _PUBLISHED) as file:
        disk.write(file, _known(made).encode())


def _known(path: Path) -> str:
    """What a file or a folder is known by, whatever its name; "" if there is none."""
    try:
        status = path.lstat()
    except OSError:
        return ""
    return f"{status.st_dev} {status.st_ino} {status.st_mtime_ns}"


def _told(note: Path) -> str:
    try:
        return note.read_text("ascii")
    except (OSError, ValueError):
        return ""
