"""Commands on a file of links: what they build is cached, and never partly."""

import json
import os
import re
import shlex
import shutil
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import cocite
from cocite.cli.main import main
from cocite.errors import InputError
from cocite.search import cache
from cocite.storage import disk
from tests.cli.conftest import LINKS
from tests.clock import HOLD, LIMIT
from tests.conftest import Ask, CliJson, Shell
from tests.io.plain import links

BUILT = "a graph and an index built from it, "
MEASURE = "; measure: fusion"


def run(*arguments: str, stdin: bytes = b"", **options: Any) -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, "-m", "cocite", *arguments]
    return subprocess.run(command, input=stdin, capture_output=True, check=False, **options)


def messages(result: subprocess.CompletedProcess[bytes]) -> list[str]:
    """Standard error without progress, which depends on the speed of the machine."""
    lines = result.stderr.decode().splitlines()
    return [line for line in lines if not re.match(r"[a-z]+ing\b", line)]


def entry(name: str = "links.tsv") -> Path:
    """The cache entry of a file; raises if there are several."""
    (found,) = Path(os.environ["XDG_CACHE_HOME"], "cocite", "links").glob(f"{name}-*")
    return found


def contents(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name != "entry.json"
    }


@pytest.mark.process
@pytest.mark.chosen
def test_related_caches_index_of_links_file(workdir: Path, ask: Ask) -> None:
    first = run("related", "links.tsv", "x", "--format", "csv")
    assert first.returncode == 0, first.stderr
    read_line, cache_line = messages(first)
    assert read_line == (
        "read links.tsv: tab-separated, no header; the first link is a -> x (if these name the "
        "columns: --header yes)"
    )
    assert cache_line.startswith(f"links.tsv: {BUILT}")
    assert cache_line.endswith(f" are cached until it changes{MEASURE}")
    again = run("related", "links.tsv", "x", "--format", "csv")
    assert messages(again) == [f"links.tsv: unchanged, so the cached index is used{MEASURE}"]
    assert again.stdout == first.stdout
    assert first.stdout.count(b"\n") == 6
    folder = entry()
    assert sorted(path.name for path in folder.iterdir()) == ["entry.json", "graph", "index"]
    index = ask("related", entry() / "index", "x", "--format", "csv")
    assert index == (0, first.stdout.decode(), "")
    assert [path.name for path in workdir.iterdir()] == ["links.tsv"]


def test_query_commands_accept_links_file(workdir: Path, shell: Shell) -> None:
    out, err = shell("similarity links.tsv x y --format json")
    assert BUILT in err
    unchanged = f"links.tsv: unchanged, so the cached index is used{MEASURE}\n"
    assert shell(["similarity", entry() / "index", "x", "y", "--format", "json"]) == (out, "")
    assert shell("why links.tsv x y").err == unchanged
    assert shell("related-all links.tsv -o all.csv").err.startswith(unchanged)
    assert (workdir / "all.csv").read_text().startswith("node,rank,related,score")


@pytest.mark.parametrize(
    ("content", "option"),
    [
        ("follower,followee\nann,bob\n", "--header no"),
        ("id,source,target\n1,ann,bob\n", "--header no"),
        ("id,source,target\n1,ann,bob\n", "--columns SOURCE,TARGET"),
        ("ann,bob\nbob,cy\n", "--header yes"),
    ],
)
def test_reading_hint_gives_working_command(
    workdir: Path, shell: Shell, capsys: pytest.CaptureFixture[str], content: str, option: str
) -> None:
    """Query commands suggest an option; others, which lack it, a command that stores a graph."""
    (workdir / "my {} links.csv").write_text(content)
    assert f": {option})" in shell(["similarity", "my {} links.csv", "ann", "bob"]).err
    flags = option.replace("SOURCE,TARGET", "3,2").split()
    printed = shell(["nodes", "my {} links.csv", "--format", "json", "--no-cache"])
    suffix = "; then cocite index DIR -o INDEX, and query INDEX)"
    command = f"cocite ingest 'my {{}} links.csv' -o DIR {option}{suffix}"
    assert command in printed.err
    command = command.removesuffix(suffix).replace("SOURCE,TARGET", "3,2")
    assert main([*shlex.split(command)[1:]]) == 0
    graph = cocite.Graph.open("DIR")
    capsys.readouterr()
    node, *_ = graph.names
    assert main(["related", "my {} links.csv", node, *flags, "--format", "json"]) == 0
    found = [p / "graph" for p in Path(os.environ["XDG_CACHE_HOME"]).glob("cocite/links/my_*")]
    assert list(graph.names) in [list(cocite.Graph.open(each).names) for each in found]
    capsys.readouterr()
    reply = shell(["related", "my {} links.csv", node, *flags])
    assert "unchanged, so the cached index is used" in reply.err
    reply = shell(["related", "DIR", node, *flags], 2)
    assert (
        f"DIR is already a stored graph or index, so its links are not read again: omit {flags[0]}"
    ) in (reply.err)


