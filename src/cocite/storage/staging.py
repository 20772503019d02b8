"""Staging directories, ``<output>.building``, in which outputs are written and then published.

The directory is locked and has a marker, created first and removed last. If a process is killed,
the old output is unchanged or the new one complete, and the next run takes over the directory. It
resumes if the builder supports that and ``plan.json`` is equal; otherwise it empties the directory,
unless that holds results of another plan.

``publish`` writes the manifest last, then renames. Files outside the store are removed before, or
afterwards if the plan can be resumed. A replaced output has the directory's name until it is
removed. The marker records both, so that the next run can remove them. A run killed between the
rename and the removal leaves a record of its output.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO, Self

from cocite.errors import Busy, Damaged, NotAStore, OutputExists, StoreError, UsageError
from cocite.storage import disk
from cocite.storage.arrays import DIGEST, Entry, checksum
from cocite.storage.atomic import (
    MARK,
    is_private,
    is_still,
    lock,
    staged_file,
    sweep_staged,
    unclaimed,
)
from cocite.storage.manifest import MANIFEST, Manifest, kind_of

_PLAN = "plan.json"
_PUBLISHED = "published"
_TRIES = 5
_LONGEST = 100
_FOLLOWING = ("/format", "/piece")
"""Fields of a plan that depend on the release or on other settings."""
_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/+[^/]")
"""A URL, or one that became a path and lost a slash."""


class Building:
    """``with Building(output) as building: ... building.path ... building.done()``.

    On an error the directory stays if ``resumable``, and is removed if not. Raises :class:`Busy` if
    another process is building it, and :class:`StoreError` if the directory cannot be created.
    """

    def __init__(self, output: str | Path, *, resumable: bool = False) -> None:
        self.output = Path(output)
        if _URL.match(str(output)):
            raise UsageError(
                f"{output} is a URL, which is not supported here: choose a directory. cocite "
                "index, ingest and merge, and tables, accept URLs"
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
        """Claim the directory: files of an earlier run may be removed, others may not."""
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
        """Return whether it holds the remains of a finished run instead of an unfinished one."""
        return False

    def clear(self) -> None:
        """Remove the files of an earlier, unfinished run."""
        for entry in self.path.iterdir():
            if entry.name != MARK:
                disk.remove(entry)

    @property
    def plan(self) -> dict[str, Any] | None:
        """Return the plan of an earlier, unfinished run, or None."""
        try:
            found = json.loads((self.path / _PLAN).read_bytes())
        except FileNotFoundError:
            return None
        except ValueError:
            return None  # killed while writing it: nothing else is there yet
        return found if isinstance(found, dict) else {}

    def goes_on(self, plan: dict[str, Any], what: str, *, restart: bool) -> bool:
        """Return whether an earlier run had the same plan; otherwise clear the directory and start
        a new ``plan``.

        ``plan`` is everything that the result depends on, as JSON. Raises :class:`UsageError` if
        there is an unfinished ``what`` (a noun) with another plan, unless ``restart``.
        """
        found = self.plan
        if not restart and found is not None and (found == plan or not self._is_bare()):
            if found == plan:
                return True
            raise UsageError(
                f"{self.path} holds an unfinished {what} with other settings: "
                f"{'; '.join(_differences(found, plan)) or 'its plan is damaged'}. Repeat those "
                "settings to resume it, or pass --no-resume (restart=True) to start over"
            )
        self.clear()
        with staged_file(self.path / _PLAN) as file:
            disk.write(file, json.dumps(plan).encode())
        return False

    def _is_bare(self) -> bool:
        """Return whether there is nothing to resume: only a plan, and empty files."""
        others = [entry for entry in self.path.iterdir() if entry.name not in (MARK, _PLAN)]
        return not any(entry.is_dir() or entry.lstat().st_size for entry in others)

    def done(self) -> None:
        """Remove the directory after the output has been published."""
        remove_building(self.path)
        self._published = True

    def sweep(self) -> None:
        """Remove the files of a run that was killed after it had published its output."""
        if not os.path.lexists(self.output) or self.path.is_symlink():
            return
        with unclaimed(self.path) as free:
            if not free or not (self.path / MARK).is_file():
                return
            bare = [entry.name for entry in self.path.iterdir()] == [MARK]
            if bare or _known(self.output) == _report(self.path / _PUBLISHED):
                remove_building(self.path)

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        try:
            if not self._published and is_still(self.path, self._lock):
                found = {entry.name for entry in self.path.iterdir()}
                ours = not found or MARK in found
                # A plan stays after a success: other processes may be working on it.
                bare = found <= ({MARK} if kind is None else {MARK, _PLAN})
                if ours and (bare or not self._resumable):
                    remove_building(self.path)
        finally:
            os.close(self._lock)


def _differences(theirs: dict[str, Any], ours: dict[str, Any]) -> list[str]:
    """Describe the differences between two plans: setting, value there, value here. For different
    measures, settings of only one of them are omitted, and dependent ones.
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
        opaque = DIGEST.fullmatch(before) or DIGEST.fullmatch(now)
        found.append(f"{name}: not the same" if opaque else f"{name}: {before}, here {now}")
    return list(dict.fromkeys(found))


