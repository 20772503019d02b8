"""A real server of PostgreSQL for tests: Debian's, in a directory of its own, gone afterwards.

It listens at 127.0.0.1 only and asks for a password, so that there is one to keep to oneself. Where
tests run as root it runs as another user, as it refuses root.
"""

import os
import pwd
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

PASSWORD = "ge:heim/#1"
"""With all that an address must write as %XX."""


def programs() -> Path | None:
    """The directory of ``initdb`` and ``pg_ctl``; None where there are none."""
    found = shutil.which("initdb")
    places = [Path(found).resolve().parent] if found else []
    places += sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    return next((place for place in places if (place / "pg_ctl").is_file()), None)


def as_user() -> dict[str, Any]:
    """What a process takes that may not be root's."""
    if os.geteuid() != 0:
        return {}
    for name in ("postgres", "nobody"):
        try:
            found = pwd.getpwnam(name)
        except KeyError:
            continue
        return {"user": found.pw_uid, "group": found.pw_gid, "extra_groups": []}
    return {}


def _place(user: dict[str, Any]) -> str | None:
    """Where another user can reach a directory of its own: the tests' temporary one may be root's
    alone.
    """
    for place in (tempfile.gettempdir(), "/dev/shm", "/tmp", "/var/tmp") if user else ():
        path = Path(place).resolve()
        if path.is_dir() and all(each.stat().st_mode & 1 for each in (path, *path.parents)):
            return place
    return None


@contextmanager
def server() -> Iterator[str]:
    """The address of a new server's database, with its password."""
    where = programs()
    assert where is not None
    user = as_user()
    with tempfile.TemporaryDirectory(prefix="pg", dir=_place(user)) as folder:
        home = Path(folder)
        password = home / "password"
        password.write_text(PASSWORD, "utf-8")
        data = home / "data"
        if user:
            for each in (home, password):
                os.chown(each, user["user"], user["group"])

        def run(*command: str) -> None:
            done = subprocess.run(
                [str(where / command[0]), *command[1:]],
                cwd=home,
                env={"PATH": os.defpath, "LC_ALL": "C.UTF-8"},
                stdout=subprocess.DEVNULL,  # the server keeps what it inherits open
                stderr=subprocess.DEVNULL,
                check=False,
                **user,
            )
            log = home / "log"
            said = log.read_text("utf-8") if log.exists() else ""
            assert done.returncode == 0, f"{command[0]}: {done.returncode}: {said}"

        run(
            *("initdb", "-D", str(data), "-U", "tester", "-A", "scram-sha-256"),
            *("--pwfile", str(password), "-E", "UTF8", "--no-sync"),
        )
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        options = (
            f"-p {port} -c listen_addresses=127.0.0.1 -c unix_socket_directories= -c fsync=off"
        )
        options += " -c shared_buffers=16MB -c max_connections=20"
        control = ("pg_ctl", "-D", str(data), "-w", "-t", "60")
        run(*control, "-l", str(home / "log"), "-o", options, "start")
        try:
            yield f"postgres://tester:ge%3Aheim%2F%231@127.0.0.1:{port}/postgres"
        finally:
            run(*control, "-m", "immediate", "stop")
