"""What SECURITY.md promises of the Makefile."""

import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_make_audit_checks_every_lock_file() -> None:
    done = subprocess.run(["make", "-n", "audit"], cwd=ROOT, capture_output=True, check=True)
    command = next(line for line in done.stdout.decode().splitlines() if "pip-audit" in line)
    locks = [path.name for path in ROOT.glob("requirements*.lock")]
    assert len(locks) == 4
    assert all(f"-r {name}" in command for name in locks)
