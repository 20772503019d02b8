"""Find related modules of the Python standard library by their imports.

The demo needs no network and no data: it reads the imports of the Python that runs it. Each module
is a page, and each import is a link. Two modules are related if the same modules are nearest to
both, or if imports lead from one to the other. The demo uses only public functions.

Run it with ``make demo``, or ``python examples/stdlib_demo.py``.
"""

from __future__ import annotations

import ast
import io
import logging
import statistics
import sys
import sysconfig
import tempfile
import time
import warnings
from collections.abc import Iterator
from pathlib import Path

import cocite
from cocite.deadline import clock

WELL_KNOWN = ["json.decoder", "threading", "email.message", "tarfile", "asyncio.tasks", "math"]
LEFT_OUT = {"test", "tests", "idlelib", "lib2to3", "turtledemo", "site-packages", "__pycache__"}


def modules(root: Path) -> Iterator[tuple[str, Path]]:
    """Yield (name, file) of every module below ``root``, except tests."""
    for path in sorted(root.rglob("*.py")):
        parts = path.relative_to(root).with_suffix("").parts
        if not LEFT_OUT & set(parts) and all(part.isidentifier() for part in parts):
            yield ".".join(parts[:-1] if parts[-1] == "__init__" else parts), path


def imports(name: str, path: Path, known: set[str]) -> Iterator[str]:
    """Yield the modules that a module imports or refers to, including submodules."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tree = ast.parse(path.read_bytes())
    package = name if path.name == "__init__.py" else name.rpartition(".")[0]
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in known)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                parts = package.split(".")
                base = ".".join([*parts[: len(parts) - node.level + 1], *filter(None, [base])])
            if base in known:
                yield base
            yield from (child for alias in node.names if (child := f"{base}.{alias.name}") in known)


def write_links(root: Path, output: Path) -> None:
    """Write one link per line: the importing module, and the imported module."""
    found = dict(modules(root))
    known = set(found) | set(sys.stdlib_module_names)
    with output.open("w", encoding="utf-8") as links:
        for name, path in found.items():
            for target in sorted(set(imports(name, path, known)) - {name}):
                links.write(f"{name}\t{target}\n")


def show(index: cocite.Index, node: str) -> None:
    """Print the modules most related to a module, on one line."""
    hits = index.related(node, k=4)
    print(f"  {node:<14}  " + ",  ".join(f"{hit.node} {hit.score:.2f}" for hit in hits))


def main() -> None:
    """Write links, store the graph, build an index, and query it."""
    logging.basicConfig(level=logging.INFO, format="%(message)s")  # notes, if kernels compile
    with tempfile.TemporaryDirectory(prefix="cocite-demo-") as folder:
        links = Path(folder, "imports.tsv")
        begin = time.perf_counter()
        write_links(Path(sysconfig.get_paths()["stdlib"]), links)
        print(f"read the imports of Python {sys.version.split()[0]}'s standard library", end="")
        print(f" in {time.perf_counter() - begin:.1f} s")

        begin = clock()
        graph = cocite.ingest(links, Path(folder, "imports.graph"), header="no")
        print(f"ingested {graph.nodes:,} modules, {graph.edges:,} imports", end="")
        print(f" in {clock() - begin:.1f} s")

        begin = clock()
        index = cocite.build(graph, Path(folder, "imports.index"))
        print(f"indexed by {index.measure}", end="")
        print(f" in {clock() - begin:.1f} s")

        print("\nrelated modules (scores from 0 to 1):\n")
        for node in WELL_KNOWN:
            if node in index.nodes:
                show(index, node)

        times = []
        for node in index.nodes:
            begin = time.perf_counter()
            index.related(node, k=20)
            times.append(time.perf_counter() - begin)
        times.sort()
        print(f"\n{len(times):,} queries for the 20 most related modules:", end="")
        print(f" median {1e6 * statistics.median(times):.0f} µs,", end="")
        print(f" 99th percentile {1e6 * times[len(times) * 99 // 100]:.0f} µs")


if __name__ == "__main__":
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # a terminal without µ gets a question mark
    main()
