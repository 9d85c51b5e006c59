"""Replay: runs a recording through the scheduler again, and lists every difference."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Coroutine, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, TypeVar

import msgspec

from kubesched import config
from kubesched.api.change import Change
from kubesched.api.custom import read_custom
from kubesched.api.errors import UserError
from kubesched.api.kinds import KINDS
from kubesched.api.meta import KubeObject
from kubesched.api.pod import Pod
from kubesched.api.release import RELEASES, V1_36
from kubesched.framework.client import CONFLICT, ClientError, ClusterClient, SchedulerMode
from kubesched.framework.profile import ProfileError
from kubesched.framework.registry import Registry
from kubesched.scheduler.assembly import SchedulerSettings, build_scheduler
from kubesched.scheduler.attempt.attempt import Asking, Attempt, Paused, Popped
from kubesched.scheduler.groups.group_attempt import EntityAttempt
from kubesched.scheduler.recording import FORMAT, RecordingClient, described
from kubesched.scheduler.run_now import run_now
from kubesched.scheduler.scheduler import Scheduler

Entry = dict[str, Any]
T = TypeVar("T")

NEEDED: dict[str, tuple[str, ...]] = {
    "added": ("object",),
    "updated": ("old", "object"),
    "deleted": ("object",),
    "flush_backoff": (),
    "flush_leftovers": (),
    "activate": ("pod",),
    "permitted": ("pods",),
    "pop": ("pod", "attempt"),
    "decide": ("pod", "attempt", "phase", "node", "message", "victims", "among", "drawn"),
    "wait": ("pod", "attempt"),
    "finish": ("pod", "attempt"),
    "call": ("verb", "object"),
    "finished": ("pod", "attempt", "outcome"),
}
"""Every kind of entry, and the fields that it must have."""
_ANSWERED = ("get", "create", "replace", "patch")
"""Calls whose answer is an object."""


class ReplayError(UserError):
    """Not a recording that can be replayed."""


@dataclass(frozen=True, slots=True)
class ReplayDifference:
    """Where a replay went another way than its recording."""

    line: int
    time: float
    what: str
    recorded: Any
    replayed: Any

    def __str__(self) -> str:
        return f"line {self.line}, t={self.time:g}: {self.what}: recorded {self.recorded!r}, now {self.replayed!r}"


class Replay:
    """The replay of one recording."""

    def __init__(self, lines: Iterable[str], plugins: Registry) -> None:
        self.differences: list[ReplayDifference] = []
        self.decisions = 0
        self._lines = enumerate(lines, start=1)
        self._line = 0
        self._now = 0.0
        self._drawn = 0
        self._draws: deque[int] = deque()
        """The draws of a group, whose pods the scheduler decides at once."""
        self._popped: deque[Attempt] = deque()
        """Attempts of the pod group that was popped last, for which the recording has further pops."""
        self._entity_of: dict[int, EntityAttempt] = {}
        """By the number of an undecided attempt in the recording: that attempt, or the one at its group."""
        self._last: EntityAttempt | None = None
        self._client = _RecordedClient(self._compare)
        self._open: dict[int, Attempt] = {}
        """Attempts that are not over, by their number in the recording."""
        self.configuration = self._configuration()
        self.scheduler = self._begin(plugins)

    def run(self) -> list[ReplayDifference]:
        """Replay everything; the differences found."""
        for _ in self.steps():
            pass
        return self.differences

    def steps(self) -> Iterator[float]:
        """Replay entry by entry: the time of each, before it happens."""
        entries = list(self._entries())
        for i, (line, entry) in enumerate(entries):
            yield entry["t"]
            self._line, self._now = line, entry["t"]
            if entry["what"] in ("wait", "finish"):
                self._client.calls = _calls_after(entries, i)
            self._replay(entry)

    def _configuration(self) -> config.SchedulerConfiguration:
        _, header = next(self._parse(), (0, {}))
        if header.get("format") != FORMAT:
            raise ReplayError(f"line 1: expected a header with format {FORMAT!r}")
        is_batched = header.get("sparesVainAttempts") is True
        self._mode = SchedulerMode.BATCHED if is_batched else SchedulerMode.PARITY
        try:
            release = RELEASES.get(header.get("release", V1_36.name))  # recordings of that release did not name it
            if release is None:
                raise ReplayError(f"line 1: release: not one of {', '.join(RELEASES)}: {header['release']}")
            features = config.Features.of(header.get("featureGates", {}), release)
            return config.from_plain(header["config"], features=features)
        except config.ConfigError as error:
            raise ReplayError(f"line 1: config: {error}") from error

    def _begin(self, plugins: Registry) -> Scheduler:
        try:
            return build_scheduler(
                SchedulerSettings(
                    clock=lambda: self._now,
                    draw=lambda _: self._draws.popleft() if self._draws else self._drawn,
                    mode=self._mode,
                ),
                self.configuration,
                self._client,
                plugins,
            )
        except ProfileError as error:
            raise ReplayError(f"line 1: config: {error}") from error

    def _parse(self) -> Iterator[tuple[int, Entry]]:
        for line, text in self._lines:
            try:
                entry = msgspec.json.decode(text)
            except msgspec.DecodeError as error:
                what = "not a recording, which `simulate --record` writes" if line == 1 else error
                raise ReplayError(f"line {line}: {what}") from error
            except RecursionError as error:
                raise ReplayError(f"line {line}: nested too deeply") from error
            if not isinstance(entry, dict):
                raise ReplayError(f"line {line}: expected an object")
            yield line, entry

    def _entries(self) -> Iterator[tuple[int, Entry]]:
        for line, entry in self._parse():
            if not isinstance(entry.get("t"), int | float) or not isinstance(entry.get("what"), str):
                raise ReplayError(f"line {line}: expected a time (t) and what happened (what)")
            what = entry["what"]
            if what not in NEEDED:
                raise ReplayError(f"line {line}: {what!r} is nothing that a recording has")
            for field in NEEDED[what]:
                if field not in entry:
                    raise ReplayError(f"line {line}: {what!r} needs {'an' if field[0] in 'aeiou' else 'a'} {field}")
            yield line, entry

    def _replay(self, entry: Entry) -> None:
        scheduler = self.scheduler
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
            case "activate" if entry["pod"] in scheduler.pods:
                scheduler.activate(scheduler.pods[entry["pod"]])
            case "permitted":
                permitted = [attempt.queued.key for attempt in scheduler.permitted()]
                self._compare("pods that are permitted", entry["pods"], permitted)
            case "pop":
                self._pop(entry)
            case "decide":
                self._decide(entry)
            case "wait" if entry["attempt"] in self._open:
                run_now(scheduler.wait(self._open[entry["attempt"]]))
            case "finish" if entry["attempt"] in self._open:
                run_now(scheduler.finish(self._open[entry["attempt"]]))
            case "finished" if entry["attempt"] in self._open:
                self._compare(f"outcome of {entry['pod']}", entry["outcome"], self._open.pop(entry["attempt"]).outcome)

    def _pop(self, entry: Entry) -> None:
        if not self._popped and (popped := self.scheduler.pop()) is not None:
            self._last = popped
            self._popped.extend(popped.attempts)
        attempt = self._popped.popleft() if self._popped else None
        key = attempt.queued.key if attempt else None
        self._compare("next pod", entry["pod"], key)
        if attempt is not None and self._last is not None and key == entry["pod"]:
            self._open[entry["attempt"]] = attempt
            self._entity_of[entry["attempt"]] = self._last

    def _decide(self, entry: Entry) -> None:
        attempt = self._open.get(entry["attempt"])
        if attempt is None:
            return  # the difference was found when another pod was popped
        self._drawn = entry["drawn"]
        self.decisions += 1
        ran_out = bool(entry.get("ran_out"))
        if ran_out:  # of time, which a replay has not: so it takes too long from the start
            attempt.spent = math.inf
        entity = self._entity_of.pop(entry["attempt"])
        if isinstance(entity.state, Popped | Asking | Paused):  # the first pod of a group decides all of it
            self._draws = deque(entry.get("draws", ()))
            self.scheduler.decide(entity)
        replayed = described(attempt)
        for field in ("phase", "node", "message", "victims", "among"):
            if ran_out and field == "message":
                continue  # it may name the node where time ran out
            self._compare(f"{field} of {entry['pod']}", entry[field], replayed[field])

    def _compare(self, what: str, recorded: Any, replayed: Any) -> None:
        if recorded != replayed:
            self.differences.append(ReplayDifference(self._line, self._now, what, recorded, replayed))

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


class _RecordedClient(RecordingClient):
    """Answers every call as recorded. A call that was not recorded is a difference."""

    def __init__(self, compare: Callable[[str, Any, Any], None]) -> None:
        self._client = ClusterClient()
        self.calls: list[Entry] = []
        """The recorded calls of the attempt that is being finished."""
        self._compare = compare

    def record_event(self, pod: Pod, *, related: Pod | None, type: str, reason: str, action: str, note: str) -> None:
        """A recording has no events."""

    async def _call(self, verb: str, obj: str, call: Coroutine[Any, Any, T], body: Any = None) -> Any:
        call.close()  # there is no cluster to ask
        answer = self._answer_of(verb, obj)
        if verb in _ANSWERED and not isinstance(answer, dict):
            raise ClientError(CONFLICT, f"{verb} {obj}: the recording has no answer")
        return answer

    def _answer_of(self, verb: str, obj: str) -> Any:
        for i, call in enumerate(self.calls):
            if call["verb"] == verb and call["object"] == obj:
                del self.calls[i]
                if call.get("error"):
                    raise ClientError(*call["error"])
                return call.get("answer")
        self._compare(f"{verb} of {obj}", "not called", "called")
        return None


def _calls_after(entries: list[tuple[int, Entry]], start: int) -> list[Entry]:
    """The calls of a wait up to the finish of its attempt, and of a finish up to its end."""
    attempt = entries[start][1]["attempt"]
    calls = []
    for _, entry in entries[start + 1 :]:
        if entry["what"] in ("finish", "finished") and entry["attempt"] == attempt:
            break
        if entry["what"] == "call":
            calls.append(entry)
    return calls
