"""Try the wheel and the source distribution without Numba and without a compiler.

    python -m tests.wheel FOLDER

Each is installed in an environment of its own. Commands run with a PATH of this environment alone,
so that no compiler is found; the source distribution is built with the usual PATH.
"""

import json
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

from tests.clock import wait_for

ROOT = Path(__file__).parents[1]
LINKS = ROOT / "examples/animals.tsv"
NETWORKX = """
import networkx as nx
graph = nx.karate_club_graph().to_directed()
for node, _, weight in list(graph.edges(data="weight")):
    graph[node][_].pop("weight")
score = nx.simrank_similarity(graph, 0, 33, backend="cocite")
expected = nx.simrank_similarity(graph, 0, 33)
assert abs(score - expected) < 1e-4, (score, expected)
print(score)
"""


def main(folder: Path) -> None:
    """Try all distributions of a folder."""
    archives = sorted([*folder.glob("*.whl"), *folder.glob("*.tar.gz")], reverse=True)
    if len(archives) != 2:
        raise SystemExit(f"{folder} holds {len(archives)} distributions; make wheels builds two")
    for distribution in archives:
        with tempfile.TemporaryDirectory(prefix="cocite-wheel-") as scratch:
            try_distribution(distribution, Path(scratch))


def try_distribution(distribution: Path, scratch: Path) -> None:
    """Install one with extras, and run what a user would."""
    environment = scratch / "venv"
    subprocess.run([sys.executable, "-m", "venv", environment], check=True)
    python = environment / "bin/python"
    begin = time.perf_counter()
    subprocess.run(
        [python, "-m", "pip", "install", "-q", f"{distribution}[serve,networkx]"], check=True
    )
    print(f"{distribution.name}: installed in {time.perf_counter() - begin:.0f} s")
    env = {"PATH": str(environment / "bin"), "HOME": str(scratch)}

    def run(*command: str) -> str:
        done = subprocess.run(
            command, check=False, env=env, cwd=scratch, capture_output=True, text=True
        )
        if done.returncode:
            raise SystemExit(f"{' '.join(command)} failed:\n{done.stderr}")
        return done.stdout

    absent = subprocess.run(
        [python, "-c", "import numba"], check=False, env=env, capture_output=True
    )
    if absent.returncode == 0:
        raise SystemExit("Numba is installed: the trial proves nothing")
    begin = time.perf_counter()
    first = json.loads(run("cocite", "related", str(LINKS), "Zebra", "--format", "json"))
    print(f"  first answer in {time.perf_counter() - begin:.2f} s: {first['hits'][0]['node']}")
    run("cocite", "ingest", str(LINKS), "-o", "g")
    for measure in ("neighborhood", "psimrank", "xjaccard", "pagesim"):
        run("cocite", "index", "g", "-o", f"{measure}.index", "--measure", measure)
        run("cocite", "why", f"{measure}.index", "Zebra", "Lion")
    run("cocite", "rank", "g", "-k", "5")
    run("cocite", "all-pairs", "g", "-o", "scores.csv")
    print("  NetworkX:", run(str(python), "-c", NETWORKX).strip())
    try_server(scratch, env)
    built = environment.glob("lib/*/site-packages/cocite/kernels/*.so")
    size = sum(path.stat().st_size for path in built)
    print(f"  {size:,} bytes of compiled kernels")


def free_port() -> int:
    """Return a free port."""
    with socket.create_server(("127.0.0.1", 0)) as found:
        return int(found.getsockname()[1])


def answers(address: str) -> bool:
    """Return whether a server is ready."""
    try:
        urllib.request.urlopen(f"{address}/readyz", timeout=5).close()
    except OSError:
        return False
    return True


def try_server(scratch: Path, env: dict[str, str]) -> None:
    """Start a server and send it one request."""
    port = free_port()
    command = ["cocite", "serve", "psimrank.index", "--port", str(port)]
    with subprocess.Popen(command, cwd=scratch, env=env) as server:
        address = f"http://127.0.0.1:{port}"
        wait_for(lambda: answers(address))
        with urllib.request.urlopen(f"{address}/v1/related?node=Zebra&k=3", timeout=30) as answer:
            print("  serve:", [hit["node"] for hit in json.load(answer)["hits"]])
        server.terminate()


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "build/dist")