@pytest.mark.parametrize(
    ("command", "shown"),
    [
        ("nodes links.tsv X --format csv", "node,in_links,out_links\nx,3,0\n"),
        ("info links.tsv", "links              6, 1.0 per node\n"),
        ("rank links.tsv", "place   "),
        ("index links.tsv -o my.index", "measure  fusion"),
        ("plan links.tsv", "on disk"),
        ("all-pairs links.tsv -o all.csv --overwrite", "6 nodes"),
    ],
)
def test_graph_commands_accept_links_file(
    workdir: Path, shell: Shell, command: str, shown: str
) -> None:
    """Regression: only ``related`` accepted it."""
    cache_line = "links.tsv: a graph built from it, "
    out, err = shell(command.split())
    assert shown in out
    assert cache_line in err
    assert " is cached until it changes\n" in err
    assert not (entry() / "index").exists()
    if command.startswith("index"):
        assert main(["related", "my.index", "x", "--format", "csv"]) == 0
        assert main(["nodes", "my.index", "x", "--links"]) == 0
        return
    again, err = shell([*command.split(), "--no-cache"])
    assert "links.tsv: built a graph for this command\n" in err
    if not command.startswith(("plan", "all-pairs", "info")):
        assert again == out
    stored = command.replace("links.tsv", str(entry() / "graph"), 1)
    reply = shell([*stored.split(), "--no-cache"], 2)
    assert "/graph is a stored graph or index, and nothing is cached for it: omit --no-cache" in (
        reply.err
    )


def test_tune_accepts_links_file_and_prints_next_command(workdir: Path, shell: Shell) -> None:
    rows = [f"{a}\t{b}\n" for a in range(12) for b in range(12) if a != b and (a * b) % 5 < 2]
    (workdir / "links.tsv").write_text("".join(rows))
    command = "tune links.tsv -o s.toml --measure cocitation --direction in --time 60s"
    reply = shell(command.split())
    assert "s.toml: the settings, for cocite index links.tsv --settings s.toml" in (reply.err)
    reply = shell("index links.tsv --settings s.toml -o web.index")
    assert "measure   cocitation" in reply.out


def test_index_refuses_links_without_cached_graph(workdir: Path, shell: Shell) -> None:
    (workdir.parent / "cache").write_text("mine")
    reply = shell("index links.tsv -o my.index", 2)
    assert reply.err.endswith(
        "Error: the index needs a stored graph, but the graph of links.tsv "
        "cannot be cached. Store it first: cocite ingest links.tsv "
        "-o DIR, then cocite index DIR\n"
    )
    assert not (workdir / "my.index").exists()


def test_build_settings_keep_default_measure(workdir: Path, shell: Shell) -> None:
    """Their indexes are cached next to the first; settings that fusion lacks are refused."""
    command = ["related", "links.tsv", "x", "--format", "json"]
    answers = {}
    for options in ((), ("--direction", "in"), ("--size", "small"), ("--size", "default")):
        out, err = shell([*command, *options])
        assert err.endswith(f"{MEASURE}\n"), err
        answers[options] = json.loads(out)
        assert answers[options]["measure"] == "fusion"
    assert answers["--direction", "in"]["hits"] != answers[()]["hits"]
    folder = entry()
    indexes = {path.name: cocite.open(path) for path in folder.glob("index*")}
    assert len(indexes) == 3
    other = next(
        i for name, i in indexes.items() if name != "index" and i.settings["size"] == "default"
    )
    hits = [hit.node for hit in other.related("x")]
    assert hits == [row["node"] for row in answers["--direction", "in"]["hits"]]
    for option, measure in (("--samples", "psimrank"), ("--decay", "pagesim"), ("--bits", "xjacc")):
        err = shell([*command, option, "0.5" if option == "--decay" else "5"], 2).err
        assert f"the measure fusion has no {option}. " in err
        assert measure in err.split("--measure ")[1]
    (workdir / "links.tsv").write_text(LINKS + "new\tx\n")
    assert main([*command, "--size", "small"]) == 0
    assert len(list(folder.glob("index*"))) == 2  # the others were of the old file


