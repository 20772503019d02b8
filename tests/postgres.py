"""A real PostgreSQL server for tests, in a temporary directory.

It listens at 127.0.0.1 only and asks for a password, so that tests have one to hide. PostgreSQL
refuses root: where tests run as root, it runs as another user.
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
"""With the characters that an address must write as %XX."""


def programs() -> Path | None:
    """The directory of ``initdb`` and ``pg_ctl``, or None."""
    found = shutil.which("initdb")
    places = [Path(found).resolve().parent] if found else []
    places += sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    return next((place for place in places if (place / "pg_ctl").is_file()), None)


def as_user() -> dict[str, Any]:
    """Options that run a process as another user than root."""
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
    """A directory that another user can reach: the temporary one of the tests may be root's."""
    for directory in (tempfile.gettempdir(), "/dev/shm", "/tmp", "/var/tmp") if user else ():
        path = Path(directory).resolve()
        if path.is_dir() and all(parent.stat().st_mode & 1 for parent in (path, *path.parents)):
            return directory
    return None


@contextmanager
def server() -> Iterator[str]:
    """The address of a new server's database, with its password."""
    bin_dir = programs()
    assert bin_dir is not None
    user = as_user()
    with tempfile.TemporaryDirectory(prefix="pg", dir=_place(user)) as folder:
        home = Path(folder)
        password = home / "password"
        password.write_text(PASSWORD, "utf-8")
        data = home / "data"
        if user:
            for path in (home, password):
                os.chown(path, user["user"], user["group"])

        def run(*command: str) -> None:
            done = subprocess.run(
                [str(bin_dir / command[0]), *command[1:]],
                cwd=home,
                env={"PATH": os.defpath, "LC_ALL": "C.UTF-8"},
                stdout=subprocess.DEVNULL,  # the server keeps what it inherits open
                stderr=subprocess.DEVNULL,
                check=False,
                **user,
            )
            log = home / "log"
            log_text = log.read_text("utf-8") if log.exists() else ""
            assert done.returncode == 0, f"{command[0]}: {done.returncode}: {log_text}"

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
