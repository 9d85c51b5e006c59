"""Pending pods by cause: why they wait, for how long, and which events would wake them."""

from __future__ import annotations

import time
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from math import inf
from typing import NamedTuple

from kubesched.api.pod import Pod
from kubesched.ask.explain.explanation import Cause, cause_of
from kubesched.framework.events import POD_KINDS, Action, ClusterEvent
from kubesched.framework.groups import group_of
from kubesched.framework.profile import interests_of
from kubesched.scheduler.queue.queued_pod import QueuedPod
from kubesched.simulate.cluster import created_at
from kubesched.state.facts import PodFacts
from kubesched.ui.model.observed import ObservedCluster
from kubesched.ui.model.owners import WorkloadName, owner_of

PAGE = 100
_EXAMPLES = 4

ACTIVE, BACKOFF, UNSCHEDULABLE, GATED, IN_FLIGHT = "active", "backoff", "unschedulable", "gated", "in an attempt"
WAITS_FOR_ITS_TURN = "Waits for its turn"
NOT_SCHEDULED_HERE = "Waits for another scheduler"
WOULD_FIT = "Would be placed now"
NOT_ASKED_YET = "Rejected; the reason is being looked for"

_FRESH = 5.0
"""Seconds for which an answer is good in a cluster where something always happens."""
_MOST_ASKED = 40
"""Questions to the engine for one view of a live cluster: what waits for an answer gets it with the next."""
_MOST_KEPT = 10_000


class PendingPod(NamedTuple):
    """A pod that waits, and where in the queue."""

    pod: Pod
    place: str
    queued: QueuedPod | None = None


@dataclass(frozen=True, slots=True)
class PendingPodLine:
    """One of them, as a line."""

    pod: str
    priority: int
    place: str
    attempts: int
    waits_seconds: float | None
    """Since it was created."""
    tried_seconds: float | None
    """Since its last attempt."""
    next_try_seconds: float | None
    """Until its backoff is over."""
    requests: dict[str, str]


@dataclass(frozen=True, slots=True)
class CauseGroup:
    """Pods of a workload that wait for the same reason."""

    id: str
    workload: WorkloadName | None
    """None for pods that nobody manages, and where pods of several workloads wait together."""
    title: str
    plugins: tuple[str, ...]
    reasons: tuple[tuple[str, int], ...]
    pods: int
    places: dict[str, int]
    highest_priority: int
    longest_wait_seconds: float | None
    wakes: tuple[str, ...]
    """Events that may help."""
    examples: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Pending:
    """All of them."""

    pods: int
    groups: tuple[CauseGroup, ...]


@dataclass(slots=True)
class _Members:
    """Pods that wait for the same reason."""

    causes: Counter[Cause]
    """Right after a change of the cluster some were tried since, and are rejected by other plugins besides."""
    pods: list[PendingPod]
    untried: list[QueuedPod] = field(default_factory=list)
    """Pods that had no attempt yet. They may be very many, so they are looked at as little as can be."""

    @property
    def cause(self) -> Cause:
        return self.causes.most_common(1)[0][0]

    def listed(self, most: int | None = None) -> list[PendingPod]:
        return (self.pods[:most] + [PendingPod(queued.pod, ACTIVE, queued) for queued in self.untried[:most]])[:most]

    def highest_priority(self) -> int:
        return max(each.pod.priority for part in (self.pods, self.untried) for each in part)

    def oldest(self) -> float:
        return min((*map(_since, self.pods), *(queued.added for queued in self.untried)))

    def created(self) -> float:
        """When the one was created that was queued first."""
        return created_at(min(self.pods, key=_since).pod) if self.pods else inf


_ITS_TURN = Cause(WAITS_FOR_ITS_TURN)


