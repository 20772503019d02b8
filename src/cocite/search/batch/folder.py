"""The folder output: a JSON file per node, for static sites.

    FOLDER/manifest.json           the contents, the number of nodes, the ``levels`` of folders, and
                                   whether some nodes are ``urls``
    FOLDER/files.csv               node, file: the path of each file
    FOLDER/related.js              only for ``site``: the script that inserts a page's list
    FOLDER/pages/NAME.json         for up to 2,000 nodes
    FOLDER/pages/ab/NAME.json      for up to 500,000: by the first two hexadecimal digits of the
                                   SHA-256 of the node's name in UTF-8
    FOLDER/pages/ab/cd/NAME.json   for more: by the first two, and the next two

Each file contains the node's line of the JSON lines output. NAME is the node's name, URL-encoded
with ``=`` instead of ``%``, so that servers do not decode it: letters, digits and ``_.-~`` are
kept; a leading dot and all other UTF-8 bytes become ``=`` and two hexadecimal digits. A NAME of
more than 150 characters is truncated to 120, followed by ``==`` and the first 16 digits of the
SHA-256. ``file_name`` implements this.

The folder is written in the unfinished batch's directory, with the manifest last, then renamed, so
a folder with the final name is complete. A resumed batch writes all files again, because a power
failure may have lost some.
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
import os
from importlib.resources import files
from pathlib import Path
from typing import Any
from urllib.parse import quote

from cocite.errors import OutputExists, StoreError
from cocite.search.batch.pages import Output, OutputPages, Pages, json_of
from cocite.storage import check_folder, disk, staged_file
from cocite.storage.staging import publishing

MANIFEST, SCRIPT, _FILES, _PAGES = "manifest.json", "related.js", "files.csv", "pages"
_KIND = "pages"
_LONGEST, _KEPT, _DIGITS = 150, 120, 16
_FEW, _MANY = 2000, 500_000
_URLS = ("http://", "https://")


def levels_of(nodes: int) -> int:
    """Return the depth of the folder tree for this number of nodes."""
    return 0 if nodes <= _FEW else 1 if nodes <= _MANY else 2


def file_name(node: object, levels: int = 0) -> str:
    """Return the path of a node's file, relative to the folder, with ``/`` separators."""
    raw = str(node).encode("utf-8", "surrogateescape")
    digits = hashlib.sha256(raw).hexdigest()
    name = quote(raw, safe="").replace("%", "=")
    if name.startswith("."):
        name = "=2E" + name[1:]
    if len(name) > _LONGEST:
        name = f"{name[:_KEPT]}=={digits[:_DIGITS]}"
    folders = [digits[2 * i : 2 * i + 2] for i in range(levels)]
    return "/".join([_PAGES, *folders, f"{name}.json"])


class FolderOutput(Output):
    """A folder of JSON files, with the script if ``kind`` is ``site``."""

    def __init__(self, kind: str) -> None:
        self.kind = kind

    def check(self, path: Path, overwrite: bool) -> Path:
        """Return the path if it is missing, empty, or an earlier output to overwrite."""
        check_folder(path)
        names = os.listdir(path) if path.exists() else []
        if not names:
            return path
        if not overwrite:
            raise OutputExists(
                f"{path} exists. Choose another output, or pass --overwrite (overwrite=True)"
            )
        others = sorted(set(names) - {MANIFEST, _FILES, _PAGES, SCRIPT})
        if others or not _is_ours(path):
            found = f"such as {others[0]}" if others else f"and lacks its {MANIFEST}"
            raise OutputExists(
                f"{path} contains files that related-all did not write, {found}. Choose another "
                "output"
            )
        return path

    def write(
        self, path: Path, pages: Pages, empty: OutputPages, scratch: Path, facts: dict[str, Any]
    ) -> int:
        """Write a file per node, and the manifest last."""
        levels = levels_of(facts["nodes"])
        work = scratch / _KIND
        inside, made, urls = work / "files", set[str](), False
        disk.remove(work)  # from an interrupted run
        disk.make_own_folder(inside)
        with staged_file(inside / _FILES, work) as listed:
            disk.write(listed, b"node,file\n")
            for some in pages:
                rows = io.StringIO()
                table = csv.writer(rows, lineterminator="\n")
                for page in some.each():
                    file = file_name(page["node"], levels)
                    table.writerow([page["node"], file])
                    urls = urls or str(page["node"]).lower().startswith(_URLS)
                    _write(inside, file, json_of(page), made)
                disk.write(listed, rows.getvalue().encode(errors="surrogateescape"))
        if self.kind == "site":
            with staged_file(inside / SCRIPT, work) as put:
                disk.write(put, script())
        disk.sync_all()  # once for all files, before the manifest
        count, size = _counted(inside)
        if count != facts["nodes"]:
            raise StoreError(
                f"{path}: {count:,} files were written for {facts['nodes']:,} nodes, because this "
                "disk treats names such as A and a as equal. Choose another disk"
            )
        document = {"cocite": _KIND, **facts, "levels": levels, "urls": urls}
        content = json.dumps(document, indent=1, ensure_ascii=False).encode(
            errors="surrogateescape"
        )
        with staged_file(inside / MANIFEST, work) as manifest:
            disk.write(manifest, content)
        disk.make_folder(path.parent)
        publishing(inside, scratch)
        if path.exists() and os.listdir(path):
            disk.exchange(inside, path)
        else:
            disk.rename(inside, path)
        disk.sync_directory(path.parent)
        return size + len(content)

    def trial(self, pages: list[OutputPages], scratch: Path) -> int:
        """Write files without syncing; return their bytes, including their lines in the table."""
        size, made = 0, set[str]()
        for some in pages:
            for page in some.each():
                name, text = file_name(page["node"]), json_of(page)
                _write(scratch, name, text, made)
                size += len(text.encode(errors="surrogateescape")) + len(name) + 20
        return size


def _write(folder: Path, name: str, text: str, made: set[str]) -> None:
    parent = os.path.dirname(name)
    if parent not in made:
        disk.make_own_folder(folder / parent)
        made.add(parent)
    with disk.rewrite(folder / name) as file:
        disk.write(file, text.encode(errors="surrogateescape"))


def _counted(folder: Path) -> tuple[int, int]:
    count = size = 0
    for place, _, names in os.walk(folder):
        count += len(names) * (place != str(folder))
        size += sum(os.stat(os.path.join(place, name)).st_size for name in names)
    return count, size


def _is_ours(path: Path) -> bool:
    try:
        found = json.loads((path / MANIFEST).read_bytes())
    except (OSError, ValueError, RecursionError):
        return False
    return isinstance(found, dict) and found.get("cocite") == _KIND


def script() -> bytes:
    """Return the script that inserts lists into pages."""
    return (files(__package__) / SCRIPT).read_bytes()
