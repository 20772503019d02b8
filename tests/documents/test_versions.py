"""Documentation of several releases side by side (``docs/versions.py``)."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "docs" / "versions.py"

MAKEFILE = """docs:
\tmkdir -p build/docs/html
\tcat words > build/docs/html/index.html
\techo built >> {log}
"""


@pytest.mark.process
def test_versions_builds_each_release_once_from_own_sources(tmp_path: Path) -> None:
    project, log = tmp_path / "project", tmp_path / "log"
    project.mkdir()

    def git(*arguments: str) -> None:
        identity = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
        subprocess.run(["git", *identity, *arguments], cwd=project, check=True, capture_output=True)

    def versions() -> Path:
        subprocess.run(["make", "docs"], cwd=project, check=True, capture_output=True)
        subprocess.run([sys.executable, SCRIPT], cwd=project, check=True, capture_output=True)
        return project / "build/docs/versions"

    git("init", "-q")
    (project / ".gitignore").write_text("build\n")
    (project / "Makefile").write_text(MAKEFILE.format(log=log))
    for tag in ("v0.9.0", "v0.10.0"):
        (project / "words").write_text(tag)
        git("add", ".")
        git("commit", "-q", "-m", tag)
        git("tag", tag)
    (project / "words").write_text("not released")
    built = versions()

    names = json.loads((built / "versions.json").read_text())
    assert names == ["v0.10.0", "v0.9.0", "latest"]
    assert [(built / name / "index.html").read_text() for name in names] == [
        "v0.10.0",
        "v0.9.0",
        "not released",
    ]
    assert "url=v0.10.0/index.html" in (built / "index.html").read_text()
    assert log.read_text().split() == ["built"] * 3

    (project / "words").write_text("moved")
    git("commit", "-q", "-a", "-m", "moved")
    git("tag", "-f", "v0.10.0")
    versions()
    assert (built / "v0.10.0" / "index.html").read_text() == "moved"
    assert log.read_text().split() == ["built"] * 5  # the working tree and the tag that moved
