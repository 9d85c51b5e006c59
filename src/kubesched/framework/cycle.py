"""One attempt at one pod: what is asked about, and what plugins put aside on the way."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Hashable
from inspect import isawaitable
from types import CoroutineType
from typing import Any, NoReturn, TypeVar

from kubesched.api.pod import Pod
from kubesched.framework.budget import UNLIMITED, Budget
from kubesched.framework.errors import Blame, NotDecidedError, PluginError
from kubesched.framework.extender import ExtenderAnswers
from kubesched.framework.status import Status
from kubesched.framework.stopwatch import Stopwatch
from kubesched.state.cluster import ClusterState
from kubesched.state.columns import Bool
from kubesched.state.facts import PodFacts, StateKey

T = TypeVar("T")

_NOBODY: frozenset[str] = frozenset()
_NOTHING = object()

Deferred = Callable[[], Awaitable[Status | None]]
"""Work that may wait. It returns a status if something could not be done."""


PODS_TO_ACTIVATE = StateKey[dict[str, Pod]]("kubernetes.io/pods-to-activate")
"""Where plugins note other pods, by `namespace/name`, that are worth an attempt right after this one."""


class CycleStateMissingError(LookupError):
    """A plugin looked for something that an earlier extension point, perhaps disabled, should have left."""

    def __init__(self, key: str) -> None:
        super().__init__(f'error reading "{key}" from cycleState: not found')


class Cycle:
    """The pod, the cluster, and the notes of this attempt."""

    __slots__ = (
        "_notes",
        "budget",
        "candidate_rows",
        "deferred",
        "extender_answers",
        "facts",
        "latest",
        "pod",
        "priority",
        "run_post_filter",
        "shared_facts",
        "skipped_filters",
        "skipped_scores",
        "state",
        "watch",
        "watch_of_plugins",
    )

    def __init__(
        self,
        pod: Pod,
        state: ClusterState,
        watch: Stopwatch | None = None,
        extender_answers: ExtenderAnswers | None = None,
        budget: Budget = UNLIMITED,
    ) -> None:
        self.pod = pod
        self.latest: Pod | None = pod
        """The pod as the watch last showed it, which may have changed since its turn came; None if it is gone."""
        self.priority = pod.priority
        """The priority that counts: of the pod as it was when its turn came or, while room is made for it, as it is."""
        self.state = state
        self.watch = watch
        self.watch_of_plugins = watch if watch is not None and watch.is_detailed else None
        self.budget = budget
        """To be looked at every so many steps of work that depends on the pod."""
        self.extender_answers = extender_answers
        """None if no extender has a say about this pod."""
        self.facts: PodFacts = state.facts(pod, keep_node_name=True)
        self.shared_facts = self.facts.without_node_names
        self.candidate_rows: Bool | None = None
        """The only rows that count; None for all. A group of pods may have to stay in one part of the cluster."""
        self.run_post_filter = True
        """Whether post-filters are asked if no node fits. For the pods of a group that is done for all together."""
        self._notes: dict[object, Any] = {}
        self.skipped_filters: frozenset[str] = _NOBODY
        """Plugins whose pre_filter had nothing to do: their filters are not asked."""
        self.skipped_scores: frozenset[str] = _NOBODY
        self.deferred: tuple[Deferred, ...] = ()
        """Writes that plugins deferred: carried out if the attempt fails."""

    @property
    def definition(self) -> Hashable:
        """The pod as it was defined, but for its name: equal for pods that no plugin could tell apart."""
        return self.facts.fingerprint, frozenset(self.pod.metadata.annotations.items())

    def ask(self, plugin: str, point: str, method: Callable[..., T], *about: Any) -> T:
        """The answer of one plugin to a call that is not bound once (see `bound_call`)."""
        return bound_call(plugin, point, method)(*about)

    async def wait_for(self, plugin: str, point: str, method: Callable[..., Any], *about: Any) -> Any:
        """As `ask`, of a method that may be `async def`."""
        with Blame(plugin):
            if self.watch_of_plugins is not None:
                return await self.watch_of_plugins.timed_wait(plugin, point, method, *about)
            answer = method(*about)
            return await answer if type(answer) is CoroutineType or isawaitable(answer) else answer

    def request(self, resource: str) -> int:
        """What the pod asks for of a resource: cpu in thousandths, all else in whole units."""
        return self.facts.amount_of(resource)

    def start_lap(self) -> None:
        """Start measuring here: time since the last extension point counts for none."""
        if self.watch is not None:
            self.watch.start()

    def lap(self, point: str, status: Status | None = None) -> None:
        """An extension point has ended: the time since the last lap is its own."""
        if self.watch is not None:
            self.watch.lap(point, status)

    def defer(self, work: Deferred) -> None:
        """From a plugin that may not wait: have this done before the pod goes back to the queue, now that it failed."""
        self.deferred += (work,)

    def share_notes(self, other: Cycle) -> None:
        """Go on with the notes of an attempt at a pod with the same signature, but for what is noted here already."""
        self._notes = other._notes | self._notes

    def write(self, key: StateKey[T], note: T) -> None:
        """Note something for a later extension point of this attempt."""
        self._notes[key] = note

    def read(self, key: StateKey[T]) -> T:
        """The note under this key in this attempt; if there is none, the configuration is wrong."""
        note: T | None = self._notes.get(key)
        if note is None:
            raise CycleStateMissingError(key.name)
        return note

    def find(self, key: StateKey[T]) -> T | None:
        """As `read`; None if nothing was written."""
        return self._notes.get(key)


def bound_call(plugin: str, point: str, method: Callable[..., T]) -> Callable[..., T]:
    """A call of a plugin, made once per profile. Its first argument is the cycle.

    It is measured if the attempt is looked into, and what it raises is a PluginError of the plugin: but for what says
    that the attempt cannot be decided now (NotDecidedError).
    """

    def call(cycle: Cycle, about: Any = _NOTHING, *more: Any) -> T:
        try:
            if cycle.watch_of_plugins is not None:
                subjects = () if about is _NOTHING else (about, *more)
                return cycle.watch_of_plugins.timed(plugin, point, method, cycle, *subjects)
            if more:
                return method(cycle, about, *more)
            return method(cycle) if about is _NOTHING else method(cycle, about)  # the usual calls, and the fastest
        except Exception as error:
            blame(plugin, error)

    return call


def blame(plugin: str, error: Exception) -> NoReturn:
    """Raise what a plugin raised as a PluginError of it: but for what says that the attempt cannot be decided now."""
    if isinstance(error, (PluginError, NotDecidedError)):
        raise error
    raise PluginError(plugin, error) from error
