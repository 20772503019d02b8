"""docs/networkx.md is true: it names the functions that there are, and its examples run."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from cocite.integrations.networkx import info, reading
from tests.integrations.networkx.oldest import pytestmark
from tests.integrations.networkx.test_dispatch import ROOT, ran

PAGE = (ROOT / "docs" / "networkx.md").read_text("utf-8")
__all__ = ["pytestmark"]


def test_the_table_names_all_functions() -> None:
    table = PAGE.partition("## What runs")[2].partition("\n\n")[2].partition("\n\n")[0]
    first = "".join(line.split("|")[1] for line in table.splitlines())
    assert set(re.findall(r"`(\w+)`", first)) == set(info.FUNCTIONS)


def test_limits_are_those_that_it_tells() -> None:
    told = f"less than {reading._SMALL:,} links (of less than {reading._SMALL_NODES} nodes"
    assert told in PAGE
    assert f"NetworkX before {reading.OLDEST[0]}.{reading.OLDEST[1]}." in PAGE


@pytest.mark.process
def test_the_examples_run(tmp_path: Path) -> None:
    examples = re.findall(r"```python\n(.*?)```", PAGE, re.S)
    assert len(examples) == 2
    for number, code in enumerate(examples):
        told = "\nimport json; print(json.dumps([len(ranks), sum(ranks.values())]))"
        count, whole = ran(tmp_path / str(number), code + told)
        assert count in (200, 300)
        assert abs(whole - 1) < 1e-9
