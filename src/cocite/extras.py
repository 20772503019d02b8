"""Optional dependencies, imported on first use."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from cocite.errors import UsageError

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
    """An optional dependency is not installed; the message contains the install command."""


def need(module: str, purpose: str, extra: str | None = None) -> Any:
    """Import a module that ``extra`` installs (default: the one in ``_EXTRAS``); raises
    :class:`MissingLibrary`.
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
    """Return the command that installs an extra in a clone of the repository."""
    return f"pip install '.[{extra}]' in a clone of cocite"
