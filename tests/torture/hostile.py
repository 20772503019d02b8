"""Hostile stores: of each small store of ``stores.py`` a file or a fact is another one, and all
checksums fit (``arrays.py``, ``facts.py``); then all commands and Python are asked (``verbs.py``).

A case is told if anything of what is asked is refused, survived if all is answered, and lost if one
step of it comes to what none may come to (``children.py``).
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
    """Harm stores: cases drawn out of those of all of them."""
    stores = _stores(given.folder)
    paths = [path for path in harmed(stores) if given.only in path.name]
    found = [(p, harm) for p in paths for harm in harms(p, random.Random(given.seed))]
    found = [(p, harm) for p, harm in found if given.case in harm[0]]
    if not found:
        return {"hostile stores": Row()}
    chosen = random.Random(given.seed).sample(found, given.count(len(found)))
    row, place = Row(), given.folder / "harmed"
    for number in given.cases(len(found), row):
        path, (told, harm) = chosen[number]
        copy = copied(path, place)
        harm(copy)
        judge(f"{path.name} {told}", steps_of(copy, stores, _asked(path)), row)
        shutil.rmtree(place)
    return {"hostile stores": row}


def _stores(folder: Path) -> Path:
    """Where the stores are, which are made once, and asked once while they are whole."""
    stores = folder / "stores"
    if not stores.exists():
        subprocess.run([sys.executable, "-m", "tests.torture.stores", str(stores)], check=True)
        for told in warm(stores, folder / "warm", _asked):
            print(f"whole, and yet: {told}", file=sys.stderr)
    return stores


def _asked(store: Path) -> tuple[str, str]:
    """Two names of a store."""
    if store.name in ("dense.graph",):
        return "3", "17"
    if store.name in ("integers.graph",):
        return "24", "122"
    return NAMES[30], NAMES[27 if store.name == "kept.index" else 7]
