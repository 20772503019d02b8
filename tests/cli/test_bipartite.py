"""Bipartite tables on the command line: every command that takes links accepts them."""

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
from cocite.errors import UsageError
from cocite.search import open_index
from cocite.search.cache import cached_stores
from tests.cli.test_completion import completions
from tests.conftest import CliJson, Shell

TABLE = [("ann", "dune"), ("ann", "emma"), ("bob", "dune"), ("bob", "emma"), ("cy", "emma")]


@pytest.fixture
def workdir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    rows = [*TABLE, ("cy", "omoo"), ("di", "omoo"), ("di", "dune")]
    pd.DataFrame(rows, columns=["user", "item"])[["item", "user"]].to_csv("t.csv", index=False)
    return tmp_path


def test_bipartite_commands_accept_table(workdir: Path, shell: Shell, cli_json: CliJson) -> None:
    assert cli_json("info", "t.csv", "--bipartite")["sides"]["left"] == 4
    cli_json("index", "t.csv", "--bipartite", "-o", "t.index")
    hits = cli_json("related", "t.index", "dune")["hits"]
    assert {hit["node"] for hit in hits} == {"emma", "omoo"}
    assert cli_json("plan", "t.csv", "--bipartite")["graph"].endswith("/graph")
    assert cli_json("verify", "t.csv")["stores"]
    for verb in ("index -o no.index", "info", "plan", "tune", "all-pairs -o x.csv"):
        reply = shell(f"{verb} t.index --bipartite", 2)
        assert re.search("(?i)omit (--bipartite|it)", reply.err)
    assert "omit one" in shell("info --cache --bipartite", 2).err


def test_completion_offers_names_of_side(workdir: Path) -> None:
    assert main(["related", "t.csv", "dune", "--bipartite"]) == 0
    assert completions("cocite related t.csv --bipartite em") == ["plain,emma"]
    assert completions("cocite related t.csv --bipartite an") == []
    assert completions("cocite related t.csv --bipartite --side user an") == ["plain,ann"]
    _, index = cached_stores("t.csv", bipartite=True)
    assert completions(f"cocite related {index} --side user b") == ["plain,bob"]
    # Bash splits words at colons.
    assert completions(f"cocite related {index} user:b") == ["plain,bob"]
    assert completions(f"cocite related {index} --side nobody b") == []


def test_sides_match_column_titles(workdir: Path, shell: Shell) -> None:
    expected = cocite.ingest(TABLE, bipartite=True).digest
    frames = {
        "user,item": ("item", "user"),
        "reader,book": ("book", "reader"),
        "Shopper,sku": ("SKU_ID", "shopper"),
        "shopper,sku": ("n", "sku", "x", "shopper"),
    }
    names = "s.csv", "s.parquet", "s.jsonl", "s.csv"
    for name, (sides, titles) in zip(names, frames.items(), strict=True):
        frame = pd.DataFrame({title: range(len(TABLE)) for title in titles})
        left, right = (t for side in sides.split(",") for t in titles if side.lower() in t.lower())
        frame[[left, right]] = TABLE
        frame.to_csv("s.csv", index=False)
        frame.to_parquet("s.parquet")
        frame.to_json("s.jsonl", orient="records", lines=True)
        sources: list[Any] = [name, frame]
        for links in sources:
            graph = cocite.ingest(links, bipartite=True, sides=sides)
            assert graph.sides is not None
            assert list(graph.names)[graph.sides.left :] == ["dune", "emma"]
        frame.columns = pd.Index([t.replace(left, "user").replace(right, "item") for t in titles])
        assert cocite.ingest(frame, bipartite=True).digest == expected
    stderr = shell(["ingest", "s.csv", "--bipartite", "--sides", "shopper,sku", "-o", "g"]).err
    assert "sides: 3 shopper, such as 'shopper:ann'; 2 sku, such as 'dune' (if they are" in stderr
    (workdir / "two.csv").write_text("sku,shopper\ndune,ann\nshopper,bob\n")
    # "shopper" is a node, too.
    graph = cocite.ingest("two.csv", bipartite=True, sides="shopper,sku")
    left_names = ["shopper:dune", "shopper:shopper", "shopper:sku"]
    assert list(graph.names) == [*left_names, "ann", "bob", "shopper"]


def _table(seed: int) -> list[tuple[int, int]]:
    """Two groups of users, who like the items of their group."""
    rng = np.random.default_rng(seed)
    users = rng.integers(0, 40, 450)
    items = 10 * (users % 2) + rng.integers(0, 10, 450)
    return sorted(set(zip(users.tolist(), items.tolist(), strict=True)))


