"""A server with more to do than it can: fewer samples, then refusals, then all samples again."""

from __future__ import annotations

import asyncio
import re
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from cocite.options.serve import ServeOptions
from cocite.server import load, service
from cocite.server.app import make_app
from cocite.server.results import Config, Served
from cocite.server.service import Service
from tests.clock import Clock
from tests.server.conftest import ask_app

CLIENTS, FLOOR = 24, 7
PATH = "/v1/related?node=red&k=50"


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """The clock of the service and its queue: an answer takes a hundredth of a second."""
    found, answer = Clock(), Service._answer
    for module in (load, service):
        monkeypatch.setattr(module, "time", found)

    def slow(self: Service, *asked: Any) -> Any:
        found.sleep(0.01)
        return answer(self, *asked)

    monkeypatch.setattr(Service, "_answer", slow)
    return found


def test_samples_fall_then_questions_are_refused_then_samples_come_back(
    folder: Path, clock: Clock
) -> None:
    """One millisecond is asked for, which is not enough, and many ask at once, again and again."""
    index = (Served("web", str(folder / "web.index")),)
    options = ServeOptions(
        target_latency=1.0,
        min_samples=FLOOR,
        queue=8,
        threads=1,
        no_requests=True,
        reload_interval=3600.0,
    )
    server = Service(Config(index, options))
    app = make_app(server)
    found: list[SimpleNamespace] = []

    async def ask() -> None:
        for _ in range(50):
            found.extend(await asyncio.gather(*(ask_app(app, PATH) for _ in range(CLIENTS))))

    try:
        asyncio.run(ask())
        answers = [each for each in found if each.status == 200]
        used = [int(each.headers["cocite-samples"]) for each in answers]
        assert {each.status for each in found} == {200, 429}
        assert used[0] == 60
        assert used == sorted(used, reverse=True)
        assert used[-1] == FLOOR
        for samples, each in zip(used, answers, strict=True):  # the answer says the same itself
            assert f'"samples":{samples},'.encode() in each.body
        assert all(int(e.headers["retry-after"]) >= 1 for e in found if e.status == 429)
        assert answers[-1].headers["cache-control"] == "public, no-cache"  # there will be a better
        assert asyncio.run(ask_app(app, "/healthz")).status == 200
        clock.sleep(60.0)
        server.gauge()
        assert "cocite_samples_share 1.0" in asyncio.run(ask_app(app, "/metrics")).body.decode()
        last = asyncio.run(ask_app(app, PATH))
        assert last.headers["cocite-samples"] == "60"
    finally:
        server.close()


@pytest.mark.process
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
