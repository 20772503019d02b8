"""A folder of source code: a link from each Python file to the files it imports.

    src/app/main.py: from .db import connect    src/app/main.py -> src/app/db.py
    package.json: "workspaces": ["packages/*"]  @me/a -> @me/b, if a needs b

Nodes are file paths, with module names as titles, and names of npm workspaces. Code is parsed
(``ast``), never run; a file of 10 kB takes 1 ms.

An import is resolved to the most specific module of that name, relative to the folder above the
file's package, the file's own folder, or the root. Failing that, it is resolved to the least deeply
nested file with that module name, unless the standard library has such a module. With
``--keep-external``, other imports become nodes, named by their first component. Hidden folders,
environments, ``node_modules`` and symbolic links are skipped.
"""

from __future__ import annotations

import ast
import json
import os
import sys
import warnings
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from cocite.constants import PARSING
from cocite.errors import InputError, UnrecognizedInput
from cocite.extras import need
from cocite.io.readers.contract import FormatReader, Job, Read
from cocite.io.readers.html.site import is_page_name
from cocite.io.readers.notes.note import load_yaml
from cocite.io.readers.rows import LinkWriter

_LARGEST = 1 << 20
"""Maximum size of a file in bytes; lower if memory is short."""
_BYTES = 1 << 10
"""Memory per byte of code in the worst case (lines of ``x``); usually a tenth of that."""
_PNPM = "pnpm-workspace.yaml"
_PROJECTS = ("pyproject.toml", "setup.py", "setup.cfg")
_NOTES = (".md", ".rst", ".adoc", ".txt")
_NEEDS = ("dependencies", "devDependencies", "peerDependencies", "optionalDependencies")


def is_code(folder: Path) -> bool:
    """Return whether a folder is a Python project, has npm workspaces, or is mostly Python."""
    if any((folder / name).is_file() for name in ("index.html", "index.htm")):
        return False
    try:
        if (folder / "package.json").is_file() and _patterns(folder):
            return True
    except InputError:
        pass  # reported by the reader
    python = others = 0
    project = any((folder / name).is_file() for name in _PROJECTS)
    for path in _files(folder):
        python += path.endswith(".py")
        others += is_page_name(path) or path.endswith(_NOTES)
        if python and project:
            return True
    return python > others


def _files(folder: Path) -> Iterator[str]:
    """Yield paths of files, relative to ``folder``, in sorted order."""
    for above, folders, names in os.walk(folder):
        folders[:] = sorted(
            name
            for name in folders
            if not name.startswith(".")
            and name not in ("__pycache__", "node_modules", "site-packages")
            and not os.path.exists(os.path.join(above, name, "pyvenv.cfg"))
        )
        for name in sorted(names):
            path = os.path.join(above, name)
            if not os.path.islink(path):
                yield os.path.relpath(path, folder)


def _read_code(job: Job) -> Read:
    folder = job.source.path
    if folder is None or not job.source.is_directory:
        raise UnrecognizedInput(f"{job.source.label} is a file. To read source code, pass a folder")
    modules = _Modules([path for path in _files(folder) if path.endswith(".py")])
    with LinkWriter(job, ("file", "file")) as out:
        for number, (path, name) in enumerate(modules.names.items(), 1):
            out.nodes.add((path,), number)
            job.titles.add(path, name)
            for target in _imported(job, out, modules, path, number):
                out.links.add((path, target), number)
            job.progress("parsing", number, len(modules.names))
        for package, needs in _workspaces(folder):
            out.nodes.add((package,), 0)
            for needed in needs:
                out.links.add((package, needed), 0)
        return out.finish(READER.title, "{nodes} files and packages link to their imports")


READER = FormatReader(
    "a folder of source code",
    "a folder of source code: Python files link to the files they import, npm workspaces to the "
    "workspaces they need",
    _read_code,
    streams=False,
    weights=False,
    columns=False,
)


# -- Python ------------------------------------------------------------------------------


