"""The public names: complete, sorted, and lazily imported."""

from __future__ import annotations

import subprocess
import sys

import pytest

import cocite


def test_all_public_names_exist_and_are_sorted() -> None:
    assert cocite.__all__ == sorted(cocite.__all__)
    assert dir(cocite) == cocite.__all__
    for name in cocite.__all__:
        assert getattr(cocite, name) is not None


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'simrank'"):
        cocite.simrank  # noqa: B018


def test_the_version_is_that_of_the_package() -> None:
    from importlib.metadata import version

    assert cocite.__version__ == version("cocite")


def test_importing_it_imports_nothing_heavy() -> None:
    code = "import sys, cocite; print({'numpy', 'numba', 'duckdb', 'click'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"