@pytest.mark.long
def test_tune_judges_one_side(tmp_path: Path) -> None:
    graph = cocite.ingest(_table(1), tmp_path / "g", bipartite=True)
    options: dict[str, Any] = {"measures": ["cocitation", "coupling"], "seed": 3, "queries": 0}
    options["fraction"] = 0.5
    items, users = cocite.tune(graph, **options), cocite.tune(graph, side="user", **options)
    assert items.chosen_by + items.judged_by <= 20
    assert 20 < users.chosen_by + users.judged_by <= 40
    by_in, by_out = (
        {("cocitation", one), ("coupling", other)} for one, other in (("in", "out"), ("out", "in"))
    )
    assert (items.best.measure, items.best.direction) in by_in  # common buyers
    assert (users.best.measure, users.best.direction) in by_out
    with pytest.raises(
        UsageError, match="but in a bipartite graph, hidden links lead to the other side"
    ):
        cocite.tune(graph, figure="links@10")
    with pytest.raises(UsageError, match="side is 'book'; it must be user or item"):
        cocite.tune(graph, side="book")
    with pytest.raises(UsageError, match="is not bipartite: omit --side"):
        cocite.tune(cocite.ingest(_table(1), tmp_path / "plain"), side="user")
    labels = tmp_path / "labels.tsv"
    labels.write_text("".join(f"user:{i}\tg{i % 2}\n" for i in range(40)))
    with pytest.raises(UsageError, match="labels nodes on the user side: select that side"):
        cocite.tune(graph, labels=labels, **options)
    assert cocite.tune(graph, labels=labels, side="user", **options).best.figure.value > 0.9


def test_evaluate_judges_one_side(tmp_path: Path) -> None:
    from cocite.evaluation import evaluate

    graph = cocite.ingest(_table(2), tmp_path / "g", bipartite=True)
    index = cocite.build(graph, tmp_path / "i")
    labels = tmp_path / "labels.tsv"
    labels.write_text("".join(f"{i}\tg{i // 10}\n" for i in range(20)))
    found: Any = evaluate(index.stored.store.path, labels=labels)
    assert found.study.methods[0].figures["precision@5"].value > 0.95  # groups of ten items
    with labels.open("a") as file:
        file.write("user:1\tg1\n")
    with pytest.raises(UsageError, match="has nodes of both sides, such as 'user:1' and '0'"):
        evaluate(index.stored.store.path, labels=labels)


# -- docs/bipartite.md -----------------------------------------------------------------


PAGE = Path(__file__).parents[2] / "docs" / "bipartite.md"
GENRES = ("sf", "classic", "cooking")
PER_GENRE = 6


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Customers who mostly buy products of their genre, and one who buys one of each."""
    rng = np.random.default_rng(1)
    rows: list[tuple[Any, ...]] = []
    for customer in range(1000, 1120):
        genre = customer % len(GENRES)
        for _ in range(int(rng.integers(4, 9))):
            stays = rng.random() < 0.85
            product = (
                PER_GENRE * genre + rng.integers(PER_GENRE)
                if stays
                else rng.integers(3 * PER_GENRE)
            )
            event = "purchase" if rng.random() < 0.7 else "view"
            rows.append((int(rng.integers(10**9)), customer, 100 + int(product), event))
    rows += [(0, 1, 100 + product, "purchase") for product in range(3 * PER_GENRE)]
    titles = ["at", "customer_id", "product_id", "event"]
    pd.DataFrame(rows, columns=titles).to_parquet(tmp_path / "clicks.parquet")
    products = [(100 + i, f"Title {i}", GENRES[i // PER_GENRE]) for i in range(3 * PER_GENRE)]
    table = pd.DataFrame(products, columns=["product_id", "title", "genre"])
    table.to_parquet(tmp_path / "products.parquet")
    (tmp_path / "staff.txt").write_text("customer:1\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def commands() -> list[str]:
    blocks = re.findall(r"^```\n(.*?)^```", PAGE.read_text(), re.M | re.S)
    return [line for block in blocks for line in block.splitlines() if line.startswith("cocite ")]


@pytest.mark.long
def test_bipartite_docs_commands_run(shop: Path, shell: Shell) -> None:
    outputs: dict[str, str] = {}
    lines = commands()
    assert len(lines) > 15
    for line in lines:
        _, *words = shlex.split(line)
        if words[0] == "serve":
            continue
        outputs[line] = "".join(shell(words))
    assert "customer:1 " not in outputs["cocite related shop.index 1001 --side customer"]
    assert "most links         18 (customer:1)" in outputs["cocite info shop.graph"]
    for path in ("shop.index", "tuned.index"):
        hits = open_index(path).related("100", 3)
        assert {str(hit.node) for hit in hits} <= {str(100 + i) for i in range(PER_GENRE)}
        assert str(hits[0].title).startswith("Title ")
    evaluation = next(text for line, text in outputs.items() if line.startswith("cocite evaluate"))
    assert "precision" in evaluation
    pairs = pd.read_csv("pairs.csv", dtype=str)
    assert not pairs["node"].str.startswith("customer").any()
    customers = pd.read_parquet("customers.parquet")
    assert customers["related"].str.startswith("customer:").all()
    why = outputs["cocite why shop.index 100 101"]
    assert re.search(r"100 ← customer:1\d\d\d → 101", why)


def test_bipartite_docs_server_claims_hold(shop: Path) -> None:
    graph = cocite.ingest("clicks.parquet", bipartite=True, sides="customer,product")
    assert json.loads(json.dumps(graph.store.facts["sides"]))["mark"] == "customer:"
    found = cocite.related(pd.read_parquet("clicks.parquet"), 100, bipartite=True)
    assert {hit.node for hit in found} <= set(range(100, 100 + 3 * PER_GENRE))
