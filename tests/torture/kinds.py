"""The kinds of faults: the promise that each attacks, how, and the code that injects it."""

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
    """A kind of fault: the ``promise`` that it attacks, and ``how``; ``run`` injects the requested
    number of faults, or as many as time allows, and counts outcomes by target.
    """

    promise: str
    how: str
    run: Callable[[Given], dict[str, Row]]

    @property
    def file(self) -> str:
        """The file that injects or defines it."""
        run = self.run.args[0] if isinstance(self.run, partial) else self.run
        return f"{run.__module__.rpartition('.')[2]}.py"


KINDS: dict[str, Kind] = {
    "full": Kind(
        "A full disk is reported with its directory and free space; existing files stay intact; "
        "the same command resumes when there is space",
        "each operation on disks with too little space",
        fill_disks,
    ),
    "power": Kind(
        "After a power failure, either the old or the new output exists, and is complete",
        "unsynced blocks and names are lost or reordered at any moment of each operation; after "
        "some of these failures the command runs again",
        lose_all_power,
    ),
    "readers": Kind(
        "A reader of an index sees one generation, however slow it is; a reader that dies affects "
        "no other process",
        "slow and killed readers of an index that is replaced, and of the output of a command",
        trouble_readers,
    ),
    "flips": Kind(
        "A changed bit is detected before the file is used",
        "one bit of any file flips; then commands build from it, refresh, merge, rank, query or "
        "verify it",
        flip_stores,
    ),
    "killed": Kind(
        "A killed command leaves the old or the new output; run again, it writes the same bytes",
        "the process of each operation is killed by a signal at any time",
        kill_commands,
    ),
    "kills": Kind(
        "The same holds at every system call that changes a disk",
        "each operation ends abruptly before, during and after each such call",
        kill_at_all_points,
    ),
    "databases": Kind(
        "An untrusted database gives access to its own content, and to no other file",
        "views that try to read files, settings and secrets, for every way that cocite reads a "
        "database; "
        "damaged and truncated files",
        open_databases,
    ),
    "names": Kind(
        "A file name is read literally, whatever characters it contains",
        "names that look like patterns, quotes or URLs, next to files that they would match",
        name_files,
    ),
    "arrays": Kind(
        "No file content causes a crash, a hang, excessive memory use or a traceback",
        "other arrays replace those of every kind of store, with valid checksums; then all "
        "commands and Python functions run",
        partial(harm_stores, arrays.harms),
    ),
    "facts": Kind(
        "The same holds for any manifest",
        "other values, types and nesting replace those of each key; then the same commands run",
        partial(harm_stores, facts.harms),
    ),
    "planted": Kind(
        "The cache of links returns only entries for exactly the requested content and user, and "
        "opens no file that an entry refers to",
        "entries from other users or for other content, symbolic links, and forged metadata",
        plant_caches,
    ),
    "archives": Kind(
        "Untrusted archives are unpacked within bounds, and only into a scratch folder",
        "archives with links, devices, sparse files, duplicate or absolute names or names with .., "
        "huge or nested members, and damage; neighboring files must be unchanged",
        attack_archives,
    ),
    "xml": Kind(
        "No XML takes more time or memory than its size explains",
        "GraphML, GEXF, sitemaps and spreadsheets with deep nesting, repetition, truncation, "
        "entities and odd encodings",
        attack_xml,
    ),
}
"""Name -> kind, fastest kinds first: they leave their spare time to the others."""
