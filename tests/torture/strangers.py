"""Untrusted files: databases whose views try to read other files, and file names that look like
patterns.

Views read a file in every known way, and cocite reads the database in each of its own ways; a
secret word of that file must not come out. Other databases are damaged: bytes of a sound one
change, or its end is missing. File names contain characters that are special to shells, DuckDB or
URLs; only the named file is read, not its neighbors, which a pattern would match.

Each case runs in a separate process (``children.py``).
"""

import json
import os
import random
import shutil
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import duckdb

import cocite
from cocite.errors import CociteError
from tests.io.plain import links
from tests.torture.children import Step, judge
from tests.torture.results import Given, Row

_SECRET = "wordthatstaysinside"
_MEMORY = "400MB"
_ROOM = 2 << 30
"""Address space for a case: DuckDB reserves more than it uses."""
_DAMAGED, _NAMED = 1000, 1000
_ROWS = [("a", "b"), ("b", "c"), ("c", "a")]

# -- databases -------------------------------------------------------------------------------

_READS = [
    "SELECT content AS a, filename AS b FROM read_text('{file}')",
    "SELECT content::VARCHAR AS a, 'x' AS b FROM read_blob('{file}')",
    "SELECT * FROM read_csv('{file}', names = ['a', 'b'], header = false, delim = '\t')",
    "SELECT a, b FROM read_csv('{folder}/secret*', names = ['a', 'b'], header = false)",
    "SELECT a, b FROM '{folder}/secret.parquet'",
    "SELECT a, b FROM read_parquet(['{folder}/secret.parquet'])",
    "SELECT file AS a, 'x' AS b FROM glob('{folder}/*')",
    "SELECT a, b FROM read_parquet('{folder}/../**/secret.parquet')",
    "SELECT name AS a, value AS b FROM duckdb_settings() WHERE value LIKE '%{word}%'",
    "SELECT path_in_schema AS a, stats_min AS b FROM parquet_metadata('{folder}/secret.parquet')",
    "SELECT a, b FROM read_csv('/proc/self/environ', names = ['a'], header = false), (SELECT 1 b)",
    "SELECT secret_string AS a, name AS b FROM duckdb_secrets()",
]
_WRAPS = [
    "{view}",
    "SELECT * FROM ({view})",
    "WITH v AS ({view}) SELECT * FROM v",
    "SELECT a, (SELECT min(b::VARCHAR) FROM ({view})) AS b FROM sound",
    "SELECT * FROM sound UNION ALL SELECT a::VARCHAR, b::VARCHAR FROM ({view})",
    "SELECT s.* FROM sound s WHERE EXISTS (FROM ({view}))",
]
_LITE = [
    "SELECT load_extension('{file}') AS a, 'x' AS b",
    "SELECT name AS a, path AS b FROM dbstat",
    "SELECT CAST(readfile('{file}') AS TEXT) AS a, 'x' AS b",
    "SELECT writefile('{folder}/new', 'x') AS a, 'x' AS b",
    "SELECT file AS a, name AS b FROM pragma_database_list",
    "SELECT edit('{file}') AS a, 'x' AS b",
]
_Ask = Callable[[Path, Path], cocite.Graph]
_METHODS: dict[str, _Ask] = {
    "--table": lambda base, out: _ingest(out, database=str(base), table="v"),
    "--sql": lambda base, out: _ingest(out, database=str(base), sql="select a, b from v"),
    "--titles": lambda base, out: _ingest(out, inputs=_ROWS, titles=f"{base}#v"),
    "--titles of a file": lambda base, out: _ingest(
        out, inputs=base.parent / "links.tsv", titles=f"{base}#v"
    ),
    "another table": lambda base, out: _ingest(out, database=str(base), table="sound"),
}


def _ingest(out: Path, **options: object) -> cocite.Graph:
    return cocite.ingest(output=out, memory=_MEMORY, threads=1, overwrite=True, **options)


