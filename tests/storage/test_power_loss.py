"""Power loss at any moment leaves the old generation, the new one, or damage that is detected;
the model of the disk finds missing syncs.
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
def test_operations_survive_power_loss(tmp_path: Path, name: str) -> None:
    """A twentieth of the cases of ``python -m tests.torture``."""
    row = Row()
    found = list(lose_power(prepared(OPERATIONS[name], tmp_path), tmp_path, range(43), 20, row))
    assert (found, row.injected, row.lost) == ([""] * 43, 43, [])


def states(folder: Path, *, sync: bool) -> set[bytes | None]:
    """Possible contents of a file after a crash, written with or without ``sync``."""
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
def test_recorded_finds_unsynced_file(tmp_path: Path) -> None:
    complete = {b"old" * 400, b"new" * 400}
    assert states(tmp_path / "synced", sync=True) == complete
    found = states(tmp_path / "not", sync=False)
    assert found > complete
    assert b"" in found  # the name without the data