def _leaves(place: str, value: Any) -> Iterator[tuple[str, Any]]:
    """Yield the scalar values of a plan with their positions."""
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
    """Remove the directory, and its marker last."""
    disk.remove_tree(path, _PUBLISHED, MARK)


@contextmanager
def written_from(building: Path, path: Path) -> Iterator[BinaryIO]:
    """Open a file like :func:`staged_file`, in the directory of the run that produces it."""
    with staged_file(path, building) as file:
        yield file
        publishing(Path(file.name), building)


def publishing(made: Path, building: Path) -> None:
    """Record in a directory that ``made`` is about to become its output."""
    with staged_file(building / _PUBLISHED) as file:
        disk.write(file, _known(made).encode())


def _known(path: Path) -> str:
    """Return the identity of a file or folder, independent of its name; "" if it is missing."""
    try:
        status = path.lstat()
    except OSError:
        return ""
    return f"{status.st_dev} {status.st_ino} {status.st_mtime_ns}"


def _report(note: Path) -> str:
    try:
        return note.read_text("ascii")
    except (OSError, ValueError):
        return ""


_NAMED = 5
"""Most foreign files that a message names."""
_REST, _OLD = "rest", "replaced"
_MARKING = re.compile(re.escape(f".{MARK}.") + r"[0-9a-f]{16}\.new")
"""Name of a marker under construction."""


class Staging(Building):
    """``with Staging(output, "graph") as draft: ... draft.publish(manifest)``.

    On an error the directory stays if ``resumable``, and is removed if not. Raises
    :class:`OutputExists` if the output exists and ``overwrite`` is false or it contains foreign
    files, :class:`NotAStore` if it is not a store of this ``kind``, :class:`Busy` if another
    process is building it, and :class:`StoreError` if the directory cannot be created.
    """

    def __init__(
        self, output: str | Path, kind: str, *, overwrite: bool = False, resumable: bool = False
    ) -> None:
        super().__init__(output, resumable=resumable)
        self._kind, self._overwrite = kind, overwrite
        if os.path.lexists(self.output):
            self._finish_earlier()
            if not overwrite:
                raise OutputExists.already(self.output)
            self._check_replaceable()

    def publish(self, manifest: Manifest) -> Path:
        """Write the manifest and move the directory to its final place, which is returned.

        Raises :class:`OutputExists` or :class:`NotAStore` if something that may not be replaced
        appeared there during the build; the draft is kept.
        """
        manifest.write(self.path)
        rest = self._rest({*manifest.files, MANIFEST, MARK})
        if self._overwrite and os.path.lexists(self.output):
            self._check_replaceable()
            self._replace()
        else:
            try:
                disk.rename_new(self.path, self.output)
            except FileExistsError as error:
                raise OutputExists(
                    f"{self.output} was created in the meantime; the new build is in {self.path}"
                ) from error
            self._published = True
            disk.sync_directory(self.output.parent)
        _clean(self.output, rest)
        return self.output

    def _rest(self, kept: set[str]) -> list[str]:
        """Return the files of the draft that do not belong to the store. They are removed after
        publishing, as a resumed run needs them. The list is stored, so that they are recognized if
        the process is killed before. If the run cannot be resumed, they are removed now.
        """
        rest = sorted({entry.name for entry in self.path.iterdir()} - kept)
        if self._resumable:
            if rest:
                _mark(self.path, rest=rest)
            return rest
        for name in rest:
            disk.remove(self.path / name)
        if rest:
            disk.sync_directory(self.path)
        return []

    def _finish_earlier(self) -> None:
        """Remove the files of a run that was killed after publishing: those within its output, and
        the replaced store, which has the draft's name. Ignores failures.
        """
        if not self.output.is_symlink() and kind_of(self.output) == self._kind:
            with suppress(OSError), unclaimed(self.output) as free:
                if free:
                    sweep_staged(self.output / MARK)
                    there = set(os.listdir(self.output)) - _in_manifest(self.output)
                    if _is_marked(self.output):
                        _clean(self.output, sorted(_left(self.output)[0] & there))
        if not self.path.is_symlink() and _is_marked(self.path) and _left(self.path)[1]:
            with suppress(OSError), unclaimed(self.path) as free:
                if free:
                    _remove_own(self.path)

    def _is_old(self) -> bool:
        """Return whether it is a replaced store, which cannot be resumed."""
        return _left(self.path)[1]

    def clear(self) -> None:
        """Remove the files of an earlier, unfinished run."""
        super().clear()
        if _left(self.path) != (set(), False):
            disk.sync_directory(self.path)  # the remains are not an old output any more
            _mark(self.path)

    def _check_replaceable(self) -> None:
        """Check that the output is a store of this kind without foreign files."""
        if kind_of(self.output) != self._kind:
            raise NotAStore.in_the_way(self.output, f"stored {self._kind}")
        strange = [] if self.output.is_symlink() else _strangers(self.output)
        if strange:
            more = f" and {len(strange) - _NAMED} more" if len(strange) > _NAMED else ""
            raise OutputExists(
                f"{self.output} holds what is not the {self._kind}'s own and would be lost: "
                f"{', '.join(strange[:_NAMED])}{more}. Move it elsewhere, or choose another output"
            )

    def _replace(self) -> None:
        """Exchange old and new, then remove the files of the old store, and nothing else.

        If the output is a link, only the link is removed.
        """
        link = self.output.is_symlink()
        old = os.open(self.output, os.O_RDONLY | os.O_DIRECTORY)
        try:
            # After the exchange, the old one has the draft's name. The lock protects it from other
            # processes, and the marker lets the next run remove it after a kill.
            lock(old)
            try:
                if not link:
                    _mark(self.output, old=True)
                disk.exchange(self.path, self.output)
            except BaseException:
                if not link:
                    disk.remove(self.output / MARK)
                raise
            self._published = True
            try:
                disk.sync_directory(self.output.parent)
            finally:
                if link:
                    disk.remove(self.path)
                else:
                    self._remove_old()
        finally:
            os.close(old)

    def _remove_old(self) -> None:
        """Remove the old store, which has the draft's name."""
        try:
            _remove_own(self.path)
        except OSError as error:
            raise StoreError(
                f"{self.output} is whole; what came into the old one while it was replaced is in "
                f"{self.path}: move it, and remove that directory"
            ) from error