def open_databases(given: Given) -> dict[str, Row]:
    """Open untrusted databases with such views, then damaged ones."""
    home = given.folder / "strangers"
    home.mkdir()
    folder = home / _SECRET
    folder.mkdir()
    (folder / "secret.txt").write_text(f"{_SECRET}\t{_SECRET}\n")
    rows = f"SELECT '{_SECRET}' AS a, 'x' AS b"
    with duckdb.connect() as connection:
        connection.execute(f"COPY ({rows}) TO '{folder}/secret.parquet' (FORMAT parquet)")
    _warm(home)
    chance = random.Random(given.seed)
    views = list(_views(home, folder))
    cases = {
        "views": iter(chance.sample(views, given.count(len(views)))),
        "damaged files": (_damaged(chance) for _ in range(given.count(_DAMAGED))),
    }

    def run_cases(kind: str, row: Row) -> Iterator[None]:
        for name, make in cases[kind]:
            _case(name, make, row, home)
            yield

    results = given.in_turns(cases, run_cases)
    shutil.rmtree(home)
    return results


def _warm(home: Path) -> None:
    """Compile and load the code that the cases use."""
    (home / "links.tsv").write_text("".join(f"{a}\t{b}\n" for a, b in _ROWS))
    _ingest(home / "warm", inputs=home / "links.tsv", titles=home / "links.tsv")
    shutil.rmtree(home / "warm")


def _views(home: Path, folder: Path) -> Iterator[tuple[str, Callable[[Path], None]]]:
    named = {"file": folder / "secret.txt", "folder": folder, "word": _SECRET}
    yield "duckdb: sound", partial(_make_database, duckdb.connect)
    yield "sqlite: sound", partial(_make_database, sqlite3.connect)
    for read in _READS:
        for wrap in _WRAPS:
            view = wrap.format(view=read.format(**named))
            yield f"duckdb: {view}", partial(_make_database, duckdb.connect, view=view)
    for read in _LITE:
        view = read.format(**named)
        yield f"sqlite: {view}", partial(_make_database, sqlite3.connect, view=view)


def _make_database(
    connect: Callable[[str], Any], base: Path, view: str = "SELECT * FROM sound"
) -> None:
    """Make a database with a sound table and a view; if that fails there is no case."""
    with closing(connect(str(base))) as connection:
        connection.execute("CREATE TABLE sound (a VARCHAR, b VARCHAR)")
        connection.executemany("INSERT INTO sound VALUES (?, ?)", _ROWS)
        connection.execute(f"CREATE VIEW v AS {view}")
        connection.commit()


def _damaged(chance: random.Random) -> tuple[str, Callable[[Path], None]]:
    kind = chance.choice(("duckdb", "sqlite"))
    seed, truncate = chance.getrandbits(32), chance.random() < 0.2

    def make(base: Path) -> None:
        _make_database(duckdb.connect if kind == "duckdb" else sqlite3.connect, base)
        content, rng = bytearray(base.read_bytes()), random.Random(seed)
        if truncate:
            del content[rng.randrange(len(content)) :]
        for _ in range(0 if truncate else rng.randint(1, 8)):
            content[rng.randrange(len(content))] = rng.choice((0, 255, rng.randrange(256)))
        base.write_bytes(content)

    return f"{kind}, {'cut' if truncate else 'changed'}, seed {seed}", make


def _case(name: str, make: Callable[[Path], None], row: Row, home: Path) -> None:
    base, out = home / "x.db", home / "out"
    try:
        make(base)
    except (duckdb.Error, sqlite3.Error):
        base.unlink(missing_ok=True)
        return
    before = _snapshot(home)
    steps: list[Step] = [
        (method, partial(_check, ask, base, out)) for method, ask in _METHODS.items()
    ]

    def check(counts: Counter[str]) -> str:
        if (after := _snapshot(home)) != before:
            return f"files were added or changed: {sorted(after ^ before)}"
        refused = name.endswith(": sound") and counts["answer"] != len(steps)
        return "a sound database is refused" if refused else ""

    judge(name, steps, row, _ROOM, check)
    for path in (base, base.with_suffix(".db.wal")):
        path.unlink(missing_ok=True)
    shutil.rmtree(out, ignore_errors=True)


def _snapshot(home: Path) -> set[tuple[str, bytes]]:
    return {
        (str(path), path.read_bytes() if path.is_file() else b"")
        for path in home.rglob("*")
        if not path.is_relative_to(home / "out")
    }


def _check(ask: _Ask, base: Path, out: Path) -> None:
    """Query, and check that the secret is in no name, title or message."""
    try:
        graph = ask(base, out)
    except CociteError as error:
        message = str(error).replace(f"/{_SECRET}/", "/")  # the query itself has the folder
        assert _is_clean(message), message
        raise
    titles = graph.titles
    names = [*graph.names, *(titles[node] or "" for node in range(graph.nodes) if titles)]
    assert all(_is_clean(name.replace(f"/{_SECRET}", "")) for name in names), names
    shutil.rmtree(out)


