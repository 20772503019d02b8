"""``make serve-demo``: builds, serves, and opens the page in the default browser."""

import os
import signal
import socket
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

pytest.importorskip("granian", reason="the extra serve is not installed")

from tests.clock import LIMIT, wait_for

ROOT = Path(__file__).parents[2]


@pytest.mark.process
def test_serve_demo_opens_page_in_browser(tmp_path: Path) -> None:
    browser, opened = tmp_path / "browser", tmp_path / "opened"
    browser.write_text(f'#!/bin/sh\necho "$1" > {opened}.part\nmv {opened}.part {opened}\n')
    browser.chmod(0o755)
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port = listener.getsockname()[1]
    command = [sys.executable, str(ROOT / "examples" / "stdlib_serve.py"), str(port)]
    env = {**os.environ, "BROWSER": str(browser), "TMPDIR": str(tmp_path)}
    with subprocess.Popen(command, env=env, start_new_session=True) as demo:
        try:
            wait_for(lambda: opened.exists() or demo.poll() is not None)
            assert demo.poll() is None
            url = opened.read_text().strip()
            assert url == f"http://127.0.0.1:{port}/"
            for query in ("", "?node=json.decoder", "?node=threading&index=psimrank&why=queue"):
                with urllib.request.urlopen(url + query, timeout=LIMIT) as page:
                    assert page.status == 200
        finally:
            os.killpg(demo.pid, signal.SIGINT)  # as Ctrl-C does
        assert demo.wait(LIMIT) == 0
    assert sorted(each.name for each in tmp_path.iterdir()) == ["browser", "opened"]
