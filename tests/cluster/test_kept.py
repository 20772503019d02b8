"""``cocite cluster up | status | down``, as typed; nodes end with who started them."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from tests.clock import wait_for


def cocite(*words: str, ok: bool = True) -> str:
    run = [sys.executable, "-m", "cocite", *words]
    found = subprocess.run(run, capture_output=True, text=True, check=False, timeout=120)
    assert (found.returncode == 0) == ok, found.stderr
    return found.stdout if ok else found.stderr


def test_local_cluster_starts_and_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COCITE_CACHE", str(tmp_path))
    # Ray has never run here: there is no folder of its own.
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    assert "no local cluster is running, so there is nothing to stop" in cocite(
        "cluster", "down", ok=False
    )
    up = json.loads(cocite("cluster", "up", "--local", "2", "--format", "json"))
    note = tmp_path / "cluster.json"
    try:
        assert note.stat().st_mode & 0o077 == 0
        assert "a local cluster is already running" in cocite(
            "cluster", "up", "--local", "2", ok=False
        )
        found = json.loads(cocite("cluster", "status", "--format", "json"))
        assert found["address"] == up["address"]
        assert [node["alive"] for node in found["nodes"]] == [True, True]
        assert found["alive"] == 2
        shown = cocite("cluster", "status", up["address"])
        assert "2 alive of 2" in shown
        process = psutil.Process(json.loads(note.read_text())["process"])
        family = [process, *process.children(recursive=True)]
        strange = {**os.environ, "RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": "0" * 64}
        code = f"import ray; ray.init({up['address']!r})"
        asked = [sys.executable, "-c", code]
        run = subprocess.run(asked, env=strange, capture_output=True, text=True, check=False)
        assert run.returncode != 0
        assert "InvalidAuthToken" in run.stderr
    finally:
        cocite("cluster", "down")
    assert not note.exists()
    gone(family)
    assert not list(tmp_path.glob("ray*"))


def test_nodes_end_with_their_driver_even_if_it_is_killed() -> None:
    code = (
        "from cocite.cluster.ray import Cluster; import signal\n"
        "found = Cluster.connect('local:2'); print('up', flush=True); signal.pause()"
    )
    driver = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert driver.stdout is not None
    try:
        assert driver.stdout.readline() == "up\n"
        family = psutil.Process(driver.pid).children(recursive=True)
        assert len(family) > 4
    finally:
        driver.send_signal(signal.SIGKILL)
        driver.wait()
        driver.stdout.close()
    gone(family)


def gone(family: list[psutil.Process]) -> None:
    """Wait until none of them is alive."""

    def alive() -> list[psutil.Process]:
        return [p for p in family if p.is_running() and p.status() != psutil.STATUS_ZOMBIE]

    wait_for(lambda: not alive())