def _is_clean(text: str) -> bool:
    return _SECRET not in text and "PATH=" not in text


# -- names of files --------------------------------------------------------------------------

_CHARS = ["*", "?", "[", "]", "!", "-", "{", "}", ",", "~", "%41", "\\", "'", '"', "#", ";", " "]
_CHARS += ["a", "b", "ä", "=", ":", "$x", "`", "&", "(", ")", "..", "@", "+", "\u2028", "^", "|"]
_KINDS = ["parquet", "csv", "jsonl", "sqlite", "duckdb"]


def name_files(given: Given) -> dict[str, Row]:
    """Read files with random names, each beside others that match it as a pattern."""
    home = given.folder / "names"
    home.mkdir()
    _warm(home)
    chance, rows = random.Random(given.seed), {kind: Row() for kind in _KINDS}
    for number in given.cases(_NAMED, *rows.values()):
        kind = _KINDS[number % len(_KINDS)]
        _name_case(chance, kind, rows[kind], home / "case")
        shutil.rmtree(home / "case")
    shutil.rmtree(home)
    return rows


def _name(chance: random.Random) -> str:
    text = "".join(chance.choice(_CHARS) for _ in range(chance.randint(1, 5)))
    return text if text.strip(".") else "x"


def _name_case(chance: random.Random, kind: str, row: Row, home: Path) -> None:
    """A file in a folder, both with random names, among others; each holds its own name."""
    folder, name = home / _name(chance), _name(chance)
    others = {name.translate({ord(s): c for s in "*?[]{}!~\\"}) for c in ("", "a", "b", "aa")}
    names = [name, *sorted((others | {"a", "b"}) - {name, "", ".", ".."})]
    for place in {folder, home / "a"}:
        place.mkdir(parents=True, exist_ok=True)
        for each in names:
            _write(place / f"{each}.{kind}", kind, home / "plain")
    path = folder / f"{name}.{kind}"
    steps = [*_readings(path, folder, kind)]
    judge(f"{kind}: {str(path.relative_to(home))!r}", steps, row, _ROOM)


def _write(path: Path, kind: str, plain: Path) -> None:
    name, title = str(path.name), "t"
    if kind == "csv":
        quoted = name.replace('"', '""')
        path.write_text(f'source,target\n"{quoted}","{title}"\n', "utf-8")
    elif kind == "jsonl":
        path.write_text(json.dumps({"source": name, "target": title}) + "\n", "utf-8")
    elif kind == "sqlite":
        with closing(sqlite3.connect(path)) as database:
            database.execute("CREATE TABLE links (source, target)")
            database.execute("INSERT INTO links VALUES (?, ?)", (name, title))
            database.commit()
    else:
        # DuckDB writes to a plain name; the file is renamed afterwards.
        with duckdb.connect(str(plain) if kind == "duckdb" else ":memory:") as connection:
            connection.execute("CREATE TABLE links (source VARCHAR, target VARCHAR)")
            connection.execute("INSERT INTO links VALUES (?, ?)", (name, title))
            if kind == "parquet":
                connection.execute(f"COPY links TO '{_text(plain)}' (FORMAT parquet)")
        plain.rename(path)


def _text(path: Path) -> str:
    return str(path).replace("'", "''")


def _readings(path: Path, folder: Path, kind: str) -> Iterator[Step]:
    """Ways to read a file by its name; the graph must hold only its row."""
    out, expected = folder / "out", [(path.name.strip(" "), "t")]

    def check(**options: object) -> None:
        actual = links(_ingest(out, **options))
        assert actual == expected, f"{actual} is not {expected}"

    if kind in ("sqlite", "duckdb"):
        yield "--database", lambda: check(database=str(path))
        yield "an address", lambda: check(database=f"{kind}:///{path}#links")
        return
    yield "a file", lambda: check(inputs=path)
    yield "twice", lambda: check(inputs=[path, path])
    if kind == "parquet":
        yield "with titles and nodes", lambda: check(inputs=path, titles=path)
    yield "by its name alone", lambda: _within(folder, lambda: check(inputs=path.name))


def _within(folder: Path, step: Callable[[], None]) -> None:
    os.chdir(folder)
    step()
