"""Power that is lost at any moment leaves the old generation, the new one, or what is seen to be
neither; the model of the disk finds what does not sync.
"""

import random
from pathlib import Path

import pytest

from cocite.storage import disk, staged_file
from tests.torture.operations import OPERATIONS, prepared
from tests.torture.power import lose_power, recorded
from tests.torture.results import Row


@pytest.mark.torture
@pytest.mark.parametrize("name", OPERATIONS)
def test_nothing_is_lost_that_nobody_notices(tmp_path: Path, name: str) -> None:
    """A tenth of what ``python -m tests.torture`` does."""
    row = Row()
    found = list(lose_power(prepared(OPERATIONS[name], tmp_path), tmp_path, range(85), 20, row))
    assert (found, row.injected, row.lost) == ([""] * 85, 85, [])


def states(folder: Path, *, sync: bool) -> set[bytes | None]:
    """What a file may hold after a crash; ``sync`` says whether it was written as it should be."""
    folder.mkdir()
    (folder / "x").write_bytes(b"old" * 400)
    with recorded(folder) as recording:
        if sync:
            with staged_file(folder / "x") as file:
                disk.write(file, b"new" * 400)
        else:
            with disk.create(folder / "y") as file:
                disk.write(file, b"new" * 400)
            disk.rename(folder / "y", folder / "x")
    trees = (recording.crashed(random.Random(seed))[0] for seed in range(400))
    return {tree.get("x") for tree in trees}


@pytest.mark.torture
def test_a_file_that_is_not_synced_is_found_wanting(tmp_path: Path) -> None:
    whole = {b"old" * 400, b"new" * 400}
    assert states(tmp_path / "synced", sync=True) == whole
    found = states(tmp_path / "not", sync=False)
    assert found > whole
    assert b"" in found  # the name is there, and none of the bytes
