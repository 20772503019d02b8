"""``RecordLog``: confirmed records survive the end of the process or the machine."""

import logging
import os
import random
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from cocite.errors import Damaged, StoreError
from cocite.storage import disk
from cocite.storage.records import RecordLog, RecordReader
from tests.storage.enemy import Killed
from tests.torture.power import recorded

RECORDS = [b'["one"]', b"", b"three" * 30_000, b"4"]


def write_log(path: Path) -> RecordLog:
    log = RecordLog(path)
    for record in RECORDS:
        assert log.append(record) == path.stat().st_size
    return log


def test_record_reader_gets_each_record_once(tmp_path: Path) -> None:
    log, reader = RecordLog(tmp_path / "r"), RecordReader(tmp_path / "r")
    assert reader.new() == log.records() == []
    write_log(log.path)
    assert reader.new() == RECORDS
    assert reader.new() == []
    assert log.append(b"five") == log.path.stat().st_size
    assert reader.new() == [b"five"]
    log.rewrite(lambda records: records[3:])
    assert reader.new() == [b"4", b"five"] == log.records()
    log.append(b"six")
    assert reader.new() == [b"six"]
    reader.close()


@pytest.mark.parametrize("left", [1, 20, 34, 149_000])
def test_record_log_cuts_torn_record(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, left: int
) -> None:
    log = write_log(tmp_path / "r")
    log.rewrite(lambda records: records[:3])
    intact = log.path.read_bytes()
    torn = intact[: intact.rindex(b"\n", 0, -1) + 1 + left]
    for zeros in (b"", b"\0" * 5000, b"\0\n"):
        log.path.write_bytes(torn + zeros)
        reader = RecordReader(log.path)
        assert reader.new() == RECORDS[:2]
        with caplog.at_level(logging.WARNING, "cocite"):
            log.append(b"again")
        assert f"{left + len(zeros):,} bytes" in caplog.text
        assert reader.new() == [b"again"]
        assert log.records() == [*RECORDS[:2], b"again"]
        reader.close()


def test_record_log_reports_damage(tmp_path: Path) -> None:
    log = write_log(tmp_path / "r")
    content = log.path.read_bytes()
    draw = random.Random(5)
    for index in [17, 18, 60, len(content) - 2, *draw.choices(range(17, len(content) - 1), k=40)]:
        bad = bytearray(content)
        bad[index] ^= draw.choice((1, 4, 128))
        log.path.write_bytes(bad)
        for reading in (log.records, lambda: log.rewrite(lambda records: [])):
            with pytest.raises(Damaged, match=r"damaged at byte [\d,]+.*remove that line"):
                reading()
        assert log.path.read_bytes() == bad
    log.path.write_bytes(b"links\n" + content)
    with pytest.raises(Damaged, match="not a log of records"):
        log.records()


def test_record_log_omits_failed_record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = write_log(tmp_path / "r")
    reader = RecordReader(log.path)

    def failing(file: Any) -> None:
        raise OSError(5, "I/O error")

    with monkeypatch.context() as patch:
        patch.setattr(disk, "sync_file", failing)
        with pytest.raises(OSError, match="I/O error"):
            log.append(b"lost")
    assert reader.new() == RECORDS
    reader.close()
    (tmp_path / "link").symlink_to(log.path)
    with pytest.raises(StoreError, match="cannot be written"):
        RecordLog(tmp_path / "link").append(b"x")


@pytest.mark.parametrize("call", ["write", "sync_file", "rename", "sync_directory"])
def test_record_log_survives_killed_rewrite(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    log = write_log(tmp_path / "r")
    real = getattr(disk, call)
    for after in (False, True):

        def dying(*arguments: Any, after: bool = after) -> None:
            if after:
                real(*arguments)
            raise Killed

        with monkeypatch.context() as patch:
            patch.setattr(disk, call, dying)
            with pytest.raises(Killed):
                log.rewrite(lambda records: records[1:])
        found = log.records()
        assert found in (RECORDS, RECORDS[1:], RECORDS[2:])
        log.append(b"more")
        assert log.records() == [*found, b"more"]
        log.rewrite(lambda records: RECORDS)


def test_record_log_keeps_prefix_after_power_loss(tmp_path: Path) -> None:
    folder = tmp_path / "disk"
    folder.mkdir()
    with recorded(folder) as recording:
        write_log(folder / "r")
    seen = set()
    for seed in range(300):
        tree, _ = recording.crashed(random.Random(seed))
        (tmp_path / "r").write_bytes(tree.get("r", b""))
        found = RecordLog(tmp_path / "r").records()
        assert found == RECORDS[: len(found)]
        seen.add(len(found))
        RecordLog(tmp_path / "r").append(b"next")
        assert RecordLog(tmp_path / "r").records() == [*found, b"next"]
    assert seen == {0, 1, 2, 3, 4}


KILLED = """
import os, signal, sys
from pathlib import Path
from cocite.storage import disk
from cocite.storage.records import RecordLog

log = RecordLog(Path(sys.argv[1]))
log.append(b"confirmed")
print("confirmed", flush=True)
disk.sync_file = lambda file: os.kill(os.getpid(), signal.SIGKILL)
log.append(b"not confirmed")
"""


@pytest.mark.process
def test_record_log_keeps_confirmed_records_of_killed_process(tmp_path: Path) -> None:
    log = RecordLog(tmp_path / "r")
    command = [sys.executable, "-c", KILLED, str(log.path)]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (result.returncode, result.stdout) == (-signal.SIGKILL, "confirmed\n")
    log.append(b"next")
    assert log.records() in ([b"confirmed", b"next"], [b"confirmed", b"not confirmed", b"next"])
    assert os.listdir(tmp_path) == ["r"]
