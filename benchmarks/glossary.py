"""Write the tables of docs/glossary.md: functions, options and result keys, from the code.

python -m benchmarks.glossary [--write]
"""

from __future__ import annotations

import ast
import importlib
import inspect
import pkgutil
import textwrap
from collections.abc import Iterator
from dataclasses import fields
from typing import Any

import cocite
from benchmarks.block import ROOT, Block, edit
from cocite import options as package
from cocite.cli.flags import flag_of
from cocite.options import Options
from cocite.options.all_pairs import AllPairsRun
from cocite.results import Document


def option_classes() -> list[type[Options]]:
    """Return all classes of user options."""
    for module in pkgutil.iter_modules(package.__path__):
        importlib.import_module(f"cocite.options.{module.name}")
    found = [each for each in _below(Options) if each.__module__.startswith("cocite.")]
    found = [each for each in found if each is not AllPairsRun]
    return sorted(set(found), key=lambda each: (each.__module__, each.__qualname__))


RESULTS = ("figures", "report", "resolver", "results", "run", "trials")
"""Modules that have results, by the last part of their names."""


def result_classes() -> list[type[Document]]:
    """All results that are printed as JSON."""
    named = [module.name for module in pkgutil.walk_packages(cocite.__path__, "cocite.")]
    homes = {name for name in named if name.rsplit(".", 1)[-1] in RESULTS}
    for name in homes:
        importlib.import_module(name)
    return [each for each in set(_below(Document)) if each.__module__ in homes]


def _below(kind: Any) -> Iterator[Any]:
    for each in kind.__subclasses__():
        yield each
        yield from _below(each)


def tables(results: None = None) -> str:
    """Return the three tables; nothing is measured for them."""
    found = ["", "## Functions and classes", "", "| name | what it does |", "| --- | --- |"]
    for name in cocite.__all__:
        summary = (inspect.getdoc(getattr(cocite, name)) or "").partition("\n\n")[0]
        if not name.startswith("__"):
            found.append(f"| `{name}` | {_cell(summary)} |")
    found += ["", "## Options", "", "| Python and HTTP | flag | what it chooses |"]
    found.append("| --- | --- | --- |")
    named: dict[str, tuple[dict[str, None], dict[str, None]]] = {}
    for kind in option_classes():
        for name, each in kind.declared().items():
            flags, texts = named.setdefault(name, ({}, {}))
            texts[each.text.partition(". ")[0].rstrip(".")] = None
            if "cli" in each.fronts:
                flags[f"`{flag_of(name, kind)}`"] = None
    for name, (flags, texts) in sorted(named.items()):
        found.append(f"| `{name}` | {', '.join(flags)} | {_cell('; '.join(texts))} |")
    found += ["", "## Keys of answers", "", "| key | answers |", "| --- | --- |"]
    keys: dict[str, set[str]] = {}
    for result in result_classes():
        for key in keys_of(result):
            keys.setdefault(key, set()).add(result.__name__.removesuffix("Document"))
    found += [f"| `{key}` | {', '.join(sorted(of))} |" for key, of in sorted(keys.items())]
    return "\n".join([*found, ""])


def keys_of(result: type[Document]) -> set[str]:
    """Return the keys of a result's JSON: its fields, or the names that its own ``facts`` adds."""
    if "facts" not in vars(result):
        return {field.name for field in fields(result)}
    source = textwrap.dedent(inspect.getsource(result.facts))
    own = {field.name for field in fields(result)} if "super().facts()" in source else set[str]()
    for part in ast.walk(ast.parse(source)):
        keys = part.keys if isinstance(part, ast.Dict) else []
        if isinstance(part, ast.Subscript) and isinstance(part.ctx, ast.Store):
            keys = [part.slice]
        own |= {str(key.value) for key in keys if isinstance(key, ast.Constant)}
    return own


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|").replace("``", "`")


BLOCK = Block("glossary", ROOT / "docs" / "glossary.md", "<!-- end of glossary -->", tables)


def main() -> None:
    """Print the tables, or write them."""
    chosen = BLOCK.parser(__doc__).parse_args()
    print(tables())
    text = BLOCK.document.read_text("utf-8")
    edit(BLOCK.document, BLOCK.within(text, None), write=chosen.write)


if __name__ == "__main__":
    main()
