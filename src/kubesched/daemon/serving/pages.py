"""Pages about the process: /configz, /flagz and /statusz as in Kubernetes components, and /debug/pprof."""

from __future__ import annotations

import asyncio
import datetime
import io
import json
import sys
import threading
import time
import tracemalloc
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from types import FrameType
from typing import Any

from kubesched import config
from kubesched.api.release import Release
from kubesched.daemon.feature_gates import VersionInfo

COMPONENT = "kube-scheduler"
_WARNING = (
    "Warning: This endpoint is not meant to be machine parseable, has no formatting compatibility guarantees and is "
    "for debugging purposes only."
)
_API_VERSION = "config.k8s.io/v1beta1"


def configz(configuration: config.SchedulerConfiguration, release_source: str) -> str:
    """The configuration with all defaults, and the release that is followed, as JSON."""
    component = config.to_plain(config.without_secrets(configuration))
    release = {"release": configuration.features.release.name, "releaseSource": release_source}
    return json.dumps({"componentconfig": component, "kubesched": release}, ensure_ascii=False, separators=(",", ":"))


def flagz_text(flags: Mapping[str, str]) -> str:
    lines = [f"{name}={flags[name]}" for name in sorted(flags)]
    return "\n".join([f"\n{COMPONENT} flagz", _WARNING, *lines, ""])


def flagz_object(flags: Mapping[str, str]) -> dict[str, Any]:
    return {"kind": "Flagz", "apiVersion": _API_VERSION, "metadata": {"name": COMPONENT}, "flags": dict(flags)}


def statusz_text(release: Release, started: datetime.datetime, now: datetime.datetime, paths: Sequence[str]) -> str:
    status = statusz_object(release, started, now, paths)
    minutes, seconds = divmod(status["uptimeSeconds"], 60)
    hours, minutes = divmod(minutes, 60)
    return f"""
{COMPONENT} statusz
{_WARNING}

Started: {started:%a %b %e %H:%M:%S %Z %Y}
Up: {hours} hr {minutes:02} min {seconds:02} sec
Go version: {status["goVersion"]}
Binary version: {status["binaryVersion"]}
Emulation version: {status["emulationVersion"]}
Paths: {" ".join(paths)}
"""


def statusz_object(
    release: Release, started: datetime.datetime, now: datetime.datetime, paths: Sequence[str]
) -> dict[str, Any]:
    info = VersionInfo.of(release)
    return {
        "kind": "Statusz",
        "apiVersion": _API_VERSION,
        "metadata": {"name": COMPONENT},
        "startTime": f"{started:%Y-%m-%dT%H:%M:%SZ}",
        "uptimeSeconds": int((now - started).total_seconds()),
        "goVersion": info.go_version,
        "binaryVersion": info.git_version.removeprefix("v"),
        "emulationVersion": release.name,
        "paths": list(paths),
    }


_LONGEST_PROFILE = 300.0
_PPROF_PAGES = {
    "profile": "where time goes, sampled: one line per stack, root first, with the number of samples (?seconds=30)",
    "heap": "where memory was taken, once tracing has begun: the first request begins it, ?stop=1 ends it",
    "goroutine": "what every task waits for",
    "threads": "where every thread is",
}
_INTERVAL = 0.01
_LARGEST = 50


def pprof_index() -> str:
    """The list of pages below /debug/pprof."""
    lines = [f"/debug/pprof/{name}: {meaning}" for name, meaning in _PPROF_PAGES.items()]
    return "\n".join(["/debug/pprof/", "", *lines, ""])


async def sampled_stacks(seconds: float) -> str:
    """The stacks of all threads, sampled every hundredth of a second, as lines for a flame graph, thread by thread."""
    stacks = await asyncio.to_thread(_sample, min(seconds, _LONGEST_PROFILE))
    return "".join(f"{stack} {count}\n" for stack, count in stacks.most_common())


def _sample(seconds: float) -> Counter[str]:
    stacks: Counter[str] = Counter()
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        for name, frame in _frames():
            stacks[f"{name};{_fold(frame)}"] += 1
        time.sleep(_INTERVAL)
    return stacks


def _frames() -> Iterator[tuple[str, FrameType]]:
    """Every thread but this one by its name, and where it is."""
    names, me = {thread.ident: thread.name for thread in threading.enumerate()}, threading.get_ident()
    return ((names.get(i, str(i)), frame) for i, frame in sys._current_frames().items() if i != me)


def _fold(frame: FrameType | None) -> str:
    names = []
    while frame is not None:
        code = frame.f_code
        names.append(f"{code.co_filename.rpartition('/')[2]}:{code.co_qualname}")
        frame = frame.f_back
    return ";".join(reversed(names))


def heap(*, stop: bool = False) -> str:
    """The lines of source that hold the most memory allocated since tracing began."""
    if stop:
        tracemalloc.stop()
        return "tracing has ended\n"
    if not tracemalloc.is_tracing():
        tracemalloc.start()
        return "tracing begins now, and costs time until it is ended with ?stop=1; ask again to see where memory is\n"
    statistics = tracemalloc.take_snapshot().statistics("lineno")
    held, peak = tracemalloc.get_traced_memory()
    lines = [f"{line.size:>12} bytes {line.count:>9} objects {line.traceback}" for line in statistics[:_LARGEST]]
    return "\n".join([f"held {held} bytes, at most {peak}", *lines, ""])


def tasks() -> str:
    """Every task of this thread and where it waits."""
    text = io.StringIO()
    text.write(f"== {threading.current_thread().name}\n\n")
    for task in sorted(asyncio.all_tasks(), key=lambda task: task.get_name()):
        task.print_stack(file=text)
        text.write("\n")
    return text.getvalue()


def threads() -> str:
    """Every thread and where it is."""
    here = sys._getframe()
    frames = [*_frames(), (threading.current_thread().name, here)]
    return "".join(f"{name}\n  {_fold(frame).replace(';', chr(10) + '  ')}\n\n" for name, frame in frames)
