"""A mark that skips tests if NetworkX is older than the backend supports."""

import networkx as nx
import pytest

from cocite.integrations.networkx.reading import OLDEST

pytestmark = pytest.mark.skipif(
    tuple(map(int, nx.__version__.split(".")[:2])) < OLDEST,
    reason=f"the backend supports NetworkX 3.6 and later; this is {nx.__version__}",
)
