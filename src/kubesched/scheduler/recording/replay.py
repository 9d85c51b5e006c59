"""Replay: a recording run again through the scheduler as it is now, and every difference named."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import msgspec

from kubesched import config
from kubesched.api.change import Change
from kubesched.api.custom import read_custom
from kubesched.api.device_claims import ResourceClaim
from kubesched.api.errors import UserError
from kubesched.api.kinds import KINDS
from kubesched.api.meta import KubeObject
from kubesched.api.pod import Pod, PodCondition
from kubesched.framework.profile import ProfileError
from kubesched.framework.registry import Registry
from kubesched.plugins.dynamic_resources.writes import ClaimGoneAnotherWayError, ClaimWrite
from kubesched.plugins.volume_binding.writes import VolumeWrites
from kubesched.scheduler.attempt.attempt import Attempt
from kubesched.scheduler.recording.recording import FORMAT, described
from kubesched.scheduler.run_now import run_now
from kubesched.scheduler.scheduler import Scheduler
from kubesched.scheduler.writer import WriteError

Entry = dict[str, Any]

NEEDED: dict[str, tuple[str, ...]] = {
    "added": ("object",),
    "updated": ("old", "object"),
    "deleted": ("object",),
    "flush_backoff": (),
    "flush_leftovers": (),
    "permitted": ("pods",),
    "pop": ("pod",),
    "decide": ("pod", "phase", "node", "message", "victims", "among", "drawn"),
    "wait": ("pod",),
    "finish": ("pod",),
    "write": ("verb", "pod"),
    "finished": ("pod", "outcome"),
}
"""All that a recording can have, and what must be said about each."""


class ReplayError(UserError):
    """Not a recording that can be replayed."""


class Difference(NamedTuple):
    """Where the replay went another way."""

    line: int
    time: float
    what: str
    recorded: Any
    replayed: Any

    def __str__(self) -> str:
        return f"line {self.line}, t={self.time:g}: {self.what}: recorded {self.recorded!r}, now {self.replayed!r}"


class Replay:
    """One recording, read to its end."""

    def __init__(self, lines: Iterable[str], plugins: Registry | None = None) -> None:
        self.differences: list[Difference] = []
        self.decisions = 0
        self._lines = enumerate(lines, start=1)
        self._line = 0
        self._now = 0.0
        self._drawn = 0
        self._writes: list[Entry] = []
        self._open: dict[str, Attempt] = {}
        self._scheduler = self._begin(plugins)

    def run(self) -> list[Difference]:
        """Replay everything; the differences found."""
        entries = list(self._entries())
        for i, (line, entry) in enumerate(entries):
            self._line, self._now = line, entry["t"]
            if entry["what"] in ("wait", "finish"):
                self._writes = _writes_after(entries, i)
            self._replay(entry)
        return self.differences

    def _begin(self, plugins: Registry | None) -> Scheduler:
        _, header = next(self._parsed(), (0, {}))
        if header.get("format") != FORMAT:
            raise ReplayError(f"line 1: expected a header with format {FORMAT!r}")
        try:
            features = config.Features.of(header.get("featureGates", {}))
            configuration = config.from_plain(header["config"], features=features)
            return Scheduler(
                configuration,
                self,
                clock=lambda: self._now,
                draw=lambda _: self._drawn,
                plugins=plugins,
                extenders=(),
            )
        except (config.ConfigError, ProfileError) as error:
            raise ReplayError(f"line 1: config: {error}") from error

    def _parsed(self) -> Iterator[tuple[int, Entry]]:
        for line, text in self._lines:
            try:
                entry = msgspec.json.decode(text)
            except msgspec.DecodeError as error:
                raise ReplayError(f"line {line}: {error}") from error
            except RecursionError as error:
                raise ReplayError(f"line {line}: nested too deeply") from error
            if not isinstance(entry, dict):
                raise ReplayError(f"line {line}: expected an object")
            yield line, entry

    def _entries(self) -> Iterator[tuple[int, Entry]]:
        for line, entry in self._parsed():
            if not isinstance(entry.get("t"), int | float) or not isinstance(entry.get("what"), str):
                raise ReplayError(f"line {line}: expected a time (t) and what happened (what)")
            what = entry["what"]
            if what not in NEEDED:
                raise ReplayError(f"line {line}: {what!r} is nothing that a recording has")
            for field in NEEDED[what]:
                if field not in entry:
                    raise ReplayError(f"line {line}: {what!r} needs a {field}")
            yield line, entry

    def _replay(self, entry: Entry) -> None:
        scheduler = self._scheduler
        match entry["what"]:
            case "added":
                scheduler.handle(Change(new=self._object(entry, "object")))
            case "updated":
                scheduler.handle(Change(self._object(entry, "old"), self._object(entry, "object")))
            case "deleted":
                scheduler.handle(Change(old=self._object(entry, "object")))
            case "flush_backoff":
                scheduler.flush_backoff()
            case "flush_leftovers":
                scheduler.flush_leftovers()
            case "permitted":
                now = [attempt.queued.key for attempt in scheduler.permitted()]
                self._compare("pods that are permitted", entry["pods"], now)
            case "pop":
                self._pop(entry)
            case "decide":
                self._decide(entry)
            case "wait" if entry["pod"] in self._open:
                run_now(scheduler.wait(self._open[entry["pod"]]))
            case "finish" if entry["pod"] in self._open:
                run_now(scheduler.finish(self._open[entry["pod"]]))
            case "finished" if entry["pod"] in self._open:
                self._compare(f"outcome of {entry['pod']}", entry["outcome"], self._open.pop(entry["pod"]).outcome)

    def _pop(self, entry: Entry) -> None:
        attempt = self._scheduler.pop()
        popped = attempt.queued.key if attempt else None
        self._compare("next pod", entry["pod"], popped)
        if attempt is not None:
            self._open[attempt.queued.key] = attempt

    def _decide(self, entry: Entry) -> None:
        attempt = self._open.get(entry["pod"])
        if attempt is None:
            return  # the difference was found when another pod was popped
        self._drawn = entry["drawn"]
        self.decisions += 1
        self._scheduler.decide(attempt)
        now = described(attempt)
        for what in ("phase", "node", "message", "victims", "among"):
            self._compare(f"{what} of {entry['pod']}", entry[what], now[what])

    def _compare(self, what: str, recorded: Any, replayed: Any) -> None:
        if recorded != replayed:
            self.differences.append(Difference(self._line, self._now, what, recorded, replayed))

    def _object(self, entry: Entry, field: str) -> KubeObject:
        plain = entry.get(field)
        try:
            match plain:
                case {"resource": str(resource), "content": dict(content)}:
                    return read_custom(resource, content)
                case {"kind": str(kind)} if kind in KINDS:
                    return msgspec.convert(plain, KINDS[kind].record)
            raise ReplayError(f"line {self._line}: {field}: expected a Kubernetes object of a kind that is known")
        except msgspec.ValidationError as error:
            raise ReplayError(f"line {self._line}: {field}: {error}") from error

    # -- the writer: every write goes as it went ----------------------------------------------------------------------

    async def bind(self, pod: Pod, node_name: str) -> None:
        self._repeat("bind", pod)

    async def patch_status(self, pod: Pod, *, condition: PodCondition | None, nominated_node_name: str | None) -> None:
        self._repeat("patch_status", pod)

    async def evict(self, pod: Pod, condition: PodCondition) -> None:
        self._repeat("evict", pod)

    async def write_volumes(self, pod: Pod, writes: VolumeWrites) -> None:
        self._repeat("write_volumes", pod)

    async def write_claim(self, pod: Pod, write: ClaimWrite) -> ResourceClaim | None:
        written = self._repeat("write_claim", pod)
        if written.get("gone"):
            raise ClaimGoneAnotherWayError(written["gone"])
        if written and written.get("claim") is None:
            return None
        return msgspec.convert(written["claim"], ResourceClaim) if written else write.claim

    def record_event(self, pod: Pod, *, related: Pod | None, type: str, reason: str, action: str, note: str) -> None:
        """Events decide nothing."""

    def _repeat(self, verb: str, pod: Pod) -> Entry:
        """The write as it was recorded; nothing if it was not, which is a difference."""
        for i, write in enumerate(self._writes):
            if write["verb"] == verb and write["pod"] == pod.key:
                del self._writes[i]
                if write.get("error"):
                    raise WriteError(*write["error"])
                return write
        self._compare(f"{verb} of {pod.key}", "not written", "written")
        return {}


def _writes_after(entries: list[tuple[int, Entry]], start: int) -> list[Entry]:
    """The writes of a wait up to the finish of its attempt, and of a finish up to its end."""
    pod = entries[start][1]["pod"]
    writes = []
    for _, entry in entries[start + 1 :]:
        if entry["what"] in ("finish", "finished") and entry["pod"] == pod:
            break
        if entry["what"] == "write":
            writes.append(entry)
    return writes
