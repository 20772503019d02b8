"""A file of links is asked as it is: what is made of it is kept, and never half made."""

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
from tests.conftest import Ask, Shell, Told
from tests.io.plain import links

MADE = "a graph and an index built from it, "
BY = "; measure: fusion"


def run(*arguments: str, stdin: bytes = b"", **more: Any) -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, "-m", "cocite", *arguments]
    return subprocess.run(command, input=stdin, capture_output=True, check=False, **more)


def said(done: subprocess.CompletedProcess[bytes]) -> list[str]:
    """What was said, but for how far it is, which depends on how busy the machine is."""
    lines = done.stderr.decode().splitlines()
    return [line for line in lines if not re.match(r"[a-z]+ing\b", line)]


def entry(name: str = "links.tsv") -> Path:
    """The entry of the cache that is made of a file; raises if there are several."""
    (found,) = Path(os.environ["XDG_CACHE_HOME"], "cocite", "links").glob(f"{name}-*")
    return found


def everything(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name != "entry.json"
    }


@pytest.mark.process
@pytest.mark.chosen
def test_first_command_works_twice(here: Path, ask: Ask) -> None:
    first = run("related", "links.tsv", "x", "--format", "csv")
    assert first.returncode == 0, first.stderr
    read, made = said(first)
    assert read == (
        "read links.tsv: tab-separated, no header; the first link is a -> x (if these name the "
        "columns: --header yes)"
    )
    assert made.startswith(f"links.tsv: {MADE}")
    assert made.endswith(f" are cached until it changes{BY}")
    again = run("related", "links.tsv", "x", "--format", "csv")
    assert said(again) == [f"links.tsv: unchanged, so the cached index is used{BY}"]
    assert again.stdout == first.stdout
    assert first.stdout.count(b"\n") == 6
    folder = entry()
    assert sorted(path.name for path in folder.iterdir()) == ["entry.json", "graph", "index"]
    index = ask("related", entry() / "index", "x", "--format", "csv")
    assert index == (0, first.stdout.decode(), "")
    assert [path.name for path in here.iterdir()] == ["links.tsv"]


def test_every_verb_that_asks_takes_it(here: Path, shell: Shell) -> None:
    out, err = shell("similarity links.tsv x y --format json")
    assert MADE in err
    unchanged = f"links.tsv: unchanged, so the cached index is used{BY}\n"
    assert shell(["similarity", entry() / "index", "x", "y", "--format", "json"]) == (out, "")
    assert shell("why links.tsv x y").err == unchanged
    assert shell("related-all links.tsv -o all.csv").err.startswith(unchanged)
    assert (here / "all.csv").read_text().startswith("node,rank,related,score")


