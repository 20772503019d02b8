"""Libraries that not every use needs: imported when used, and named when missing.

A message names the command that installs them, as it can be typed where cocite is installed: from
the folder or the address that it was installed from, which pip writes down (``direct_url.json``,
PEP 610), or from the folder that it runs in, if that is a clone; else as documents say it, in a
clone.
"""

from __future__ import annotations

import json
import os
import shlex
from importlib import import_module
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from cocite.errors import UsageError

_NAME = "cocite"
_EXTRAS = {"sklearn": "evaluate", "scipy": "evaluate", "gensim": "embed"}
_PACKAGES = {
    "sklearn": "scikit-learn",
    "ada_url": "ada-url",
    "python_calamine": "python-calamine",
    "markdown_it": "markdown-it-py",
    "mdit_py_plugins": "mdit-py-plugins",
    "yaml": "pyyaml",
}


class MissingLibrary(UsageError):
    """A library that is an extra is not installed; the message names the command."""


def need(module: str, purpose: str, extra: str | None = None) -> Any:
    """The module; raises :class:`MissingLibrary` with the command that installs it, as part of
    ``extra``, or of what the library is for otherwise.
    """
    try:
        return import_module(module)
    except ImportError as error:
        root = module.split(".", 1)[0]
        package, extra = _PACKAGES.get(root, root), extra or _EXTRAS[root]
        raise MissingLibrary(
            f"{purpose} needs {package}, which is not installed: {install_command(extra)}"
        ) from error


def install_command(extra: str) -> str:
    """The command that installs an extra beside what is there, such as ``pip install
    '.[evaluate]'`` in the clone that cocite was installed from.
    """
    origin = _origin()
    url = str(origin.get("url", ""))
    folder = Path(unquote(urlsplit(url).path)) if "dir_info" in origin else _clone()
    if folder is not None and (folder / "pyproject.toml").is_file():
        editable = bool(origin.get("dir_info", {}).get("editable"))
        return f"pip install {'-e ' * editable}{_quoted(f'{_required_with(folder)}[{extra}]')}"
    vcs = origin.get("vcs_info", {})
    if "vcs" in vcs:
        version = vcs.get("requested_revision") or vcs.get("commit_id")
        url = f"{vcs['vcs']}+{url}" + (f"@{version}" if version else "")
    elif "archive_info" not in origin:
        return f"pip install {_quoted(f'.[{extra}]')} in a clone of {_NAME}"
    return f"pip install {_quoted(f'{_NAME}[{extra}] @ {url}')}"


def _origin() -> dict[str, Any]:
    """What pip wrote down of where the installed cocite came from; nothing of an index's."""
    from importlib import metadata  # takes as long as a fifth of NumPy

    try:
        found = json.loads(metadata.distribution(_NAME).read_text("direct_url.json") or "{}")
    except (metadata.PackageNotFoundError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _clone() -> Path | None:
    """The clone whose code runs, if it is one that was not installed."""
    source = Path(__file__).parents[1]
    return source.parent if source.name == "src" else None


def _required_with(folder: Path) -> str:
    """The folder as seen from here where that is short: it is here, above, or below."""
    here = os.path.realpath(os.curdir)
    there = os.path.realpath(folder)
    if os.path.commonpath([here, there]) not in (here, there):
        return there
    found = os.path.relpath(there, here)
    return found if found.startswith(os.curdir) else os.path.join(os.curdir, found)


def _quoted(text: str) -> str:
    """As a shell takes it, always in quotes: brackets mean something to some."""
    quoted = shlex.quote(text)
    return quoted if quoted.startswith("'") else f"'{quoted}'"
