"""Random histories of a cluster, and the question whether a pod waits that a scheduler started afresh would bind.

A history is a list of steps (`waiting_steps.py`); any part of a history is a history, so what is found can be made
smaller by leaving steps out. It happens to a scheduler that is driven step by step, or to one on its event loop in
virtual time, with a watch that lags behind.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Sequence
from typing import Any

from tests import virtual_time
from tests.unit.scheduler.group_world import GroupWorld
from tests.unit.scheduler.memory_cluster import MemoryCluster
from tests.waiting_oracle import could_run
from tests.waiting_rare_steps import RareSteps
from tests.waiting_steps import Verb
from tests.waiting_world import Doorkeeper, Way, world_of

from kubesched.api.meta import KubeObject
from kubesched.api.pod import Pod
from kubesched.scheduler.attempt.attempt import Asking, Attempt, Paused
from kubesched.scheduler.groups.group_attempt import EntityAttempt
from kubesched.scheduler.listener import SchedulerListener
from kubesched.scheduler.loop import SchedulingLoop
from kubesched.scheduler.scheduler import Scheduler

Step = tuple[Any, ...]

_SETTLES_WITHIN = 45
"""Seconds, more than any backoff."""
_DECISIONS_AT_ONCE = 500
"""More than a history has reasons for, at one moment."""
_LAG = 0.01
"""Seconds after which a watch shows what happened, if nothing else is said."""

BASE = (
    *("node", "node", "node gone", "pod", "pod", "pods", "pod gone", "terminate"),
    *("try", "try", "decide", "finish", "wait"),
)
MIXTURES: dict[str, tuple[str, ...]] = {
    "plain": BASE,
    "priorities": (*BASE, "priority", "priority", "graceful", "end"),
    "affinity": (*BASE, "affinity", "affinity", "relabel", "rezone"),
    "spread": (*BASE, "spread", "spread", "relabel", "rezone"),
    "nominations": (*BASE, "nominate", "nominate", "never", "priority", "resize", "gated", "open"),
    "resizes": (*BASE, "resize", "resize", "priority", "nominate", "never"),
    "other schedulers": (*BASE, "foreign", "foreign", "foreign", "nominate", "never"),
    "devices": (*BASE, "slice", "slice", "device", "device", "claim gone", "nominate", "resize"),
    "volumes": (
        *BASE,
        *("storage class", "volume", "volume", "claim", "claim", "claim", "stateful", "stateful", "stateful"),
        *("storage gone", "priority"),
    ),
    "gates": (*BASE, "gated", "open"),
    "groups": (
        *BASE,
        *("group", "group", "group gone", "member", "member", "member", "member gone", "gated member", "open"),
        *("priority", "foreign", "slice", "device"),
    ),
    "extenders": (*BASE, "relabel node", "relabel node", "priority", "nominate", "resize", "foreign"),
    "permit": (*BASE, "door", "door", "allow", "deny", "priority", "lure", "resize", "foreign"),
    "all": (
        *BASE,
        *("priority", "affinity", "spread", "relabel", "rezone", "nominate", "resize", "foreign", "never"),
        *("graceful", "end"),
        *("slice", "device", "gated", "open", "storage class", "volume", "claim", "claim", "stateful", "stateful"),
    ),
    "namespaces": (
        *BASE,
        *("across", "across", "across", "neighbour", "neighbour", "namespace", "namespace"),
        "relabel",
    ),
    "lives": (
        *BASE,
        *("anew", "node lost", "port", "port", "tolerate", "strict", "strict", "priority", "graceful", "end"),
    ),
    "refusals": (
        *BASE,
        *("refuse", "refuse", "refuse", "priority", "priority", "graceful", "end", "slice", "device", "device"),
        *("nominate", "claim", "stateful", "storage class", "volume"),
    ),
    "claims denied": (
        *BASE,
        *("device at the door", "device at the door", "device", "device", "slice", "slice", "deny", "deny", "allow"),
        *("storage class", "volume", "volume", "claim", "claim", "stateful", "stateful at the door", "refuse"),
    ),
    "profiles": (*BASE, "frugal", "frugal", "frugal", "priority", "priority", "nominate", "affinity", "spread"),
    "device owners": (
        *BASE,
        *("tainted slice", "tainted slice", "slice gone", "class", "taint rule", "device claim", "device claim"),
        *("device", "device", "template", "template", "generate", "generate", "release", "release", "claim gone"),
        "slice",
    ),
    "storage owners": (
        *BASE,
        *("storage class", "topology", "topology", "volume", "claim", "claim", "immediate", "immediate", "bind now"),
        *("bind now", "zoned volume", "zoned volume", "csi node", "csi node", "attachment", "driver", "capacity"),
        *("capacity", "stateful", "stateful", "stateful", "stateful", "storage gone"),
    ),
    "changing groups": (
        *BASE,
        *("group", "group", "group gone", "group changed", "group changed", "member", "member", "member", "member"),
        *("member gone", "gated member", "open", "refuse", "priority"),
    ),
}
MIXTURES["slow watches"] = (*MIXTURES["all"], "slow watch", "slow watch", "slice", "device")

WAYS = {f"{mode}{loop}": Way(mode == "batched", bool(loop)) for loop in ("", " loop") for mode in ("batched", "parity")}


def random_history(seed: int, mixture: str, longest: int = 40) -> list[Step]:
    chance = random.Random(f"{mixture} {seed}")
    verbs = MIXTURES[mixture]
    return [
        (chance.choice(verbs), chance.randrange(1 << 16), chance.randrange(1 << 16), chance.randrange(1 << 16))
        for _ in range(chance.randrange(4, longest))
    ]


def left_waiting(history: Sequence[Step], mixture: str, way: Way) -> list[str]:
    """Pods that wait at the end of the history, and need not."""
    if way.on_loop:
        world = virtual_time.run(_run_on_loop(history, mixture, way))
    else:
        model = SteppedModel(mixture, way)
        model.run(history)
        model.settle()
        world = model.world
    return [] if world is None else could_run(world, mixture, way)


def smaller(history: Sequence[Step], fails: Callable[[Sequence[Step]], bool]) -> list[Step]:
    """The history without the steps that do not matter."""
    steps, size = list(history), max(1, len(history) // 2)
    while size:
        start = 0
        while start < len(steps):
            shorter = steps[:start] + steps[start + size :]
            if fails(shorter):
                steps = shorter
            else:
                start += size
        size //= 2
    return steps


# -- a scheduler that is driven step by step ---------------------------------------------------------------------------


class SteppedModel:
    """Pods are decided, and attempts are finished, when a step says so."""

    def __init__(self, mixture: str, way: Way) -> None:
        self.world = world_of(mixture, way)
        cluster, scheduler = self.world.cluster, self.world.scheduler
        self.steps = RareSteps(
            cluster, lambda: cluster.tell(scheduler), _assumed_by(scheduler), beyond_parity=way.batched
        )
        self._decided: list[EntityAttempt] = []
        self._verbs: dict[str, Verb] = {
            **self.steps.verbs,
            **_permit_verbs(self.world.scheduler),
            "graceful": lambda i, a, b: setattr(self.world.cluster, "graceful", bool(i % 2)),
            "slow watch": lambda i, a, b: None,
            "try": lambda i, a, b: self._try(1 + i % 3),
            "decide": lambda i, a, b: self._try(1, finish=False),
            "finish": lambda i, a, b: self._finish(i % max(1, len(self._decided))),
            "wait": lambda i, a, b: self._pass((0.5, 1, 3, 12)[i % 4]),
        }

    def run(self, history: Sequence[Step]) -> None:
        for verb, i, a, b in history:
            self._verbs[verb](i, a, b)

    def settle(self) -> None:
        """Let time pass until nothing happens any more; nobody is woken by time alone."""
        self.steps.end_refusals()
        while self._decided:
            self._finish()
        for _ in range(_SETTLES_WITHIN):
            self.steps.end_terminating()
            self.steps.bind_claims()
            self._try(200)
            _let_in(self.world.scheduler)
            self._pass(1)
            if _is_quiet(self.world):
                return

    def _pass(self, seconds: float) -> None:
        self.world.pass_seconds(seconds)
        for attempt in self.world.scheduler.permitted():
            self.world.finish_all(attempt)

    def _try(self, most: int, *, finish: bool = True) -> None:
        for _ in range(most):
            if not self._decide_one():
                return
            if finish:
                self._finish(-1)

    def _decide_one(self) -> bool:
        attempt = self.world.scheduler.pop()
        if attempt is None:
            return False
        self.world.scheduler.decide(attempt)
        while isinstance(attempt.state, Asking | Paused):
            self.world.answer(attempt)
            self.world.scheduler.decide(attempt)
        self._decided.append(attempt)
        return True

    def _finish(self, which: int = 0) -> None:
        if self._decided:
            self.world.finish_all(self._decided.pop(which))
            self.steps.bind_claims()


def _assumed_by(scheduler: Scheduler) -> Callable[[Pod], bool]:
    return lambda pod: scheduler.state.placed(pod) is not None


def _is_quiet(world: GroupWorld) -> bool:
    queue = world.queue
    places = (queue.backoff, queue.active, queue.error_backoff, queue.in_flight, lambda: list(world.scheduler.waiting))
    return not any(pods() for pods in places) and not any(pod.is_terminating for pod in world.cluster.pods.values())


def _permit_verbs(scheduler: Scheduler) -> dict[str, Verb]:
    def allow(i: int, a: int, b: int) -> None:
        waiting = list(scheduler.waiting)
        if waiting:
            waiting[i % len(waiting)].allow(Doorkeeper.name)

    def deny(i: int, a: int, b: int) -> None:
        waiting = list(scheduler.waiting)
        if waiting:
            waiting[i % len(waiting)].reject(Doorkeeper.name, "not today")

    return {"allow": allow, "deny": deny}


def _let_in(scheduler: Scheduler) -> None:
    """In the end the Permit plugin has no objections, or pods that wait for it would take turns for ever."""
    for waiting in scheduler.waiting:
        waiting.allow(Doorkeeper.name)


# -- a scheduler on its event loop -------------------------------------------------------------------------------------


class WatchedCluster(MemoryCluster):
    """The scheduler hears of a change a moment after it happened. Victims leave and claims are bound by themselves.

    Each kind has a watch of its own, some slower than others.
    """

    def __init__(self) -> None:
        super().__init__()
        self.steps: RareSteps | None = None
        self.scheduler: Scheduler | None = None
        self.lags: dict[type[KubeObject], float] = {}

    def put(self, obj: KubeObject) -> None:
        super().put(obj)
        self._changed(type(obj))

    def remove(self, obj: KubeObject) -> None:
        super().remove(obj)
        self._changed(type(obj))

    def slow_down(self, i: int, a: int, b: int) -> None:
        """The watch of a kind shows from now on what is a moment old, or seconds."""
        kinds = list(dict.fromkeys(type(obj) for obj in self.objects.values()))
        if kinds:
            self.lags[kinds[i % len(kinds)]] = (0.01, 0.05, 0.4, 2.5)[a % 4]

    def _tell_first(self, kind: type[KubeObject]) -> None:
        """The next event of one of the watches."""
        change = next(change for change in self.unseen if isinstance(change.obj, kind))
        self.unseen.remove(change)
        self.unseen.appendleft(change)
        assert self.scheduler is not None
        self.tell(self.scheduler, 1)

    def _changed(self, kind: type[KubeObject]) -> None:
        loop = asyncio.get_running_loop()
        if self.scheduler is not None and self.steps is not None:
            loop.call_later(self.lags.get(kind, _LAG), self._tell_first, kind)
            loop.call_later(0.2, self.steps.bind_claims)
            loop.call_later(2.0, self.steps.end_terminating)


class LoopWorld(GroupWorld):
    """Time is that of the event loop."""

    cluster_type = WatchedCluster

    @property
    def now(self) -> float:
        return virtual_time.now()

    @now.setter
    def now(self, now: float) -> None:
        """Time passes by itself."""


class Patience(SchedulerListener):
    """Ends a history in which pods are tried again and again while no time passes."""

    def __init__(self) -> None:
        self._now, self._decisions = 0.0, 0

    def decided(self, attempt: Attempt) -> None:
        if virtual_time.now() > self._now:
            self._now, self._decisions = virtual_time.now(), 0
        self._decisions += 1
        assert self._decisions < _DECISIONS_AT_ONCE, f"{attempt.queued.key} is tried again and again"


async def _run_on_loop(history: Sequence[Step], mixture: str, way: Way) -> GroupWorld | None:
    """The world at the end; None if it does not come to rest."""
    world = world_of(mixture, way, LoopWorld)
    cluster = world.cluster
    assert isinstance(cluster, WatchedCluster)
    cluster.scheduler = world.scheduler
    cluster.steps = RareSteps(cluster, lambda: None, _assumed_by(world.scheduler), beyond_parity=way.batched)
    verbs = {**cluster.steps.verbs, **_permit_verbs(world.scheduler)}
    verbs["graceful"] = lambda i, a, b: setattr(cluster, "graceful", bool(i % 2))
    verbs["slow watch"] = cluster.slow_down
    pauses = {"try": (0.0, 0.02, 0.3), "decide": (0.0,), "finish": (0.015,), "wait": (0.5, 1, 3, 12)}
    world.scheduler.listeners.append(Patience())
    loop = SchedulingLoop(world.scheduler)
    running = asyncio.create_task(loop.run())
    for verb, i, a, b in history:
        if verb in pauses:
            await asyncio.sleep(pauses[verb][i % len(pauses[verb])])
        else:
            verbs[verb](i, a, b)
    cluster.steps.end_refusals()
    for _ in range(_SETTLES_WITHIN):
        await asyncio.sleep(1)
        _let_in(world.scheduler)
        if _is_quiet(world) and not loop.unfinished and not cluster.unseen:
            break
    is_at_rest = not loop.unfinished and not cluster.unseen
    await loop.stop(within=0.1)
    await running
    return world if is_at_rest else None
