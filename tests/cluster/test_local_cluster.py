"""``cocite cluster up | status | down``; nodes end with the process that started them."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from tests.clock import wait_for


def run_cocite(*words: str, succeeds: bool = True) -> str:
    command = [sys.executable, "-m", "cocite", *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert (done.returncode == 0) == succeeds, done.stderr
    return done.stdout if succeeds else done.stderr


def test_local_cluster_starts_and_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COCITE_CACHE", str(tmp_path))
    # Ray has no folder there yet.
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    assert "no local cluster is running, so there is nothing to stop" in run_cocite(
        "cluster", "down", succeeds=False
    )
    up = json.loads(run_cocite("cluster", "up", "--local", "2", "--format", "json"))
    note_file = tmp_path / "cluster.json"
    try:
        assert note_file.stat().st_mode & 0o077 == 0
        assert "a local cluster is already running" in run_cocite(
            "cluster", "up", "--local", "2", succeeds=False
        )
        found = json.loads(run_cocite("cluster", "status", "--format", "json"))
        assert found["address"] == up["address"]
        assert [node["alive"] for node in found["nodes"]] == [True, True]
        assert found["alive"] == 2
        status = run_cocite("cluster", "status", up["address"])
        assert "2 alive of 2" in status
        process = psutil.Process(json.loads(note_file.read_text())["process"])
        processes = [process, *process.children(recursive=True)]
        wrong_token = {**os.environ, "RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": "0" * 64}
        code = f"import ray; ray.init({up['address']!r})"
        command = [sys.executable, "-c", code]
        run = subprocess.run(command, env=wrong_token, capture_output=True, text=True, check=False)
        assert run.returncode != 0
        assert "InvalidAuthToken" in run.stderr
    finally:
        run_cocite("cluster", "down")
    assert not note_file.exists()
    wait_until_ended(processes)
    assert not list(tmp_path.glob("ray*"))


def test_local_cluster_ends_with_killed_driver() -> None:
    code = (
        "from cocite.cluster.ray import Cluster; import signal\n"
        "found = Cluster.connect('local:2'); print('up', flush=True); signal.pause()"
    )
    driver = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert driver.stdout is not None
    try:
        assert driver.stdout.readline() == "up\n"
        processes = psutil.Process(driver.pid).children(recursive=True)
        assert len(processes) > 4
    finally:
        driver.send_signal(signal.SIGKILL)
        driver.wait()
        driver.stdout.close()
    wait_until_ended(processes)


def wait_until_ended(processes: list[psutil.Process]) -> None:
    """Wait until no process is alive."""

    def alive() -> list[psutil.Process]:
        return [p for p in processes if p.is_running() and p.status() != psutil.STATUS_ZOMBIE]

    wait_for(lambda: not alive())