def _mark(directory: Path, rest: list[str] | None = None, old: bool = False) -> None:
    """Record in the marker which files of a directory do not belong to the store, and whether it is
    a replaced store.
    """
    facts = {**({_REST: rest} if rest else {}), **({_OLD: True} if old else {})}
    with staged_file(directory / MARK) as file:
        disk.write(file, json.dumps(facts).encode() if facts else b"")


def _left(directory: Path) -> tuple[set[str], bool]:
    """Return what the marker of a directory records."""
    mark = directory / MARK
    if mark.is_symlink():
        return set(), False
    try:
        facts = json.loads(mark.read_bytes() or b"{}")
        return set(map(str, facts.get(_REST, ()))), facts.get(_OLD) is True
    except (OSError, ValueError, TypeError, AttributeError, RecursionError):
        return set(), False


def _clean(directory: Path, rest: list[str]) -> None:
    """Remove files that do not belong to a published store, then its marker."""
    for name in rest:
        disk.remove(directory / name)
    if rest:
        disk.sync_directory(directory)  # the marker identifies the remains
    disk.remove(directory / MARK)


def _remove_own(directory: Path) -> None:
    """Remove the files of a replaced store, then its manifest, its marker and the directory."""
    for name in sorted(_own(directory) - {MANIFEST, MARK}):
        disk.remove(directory / name)
    for name in (MANIFEST, MARK):
        disk.sync_directory(directory)
        disk.remove(directory / name)
    disk.remove_empty(directory)


def _is_marked(directory: Path) -> bool:
    return (directory / MARK).is_file() and not (directory / MARK).is_symlink()


def _own(directory: Path) -> set[str]:
    """Return the files that belong to a store: those listed in its manifest, and remains of its
    draft.

    Names outside the directory do not count.
    """
    listed = _in_manifest(directory)
    left: set[str] = set() if (directory / MARK).is_symlink() else {MARK, *_left(directory)[0]}
    return {
        entry.name
        for entry in directory.iterdir()
        if entry.name in left
        or (entry.name in listed and not _is_folder(entry))
        or (_MARKING.fullmatch(entry.name) and not _is_folder(entry))
    }


def _strangers(directory: Path) -> list[str]:
    """Return the files in a store that do not belong to it."""
    return sorted({entry.name for entry in directory.iterdir()} - _own(directory))


def _is_folder(path: Path) -> bool:
    return path.is_dir() and not path.is_symlink()


def _in_manifest(directory: Path) -> set[str]:
    """Return the listed files and the manifest; if it cannot be read, only the manifest."""
    try:
        value = json.loads((directory / MANIFEST).read_bytes())
        return {MANIFEST, *map(str, value["files"])}
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return {MANIFEST}


def copy_array(source: Path, target: Path, entry: Entry) -> None:
    """Copy one array file and check that it arrived intact."""
    with source.open("rb") as reader, disk.create_anew(target) as writer:
        while piece := reader.read(1 << 22):
            disk.write(writer, piece)
        disk.sync_file(writer)
    if checksum(target, entry) != entry.xxh3_128:
        raise Damaged(f"{source} does not match its checksum. Build it again")
