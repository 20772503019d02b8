"""Where steps lead in the end: redirects to redirects, copies of copies; in DuckDB, out of core.

    a -> b, b -> c        a -> c, b -> c        what is in a circle, or leads into one, has no end

Every step is replaced by two at a time, so that chains of any length take log2 of it many joins.
An end that is not reached in a round that reached none never is: ends at twice the distance come
round by round.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import duckdb

__all__ = ["follow"]


def follow(database: duckdb.DuckDBPyConnection, table: str) -> int:
    """Replace the steps of ``table`` (a, b; each a once) by where they lead in the end; returns how
    many lead nowhere, as they go in circles. Those are dropped.
    """

    def count(where: str) -> int:
        row = database.execute(f"SELECT count(*) FROM {table} WHERE {where}").fetchone()
        return int(row[0]) if row else 0

    every, before = count("true"), -1
    while True:
        database.execute(
            f"CREATE TABLE {table}_on AS SELECT s.a, coalesce(t.b, s.b) AS b, t.a IS NULL AS ended "
            f"FROM {table} s LEFT JOIN {table} t ON t.a = s.b"
        )
        database.execute(f"DROP TABLE {table}")
        database.execute(f"ALTER TABLE {table}_on RENAME TO {table.rpartition('.')[2]}")
        ended = count("ended")
        if ended in (every, before):
            break
        before = ended
    database.execute(f"DELETE FROM {table} WHERE NOT ended")
    return every - ended
