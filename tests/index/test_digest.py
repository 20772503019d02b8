"""One index, whatever the threads, blocks, memory and interruptions of its build.

``test_byte_equality.py`` compares each of them with one build. Here they are combined, and the
bytes must equal those of the release that recorded the digest, on any machine.
"""

from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cocite import Graph
from cocite.index.build import IndexBuild
from cocite.index.plan import BuildOptions
from cocite.resources import Resources
from tests.builds import files, stop_at
from tests.conftest import MakeGraph

DIGEST = "341d62d68426d960040df74dca556100"
SAMPLES, SHARD = 9, 4
FORMS: dict[str, dict[str, Any]] = {
    "memory": {},
    "blocks": {"blocks": 3},
    "external": {"blocks": 4, "external": True},
}
MEMORY = {"little": "60MB", "ample": "1GB"}


@pytest.fixture
def graph(make_graph: MakeGraph) -> Graph:
    rng = np.random.default_rng(11)
    near = rng.integers(0, 400, (2400, 1)) // 20 * 20 + rng.integers(0, 25, (2400, 2))
    return make_graph([(f"p{a:03}", f"p{b:03}") for a, b in near])


def index_build(graph: Graph, output: Path, resources: Resources) -> IndexBuild:
    options = BuildOptions.checked("psimrank", "both", None, {"samples": SAMPLES, "length": 7})
    return IndexBuild(graph, output, options, resources)


def digest(index: Path) -> str:
    """Return the digest of all files but the manifest, which contains the graph's path."""
    hasher = blake2b(digest_size=16)
    for name, content in sorted(files(index).items()):
        if name != "manifest.json":
            hasher.update(name.encode() + b"\0" + content)
    return hasher.hexdigest()


def interrupt_build(graph: Graph, output: Path, resources: Resources) -> None:
    """Interrupt a build after its first shard."""
    with pytest.raises(KeyboardInterrupt), index_build(graph, output, resources) as build:
        build.run(stop_at(SHARD + 1))
    assert not output.exists()
    assert output.with_name(f"{output.name}.building").exists()


WAYS = [
    (1, "memory", "little", False),
    (2, "memory", "ample", True),
    (1, "blocks", "ample", False),
    (2, "blocks", "little", True),
    (1, "external", "little", True),
    (2, "external", "ample", False),
]
"""Every two values of these occur together in some build."""


@pytest.mark.parametrize(("threads", "form", "memory", "interrupted"), WAYS)
def test_index_build_resources_give_known_digest(
    graph: Graph, tmp_path: Path, threads: int, form: str, memory: str, interrupted: bool
) -> None:
    resources = Resources.checked(threads, MEMORY[memory], SHARD, **FORMS[form])
    if interrupted:
        other = Resources.checked(3 - threads, "1GB", SHARD)
        interrupt_build(graph, tmp_path / "x", other)
    with index_build(graph, tmp_path / "x", resources) as build:
        build.run()
    assert digest(tmp_path / "x") == DIGEST
