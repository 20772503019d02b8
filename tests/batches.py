"""What a batch has answered, as rows.

Of JSON lines: to write a table and read it again takes DuckDB 50 ms, however small it is. That
tables say the same is tested where outputs are (``search/test_batch.py``).
"""

import json
from pathlib import Path
from typing import Any

from cocite import Index


def all_rows(index: Index, output: Path, k: int, **options: Any) -> list[tuple[Any, ...]]:
    """Rows of node, rank, related node, score, standard error, and the ends of an interval where
    there are some; ``output`` is made.
    """
    index.related_all(output, k, kind="jsonl", **options)
    with output.open(encoding="utf-8") as lines:
        pages = [json.loads(line) for line in lines]
    return [
        (page["node"], rank, *hit.values())
        for page in pages
        for rank, hit in enumerate(page["hits"], 1)
    ]