def test_related_builds_index_for_measure(workdir: Path, shell: Shell) -> None:
    query = ["related", "links.tsv", "x", "--format", "json", "--measure", "xjaccard"]
    found, err = shell([*query, "--samples", "16", "--length", "2"])
    assert err.endswith("; measure: xjaccard\n")
    answer = json.loads(found)
    assert (answer["measure"], answer["settings"]["samples"]) == ("xjaccard", 16)
    out, err = shell([*query, "--samples", "16", "--length", "2"])
    assert (out, err.count("unchanged")) == (found, 1)


def test_find_or_make_rereads_changed_file(workdir: Path) -> None:
    def names() -> list[str]:
        return list(cocite.Graph.open(entry() / "graph").names)

    assert cache.find_or_make("links.tsv").made
    before = contents(entry())
    assert not cache.find_or_make("links.tsv").made
    assert names() == ["a", "b", "c", "x", "y", "z"]
    with (workdir / "links.tsv").open("a") as file:
        file.write("new\tx\n")
    assert cache.find_or_make("links.tsv").made
    assert "new" in names()
    # Same size, changed within a second: only the time differs.
    (workdir / "links.tsv").write_text(LINKS + "old\tx\n")
    found = (workdir / "links.tsv").stat()
    os.utime(workdir / "links.tsv", ns=(found.st_atime_ns, found.st_mtime_ns + 1))
    assert cache.find_or_make("links.tsv").made
    assert "old" in names()
    (workdir / "links.tsv").write_text(LINKS)
    assert cache.find_or_make("links.tsv").made
    assert contents(entry()) == before