class PendingModel:
    """Groups pods that wait. Where the scheduler has said why, its word counts; elsewhere the engine is asked."""

    def __init__(self, observed: ObservedCluster, now: Callable[[], float] = time.time) -> None:
        """`now` has seconds since 1970, as the creation of pods has."""
        self._observed = observed
        self._now = now
        self._asked: dict[PodFacts, tuple[float, Cause]] = {}
        """Answers of the engine, and when they were given."""
        self._asked_at = -1
        self._may_ask = 0

    def groups(self) -> Pending:
        """The largest first."""
        members = self._by_cause()
        groups = [self._group(each) for each in members.values()]
        groups.sort(key=lambda group: (-group.pods, group.title))
        return Pending(sum(group.pods for group in groups), tuple(groups))

    def pods_of(self, group_id: str, offset: int = 0) -> tuple[int, list[PendingPodLine]]:
        """How many pods a group has, and a page of them: the most important, and then the oldest, first."""
        for members in self._by_cause().values():
            if _id(members.cause) == group_id:
                pods = members.listed()
                pods.sort(key=lambda waiting: (-waiting.pod.priority, _since(waiting), waiting.pod.key))
                return len(pods), [self.line(waiting) for waiting in pods[offset : offset + PAGE]]
        return 0, []

    def find(self, key: str) -> PendingPod | None:
        """The pod of that name, if it waits."""
        return next((waiting for waiting in self.all() if waiting.pod.key == key), None)

    def all(self, *, tried: bool = False) -> Iterator[PendingPod]:
        """Every pod that has no node, once; or those that had an attempt, or are not to have one yet."""
        queue = self._observed.queue
        if queue is None:
            for pod in self._observed.waiting():
                yield PendingPod(pod, "")
            return
        for name, places in queue.places().items():
            for queued in (queued for place in places for queued in place):
                if tried and name == ACTIVE and not queued.attempts:
                    continue
                yield PendingPod(queued.pod, GATED if queued.is_gated else name, queued)
        for queued in queue.in_flight():
            if not queued.pod.spec.node_name and self._observed.state.placed(queued.pod) is None:
                yield PendingPod(queued.pod, IN_FLIGHT, queued)

    def models(self) -> list[tuple[Pod, int]]:
        """One pod of each kind that waits, and how many wait like it, the most first."""
        counts: Counter[PodFacts] = Counter()
        one: dict[PodFacts, Pod] = {}
        for waiting in self.all():
            facts = self._observed.state.facts(waiting.pod)
            counts[facts] += 1
            one.setdefault(facts, waiting.pod)
        return [(one[facts], count) for facts, count in counts.most_common()]

    def line(self, waiting: PendingPod) -> PendingPodLine:
        pod, queued, queue = waiting.pod, waiting.queued, self._observed.queue
        attempts, next_try, tried = 0, None, None
        if queued is not None and queue is not None:
            attempts = queued.attempts
            tried = round(max(self._observed.clock() - queued.timestamp, 0.0), 1) if attempts else None
            until = queue.backoff_until(queued) if waiting.place == BACKOFF else 0.0
            next_try = round(max(until - self._observed.clock(), 0.0), 1) if until else None
        return PendingPodLine(
            pod.key,
            pod.priority,
            waiting.place,
            attempts,
            self._age(_since(waiting), created_at(pod), is_queued=queued is not None),
            tried,
            next_try,
            requests_of(pod),
        )

    def cause_of(self, waiting: PendingPod) -> Cause:
        """Why it waits."""
        self._may_ask = max(self._may_ask, 1)
        return self._cause(waiting)

    # -- inside -------------------------------------------------------------------------------------------------------

    def _cause(self, waiting: PendingPod) -> Cause:
        queued, log = waiting.queued, self._observed.log
        if queued is not None and queued.is_gated:
            return self._ask(waiting)
        last = log.latest(waiting.pod.key) if log is not None else None
        if last is not None and (last.reasons or last.plugins):
            return Cause(last.cause or last.text, last.plugins, last.reasons)
        if queued is not None and waiting.place in (ACTIVE, IN_FLIGHT):
            return _ITS_TURN
        return self._ask(waiting)

    def _by_cause(self) -> dict[object, _Members]:
        found: dict[object, _Members] = {}
        self._may_ask = _MOST_ASKED
        in_groups: dict[str, list[PendingPod]] = {}
        state, queue = self._observed.state, self._observed.queue
        groups = state.features.pod_groups
        if queue is not None and not groups:
            untried = [queued for place in queue.places()[ACTIVE] for queued in place if not queued.attempts]
            if untried:
                found[_ITS_TURN.key] = _Members(Counter((_ITS_TURN,)), [], untried)
        for waiting in self.all(tried=not groups):
            group = group_of(waiting.pod, state) if groups else None
            if group is not None:
                in_groups.setdefault(group.key, []).append(waiting)
                continue
            cause = self._cause(waiting)
            cause = cause.of_workload(waiting.pod) if cause.reasons else cause
            members = found.setdefault(cause.key, _Members(Counter(), []))
            members.causes[cause] += 1
            members.pods.append(waiting)
        for key, pods in in_groups.items():
            cause = self._cause_of_group(key, pods)
            found[cause.key] = _Members(Counter((cause,)), pods)
        return found

    def _cause_of_group(self, key: str, members: list[PendingPod]) -> Cause:
        """Some pod of it lacks something; the others wait for that one. What most of them say comes first."""
        causes = [self._cause(waiting) for waiting in members]
        said = Counter(cause.key for cause in causes if cause.reasons) or Counter(cause.key for cause in causes)
        first = next(cause for cause in causes if cause.key == said.most_common(1)[0][0])
        reasons = dict(pair for cause in (first, *causes) for pair in cause.reasons)
        plugins = dict.fromkeys(plugin for cause in (first, *causes) for plugin in cause.plugins)
        return Cause(f"Pod group {key}: {first.title}", tuple(plugins), tuple(reasons.items()), key)

    def _ask(self, waiting: PendingPod) -> Cause:
        """Equivalent pods get one answer: as long as nothing changes, or where something always does, for a while."""
        state, now = self._observed.state, self._observed.clock()
        if not self._observed.live and self._asked_at != state.nodes.changes.position:
            self._asked.clear()
            self._asked_at = state.nodes.changes.position
        facts = state.facts(waiting.pod)
        at, cause = self._asked.get(facts, (0.0, None))
        if cause is not None and not (self._observed.live and now - at > _FRESH):
            return cause
        if self._observed.live:
            if self._may_ask <= 0:
                return cause or Cause(NOT_ASKED_YET, tuple(sorted(waiting.queued.rejectors)) if waiting.queued else ())
            self._may_ask -= 1
        decision = self._observed.decide(waiting.pod)
        if decision is None:
            cause = Cause(NOT_SCHEDULED_HERE)
        else:
            cause = cause_of(decision, self._observed.engine.pre_enqueue(waiting.pod)) or Cause(WOULD_FIT)
        self._asked[facts] = now, cause
        while len(self._asked) > _MOST_KEPT:
            del self._asked[next(iter(self._asked))]
        return cause

    def _age(self, since: float, created: float, *, is_queued: bool) -> float | None:
        """How long a pod waits: since it was created, or was first queued, whichever is longer ago; unknown where time
        stands still."""
        live = self._observed.live
        ages = [self._now() - created] if live and created < inf else []
        ages += [self._observed.clock() - since] if is_queued and since < inf else []
        return round(max(*ages, 0.0), 1) if ages else None

    def _group(self, members: _Members) -> CauseGroup:
        cause, pods, untried = members.cause, members.pods, members.untried
        first = members.listed(_EXAMPLES)
        places = Counter(waiting.place for waiting in pods if waiting.place)
        if untried:
            places[ACTIVE] += len(untried)
        return CauseGroup(
            id=_id(cause),
            workload=owner_of(first[0].pod) if _is_of_workload(cause, first[0].pod) else None,
            title=cause.title,
            plugins=cause.plugins,
            reasons=cause.reasons,
            pods=len(pods) + len(untried),
            places=dict(places),
            highest_priority=members.highest_priority(),
            longest_wait_seconds=self._age(members.oldest(), members.created(), is_queued=first[0].queued is not None),
            wakes=self.wakes(cause.plugins, first[0].pod.spec.scheduler_name),
            examples=tuple(waiting.pod.key for waiting in first),
        )

    def wakes(self, plugins: Iterable[str], scheduler_name: str) -> tuple[str, ...]:
        """The events that may help pods which these plugins rejected."""
        profile = self._observed.profiles.get(scheduler_name)
        if profile is None:
            return ()
        known = (profile.plugins[name] for name in plugins if name in profile.plugins)
        return _events_in_words(interest.event for plugin in known for interest in interests_of(plugin))