class _Modules:
    """A folder's Python modules; ``names`` maps paths to module names."""

    def __init__(self, paths: list[str]) -> None:
        packages = {os.path.dirname(path) for path in paths if path.endswith("__init__.py")}
        self.paths = set(paths)
        self.names: dict[str, str] = {}
        self._roots: dict[str, str] = {}
        self._called: dict[str, set[str]] = defaultdict(set)
        for path in paths:
            root = os.path.dirname(path)
            while root in packages:
                root = os.path.dirname(root)
            self._roots[path] = root
            self.names[path] = _dotted(os.path.relpath(path, root or os.curdir))
            for name in (self.names[path], _dotted(path)):
                self._called[name].add(path)

    def at(self, folder: str, name: str) -> str | None:
        """Return the file of the module ``name`` in a folder, or None."""
        place = os.path.join(folder, *name.split(".")) if name else folder
        tried = (f"{place}.py", os.path.join(place, "__init__.py"))
        return next((path for path in tried if path in self.paths), None)

    def find(self, importer: str, name: str) -> str | None:
        """Return the file of the longest prefix of ``name`` that is a module, or None."""
        while name:
            for root in dict.fromkeys((self._roots[importer], os.path.dirname(importer), "")):
                if found := self.at(root, name):
                    return found
            if name.partition(".")[0] not in sys.stdlib_module_names and name in self._called:
                return min(self._called[name], key=lambda path: (path.count(os.sep), path))
            name = name.rpartition(".")[0]
        return None


def _dotted(path: str) -> str:
    parts = path.removesuffix(".py").split(os.sep)
    return ".".join(parts[:-1] if parts[-1] == "__init__" and len(parts) > 1 else parts)


def _imported(
    job: Job, out: LinkWriter, modules: _Modules, path: str, number: int
) -> Iterator[str]:
    """Yield the files that a file imports, and external modules if requested."""
    assert job.source.path is not None
    try:
        content = _content(job.source.path / path, min(_LARGEST, job.memory // _BYTES))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with PARSING:
                tree = ast.parse(content)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        what = f"{path}:{getattr(error, 'lineno', None) or 1} cannot be parsed as Python"
        out.links.leave_out("file", number, what, str(getattr(error, "msg", error))[:100])
        return
    here = os.path.dirname(path)
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            wanted, above = [alias.name for alias in node.names], None
        elif isinstance(node, ast.ImportFrom):
            base = f"{node.module}." if node.module else ""
            wanted, above = [base + alias.name for alias in node.names], here
            for _ in range(node.level - 1):
                above = os.path.dirname(above)
            above = above if node.level else None
        else:
            continue
        for name in wanted:
            if above is None:
                found = modules.find(path, name)
            else:
                parent = name.rpartition(".")[0]
                found = modules.at(above, name) or modules.at(above, parent)
            if found is None and above is None and job.options.keep_external:
                found = name.partition(".")[0]
            if found is not None and found != path:
                yield found


def _content(path: Path, most: int = _LARGEST) -> bytes:
    with path.open("rb") as file:
        content = file.read(most + 1)
    if len(content) > most:
        raise ValueError(f"more than {most:,} bytes")
    return content


# -- npm ---------------------------------------------------------------------------------


def _patterns(folder: Path) -> list[str]:
    pnpm = folder / _PNPM
    if pnpm.is_file():
        need("yaml", f"reading {_PNPM}", "notes")
        try:
            value = load_yaml(_content(pnpm).decode())
        except (ValueError, RecursionError, OSError) as error:
            raise InputError(f"{pnpm} cannot be read: {error}") from None
    else:
        value = _package(folder / "package.json").get("workspaces")
    value = value.get("packages") if isinstance(value, dict) else value
    return [each for each in value if isinstance(each, str)] if isinstance(value, list) else []


def _package(path: Path) -> dict[str, Any]:
    """Return the content of a package.json; raises :class:`InputError` if it is invalid."""
    try:
        value = json.loads(_content(path))
    except (ValueError, RecursionError, OSError) as error:
        raise InputError(f"{path} cannot be read: {error}") from None
    return value if isinstance(value, dict) else {}


def _workspaces(folder: Path) -> Iterator[tuple[str, list[str]]]:
    """Yield (workspace, workspaces that it needs)."""
    if not (folder / "package.json").is_file():
        return
    found: dict[str, dict[str, Any]] = {}
    top = folder.resolve()
    for pattern in _patterns(folder):
        if pattern.startswith(("/", "!")) or ".." in Path(pattern).parts:
            continue
        for each in sorted(folder.glob(pattern + "/package.json")):
            if each.resolve().is_relative_to(top) and "node_modules" not in each.parts:
                package = _package(each)
                found[str(package.get("name") or each.parent.name)] = package
    for name, package in found.items():
        groups = [package.get(key) for key in _NEEDS]
        needs = {each for group in groups if isinstance(group, dict) for each in group}
        yield name, sorted(needs & {*found})