def test_find_or_make_rebuilds_after_release(
    workdir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache.find_or_make("links.tsv", index=False)
    assert not cache.find_or_make("links.tsv", index=False).made
    monkeypatch.setattr(cache, "__version__", "99")
    assert cache.find_or_make("links.tsv", index=False).made


@pytest.mark.process
def test_no_cache_leaves_no_files(workdir: Path) -> None:
    (workdir / "tmp").mkdir()
    environ = os.environ | {"TMPDIR": str(workdir / "tmp")}
    result = run("related", "links.tsv", "x", "--no-cache", "--format", "csv", env=environ)
    assert result.returncode == 0, result.stderr
    assert messages(result)[1:] == [f"links.tsv: built an index for this command{MEASURE}"]
    assert not list((workdir / "tmp").iterdir())
    assert sorted(path.name for path in workdir.iterdir()) == ["links.tsv", "tmp"]
    piped = run("related", "-", "x", "--format", "csv", stdin=LINKS.encode(), env=environ)
    assert piped.stdout == result.stdout
    assert not list((workdir / "tmp").iterdir())
    missing = run("related", "links.tsv", "nobody", "--no-cache", env=environ)
    assert missing.returncode == 2
    assert not list((workdir / "tmp").iterdir())


@pytest.mark.parametrize("file", ["index/names.data", "graph/names.data"])
@pytest.mark.parametrize("damage", ["gone", "cut", "spoilt"])
def test_related_rebuilds_damaged_cache_entry(
    workdir: Path, file: str, damage: str, shell: Shell
) -> None:
    command = ["related", "links.tsv", "x", "--format", "csv"]
    first = shell(command).out
    intact = contents(entry())
    path = entry() / file
    content = path.read_bytes()
    if damage == "gone":
        path.unlink()
    else:
        cut = content[:-1]
        path.write_bytes(cut if damage == "cut" else bytes(255 - byte for byte in content))
    printed = shell(command)
    assert printed.out == first
    # The query reads no data of the graph.
    detected = damage != "spoilt" or file.startswith("index/")
    assert (contents(entry()) == intact) == detected
    if damage == "spoilt" and detected:
        assert "links.tsv: its cached data is damaged; rebuilding it" in printed.err
    printed = shell(command)
    assert printed.out == first
    assert printed.err.startswith("links.tsv: unchanged, so the cached index is used")


@pytest.mark.process
def test_related_stdin_asks_to_repeat_after_damage(workdir: Path) -> None:
    first = run("related", "links.tsv", "-", stdin=b"x\n")
    names = entry() / "index" / "names.data"
    names.write_bytes(bytes(255 - byte for byte in names.read_bytes()))
    again = run("related", "links.tsv", "-", stdin=b"x\n")
    assert again.returncode == 1
    assert "Repeat the command to rebuild it" in again.stderr.decode()
    third = run("related", "links.tsv", "-", stdin=b"x\n")
    assert (third.returncode, third.stdout) == (0, first.stdout), third.stderr


def test_related_keeps_damaged_user_index(workdir: Path, shell: Shell) -> None:
    cocite.build(cocite.ingest("links.tsv", "g"), "i")
    names = workdir / "i" / "names.data"
    damaged = bytes(255 - byte for byte in names.read_bytes())
    names.write_bytes(damaged)
    assert "rebuild it" in shell("related i x", 1).err
    assert names.read_bytes() == damaged


def test_cache_ignores_folder_next_to_file(workdir: Path, ask: Ask) -> None:
    """Regression: such a folder could supply answers, and name a database to read."""
    command = ("related", "links.tsv", "x", "--format", "csv")
    first = ask(*command)[:2]
    (workdir / "other.tsv").write_text("q\tx\nq\tr\n")
    cached = cache.find_or_make("other.tsv").folder
    planted = workdir / "links.tsv.cocite"
    shutil.copytree(cached, planted)
    facts = {"titles": [[str(workdir / "secret.db"), "0"]], "source": str(workdir / "links.tsv")}
    for name in ("entry.json", "made-of.json"):
        (planted / name).write_text(
            json.dumps(json.loads((entry() / "entry.json").read_text()) | facts)
        )
    before = contents(planted)
    shutil.rmtree(entry())
    assert ask(*command)[:2] == first
    assert contents(planted) == before


@pytest.mark.parametrize("fault", ["mode", "link", "owner", "above"])
def test_cache_refuses_entry_writable_by_others(workdir: Path, ask: Ask, fault: str) -> None:
    command = ("related", "links.tsv", "x", "--format", "csv")
    first = ask(*command)[:2]
    folder = entry()
    if fault == "mode":
        folder.chmod(0o777)
        reason = f"others can write to {folder}"
    elif fault == "link":
        folder.rename(workdir / "elsewhere")
        folder.symlink_to(workdir / "elsewhere")
        reason = f"{folder} is a symbolic link"
    elif fault == "owner":
        if os.geteuid() != 0:
            pytest.skip("needs root to give a folder away")
        os.chown(folder, 12345, 12345)
        reason = f"{folder} belongs to another user"
    else:
        folder.parent.chmod(0o777)
        reason = f"others can write to {folder.parent}"
    code, out, err = ask(*command)
    assert (code, out) == first
    assert err.endswith(f"links.tsv: built an index for this command ({reason}){MEASURE}\n")


def test_cache_detects_change_of_equal_size_and_time(workdir: Path, cli_json: CliJson) -> None:
    """Regression: the second file got the answer for the first."""
    for node in "bc":
        (workdir / "links.tsv").write_text(f"a\tx\n{node}\tx\n")
        os.utime(workdir / "links.tsv", ns=(10**18, 10**18))
        found = cli_json("nodes", "links.tsv")["nodes"]
        assert {row["node"] for row in found} == {"a", node, "x"}


@pytest.mark.parametrize("size", [100, (64 << 20) + 12345])
def test_fingerprint_covers_content_and_metadata(tmp_path: Path, size: int) -> None:
    """Of a large file, some blocks are read, including the first and the last."""
    file = tmp_path / "f"
    file.write_bytes(bytes(size))
    fingerprints = [cache._fingerprint([str(file)])]
    for at in (0, size - 1):
        with file.open("r+b") as out:
            out.seek(at)
            out.write(b"x")
        os.utime(file, ns=(10**18, 10**18))
        fingerprints.append(cache._fingerprint([str(file)]))
    assert cache._fingerprint([str(file)]) == fingerprints[-1]
    other = tmp_path / "g"
    shutil.copy2(file, other)
    fingerprints.append(cache._fingerprint([str(other)]))
    assert len(set(fingerprints)) == 4


def test_related_graph_uses_default_measure(workdir: Path, shell: Shell) -> None:
    """As for a file of the same links, its index, and Python. Regression: it used psimrank."""
    cocite.build(cocite.ingest("links.tsv", "g"), "i")
    answers = []
    for path in ("g", "links.tsv", "i", "g"):
        out, err = shell(["related", path, "x", "--format", "json"])
        answers.append(json.loads(out)["hits"])
    assert err == f"g: unchanged, so the cached index is used{MEASURE}\n"
    assert answers == [answers[0]] * 4
    expected = [(row["node"], row["score"]) for row in answers[0]]
    for found in (cocite.related("g", "x"), cocite.open("g").related("x")):
        assert [(hit.node, hit.score) for hit in found] == expected
    assert cocite.open("links.tsv").stored.measure.name == "fusion"
    assert not list((workdir / "g").glob("*index*"))


@pytest.mark.process
def test_cache_without_home_uses_private_folder(workdir: Path) -> None:
    environ = {
        key: value for key, value in os.environ.items() if key != "HOME" and "XDG" not in key
    }
    environ["TMPDIR"] = str(workdir.parent)
    for expected in ("are cached until it changes", "unchanged, so the cached index is used"):
        result = run("related", "links.tsv", "x", env=environ)
        assert result.returncode == 0, result.stderr
        assert expected in messages(result)[-1]
    private = workdir.parent / f"cocite-{os.geteuid()}" / "links"
    assert [path.name.rpartition("-")[0] for path in private.iterdir()] == ["links.tsv"]


def test_find_or_make_uses_temporary_without_permission(
    workdir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Simulated, since root may write anywhere."""
    real = disk.make_own_folder

    def mkdir(path: Path, **options: Any) -> None:
        if path.parent.name == "links":
            raise PermissionError(13, "Permission denied")
        real(path, **options)

    with monkeypatch.context() as patched:
        patched.setattr(disk, "make_own_folder", mkdir)
        found = cache.find_or_make("links.tsv", index=False)
    assert found.why.endswith(" cannot be created: Permission denied")
    assert found.temporary is not None
    found.temporary.cleanup()
    assert cache.find_or_make("links.tsv", index=False).made


def test_find_or_make_refuses_file_changed_during_read(workdir: Path) -> None:
    def change(stage: str, done: int, total: int) -> None:
        if stage.startswith("sorting"):
            with (workdir / "links.tsv").open("a") as file:
                file.write("late\tx\n")

    with pytest.raises(InputError, match=r"links\.tsv changed while it was read\. Repeat the"):
        cache.find_or_make("links.tsv", progress=change)
    assert cache.find_or_make("links.tsv").made
    assert "late" in list(cocite.Graph.open(entry() / "graph").names)


HELD = f"""
import os, sys
from cocite.cli import console as progress
from cocite.cli.main import main
{HOLD}
left, call, stages = int(sys.argv[1]), progress.Stages.__call__, []

def held(self, stage, *given):
    call(self, stage, *given)
    if stage not in stages:
        stages.append(stage)
        if len(stages) == left:
            hold()

progress.Stages.__call__ = held
sys.exit(main(sys.argv[2:]))
"""
"""The program, which holds at the start of a stage, counted from 1."""


@pytest.mark.process
@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGKILL])
def test_cache_survives_interruption(workdir: Path, signum: int) -> None:
    """At several stages; the next run gives the same result as an uninterrupted one."""
    rows = "".join(f"n{i % 3_001}\tn{i * i % 997}\n" for i in range(20_000))
    (workdir / "links.tsv").write_text(rows)
    command = [sys.executable, "-m", "cocite", "related", "links.tsv", "n1", "--format", "csv"]
    expected = run(*command[3:], "--no-cache").stdout
    root = Path(os.environ["XDG_CACHE_HOME"], "cocite", "links")
    for stage in (1, 3, 4):
        program = [sys.executable, "-c", HELD, str(stage), *command[3:]]
        process = subprocess.Popen(program, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        assert process.stdout is not None
        assert process.stdout.readline() == b"held\n"
        process.send_signal(signum)
        _, err = process.communicate(timeout=LIMIT)
        assert process.returncode == (130 if signum == signal.SIGINT else -signum), err
        for folder in root.glob("*"):
            for name, open_store in (("graph", cocite.Graph.open), ("index", cocite.open)):
                if (folder / name).exists():
                    open_store(folder / name)
            assert process.returncode != 130 or (folder / "graph").exists()
    result = run(*command[3:])
    assert result.returncode == 0, result.stderr
    assert result.stdout == expected
    folder = entry()
    assert sorted(path.name for path in folder.iterdir()) == ["entry.json", "graph", "index"]
    assert len(links(cocite.Graph.open(folder / "graph"))) > 10_000


def test_no_cache_accepts_graph(workdir: Path, shell: Shell) -> None:
    shell("ingest links.tsv -o g")
    reply = shell("related g x --no-cache")
    assert f"g: built an index for this command{MEASURE}" in reply.err


def test_exclude_nodes_has_own_cache_entry(workdir: Path, shell: Shell) -> None:
    def query(*options: str) -> tuple[set[str], str]:
        out, err = shell(["related", "links.tsv", "x", "--format", "json", *options])
        return {hit["node"] for hit in json.loads(out)["hits"]}, err

    exclude = ["--exclude-nodes", "out"]
    plain, _ = query()
    (workdir / "out").write_text("a\nb\n")
    found, err = query(*exclude)
    assert found == {"c"}
    assert "excluded 2 pages with 4 links\n" in err
    (workdir / "out").write_text("b\n\na\n")
    found, err = query(*exclude)
    assert found == {"c"}
    assert err.startswith("links.tsv: unchanged, so the cached index is used")
    (workdir / "out").write_text("c\n")
    assert query(*exclude)[0] == {"a", "b", "y", "z"}
    found, err = query()
    assert found == plain == {"a", "b", "c", "y", "z"}
    assert err.startswith("links.tsv: unchanged, so the cached index is used")
    assert main(["related-all", "links.tsv", "-o", "all.csv", *exclude]) == 0
    assert "c" not in {
        line.split(",")[0] for line in (workdir / "all.csv").read_text().splitlines()
    }


def test_exclude_nodes_refuses_query_nodes(workdir: Path, shell: Shell) -> None:
    (workdir / "out").write_text("x\n")
    exclude = ["--exclude-nodes", "out"]
    for verb in (["related", "links.tsv", "x"], ["why", "links.tsv", "x", "y"]):
        assert "'x' is a query node, but out" in shell([*verb, *exclude], 2).err
    assert main(["ingest", "links.tsv", "-o", "g"]) == 0
    assert (
        "cocite ingest g -o DIR --exclude-nodes out"
        in shell(["related", "g", "y", *exclude], 2).err
    )


def test_related_accepts_ingest_options(workdir: Path, shell: Shell) -> None:
    """Regression: ``--links main`` took three commands; other options were refused."""
    (workdir / "t.csv").write_text("id,who,what,weight\n1,a,x,5\n2,b,x,1\n3,b,y,2\n")
    command = ["related", "t.csv", "x", "--columns", "who,what", "--weight-column", "weight"]
    assert shell([*command, "--undirected", "--format", "json"]).out
    (found,) = cache.cached_stores("t.csv")[:1]
    graph = cocite.Graph.open(found)
    assert (graph.edges, graph.in_weights is None) == (6, False)
    reply = shell(["related", "t.csv", "x", "--columns", "who,what"])
    assert "'weight' is ignored (as weights: --weight-column weight)" in reply.err
    reply = shell(["related", found, "x", "--undirected"], 2)
    assert (
        "is already a stored graph or index, so its links are not read again: omit --undirected"
    ) in reply.err


@pytest.mark.parametrize("name", ["shop.sqlite", "sqlite:///shop.sqlite", "shop.sqlite#orders"])
def test_related_accepts_sqlite_database(workdir: Path, shell: Shell, name: str) -> None:
    """Regression: the error suggested fsspec and Ray."""
    with sqlite3.connect("shop.sqlite") as connection:
        connection.execute("create table orders (source, target)")
        rows = [line.split("\t") for line in LINKS.splitlines()]
        connection.executemany("insert into orders values (?, ?)", rows)
    connection.close()
    expected = shell("related links.tsv x --format csv").out
    assert shell(["related", name, "x", "--format", "csv"]).out == expected
    reply = shell(["related", name, "x", "--format", "csv"])
    assert "unchanged, so the cached index is used" in reply.err
    shell(["ingest", name, "-o", "g"])
    with sqlite3.connect("shop.sqlite") as connection:
        connection.execute("insert into orders values ('new', 'x')")
    connection.close()
    assert "new" in shell(["related", name, "x", "--format", "csv"]).out
