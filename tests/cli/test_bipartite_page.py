"""docs/bipartite.md is true: its commands run, one after another, and their answers make sense."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import cocite
from cocite.cli.main import main
from cocite.search import open_index

PAGE = Path(__file__).parents[2] / "docs" / "bipartite.md"
GENRES = ("sf", "classic", "cooking")
EACH = 6


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Customers who mostly buy products of their genre, and one that buys one of each."""
    rng = np.random.default_rng(1)
    rows: list[tuple[Any, ...]] = []
    for customer in range(1000, 1120):
        genre = customer % len(GENRES)
        for _ in range(int(rng.integers(4, 9))):
            stays = rng.random() < 0.85
            product = EACH * genre + rng.integers(EACH) if stays else rng.integers(3 * EACH)
            event = "purchase" if rng.random() < 0.7 else "view"
            rows.append((int(rng.integers(10**9)), customer, 100 + int(product), event))
    rows += [(0, 1, 100 + product, "purchase") for product in range(3 * EACH)]
    titles = ["at", "customer_id", "product_id", "event"]
    pd.DataFrame(rows, columns=titles).to_parquet(tmp_path / "clicks.parquet")
    products = [(100 + i, f"Title {i}", GENRES[i // EACH]) for i in range(3 * EACH)]
    table = pd.DataFrame(products, columns=["product_id", "title", "genre"])
    table.to_parquet(tmp_path / "products.parquet")
    (tmp_path / "staff.txt").write_text("customer:1\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def commands() -> list[str]:
    blocks = re.findall(r"^```\n(.*?)^```", PAGE.read_text(), re.M | re.S)
    return [line for block in blocks for line in block.splitlines() if line.startswith("cocite ")]


def test_its_commands_run_and_answer(shop: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said: dict[str, str] = {}
    typed = commands()
    assert len(typed) > 15
    for line in typed:
        _, *words = shlex.split(line)
        if words[0] == "serve":
            continue
        assert main([*words]) == 0, (line, capsys.readouterr().err)
        said[line] = "".join(capsys.readouterr())
    assert "customer:1 " not in said["cocite related shop.index 1001 --side customer"]
    assert "most links         18 (customer:1)" in said["cocite info shop.graph"]
    for path in ("shop.index", "tuned.index"):
        hits = open_index(path).related("100", 3)
        assert {str(hit.node) for hit in hits} <= {str(100 + i) for i in range(EACH)}
        assert str(hits[0].title).startswith("Title ")
    judged = next(text for line, text in said.items() if line.startswith("cocite evaluate"))
    assert "precision" in judged
    pairs = pd.read_csv("pairs.csv", dtype=str)
    assert not pairs["node"].str.startswith("customer").any()
    everybody = pd.read_parquet("customers.parquet")
    assert everybody["related"].str.startswith("customer:").all()
    why = said["cocite why shop.index 100 101"]
    assert re.search(r"100 ← customer:1\d\d\d → 101", why)


def test_what_it_says_of_the_server_holds(shop: Path, capsys: pytest.CaptureFixture[str]) -> None:
    graph = cocite.ingest("clicks.parquet", bipartite=True, sides="customer,product")
    assert json.loads(json.dumps(graph.store.facts["sides"]))["mark"] == "customer:"
    found = cocite.related(pd.read_parquet("clicks.parquet"), 100, bipartite=True)
    assert {hit.node for hit in found} <= set(range(100, 100 + 3 * EACH))
