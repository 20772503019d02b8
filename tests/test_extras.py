"""Extras are named as they can be installed from where cocite was installed."""

import json
import re
import shlex
import sys
import tomllib
from importlib import metadata
from importlib.metadata import PackageNotFoundError
from pathlib import Path
from typing import Any

import pytest

from benchmarks import plots
from cocite import extras
from cocite.errors import UsageError
from cocite.extras import MissingLibrary, install_command, need

ROOT = Path(__file__).parents[1]


class Installed:
    """The metadata of an installed package."""

    def __init__(self, origin: dict[str, Any] | None) -> None:
        self._origin = origin

    def read_text(self, name: str) -> str | None:
        assert name == "direct_url.json"
        return None if self._origin is None else json.dumps(self._origin)


@pytest.fixture
def clone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    found = tmp_path / "my clone"
    (found / "docs").mkdir(parents=True)
    (found / "pyproject.toml").write_text("")
    monkeypatch.chdir(found)
    return found


def came_from(monkeypatch: pytest.MonkeyPatch, origin: dict[str, Any] | None) -> None:
    monkeypatch.setattr(metadata, "distribution", lambda name: Installed(origin))


def test_a_clone_is_named_as_seen_from_here(clone: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    came_from(monkeypatch, {"url": clone.as_uri(), "dir_info": {}})
    assert install_command("evaluate") == "pip install '.[evaluate]'"
    monkeypatch.chdir(clone / "docs")
    assert install_command("evaluate") == "pip install '..[evaluate]'"
    monkeypatch.chdir(clone.parent)
    assert install_command("plots") == "pip install './my clone[plots]'"
    (clone.parent / "elsewhere").mkdir()
    monkeypatch.chdir(clone.parent / "elsewhere")
    assert install_command("texts") == f"pip install '{clone}[texts]'"


def test_an_editable_install_stays_one(clone: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    came_from(monkeypatch, {"url": clone.as_uri(), "dir_info": {"editable": True}})
    assert install_command("evaluate") == "pip install -e '.[evaluate]'"


@pytest.mark.parametrize(
    ("origin", "what"),
    [
        (
            {
                "url": "https://example.org/cocite.git",
                "vcs_info": {"vcs": "git", "requested_revision": "v1", "commit_id": "abc"},
            },
            "cocite[embed] @ git+https://example.org/cocite.git@v1",
        ),
        (
            {"url": "https://example.org/cocite.git", "vcs_info": {"vcs": "git"}},
            "cocite[embed] @ git+https://example.org/cocite.git",
        ),
        (
            {"url": "file:///tmp/it's/cocite-1.whl", "archive_info": {}},
            "cocite[embed] @ file:///tmp/it's/cocite-1.whl",
        ),
    ],
)
def test_without_a_clone_the_address(
    origin: dict[str, Any] | None, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    came_from(monkeypatch, origin)
    monkeypatch.setattr(extras, "_clone", lambda: None)
    command = install_command("embed")
    assert shlex.split(command) == ["pip", "install", what]
    assert "'" in command


@pytest.mark.parametrize("origin", [None, {}, {"url": "file:///nowhere/that/is", "dir_info": {}}])
def test_default_address(origin: dict[str, Any] | None, monkeypatch: pytest.MonkeyPatch) -> None:
    came_from(monkeypatch, origin)
    monkeypatch.setattr(extras, "_clone", lambda: None)
    assert install_command("embed") == "pip install '.[embed]' in a clone of cocite"


DOCUMENTS = [
    *ROOT.glob("*.md"),
    *ROOT.glob("docs/**/*.md"),
    *(path for path in ROOT.glob("examples/**/*") if path.suffix in (".yaml", ".md", ".py")),
    *ROOT.glob("src/**/*.py"),
    *ROOT.glob("benchmarks/**/*.py"),
]
FORM = re.compile(r"'\.\[([a-z,]+)\]'")


@pytest.mark.parametrize(
    "path",
    [path for path in DOCUMENTS if path.name not in ("CHANGELOG.md", "extras.py")],
    ids=lambda path: str(path.relative_to(ROOT)),
)
def test_extras_are_installed_in_one_way_which_works_in_a_clone(path: Path) -> None:
    """By ``pip install '.[html]'``, of extras that there are; never by a name of a registry's."""
    text = path.read_text("utf-8")
    assert not re.findall(r"cocite\[[a-z]|pip install [^\n`#&|;]*\bcocite\b(?![-/.])", text)
    known = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    for command in re.findall(r"pip install [^\n`]*", text):
        ours = re.findall(r"\S*[/.]\S*\[\S*", command)
        for each in ours:
            assert FORM.match(each), (path, command)
            assert {*FORM.match(each)[1].split(",")} <= {*known}, (path, command)  # type: ignore[index]


def test_code_runs_in_a_clone_uninstalled(clone: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(name: str) -> Installed:
        raise PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "distribution", absent)
    monkeypatch.setattr(extras, "__file__", str(clone / "src" / "cocite" / "extras.py"))
    assert install_command("evaluate") == "pip install '.[evaluate]'"
    monkeypatch.setattr(extras, "__file__", str(clone / "site-packages" / "cocite" / "extras.py"))
    assert install_command("evaluate") == "pip install '.[evaluate]' in a clone of cocite"


def test_whoever_needs_it_says_so(clone: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    came_from(monkeypatch, {"url": clone.as_uri(), "dir_info": {}})
    monkeypatch.setitem(sys.modules, "gensim", None)
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(MissingLibrary, match=r"not installed: pip install '\.\[embed\]'$"):
        need("gensim", "the embedding of walks")
    with pytest.raises(UsageError, match=r"pip install '\.\[plots\]'; or omit them$"):
        plots.require("plots", "omit them")
