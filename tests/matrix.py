"""Run the tests on every supported Python, with the oldest and the newest dependencies.

    python -m tests.matrix [--python 3.12] [--versions oldest] [-- TESTS AND OPTIONS OF PYTEST]

Each pair of a Python and an age of versions is a row. For each, uv resolves ``pyproject.toml``
(wheels only, as people install them), makes an environment in a temporary directory, and runs the
tests, by default ``tests``. A Python that is neither on the machine nor available to uv is a row
that says so; its versions are resolved all the same. Exits with 1 if a row failed.
``make test-matrix`` runs the quick tests.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

PYTHONS = "3.11", "3.12", "3.13", "3.14"
AGES = {"oldest": "lowest-direct", "newest": "highest"}
SHOWN = "numpy", "duckdb", "pandas"
"""Packages whose versions the table lists."""

_PROJECT = Path(__file__).parents[1]
_CLOSING = re.compile(r"\d+ (?:passed|failed|error).*")


@dataclass(frozen=True)
class Row:
    """The result of one Python and one age of versions."""

    python: str
    age: str
    versions: str
    result: str
    failed: bool


def main() -> int:
    """Run the selected rows; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--python", action="append", choices=PYTHONS, help="by default all")
    parser.add_argument("--versions", action="append", choices=AGES, help="by default both")
    parser.add_argument("tests", nargs="*", help="tests and options of pytest; after --")
    chosen = parser.parse_args()
    uv = shutil.which(
        "uv", path=os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    )
    if uv is None:
        print("uv is not installed: pip install uv", file=sys.stderr)
        return 2
    rows = []
    for python in chosen.python or PYTHONS:
        for age in chosen.versions or AGES:
            with tempfile.TemporaryDirectory() as folder:
                rows.append(_row(uv, python, age, Path(folder), chosen.tests or ["tests"]))
    print(f"\n{'Python':8}{'versions':10}{'of these':60}result")
    for row in rows:
        print(f"{row.python:8}{row.age:10}{row.versions:60}{row.result}")
    return int(any(row.failed for row in rows))


def _row(uv: str, python: str, age: str, folder: Path, tests: list[str]) -> Row:
    start = time.monotonic()
    print(f"Python {python}, {age} versions", flush=True)
    requirements = folder / "requirements"
    resolving = [uv, "pip", "compile", "--quiet", "--no-header", "--only-binary", ":all:"]
    resolving += ["--python-version", python, "--resolution", AGES[age], "--extra", "dev"]
    resolving += ["pyproject.toml", "-o", str(requirements)]
    if subprocess.run(resolving, cwd=_PROJECT, check=False).returncode:
        return Row(python, age, "", "there are no such versions (above)", failed=True)
    pins = dict(re.findall(r"^([\w-]+)==([\w.]+)", requirements.read_text(), re.MULTILINE))
    versions = ", ".join(f"{name} {pins.get(name, 'none')}" for name in SHOWN)
    environment = folder / "environment"
    creating = [uv, "venv", "--quiet", "--python", python, str(environment)]
    if subprocess.run(creating, cwd=_PROJECT, check=False).returncode:
        return Row(python, age, versions, f"resolved; no Python {python} here", failed=False)
    interpreter = str(environment / "bin" / "python")
    install = [uv, "pip", "install", "--quiet", "--python", interpreter]
    subprocess.run([*install, "--no-deps", "-r", str(requirements)], check=True)
    subprocess.run([*install, "--no-deps", "-e", str(_PROJECT)], check=True)
    ran = subprocess.run(
        [interpreter, "-m", "pytest", *tests],
        cwd=_PROJECT,
        env=os.environ | {"COCITE_CACHE": str(folder / "kernels")},
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    closing = _CLOSING.findall(ran.stdout)
    result = closing[-1].rstrip("= ") if closing else f"ended with {ran.returncode}"
    if ran.returncode:
        print(ran.stdout)
    print(f"  {result}, {time.monotonic() - start:.0f} s in all", flush=True)
    return Row(python, age, versions, result, failed=ran.returncode != 0)


if __name__ == "__main__":
    sys.exit(main())
