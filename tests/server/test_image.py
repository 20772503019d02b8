"""The image of ``docs/serving.md``: its claims hold, and its steps start a server."""

import os
import re
import shlex
import shutil
import signal
import subprocess
import tempfile
import threading
import urllib.error
import urllib.request
from contextlib import suppress
from pathlib import Path

import click
import pytest

from cocite.cli.main import cli
from cocite.server.keys import new_key
from tests.clock import LIMIT, wait_for
from tests.server.image import ROOT, Image, dockerfile, why_not

_ENABLED = "COCITE_TEST_IMAGE"


def test_dockerfile_runs_unprivileged_with_known_options() -> None:
    image = Image.of(dockerfile())
    assert re.fullmatch(r"python:3\.\d+-slim", image.base)
    uid, gid = map(int, image.user.split(":"))
    assert uid > 0 < gid
    assert image.ports == [8080]
    program, verb, *options = [*image.entrypoint, *image.command]
    assert (program, verb) == ("cocite", "serve")
    command = cli.get_command(click.Context(cli), verb)
    assert command is not None
    known = {name for each in command.params for name in each.opts}
    assert {each for each in options if each.startswith("-")} <= known


def test_docker_run_is_read_only_without_capabilities() -> None:
    text = (ROOT / "docs" / "serving.md").read_text("utf-8")
    (run,) = re.findall(r"^docker run (.*?)^```", text, re.M | re.S)
    words = shlex.split(run.replace("\\\n", " "))
    assert {"--read-only", "--cap-drop", "no-new-privileges"} <= set(words)
    mounts = [words[at + 1] for at, word in enumerate(words) if word == "-v"]
    assert len(mounts) == 2
    assert all(each.endswith(":ro") for each in mounts)


def test_dockerignore_excludes_git_and_venv() -> None:
    ignored = (ROOT / ".dockerignore").read_text().split()
    assert {".git", ".venv"} <= set(ignored)


@pytest.mark.process
@pytest.mark.image
def test_dockerfile_steps_start_server(folder: Path) -> None:
    """The steps as documented, in a separate root, on a read-only file system."""
    if _ENABLED not in os.environ:
        pytest.skip(f"takes minutes: make test-image, or set {_ENABLED}=1")
    if (reason := why_not()) is not None:
        pytest.skip(reason)
    key, line = new_key("reader")
    scratch = Path(tempfile.mkdtemp(dir="/dev/shm" if os.path.isdir("/dev/shm") else None))
    process: subprocess.Popen[str] | None = None
    try:
        served = scratch / "served"
        shutil.copytree(folder / "web.index", served)
        for each in (served, *served.rglob("*")):
            each.chmod(0o755 if each.is_dir() else 0o644)
        keys = scratch / "keys"
        keys.write_text(line + "\n")
        keys.chmod(0o644)
        image = Image.of(dockerfile())
        mounts = {served: "/index", keys: "/run/secrets/keys"}
        process = image.run(scratch / "image", mounts, [*image.command, "--port", "0"])
        log: list[str] = []

        assert process.stderr is not None
        lines = iter(process.stderr.readline, "")
        reader = threading.Thread(target=log.extend, args=(lines,), daemon=True)
        reader.start()
        ended = process.poll

        def port() -> int:
            assert ended() is None, "".join(log[-40:])
            return next(
                (int(m[1]) for entry in log if (m := re.search(r"at http://\S+:(\d+)", entry))), 0
            )

        url = f"http://127.0.0.1:{wait_for(port, 1800)}"

        def ready() -> bool:
            with suppress(OSError):
                urllib.request.urlopen(f"{url}/readyz", timeout=30).close()
                return True
            return False

        wait_for(ready)
        request = urllib.request.Request(f"{url}/v1/related?node=red", headers={"X-API-Key": key})
        with urllib.request.urlopen(request, timeout=60) as answer:
            assert b'"hits"' in answer.read()
        with pytest.raises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(f"{url}/v1/related?node=red", timeout=60)
        assert refused.value.code == 401
        refused.value.close()
        status = Path(f"/proc/{process.pid}/status").read_text()
        assert re.search(r"^Uid:\s+65534\s+65534", status, re.M)
        assert re.search(r"^CapEff:\s+0+$", status, re.M)
        assert re.search(r"^NoNewPrivs:\s+1$", status, re.M)
        inside = Path(f"/proc/{process.pid}/root")
        assert os.statvfs(inside).f_flag & os.ST_RDONLY
        compiled = [each for each in (inside / "tmp").glob("cocite-65534/**/*") if each.is_file()]
        assert compiled == []  # everything was compiled with the image
        os.kill(process.pid, signal.SIGTERM)
        assert process.wait(LIMIT) == 0, "".join(log[-40:])
        reader.join()
    finally:
        if process is not None:
            process.kill()
            process.wait()
            assert process.stderr is not None
            process.stderr.close()
        shutil.rmtree(scratch, ignore_errors=True)
