"""The tests on every Python we promise, with the oldest and the newest of what we depend on.

    python -m tests.matrix [--python 3.12] [--versions oldest] [-- TESTS AND OPTIONS OF PYTEST]

Each pair of a Python and an age of versions is a row: uv resolves ``pyproject.toml`` for it (only
wheels: what has none for a Python is not what people install there), makes an environment of its
own in a temporary directory, and runs the tests, which are ``tests`` by default. A Python that is
not on the machine, and that uv cannot fetch, is a row that says so: its versions are resolved all
the same. Ends with 1 if a row failed. ``make test-matrix`` runs the quick tests.
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
"""Packages whose versions the table shows."""

_PROJECT = Path(__file__).parents[1]
_CLOSING = re.compile(r"\d+ (?:passed|failed|error).*")


@dataclass(frozen=True)
class Row:
    """What came of one Python and one age of versions."""

    python: str
    age: str
    versions: str
    result: str
    failed: bool


def main() -> int:
    """Run what was asked for; returns the exit code."""
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
    begun = time.monotonic()
    print(f"Python {python}, {age} versions", flush=True)
    wanted = folder / "requirements"
    resolving = [uv, "pip", "compile", "--quiet", "--no-header", "--only-binary", ":all:"]
    resolving += ["--python-version", python, "--resolution", AGES[age], "--extra", "dev"]
    resolving += ["pyproject.toml", "-o", str(wanted)]
    if subprocess.run(resolving, cwd=_PROJECT, check=False).returncode:
        return Row(python, age, "", "there are no such versions (above)", failed=True)
    pins = dict(re.findall(r"^([\w-]+)==([\w.]+)", wanted.read_text(), re.MULTILINE))
    versions = ", ".join(f"{name} {pins.get(name, 'none')}" for name in SHOWN)
    environment = folder / "environment"
    made = [uv, "venv", "--quiet", "--python", python, str(environment)]
    if subprocess.run(made, cwd=_PROJECT, check=False).returncode:
        return Row(python, age, versions, f"resolved; no Python {python} here", failed=False)
    own = str(environment / "bin" / "python")
    install = [uv, "pip", "install", "--quiet", "--python", own]
    subprocess.run([*install, "--no-deps", "-r", str(wanted)], check=True)
    subprocess.run([*install, "--no-deps", "-e", str(_PROJECT)], check=True)
    ran = subprocess.run(
        [own, "-m", "pytest", *tests],
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
    print(f"  {result}, {time.monotonic() - begun:.0f} s in all", flush=True)
    return Row(python, age, versions, result, failed=ran.returncode != 0)


if __name__ == "__main__":
    sys.exit(main())
