from __future__ import annotations

import asyncio
import io
import json
import logging
import re
from collections.abc import Callable, Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kubesched.daemon.log import Log, Logging, level_of, start_logging, verbosity_of
from kubesched.daemon.options import parse_options


class Streams:
    """Standard output and standard error of a program that logs."""

    def __init__(self) -> None:
        self.out, self.err = io.StringIO(), io.StringIO()
        self.started: list[Logging] = []

    def __call__(self, *arguments: str) -> Logging:
        logging_ = start_logging(parse_options(arguments), out=self.out, err=self.err)
        self.started.append(logging_)
        return logging_

    @property
    def line(self) -> str:
        return self.err.getvalue()


@pytest.fixture
def start() -> Iterator[Streams]:
    streams = Streams()
    yield streams
    for started in reversed(streams.started):
        started.stop()


log = Log("kubesched.daemon.somewhere")


def test_text_has_klogs_shape(start: Streams) -> None:
    start()
    log.info("Bound pod", pod="default/web", evaluated=3, fast=True)
    pattern = (
        r"I\d{4} \d\d:\d\d:\d\d\.\d{6} {1,7}\d+ test_daemon_logging\.py:\d+\] "
        r'"Bound pod" pod="default/web" evaluated=3 fast=true\n'
    )
    assert re.fullmatch(pattern, start.line)


@pytest.mark.parametrize(("say", "letter"), [(log.info, "I"), (log.warning, "W"), (log.error, "E")])
def test_first_letter_is_the_severity(start: Streams, say: Callable[[str], None], letter: str) -> None:
    start()
    say("something")
    assert start.line.startswith(letter)


def test_error_shows_its_cause_first(start: Streams) -> None:
    start()
    log.error("Command failed", err=ValueError("no such file"), flag="config")
    assert start.line.endswith('] "Command failed" err="no such file" flag="config"\n')


def test_value_of_several_lines_is_shown_as_such(start: Streams) -> None:
    start()
    log.info("Dump", text="one\ntwo")
    assert start.line.endswith('] "Dump" text=<\n\tone\n\ttwo\n >\n')


def test_records_of_other_modules_are_shown_unquoted_and_with_their_extras(start: Streams) -> None:
    start()
    logging.getLogger("kubesched.kube.client").info("GET %s", "/api")
    logging.getLogger("kubesched.kube.client").info("watch", extra={"kind": "Pod"})
    first, second = start.line.splitlines()
    assert first.endswith("] GET /api")
    assert second.endswith('] "watch" kind="Pod"')


def test_traceback_follows_its_line(start: Streams) -> None:
    start()
    try:
        raise ValueError("broken")
    except ValueError:
        logging.getLogger("kubesched.scheduler").exception("the attempt broke")
    assert re.match(r"E.*\] the attempt broke\nTraceback ", start.line)


def test_json_has_the_fields_of_kubernetes_components(start: Streams) -> None:
    start("--logging-format=json", "-v=2")
    log.info("Bound pod", v=2, pod="default/web", nodes=["a", "b"])
    entry = json.loads(start.line)
    assert entry.pop("ts") > 1.6e12
    assert re.fullmatch(r"test_daemon_logging\.py:\d+", entry.pop("caller"))
    assert entry == {"msg": "Bound pod", "v": 2, "pod": "default/web", "nodes": ["a", "b"]}


def test_json_errors_have_a_cause_instead_of_a_verbosity(start: Streams) -> None:
    start("--logging-format=json")
    log.error("Command failed", err=OSError("gone"))
    entry = json.loads(start.line)
    assert entry["err"] == "gone"
    assert "v" not in entry


@pytest.mark.parametrize("verbosity", range(11))
def test_only_messages_up_to_the_verbosity_are_written(start: Streams, verbosity: int) -> None:
    start(f"-v={verbosity}")
    for v in range(11):
        assert log.enabled(v) is (v <= verbosity)
        log.info(str(v), v=v)
    assert len(start.line.splitlines()) == verbosity + 1


def test_debug_messages_of_other_modules_need_verbosity_4(start: Streams) -> None:
    quiet = start("-v=3")
    logging.getLogger("kubesched.kube").debug("hidden")
    quiet.set_verbosity(4)
    logging.getLogger("kubesched.kube").debug("shown")
    assert "hidden" not in start.line
    assert "shown" in start.line


def test_files_may_have_a_verbosity_of_their_own(start: Streams) -> None:
    queue, binding, other = (Log(f"kubesched.scheduler.{name}") for name in ("queue", "binding", "posting"))
    start("-v=1", "--vmodule=queue=4,bind*=2,kubesched/*/posting=0")
    assert [queue.enabled(4), queue.enabled(5), binding.enabled(2), binding.enabled(3)] == [True, False, True, False]
    assert [other.enabled(0), other.enabled(1)] == [True, False]


def test_split_streams_tell_errors_from_the_rest_and_may_collect_lines(start: Streams) -> None:
    started = start("--log-text-split-stream", "--log-text-info-buffer-size=1Ki")
    log.info("fine")
    log.error("not fine")
    assert "not fine" in start.err.getvalue()
    assert start.out.getvalue() == ""
    started.flush()
    assert '"fine"' in start.out.getvalue()
    assert "not fine" not in start.out.getvalue()


def test_full_buffer_is_written(start: Streams) -> None:
    start("--log-text-split-stream", "--log-text-info-buffer-size=200")
    for _ in range(3):
        log.info("x" * 80)
    assert start.out.getvalue().count("\n") == 2


def test_lines_are_flushed_as_often_as_asked_for(start: Streams) -> None:
    started = start("--log-text-split-stream", "--log-text-info-buffer-size=1Ki")
    naps: list[float] = []

    async def nap(seconds: float) -> None:
        naps.append(seconds)
        if len(naps) == 3:
            raise asyncio.CancelledError

    log.info("soon")
    with pytest.raises(asyncio.CancelledError):
        asyncio.run(started.keep_flushing(5.0, nap))
    assert naps == [5.0, 5.0, 5.0]
    assert "soon" in start.out.getvalue()


def test_stream_that_nobody_reads_is_no_error(start: Streams) -> None:
    start()
    start.err.close()
    log.info("into the void")


@pytest.mark.parametrize("verbosity", range(11))
def test_verbosity_survives_the_way_through_levels(verbosity: int) -> None:
    assert verbosity_of(level_of(verbosity)) == verbosity


@settings(deadline=None)
@given(st.dictionaries(st.from_regex(r"[a-z]{1,5}", fullmatch=True), st.text() | st.integers() | st.none(), max_size=3))
def test_any_value_makes_json(values: dict[str, object]) -> None:
    streams = Streams()
    started = streams("--logging-format=json")
    try:
        log.warning("m", **values)
    finally:
        started.stop()
    entry = json.loads(streams.line)
    assert {name: entry[name] for name in values if name not in ("ts", "v", "msg")} == {
        name: value for name, value in values.items() if name not in ("ts", "v", "msg")
    }
