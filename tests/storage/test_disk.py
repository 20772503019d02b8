"""All calls that change a disk are in ``storage/disk.py``: a test that patches it misses none."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import cocite

SOURCE = Path(cocite.__file__).parent
DISK = "storage/disk.py"

OS_CALLS = {
    *("fdatasync", "fsync", "ftruncate", "link", "makedirs", "mkdir", "mkfifo", "mknod", "pwrite"),
    *("pwritev", "remove", "removedirs", "rename", "renames", "replace", "rmdir", "symlink"),
    *("sync", "truncate", "unlink", "write", "writev"),
}
SHUTIL_CALLS = {"copy", "copy2", "copyfile", "copytree", "move", "rmtree"}
PATH_METHODS = {
    *("hardlink_to", "mkdir", "rmdir", "symlink_to", "touch", "unlink", "write_bytes"),
    "write_text",
}
TEMPFILE_CALLS = {"NamedTemporaryFile", "mkdtemp", "mkstemp"}
ALL_CALLS = {"open"} | OS_CALLS | SHUTIL_CALLS | PATH_METHODS | TEMPFILE_CALLS
ALLOWED = {
    "__main__.py": "standard error",
    "io/remote.py": "copies of graphs, fetched anew when lost; and outputs on their way to a URL",
    "integrations/sites.py": "what the next build of a site reads, made anew when it is lost",
    "cluster/ray/nodes.py": "the note of a local cluster, and its temporary directory",
    "server/metrics.py": "standard error",
    "cli/main.py": "standard output",
    "cli/help.py": "click's own write_text",
    "storage/user_cache.py": "the directory of the cache, which holds no store",
    "storage/spool.py": "files without a name, and a directory whose name tempfile finds",
}
"""Files with other changes -> what they change."""


@pytest.mark.long
def test_disk_module_makes_all_write_calls() -> None:
    found: dict[str, list[str]] = {}
    for path in sorted(SOURCE.rglob("*.py")):
        name = path.relative_to(SOURCE).as_posix()
        source = path.read_text("utf-8")
        if any(f"{call}(" in source for call in ALL_CALLS) and (
            calls := list(changes(ast.parse(source)))
        ):
            found[name] = calls
    assert len(found.pop(DISK)) > 10
    assert {name: calls for name, calls in found.items() if name not in ALLOWED} == {}
    assert sorted(found) == sorted(ALLOWED)


def test_changes_finds_write_calls() -> None:
    found = list(changes(ast.parse("import os\nos.rename(a, b)\nPath(a).mkdir()\na.replace(b, c)")))
    assert found == ["2: os.rename", "3: .mkdir"]
    opened = "open(p, 'wb')\nopen(p)\np.open('r+b')\nopen(p, mode='x')\nos.open(p, os.O_RDWR)"
    assert len(list(changes(ast.parse(opened)))) == 4
    assert not list(changes(ast.parse("open(p, 'rb')\nos.open(p, os.O_RDONLY)\nos.path.exists(p)")))


def changes(tree: ast.Module) -> Iterator[str]:
    """The calls that change a disk, with their lines."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        name = _name_of(node)
        if name is not None:
            yield f"{node.lineno}: {name}"


def _name_of(call: ast.Call) -> str | None:
    func = call.func
    if isinstance(func, ast.Name):
        return "open" if func.id == "open" and _writes(call, 1) else None
    if not isinstance(func, ast.Attribute):
        return None
    base = func.value.id if isinstance(func.value, ast.Name) else ""
    if base == "os":
        if func.attr == "open":
            flags = {n.attr for n in ast.walk(call) if isinstance(n, ast.Attribute)}
            return "os.open" if flags & {"O_CREAT", "O_RDWR", "O_WRONLY", "O_TRUNC"} else None
        return f"os.{func.attr}" if func.attr in OS_CALLS else None
    if base == "shutil":
        return f"shutil.{func.attr}" if func.attr in SHUTIL_CALLS else None
    if base == "tempfile":
        return f"tempfile.{func.attr}" if func.attr in TEMPFILE_CALLS else None
    if base == "disk":
        return None
    if func.attr == "open" and base not in {"Graph", "Store", "StoredIndex", "Image", "webbrowser"}:
        return ".open" if _writes(call, 0) else None
    return f".{func.attr}" if func.attr in PATH_METHODS else None


def _writes(call: ast.Call, position: int) -> bool:
    """Whether the mode of the call opens a file for writing."""
    modes = [k.value for k in call.keywords if k.arg == "mode"] + call.args[position : position + 1]
    literals = [m.value for m in modes if isinstance(m, ast.Constant) and isinstance(m.value, str)]
    return any(set(mode) & set("wax+") and len(mode) <= 3 for mode in literals)
