"""Hostile stores: a file or a fact of a small store of ``stores.py`` changes, with valid checksums
(``arrays.py``, ``facts.py``); then all commands and Python functions run (``verbs.py``).

A case is reported if any step is refused, survived if all succeed, and lost if a step has a
forbidden outcome (``children.py``).
"""

import random
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from tests.torture.arrays import Harm
from tests.torture.children import judge
from tests.torture.results import Given, Row
from tests.torture.stores import NAMES, copied, harmed
from tests.torture.verbs import steps_of, warm

_Harms = Callable[[Path, random.Random], Iterator[Harm]]


def harm_stores(harms: _Harms, given: Given) -> dict[str, Row]:
    """Harm stores, with cases drawn from those of all."""
    stores = _stores(given.folder)
    paths = [path for path in harmed(stores) if given.only in path.name]
    cases = [(p, harm) for p in paths for harm in harms(p, random.Random(given.seed))]
    cases = [(p, harm) for p, harm in cases if given.case in harm[0]]
    if not cases:
        return {"hostile stores": Row()}
    chosen = random.Random(given.seed).sample(cases, given.count(len(cases)))
    row, place = Row(), given.folder / "harmed"
    for number in given.cases(len(cases), row):
        path, (description, harm) = chosen[number]
        copy = copied(path, place)
        harm(copy)
        judge(f"{path.name} {description}", steps_of(copy, stores, _two_names(path)), row)
        shutil.rmtree(place)
    return {"hostile stores": row}


def _stores(folder: Path) -> Path:
    """The folder of the stores, which are made once, and queried once while sound."""
    stores = folder / "stores"
    if not stores.exists():
        subprocess.run([sys.executable, "-m", "tests.torture.stores", str(stores)], check=True)
        for error in warm(stores, folder / "warm", _two_names):
            print(f"refused, though sound: {error}", file=sys.stderr)
    return stores


def _two_names(store: Path) -> tuple[str, str]:
    """Two names of a store."""
    if store.name in ("dense.graph",):
        return "3", "17"
    if store.name in ("integers.graph",):
        return "24", "122"
    return NAMES[30], NAMES[27 if store.name == "kept.index" else 7]