def _id(cause: Cause) -> str:
    return f"{zlib.crc32(repr(cause.key).encode()):08x}"


def _is_of_workload(cause: Cause, pod: Pod) -> bool:
    return bool(cause.workload) and pod.metadata.controller is not None


def _since(waiting: PendingPod) -> float:
    return waiting.queued.added if waiting.queued is not None else created_at(waiting.pod)


def requests_of(pod: Pod) -> dict[str, str]:
    """The requests of all its containers, as they are written; those of several are too many for a line."""
    found: dict[str, str] = {}
    for container in pod.spec.containers:
        for name, amount in container.resources.requests.items():
            found[name] = f"{found[name]} + {amount}" if name in found else str(amount)
    return found


# -- events in words --------------------------------------------------------------------------------------------------

_CHANGES = {
    Action.UPDATE_NODE_ALLOCATABLE: "what it offers",
    Action.UPDATE_NODE_LABEL: "labels",
    Action.UPDATE_NODE_TAINT: "taints",
    Action.UPDATE_NODE_CONDITION: "conditions",
    Action.UPDATE_NODE_ANNOTATION: "annotations",
    Action.UPDATE_NODE_DECLARED_FEATURE: "features",
    Action.UPDATE_POD_LABEL: "labels",
    Action.UPDATE_POD_SCALE_DOWN: "lower requests",
    Action.UPDATE_POD_TOLERATION: "tolerations",
    Action.UPDATE_POD_SCHEDULING_GATES_ELIMINATED: "gates",
    Action.UPDATE_POD_GENERATED_RESOURCE_CLAIM: "claims",
}


def _events_in_words(events: Iterable[ClusterEvent]) -> tuple[str, ...]:
    """One phrase for each kind of object: `Node added, changed (labels, taints)`."""
    by_kind: dict[str, Action] = {}
    for event in events:
        if event.is_wildcard:
            return ("anything that happens",)
        by_kind[str(event.kind)] = by_kind.get(str(event.kind), Action(0)) | event.action
    return tuple(f"{_noun(kind)} {_verbs(action)}" for kind, action in by_kind.items())


def _noun(kind: str) -> str:
    name = kind.rpartition("/")[2]
    return "Pod" if name in POD_KINDS else name


def _verbs(action: Action) -> str:
    verbs = [word for flag, word in ((Action.ADD, "added"), (Action.DELETE, "deleted")) if action & flag]
    if action & Action.UPDATE == Action.UPDATE:
        verbs.append("changed")
    elif action & Action.UPDATE:
        verbs.append(f"changed ({', '.join(word for flag, word in _CHANGES.items() if action & flag)})")
    return ", ".join(verbs)
