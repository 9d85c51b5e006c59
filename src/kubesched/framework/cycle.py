"""One attempt at one pod: the pod, the cluster, and what plugins note for later extension points."""

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

_NO_PLUGINS: frozenset[str] = frozenset()
_NO_SUBJECT = object()

Deferred = Callable[[], Awaitable[Status | None]]
"""Work that may wait. It returns a status if something could not be done."""


PODS_TO_ACTIVATE = StateKey[dict[str, Pod]]("kubernetes.io/pods-to-activate")
"""Where plugins note other pods, by `namespace/name`, that are worth an attempt right after this one."""


class CycleStateMissingError(LookupError):
    """A plugin looked for a note that an earlier extension point, perhaps disabled, should have written."""

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
        """The pod as the watch last showed it, which may have changed since the attempt began; None if it is gone."""
        self.priority = pod.priority
        """That of `pod` or, while a post-filter makes room, that of `latest`."""
        self.state = state
        self.watch = watch
        self.watch_of_plugins = watch if watch is not None and watch.is_detailed else None
        self.budget = budget
        """Plugins look at it every so many steps of work that depends on the pod."""
        self.extender_answers = extender_answers
        """None if no extender has a say about this pod."""
        self.facts: PodFacts = state.facts(pod, keep_node_name=True)
        self.shared_facts = self.facts.without_node_names
        self.candidate_rows: Bool | None = None
        """The only rows that the pod may go to, such as those of its group's placement; None for all."""
        self.run_post_filter = True
        """Whether post-filters are asked if no node fits. For a pod group they are asked once, not for each pod."""
        self._notes: dict[StateKey[Any], Any] = {}
        self.skipped_filters: frozenset[str] = _NO_PLUGINS
        """Plugins whose pre_filter had nothing to do: their filters are not asked."""
        self.skipped_scores: frozenset[str] = _NO_PLUGINS
        self.deferred: tuple[Deferred, ...] = ()
        """Writes that plugins deferred: carried out if the attempt fails."""

    @property
    def definition(self) -> Hashable:
        """The pod as it was defined, but for its name: equal for pods that no plugin could tell apart."""
        return self.facts.fingerprint, frozenset(self.pod.metadata.annotations.items())

    def ask(self, plugin: str, point: str, method: Callable[..., T], *args: Any) -> T:
        """The answer of one plugin to a call that is not bound once (see `bound_call`)."""
        return bound_call(plugin, point, method)(*args)

    async def wait_for(self, plugin: str, point: str, method: Callable[..., Any], *args: Any) -> Any:
        """As `ask`, of a method that may be `async def`."""
        with Blame(plugin):
            if self.watch_of_plugins is not None:
                return await self.watch_of_plugins.timed_wait(plugin, point, method, *args)
            answer = method(*args)
            return await answer if type(answer) is CoroutineType or isawaitable(answer) else answer

    def request(self, resource: str) -> int:
        """What the pod asks for of a resource: cpu in thousandths, all else in whole units."""
        return self.facts.amount_of(resource)

    def start_lap(self) -> None:
        """Start measuring here: time since the last extension point counts for no extension point."""
        if self.watch is not None:
            self.watch.start()

    def lap(self, point: str, status: Status | None = None) -> None:
        """An extension point has ended: it took the time since the last lap."""
        if self.watch is not None:
            self.watch.lap(point, status)

    def defer(self, work: Deferred) -> None:
        """For a plugin that may not wait: the scheduler does this work before the failed pod goes back to the queue."""
        self.deferred += (work,)

    def share_notes(self, other: Cycle) -> None:
        """Go on with the notes of an attempt at a pod with the same signature, but for what is noted here already."""
        self._notes = other._notes | self._notes

    def forget_what_decided(self) -> None:
        """Forget the notes that only filters and scores read."""
        self._notes = {key: note for key, note in self._notes.items() if not key.is_for_deciding}

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

    It is measured if the cycle has a detailed stopwatch. What the plugin raises becomes a PluginError, but for a
    NotDecidedError, which says that the attempt cannot be decided now.
    """

    def call(cycle: Cycle, subject: Any = _NO_SUBJECT, *others: Any) -> T:
        try:
            if cycle.watch_of_plugins is not None:
                subjects = () if subject is _NO_SUBJECT else (subject, *others)
                return cycle.watch_of_plugins.timed(plugin, point, method, cycle, *subjects)
            if others:
                return method(cycle, subject, *others)
            return method(cycle) if subject is _NO_SUBJECT else method(cycle, subject)  # fastest for the usual calls
        except Exception as error:
            blame(plugin, error)

    return call


def blame(plugin: str, error: Exception) -> NoReturn:
    """Raise what a plugin raised as a PluginError, but for a NotDecidedError."""
    if isinstance(error, (PluginError, NotDecidedError)):
        raise error
    raise PluginError(plugin, error) from error
