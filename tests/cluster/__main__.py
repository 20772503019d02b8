"""Run the tests of this folder, a process per file: ``python -m tests.cluster``.

Ray ends a connected process at once when its local server dies, as may happen on a busy machine:
pytest reports nothing then. Such a file runs once more, with a message. Failed tests never run
again.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

OPTIONS = ["-m", "cluster", "-p", "no:xdist", "--capture=sys"]
"""Show the output of Ray: pytest could not after an exit."""
NO_TESTS = 5


def passes(file: Path, report: Path) -> bool | None:
    """Whether the tests of a file pass; None if their process ended without a report."""
    report.unlink(missing_ok=True)
    command = [sys.executable, "-m", "pytest", *OPTIONS, f"--junitxml={report}", str(file)]
    status = subprocess.run(command, check=False).returncode
    return status in (0, NO_TESTS) if report.exists() else None


def main() -> int:
    """Run all files; return 1 if one fails."""
    failed = []
    with tempfile.TemporaryDirectory() as folder:
        for file in sorted(Path(__file__).parent.glob("test_*.py")):
            passed = passes(file, report := Path(folder) / "report.xml")
            if passed is None:
                print(f"{file}: Ray ended the process; once more", file=sys.stderr, flush=True)
                passed = passes(file, report)
            if not passed:
                failed.append(file.name)
    print(f"failed: {', '.join(failed)}" if failed else "all files of tests/cluster passed")
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
