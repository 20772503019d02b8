"""A server with more to do than it can: fewer samples, then refusals, then all samples again."""

from __future__ import annotations

import http.client
import re
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from tests.service.conftest import Server, Start

CLIENTS, FLOOR = 24, 7
PATH = "/v1/related?node=red&k=50"


@pytest.fixture(scope="module")
def server(folder: Path, start: Start) -> Server:
    options = ("--target-latency", "1", "--samples-floor", str(FLOOR), "--queue", "8")
    return start(str(folder / "web.index"), *options, "--no-requests")


def test_samples_fall_then_questions_are_refused_then_samples_come_back(server: Server) -> None:
    """One millisecond is asked for, and many clients: nobody can do that."""
    found: list[tuple[int, str | None, str | None]] = []
    stop = threading.Event()
    ends = time.monotonic() + 60

    def seen() -> bool:
        """Answers from the fewest samples, and refusals; or it takes too long."""
        few = {(status, samples) for status, samples, _ in list(found)}
        some = (200, str(FLOOR)) in few and 429 in {status for status, _ in few}
        return some or time.monotonic() > ends

    def client() -> None:
        link = http.client.HTTPConnection("127.0.0.1", server.port, timeout=30)
        while not stop.is_set():
            link.request("GET", PATH)
            answer = link.getresponse()
            body = answer.read()
            samples = answer.headers["cocite-samples"]
            if answer.status == 200:  # the answer says the same itself
                assert f'"samples":{samples},'.encode() in body
            found.append((answer.status, samples, answer.headers["retry-after"]))
        link.close()

    clients = [threading.Thread(target=client) for _ in range(CLIENTS)]
    for each in clients:
        each.start()
    while not seen():
        time.sleep(0.1)
    stop.set()
    for each in clients:
        each.join()
    assert {status for status, _, _ in found} == {200, 429}
    used = {int(samples or 0) for status, samples, _ in found if status == 200}
    assert min(used) == FLOOR
    assert max(used) <= 60
    assert all(int(after or 0) >= 1 for status, _, after in found if status == 429)
    assert server.get("/healthz").status == 200
    last = server.get("/v1/related?node=red")
    if last.status == 200 and last.headers["cocite-samples"] != "60":
        assert last.headers["cache-control"] == "public, no-cache"  # there will be a better one
    server.until(lambda: "cocite_samples_share 1.0" in server.get("/metrics").body.decode())
    assert server.get("/v1/related?node=red").headers["cocite-samples"] == "60"


def test_the_unit_is_one(tmp_path: Path) -> None:
    """What ``docs/serving.md`` has for systemd, by systemd."""
    program = shutil.which("systemd-analyze")
    if program is None:
        pytest.skip("systemd is not here")
    text = (Path(__file__).parents[2] / "docs" / "serving.md").read_text("utf-8")
    unit = re.findall(r"^```ini\n(.*?)^```", text, re.M | re.S)[0]
    unit = unit.replace("/opt/cocite/bin/cocite", sys.executable)  # has to be there
    (tmp_path / "cocite.service").write_text(unit)
    done = subprocess.run(
        [program, "verify", "--man=no", str(tmp_path / "cocite.service")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
