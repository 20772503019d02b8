"""The answers of a batch, as rows.

They are read from JSON lines: DuckDB takes 50 ms to write and read even a small table. Tests of
outputs (``search/test_batch.py``) check that tables hold the same.
"""

import json
from pathlib import Path
from typing import Any

from cocite import Index


def all_rows(index: Index, output: Path, k: int, **options: Any) -> list[tuple[Any, ...]]:
    """Rows of node, rank, related node, score, standard error and any ends of an interval; creates
    ``output``.
    """
    index.related_all(output, k, kind="jsonl", **options)
    with output.open(encoding="utf-8") as lines:
        pages = [json.loads(line) for line in lines]
    return [
        (page["node"], rank, *hit.values())
        for page in pages
        for rank, hit in enumerate(page["hits"], 1)
    ]
