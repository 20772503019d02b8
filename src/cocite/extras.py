"""Libraries that not every use needs: imported when used, and named when missing."""

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
    """A library that is an extra is not installed; the message names the command."""


def need(module: str, purpose: str, extra: str | None = None) -> Any:
    """Return the module; raises :class:`MissingLibrary` with the command that installs ``extra``,
    or the extra for this purpose.
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
    """Return the command that installs an extra, such as ``pip install '.[evaluate]'`` in the clone
    that cocite was installed from.
    """
    return f"pip install '.[{extra}]' in a clone of cocite"
