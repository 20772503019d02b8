"""Package managers' lock files: a link from each package to the packages it needs.

    poetry.lock, uv.lock, pdm.lock, Cargo.lock     TOML, one [[package]] per package
    package-lock.json, npm-shrinkwrap.json         npm, versions 1 to 3
    pip inspect                                    the installed packages, as JSON

Nodes are package names without versions; Python names are normalized (``typing-extensions``).
Listed dependencies count even if they are for tests or for some systems only; extras of installed
packages do not. The whole file is parsed in memory.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator
from typing import Any

from cocite.errors import InputError
from cocite.io.readers.contract import FormatReader, Job, Read
from cocite.io.readers.graphs.document import whole_text
from cocite.io.readers.rows import LinkWriter

_NPM = ("dependencies", "optionalDependencies", "peerDependencies", "devDependencies")


def _read_packages(job: Job) -> Read:
    number = 0
    with LinkWriter(job, ("need", "package")) as out:
        for place, (name, needs) in enumerate(_packages(job), 1):
            out.nodes.add((name,), place)
            for need in needs:
                number += 1
                out.links.add((name, need), number)
        return out.finish(READER.title, "{nodes} packages link to their dependencies")


READER = FormatReader(
    "a package lock file",
    "package dependencies: poetry.lock, uv.lock, pdm.lock, Cargo.lock, package-lock.json, or the "
    "output of pip inspect",
    _read_packages,
    weights=False,
)


def _packages(job: Job) -> list[tuple[str, list[str]]]:
    label = job.source.label
    try:
        text = whole_text(job).decode("utf-8-sig")
        whole = json.loads(text) if text.lstrip().startswith("{") else tomllib.loads(text)
    except RecursionError:
        raise InputError(f"{label} is nested too deeply") from None
    except ValueError as error:
        raise InputError(f"{label} cannot be read: {error}") from None
    try:
        return list(_read(whole))
    except (AttributeError, TypeError, KeyError) as error:
        raise InputError(
            f"{label} is not a supported lock file: {type(error).__name__}, {error}. cocite reads "
            f"{READER.described}"
        ) from None


def _read(whole: dict[str, Any]) -> Iterator[tuple[str, list[str]]]:
    if "installed" in whole:
        yield from _installed(whole["installed"])
    elif "packages" in whole:
        yield from _npm(whole)
    elif "lockfileVersion" in whole:
        yield from _npm_first(whole)
    else:
        yield from _tables(whole["package"])


def _tables(packages: list[dict[str, Any]]) -> Iterator[tuple[str, list[str]]]:
    """Parse TOML; dependencies are a table (Poetry), tables (uv), or texts (PDM, Cargo)."""
    for package in packages:
        needs: list[str] = []
        groups = [package.get("dependencies", [])]
        for key in ("optional-dependencies", "dev-dependencies"):  # uv: lists by group
            groups += list(package.get(key, {}).values())
        for group in groups:
            for each in group:
                text = each["name"] if isinstance(each, dict) else str(each)
                needs.append(re.split(r"[\s<>=!~;\[(@]", text.strip(), maxsplit=1)[0])
        yield str(package["name"]), needs


def _npm(whole: dict[str, Any]) -> Iterator[tuple[str, list[str]]]:
    """Parse npm versions 2 and 3: packages by folder; "" is the project itself."""
    packages = whole["packages"]
    here = {_npm_name(folder, package, whole) for folder, package in packages.items()}
    for folder, package in packages.items():
        if package.get("link"):
            continue
        needs = [need for key in _NPM for need in package.get(key, {})]
        name = _npm_name(folder, package, whole)
        yield name, [need for need in dict.fromkeys(needs) if need in here]


def _npm_name(folder: str, package: dict[str, Any], whole: dict[str, Any]) -> str:
    if not folder:
        return str(package.get("name") or whole.get("name") or ".")
    return str(folder.rpartition("node_modules/")[2] or package.get("name") or folder)


def _npm_first(package: dict[str, Any]) -> Iterator[tuple[str, list[str]]]:
    """Parse npm version 1: nested packages, but not the project's own dependencies."""
    for name, content in package.get("dependencies", {}).items():
        needs = content.get("requires") or {}
        yield name, list(needs) if isinstance(needs, dict) else []
        yield from _npm_first(content)


def _installed(packages: list[dict[str, Any]]) -> Iterator[tuple[str, list[str]]]:
    """Parse pip inspect's PEP 508 texts; skip dependencies of extras, and missing packages."""
    here = {_spelt(package["metadata"]["name"]) for package in packages}
    for package in packages:
        metadata = package["metadata"]
        wanted = [
            text
            for text in metadata.get("requires_dist", [])
            if not re.search(r"\bextra\b", text.partition(";")[2])
        ]
        found = [re.match(r"[A-Za-z0-9._-]+", text.strip()) for text in wanted]
        needs = [_spelt(match[0]) for match in found if match]
        yield _spelt(metadata["name"]), [need for need in dict.fromkeys(needs) if need in here]


def _spelt(name: str) -> str:
    """Normalize the name of a Python package (PEP 503)."""
    return re.sub(r"[-_.]+", "-", name).lower()
