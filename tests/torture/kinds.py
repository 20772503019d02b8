"""The kinds of faults: what is promised where one comes, what injects it, and how."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from tests.torture import arrays, facts
from tests.torture.archives import attack_archives, attack_xml
from tests.torture.flips import flip_stores
from tests.torture.full import fill_disks
from tests.torture.hostile import harm_stores
from tests.torture.kills import kill_at_all_points, kill_commands
from tests.torture.planted import plant_caches
from tests.torture.power import lose_all_power
from tests.torture.readers import trouble_readers
from tests.torture.results import Given, Row
from tests.torture.strangers import name_files, open_databases


@dataclass(frozen=True)
class Kind:
    """A kind of fault: the ``promise`` that it attacks, ``how``, by which ``file`` of this folder;
    ``run`` injects as many as are wanted or as there is time for, and counts what came of them, by
    what was attacked.
    """

    promise: str
    how: str
    file: str
    run: Callable[[Given], dict[str, Row]]


KINDS: dict[str, Kind] = {
    "full": Kind(
        "A full disk is told, with the place and what is free there; what was there is whole; the "
        "same command goes on when there is room",
        "each operation on disks with too little room",
        "full.py",
        fill_disks,
    ),
    "power": Kind(
        "When the power fails, the old output or the new one is there, whole",
        "blocks and names that were not synced are lost or come in another order, at any moment of "
        "each operation; after a part of them the command is given again",
        "power.py",
        lose_all_power,
    ),
    "readers": Kind(
        "Who reads an index sees one generation of it, however slow; a reader that dies disturbs "
        "nobody",
        "slow and killed readers of an index that is replaced, and of what a command prints",
        "readers.py",
        trouble_readers,
    ),
    "flips": Kind(
        "A changed bit is found before anything is made of it",
        "one bit of any file flips; then it is built from, refreshed, merged, ranked, asked or "
        "verified",
        "flips.py",
        flip_stores,
    ),
    "killed": Kind(
        "A command that is killed leaves the old output or the new one, and given again ends with "
        "the same bytes",
        "an end by a signal of each operation's process, at any time while it works",
        "kills.py",
        kill_commands,
    ),
    "kills": Kind(
        "The same at every single call that changes a disk",
        "an end without a word before, after and amid each such call of each operation",
        "kills.py",
        kill_at_all_points,
    ),
    "databases": Kind(
        "A stranger's database gives what is in it, and nothing of any other file",
        "views that read files, settings and secrets, in every way in which cocite reads a "
        "database; files with changed bytes, or cut",
        "strangers.py",
        open_databases,
    ),
    "names": Kind(
        "A file is read by its name, whatever signs are in that",
        "names that are patterns, quotes and addresses elsewhere, beside files that they match",
        "strangers.py",
        name_files,
    ),
    "arrays": Kind(
        "No content of a file ends the process, hangs, takes memory or comes out as a traceback",
        "other arrays in the place of those of every kind of store, with checksums that fit; then "
        "all commands and Python are asked",
        "arrays.py",
        partial(harm_stores, arrays.harms),
    ),
    "facts": Kind(
        "Nor does any manifest",
        "other values, types and nesting for each of its keys, likewise",
        "facts.py",
        partial(harm_stores, facts.harms),
    ),
    "planted": Kind(
        "The cache of links answers for the very content that this user asked, and names nothing "
        "that is read",
        "entries of strangers, of other content, with links and other facts in their place",
        "planted.py",
        plant_caches,
    ),
    "archives": Kind(
        "What strangers pack is unpacked within bounds, into a scratch folder and nowhere else",
        "archives with links, devices, sparse files, names twice, absolute or with .., members "
        "that are huge or archives, and damage; files beside them are compared",
        "archives.py",
        attack_archives,
    ),
    "xml": Kind(
        "No XML takes more time or memory than its size explains",
        "GraphML, GEXF, sitemaps and spreadsheets whose parts nest, repeat or do not end, "
        "entities, encodings",
        "archives.py",
        attack_xml,
    ),
}
"""Name -> kind, those first that take the least time: what they leave the others have."""
