"""Build and run the image of ``docs/serving.md`` without Docker.

The Dockerfile's steps run one after another, unchanged, in a root directory that overlays this
machine's (overlayfs, in a mount namespace): what they write goes to an upper layer, as in an image.
The base is a fresh environment of this interpreter. Then the root is mounted read-only, with a
temporary ``/tmp``, and the entry point runs as the user that ``USER`` names, without capabilities
and without a way to gain any.

Needs root, util-linux and permission to mount; installs from the configured package index.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

__all__ = ["ROOT", "Image", "dockerfile", "why_not"]

ROOT = Path(__file__).parents[2]


@dataclass
class Image:
    """The contents of a Dockerfile."""

    base: str = ""
    steps: list[tuple[str, str]] = field(default_factory=list)
    """``COPY`` and ``RUN`` with their arguments, in order."""
    environ: dict[str, str] = field(default_factory=dict)
    user: str = "root"
    ports: list[int] = field(default_factory=list)
    entrypoint: list[str] = field(default_factory=list)
    command: list[str] = field(default_factory=list)

    @classmethod
    def of(cls, text: str) -> Image:
        """Parse a Dockerfile; fail on unknown instructions."""
        image = cls()
        for line in filter(None, map(str.strip, text.splitlines())):
            word, _, rest = line.partition(" ")
            if word == "FROM":
                image.base = rest
            elif word in ("COPY", "RUN"):
                assert image.user == "root", "steps behind USER are not run here"
                image.steps.append((word, rest))
            elif word == "ENV":
                name, _, value = rest.partition("=")
                image.environ[name] = value
            elif word == "USER":
                image.user = rest
            elif word == "EXPOSE":
                image.ports.append(int(rest))
            elif word == "ENTRYPOINT":
                image.entrypoint = json.loads(rest)
            elif word == "CMD":
                image.command = json.loads(rest)
            else:
                raise AssertionError(f"a step that is not known: {line}")
        return image

    def script(self, work: Path, mounts: dict[Path, str], command: list[str]) -> str:
        """A shell script that builds the image in ``work`` and runs it, with the host paths in
        ``mounts`` mounted read-only.
        """
        root, q = work / "root", shlex.quote
        environ = {"PATH": "/image/bin:/usr/bin:/bin", "HOME": "/root", **self.environ}
        assigned = " ".join(f"{name}={q(value)}" for name, value in environ.items())
        options = " ".join(
            f"{name}={q(value)}" for name, value in os.environ.items() if name.startswith("PIP_")
        )
        inside = f"chroot {q(str(root))} env -i {assigned} {options}"
        home = Path(sys.base_prefix).resolve()  # which may lie where only root may look
        lines = [
            "set -e",
            f"mkdir -p {q(str(work))}/upper {q(str(work))}/work {q(str(root))}",
            f"layers=lowerdir=/,upperdir={work}/upper,workdir={work}/work",
            f"mount -t overlay overlay -o $layers {root}",
            *(f"mount --rbind /{each} {root}/{each}" for each in ("proc", "dev")),
            f"mount -t tmpfs tmpfs {root}/tmp",
            *(f"chmod o+x {q(f'{root}{each}')}" for each in (home, *home.parents) if each.name),
            f"{inside} {q(os.path.realpath(sys.executable))} -m venv /image",
        ]
        for word, rest in self.steps:
            if word == "RUN":
                lines.append(f"{inside} sh -c {q(rest)} >&2")
            else:
                source, target = rest.split()
                assert source == "."
                lines.append(f"mkdir -p {root}{target}")
                lines.append(
                    f"(cd {q(str(ROOT))} && tar -c -T {work}/files) | tar -x -C {root}{target}"
                )
        for place, target in mounts.items():
            make = f"mkdir -p {root}{target}"
            if place.is_file():
                make = f"mkdir -p {root}{os.path.dirname(target)} && touch {root}{target}"
            lines += [make, f"mount --bind {q(str(place))} {root}{target}"]
            lines.append(f"mount -o remount,ro,bind {root}{target}")
        uid, _, gid = self.user.partition(":")
        lines += [
            f"mount -t tmpfs tmpfs {root}/tmp",
            f"mount -o remount,ro {root}",
            f"exec chroot {q(str(root))} setpriv --reuid {uid} --regid {gid} --clear-groups "
            "--no-new-privs --bounding-set=-all "
            f"env -i {assigned.replace('HOME=/root', 'HOME=/')} "
            + shlex.join([*self.entrypoint, *command]),
        ]
        return "\n".join(lines)

    def run(self, work: Path, mounts: dict[Path, str], command: list[str]) -> subprocess.Popen[str]:
        """Build the image and run it as a process, with its log on stderr."""
        work.mkdir(parents=True)
        listing = subprocess.run(
            ["git", "ls-files", "--cached"], cwd=ROOT, check=True, capture_output=True, text=True
        )
        existing = [name for name in listing.stdout.splitlines() if (ROOT / name).exists()]
        (work / "files").write_text("\n".join(existing))
        script = self.script(work, mounts, command)
        return subprocess.Popen(
            ["unshare", "--mount", "--propagation", "private", "sh", "-c", script],
            stderr=subprocess.PIPE,
            text=True,
        )


def dockerfile() -> str:
    """The Dockerfile in the documentation."""
    text = (ROOT / "docs" / "serving.md").read_text("utf-8")
    (block,) = re.findall(r"^```dockerfile\n(.*?)^```", text, re.M | re.S)
    return str(block)


def why_not() -> str | None:
    """Why an image cannot be built here; None if it can."""
    if os.getuid() != 0:
        return "root is needed to mount"
    for program in ("unshare", "setpriv", "chroot", "tar", "git"):
        if shutil.which(program) is None:
            return f"there is no {program}"
    trial = subprocess.run(
        ["unshare", "--mount", "sh", "-c", "mount -t tmpfs tmpfs /mnt"],
        check=False,
        capture_output=True,
    )
    return "nothing may be mounted here" if trial.returncode else None