@pytest.mark.parametrize(
    ("content", "option"),
    [
        ("follower,followee\nann,bob\n", "--header no"),
        ("id,source,target\n1,ann,bob\n", "--header no"),
        ("id,source,target\n1,ann,bob\n", "--columns SOURCE,TARGET"),
        ("ann,bob\nbob,cy\n", "--header yes"),
    ],
)
def test_what_to_type_if_it_was_read_wrongly_can_be_typed(
    here: Path, shell: Shell, capsys: pytest.CaptureFixture[str], content: str, option: str
) -> None:
    """The hint was an option that the verb does not have. Those that ask have it; others say a
    command that makes a graph for them.
    """
    (here / "my {} links.csv").write_text(content)
    assert f": {option})" in shell(["similarity", "my {} links.csv", "ann", "bob"]).err
    typed = option.replace("SOURCE,TARGET", "3,2").split()
    told = shell(["nodes", "my {} links.csv", "--format", "json", "--no-cache"])
    then = "; then cocite index DIR -o INDEX, and query INDEX)"
    command = f"cocite ingest 'my {{}} links.csv' -o DIR {option}{then}"
    assert command in told.err
    command = command.removesuffix(then).replace("SOURCE,TARGET", "3,2")
    assert main([*shlex.split(command)[1:]]) == 0
    graph = cocite.Graph.open("DIR")
    capsys.readouterr()
    node, *_ = graph.names
    assert main(["related", "my {} links.csv", node, *typed, "--format", "json"]) == 0
    found = [p / "graph" for p in Path(os.environ["XDG_CACHE_HOME"]).glob("cocite/links/my_*")]
    assert list(graph.names) in [list(cocite.Graph.open(each).names) for each in found]
    capsys.readouterr()
    reply = shell(["related", "my {} links.csv", node, *typed])
    assert "unchanged, so the cached index is used" in reply.err
    reply = shell(["related", "DIR", node, *typed], 2)
    assert (
        f"DIR is already a stored graph or index, so its links are not read again: omit {typed[0]}"
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
def test_verbs_of_a_graph_take_it(here: Path, shell: Shell, command: str, shown: str) -> None:
    """They refused it, and ``related`` took it."""
    kept = "links.tsv: a graph built from it, "
    out, err = shell(command.split())
    assert shown in out
    assert kept in err
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


def test_tune_takes_it_and_says_how_to_go_on(here: Path, shell: Shell) -> None:
    rows = [f"{a}\t{b}\n" for a in range(12) for b in range(12) if a != b and (a * b) % 5 < 2]
    (here / "links.tsv").write_text("".join(rows))
    tuned = "tune links.tsv -o s.toml --measure cocitation --direction in --time 60s"
    reply = shell(tuned.split())
    assert "s.toml: the settings; see cocite index links.tsv --settings s.toml" in (reply.err)
    reply = shell("index links.tsv --settings s.toml -o web.index")
    assert "measure   cocitation" in reply.out


def test_an_index_keeps_its_graph_or_is_not_made(here: Path, shell: Shell) -> None:
    (here.parent / "cache").write_text("mine")
    reply = shell("index links.tsv -o my.index", 2)
    assert reply.err.endswith(
        "Error: the index needs a stored graph, but the graph of links.tsv "
        "cannot be cached. Store it first: cocite ingest links.tsv "
        "-o DIR, then cocite index DIR\n"
    )
    assert not (here / "my.index").exists()


def test_settings_do_not_change_the_measure(here: Path, shell: Shell) -> None:
    """An index with them is kept beside the first; what the default does not have is refused."""
    question = ["related", "links.tsv", "x", "--format", "json"]
    found = {}
    for more in ((), ("--direction", "in"), ("--size", "small"), ("--size", "default")):
        out, err = shell([*question, *more])
        assert err.endswith(f"{BY}\n"), err
        found[more] = json.loads(out)
        assert found[more]["measure"] == "fusion"
    assert found["--direction", "in"]["hits"] != found[()]["hits"]
    folder = entry()
    made = {path.name: cocite.open(path) for path in folder.glob("index*")}
    assert len(made) == 3
    other = next(
        i for name, i in made.items() if name != "index" and i.settings["size"] == "default"
    )
    hits = [hit.node for hit in other.related("x")]
    assert hits == [row["node"] for row in found["--direction", "in"]["hits"]]
    for option, taker in (("--samples", "psimrank"), ("--decay", "pagesim"), ("--bits", "xjacc")):
        err = shell([*question, option, "0.5" if option == "--decay" else "5"], 2).err
        assert f"the measure fusion has no {option}. " in err
        assert taker in err.split("--measure ")[1]
    (here / "links.tsv").write_text(LINKS + "new\tx\n")
    assert main([*question, "--size", "small"]) == 0
    assert len(list(folder.glob("index*"))) == 2  # the other one is of what the file was


def test_a_measure_that_needs_an_index_gets_one(here: Path, shell: Shell) -> None:
    query = ["related", "links.tsv", "x", "--format", "json", "--measure", "xjaccard"]
    found, err = shell([*query, "--samples", "16", "--length", "2"])
    assert err.endswith("; measure: xjaccard\n")
    answer = json.loads(found)
    assert (answer["measure"], answer["settings"]["samples"]) == ("xjaccard", 16)
    out, err = shell([*query, "--samples", "16", "--length", "2"])
    assert (out, err.count("unchanged")) == (found, 1)


def test_a_file_that_has_changed_is_read_again(here: Path) -> None:
    def names() -> list[str]:
        return list(cocite.Graph.open(entry() / "graph").names)

    assert cache.find_or_make("links.tsv").made
    before = everything(entry())
    assert not cache.find_or_make("links.tsv").made
    assert names() == ["a", "b", "c", "x", "y", "z"]
    with (here / "links.tsv").open("a") as file:
        file.write("new\tx\n")
    assert cache.find_or_make("links.tsv").made
    assert "new" in names()
    # As long as before, and changed within a second: the time tells.
    (here / "links.tsv").write_text(LINKS + "old\tx\n")
    found = (here / "links.tsv").stat()
    os.utime(here / "links.tsv", ns=(found.st_atime_ns, found.st_mtime_ns + 1))
    assert cache.find_or_make("links.tsv").made
    assert "old" in names()
    (here / "links.tsv").write_text(LINKS)
    assert cache.find_or_make("links.tsv").made
    assert everything(entry()) == before


def test_another_release_makes_it_anew(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache.find_or_make("links.tsv", index=False)
    assert not cache.find_or_make("links.tsv", index=False).made
    monkeypatch.setattr(cache, "__version__", "99")
    assert cache.find_or_make("links.tsv", index=False).made


@pytest.mark.process
def test_nothing_is_kept_if_nothing_is_to_be(here: Path) -> None:
    (here / "tmp").mkdir()
    told = os.environ | {"TMPDIR": str(here / "tmp")}
    done = run("related", "links.tsv", "x", "--no-cache", "--format", "csv", env=told)
    assert done.returncode == 0, done.stderr
    assert said(done)[1:] == [f"links.tsv: built an index for this command{BY}"]
    assert not list((here / "tmp").iterdir())
    assert sorted(path.name for path in here.iterdir()) == ["links.tsv", "tmp"]
    piped = run("related", "-", "x", "--format", "csv", stdin=LINKS.encode(), env=told)
    assert piped.stdout == done.stdout
    assert not list((here / "tmp").iterdir())
    missing = run("related", "links.tsv", "nobody", "--no-cache", env=told)
    assert missing.returncode == 2
    assert not list((here / "tmp").iterdir())


@pytest.mark.parametrize("file", ["index/names.data", "graph/names.data"])
@pytest.mark.parametrize("how", ["gone", "cut", "spoilt"])
def test_damaged_cache_entry_is_made_again(here: Path, file: str, how: str, shell: Shell) -> None:
    command = ["related", "links.tsv", "x", "--format", "csv"]
    first = shell(command).out
    whole = everything(entry())
    damaged = entry() / file
    content = damaged.read_bytes()
    if how == "gone":
        damaged.unlink()
    else:
        cut = content[:-1]
        damaged.write_bytes(cut if how == "cut" else bytes(255 - byte for byte in content))
    printed = shell(command)
    assert printed.out == first
    read = how != "spoilt" or file.startswith("index/")  # of a graph nothing is read for this
    assert (everything(entry()) == whole) == read
    if how == "spoilt" and read:
        assert "links.tsv: its cached data is damaged; rebuilding it" in printed.err
    printed = shell(command)
    assert printed.out == first
    assert printed.err.startswith("links.tsv: unchanged, so the cached index is used")


@pytest.mark.process
def test_damage_met_behind_standard_input_is_mended_by_the_next_command(here: Path) -> None:
    first = run("related", "links.tsv", "-", stdin=b"x\n")
    names = entry() / "index" / "names.data"
    names.write_bytes(bytes(255 - byte for byte in names.read_bytes()))
    again = run("related", "links.tsv", "-", stdin=b"x\n")
    assert again.returncode == 1
    assert "Repeat the command to rebuild it" in again.stderr.decode()
    third = run("related", "links.tsv", "-", stdin=b"x\n")
    assert (third.returncode, third.stdout) == (0, first.stdout), third.stderr


def test_damage_of_an_index_of_ones_own_is_left_to_its_owner(here: Path, shell: Shell) -> None:
    cocite.build(cocite.ingest("links.tsv", "g"), "i")
    names = here / "i" / "names.data"
    spoilt = bytes(255 - byte for byte in names.read_bytes())
    names.write_bytes(spoilt)
    assert "rebuild it" in shell("related i x", 1).err
    assert names.read_bytes() == spoilt


def test_folder_beside_is_no_cache(here: Path, ask: Ask) -> None:
    """One that came with a file answered for it, and named a database that was read."""
    command = ("related", "links.tsv", "x", "--format", "csv")
    first = ask(*command)[:2]
    (here / "other.tsv").write_text("q\tx\nq\tr\n")
    made = cache.find_or_make("other.tsv").folder
    planted = here / "links.tsv.cocite"
    shutil.copytree(made, planted)
    named = {"titles": [[str(here / "secret.db"), "0"]], "source": str(here / "links.tsv")}
    for name in ("entry.json", "made-of.json"):
        (planted / name).write_text(
            json.dumps(json.loads((entry() / "entry.json").read_text()) | named)
        )
    before = everything(planted)
    shutil.rmtree(entry())
    assert ask(*command)[:2] == first
    assert everything(planted) == before


@pytest.mark.parametrize("how", ["mode", "link", "owner", "above"])
def test_shared_entries(here: Path, ask: Ask, how: str) -> None:
    command = ("related", "links.tsv", "x", "--format", "csv")
    first = ask(*command)[:2]
    folder = entry()
    if how == "mode":
        folder.chmod(0o777)
        reason = f"others can write to {folder}"
    elif how == "link":
        folder.rename(here / "elsewhere")
        folder.symlink_to(here / "elsewhere")
        reason = f"{folder} is a symbolic link"
    elif how == "owner":
        if os.geteuid() != 0:
            pytest.skip("needs root to give a folder away")
        os.chown(folder, 12345, 12345)
        reason = f"{folder} belongs to another user"
    else:
        folder.parent.chmod(0o777)
        reason = f"others can write to {folder.parent}"
    code, out, err = ask(*command)
    assert (code, out) == first
    assert err.endswith(f"links.tsv: built an index for this command ({reason}){BY}\n")


def test_same_size_and_time_differ(here: Path, told: Told) -> None:
    """The second one was answered for by what the first one had been."""
    for node in "bc":
        (here / "links.tsv").write_text(f"a\tx\n{node}\tx\n")
        os.utime(here / "links.tsv", ns=(10**18, 10**18))
        found = told("nodes", "links.tsv")["nodes"]
        assert {each["node"] for each in found} == {"a", node, "x"}


@pytest.mark.parametrize("size", [100, (64 << 20) + 12345])
def test_a_fingerprint_is_of_content_and_facts(tmp_path: Path, size: int) -> None:
    """Of a large file blocks are read, the first and the last among them."""
    file = tmp_path / "f"
    file.write_bytes(bytes(size))
    found = [cache._fingerprint([str(file)])]
    for at in (0, size - 1):
        with file.open("r+b") as out:
            out.seek(at)
            out.write(b"x")
        os.utime(file, ns=(10**18, 10**18))
        found.append(cache._fingerprint([str(file)]))
    assert cache._fingerprint([str(file)]) == found[-1]
    other = tmp_path / "g"
    shutil.copy2(file, other)
    found.append(cache._fingerprint([str(other)]))
    assert len(set(found)) == 4


def test_a_stored_graph_is_answered_for_by_the_default(here: Path, shell: Shell) -> None:
    """As a file of the same links, its index, and Python; psimrank answered."""
    cocite.build(cocite.ingest("links.tsv", "g"), "i")
    answers = []
    for path in ("g", "links.tsv", "i", "g"):
        out, err = shell(["related", path, "x", "--format", "json"])
        answers.append(json.loads(out)["hits"])
    assert err == f"g: unchanged, so the cached index is used{BY}\n"
    assert answers == [answers[0]] * 4
    expected = [(row["node"], row["score"]) for row in answers[0]]
    for found in (cocite.related("g", "x"), cocite.open("g").related("x")):
        assert [(hit.node, hit.score) for hit in found] == expected
    assert cocite.open("links.tsv").stored.measure.name == "fusion"
    assert not list((here / "g").glob("*index*"))


@pytest.mark.process
def test_without_a_home_it_is_cached_in_a_private_folder(here: Path) -> None:
    bare = {key: value for key, value in os.environ.items() if key != "HOME" and "XDG" not in key}
    bare["TMPDIR"] = str(here.parent)
    for says in ("are cached until it changes", "unchanged, so the cached index is used"):
        done = run("related", "links.tsv", "x", env=bare)
        assert done.returncode == 0, done.stderr
        assert says in said(done)[-1]
    private = here.parent / f"cocite-{os.geteuid()}" / "links"
    assert [path.name.rpartition("-")[0] for path in private.iterdir()] == ["links.tsv"]


def test_a_folder_that_cannot_be_written_to(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Root may write anywhere, so the refusal is made up."""
    real = disk.make_own_folder

    def mkdir(path: Path, **more: Any) -> None:
        if path.parent.name == "links":
            raise PermissionError(13, "Permission denied")
        real(path, **more)

    with monkeypatch.context() as patched:
        patched.setattr(disk, "make_own_folder", mkdir)
        found = cache.find_or_make("links.tsv", index=False)
    assert found.why.endswith(" cannot be created: Permission denied")
    assert found.temporary is not None
    found.temporary.cleanup()
    assert cache.find_or_make("links.tsv", index=False).made


def test_a_file_that_changes_while_it_is_read_is_not_kept(here: Path) -> None:
    def change(stage: str, done: int, total: int) -> None:
        if stage.startswith("sorting"):
            with (here / "links.tsv").open("a") as file:
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
"""The program, which holds still where a stage begins, the first of them being 1."""


@pytest.mark.process
@pytest.mark.parametrize("ended_by", [signal.SIGINT, signal.SIGKILL])
def test_an_interruption_leaves_nothing_half_written(here: Path, ended_by: int) -> None:
    """In several stages; what comes after makes what it would have made."""
    rows = "".join(f"n{i % 3_001}\tn{i * i % 997}\n" for i in range(20_000))
    (here / "links.tsv").write_text(rows)
    command = [sys.executable, "-m", "cocite", "related", "links.tsv", "n1", "--format", "csv"]
    whole = run(*command[3:], "--no-cache").stdout
    root = Path(os.environ["XDG_CACHE_HOME"], "cocite", "links")
    for stage in (1, 3, 4):
        held = [sys.executable, "-c", HELD, str(stage), *command[3:]]
        process = subprocess.Popen(held, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        assert process.stdout is not None
        assert process.stdout.readline() == b"held\n"
        process.send_signal(ended_by)
        _, err = process.communicate(timeout=LIMIT)
        assert process.returncode == (130 if ended_by == signal.SIGINT else -ended_by), err
        for folder in root.glob("*"):
            for name, kind in (("graph", cocite.Graph.open), ("index", cocite.open)):
                if (folder / name).exists():
                    kind(folder / name)
            assert process.returncode != 130 or (folder / "graph").exists()
    done = run(*command[3:])
    assert done.returncode == 0, done.stderr
    assert done.stdout == whole
    folder = entry()
    assert sorted(path.name for path in folder.iterdir()) == ["entry.json", "graph", "index"]
    assert len(links(cocite.Graph.open(folder / "graph"))) > 10_000


def test_an_index_of_a_graph_need_not_be_cached(here: Path, shell: Shell) -> None:
    shell("ingest links.tsv -o g")
    reply = shell("related g x --no-cache")
    assert f"g: built an index for this command{BY}" in reply.err


def test_exclusion_has_a_cache_entry_of_its_own(here: Path, shell: Shell) -> None:
    def asked(*more: str) -> tuple[set[str], str]:
        out, err = shell(["related", "links.tsv", "x", "--format", "json", *more])
        return {hit["node"] for hit in json.loads(out)["hits"]}, err

    without = ["--exclude-nodes", "out"]
    plain, _ = asked()
    (here / "out").write_text("a\nb\n")
    found, err = asked(*without)
    assert found == {"c"}
    assert "excluded 2 pages with 4 links\n" in err
    (here / "out").write_text("b\n\na\n")
    found, err = asked(*without)
    assert found == {"c"}
    assert err.startswith("links.tsv: unchanged, so the cached index is used")
    (here / "out").write_text("c\n")
    assert asked(*without)[0] == {"a", "b", "y", "z"}
    found, err = asked()
    assert found == plain == {"a", "b", "c", "y", "z"}
    assert err.startswith("links.tsv: unchanged, so the cached index is used")
    assert main(["related-all", "links.tsv", "-o", "all.csv", *without]) == 0
    assert "c" not in {line.split(",")[0] for line in (here / "all.csv").read_text().splitlines()}


def test_what_is_left_out_is_not_asked_for(here: Path, shell: Shell) -> None:
    (here / "out").write_text("x\n")
    out = ["--exclude-nodes", "out"]
    for verb in (["related", "links.tsv", "x"], ["why", "links.tsv", "x", "y"]):
        assert "'x' is a query node, but out" in shell([*verb, *out], 2).err
    assert main(["ingest", "links.tsv", "-o", "g"]) == 0
    assert "cocite ingest g -o DIR --exclude-nodes out" in shell(["related", "g", "y", *out], 2).err


def test_reading_options_are_those_of_ingest(here: Path, shell: Shell) -> None:
    """Three commands were needed for ``--links main``; ingest's other options were refused."""
    (here / "t.csv").write_text("id,who,what,weight\n1,a,x,5\n2,b,x,1\n3,b,y,2\n")
    asked = ["related", "t.csv", "x", "--columns", "who,what", "--weight-column", "weight"]
    assert shell([*asked, "--undirected", "--format", "json"]).out
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
def test_a_database_is_named_as_links(here: Path, shell: Shell, name: str) -> None:
    """It advised fsspec and Ray."""
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
