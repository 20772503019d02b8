"""Clusters for tests: several real Ray nodes on this machine, one cluster per file."""

import importlib.util
import os
from collections.abc import Iterator

import pytest

from cocite.cluster.ray import Cluster

HERE = os.path.dirname(__file__)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark all tests of this folder, and skip them without Ray or with xdist."""
    missing = next(
        (name for name in ("ray", "fsspec") if importlib.util.find_spec(name) is None), None
    )
    for item in items:
        if not str(item.path).startswith(HERE):
            continue
        item.add_marker(pytest.mark.cluster)
        if missing is not None:
            item.add_marker(pytest.mark.skip(reason=f"needs {missing} (the extra cluster)"))
        elif "PYTEST_XDIST_WORKER" in os.environ:
            reason = "runs several Ray nodes, one test at a time (make test-cluster)"
            item.add_marker(pytest.mark.skip(reason=reason))


@pytest.fixture(scope="session", autouse=True)
def fast_health_checks() -> Iterator[None]:
    """Ray detects a killed node after five unanswered calls, three seconds apart; here 0.3 seconds.

    A busy node still has ten seconds for each.
    """
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("RAY_health_check_period_ms", "300")
        patched.setenv("RAY_health_check_initial_delay_ms", "1000")
        yield


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    """Three nodes, for tests of a file that do not kill them."""
    with Cluster.connect("local:3") as found:
        yield found
