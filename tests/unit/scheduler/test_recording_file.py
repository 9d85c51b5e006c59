"""A restart must not destroy the recording of what led to it."""

from __future__ import annotations

import errno
import io
import os
import threading
from pathlib import Path

import pytest

from kubesched import config
from kubesched.api.change import Change
from kubesched.scheduler.recording import Recording, open_recording
from kubesched.testing import make_pod


def record(file: Path, text: str) -> list[Path]:
    kept: list[Path] = []
    with open_recording(str(file), kept.append) as stream:
        stream.write(text)
    return kept


def test_earlier_recordings_are_kept_under_the_next_free_number(tmp_path: Path) -> None:
    file = tmp_path / "today.jsonl"
    assert record(file, "first") == []
    assert record(file, "second") == [tmp_path / "today.jsonl.1"]
    assert record(file, "third") == [tmp_path / "today.jsonl.2"]
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {
        "today.jsonl.1": "first",
        "today.jsonl.2": "second",
        "today.jsonl": "third",
    }


def test_nothing_that_is_there_is_overwritten(tmp_path: Path) -> None:
    file = tmp_path / "today.jsonl"
    record(file, "mine")
    (tmp_path / "today.jsonl.1").write_text("somebody's")
    assert record(file, "again") == [tmp_path / "today.jsonl.2"]
    assert (tmp_path / "today.jsonl.1").read_text() == "somebody's"


def test_empty_file_is_used_as_it_is(tmp_path: Path) -> None:
    file = tmp_path / "today.jsonl"
    file.touch()
    assert record(file, "first") == []
    assert os.listdir(tmp_path) == ["today.jsonl"]


def test_pipe_stays_where_it_is(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    read: list[str] = []
    reader = threading.Thread(target=lambda: read.append(pipe.read_text()))
    reader.start()
    assert record(pipe, "first") == []
    reader.join()
    assert read == ["first"]
    assert pipe.is_fifo()


def test_place_that_does_not_exist_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        record(tmp_path / "no" / "such", "first")


class FullDisk(io.StringIO):
    """Takes the first line."""

    def write(self, text: str) -> int:
        if self.tell():
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return super().write(text)


def test_recording_on_a_full_disk_ends_and_says_so_once() -> None:
    broken: list[Exception] = []
    disk = FullDisk()
    recording = Recording(disk, config.default(), lambda: 0.0, on_broken=broken.append)
    for _ in range(3):
        recording.handling(Change(new=make_pod("p").build()))
    assert [str(error) for error in broken] == ["[Errno 28] No space left on device"]
    assert disk.getvalue().count("\n") == 1


def test_recording_on_a_full_disk_raises_if_nobody_wants_to_hear_of_it() -> None:
    recording = Recording(FullDisk(), config.default(), lambda: 0.0)
    with pytest.raises(OSError, match="No space left"):
        recording.flushing_backoff()
