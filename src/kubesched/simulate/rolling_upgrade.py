"""A rolling upgrade of some nodes in virtual time: new ones come first, old ones are drained as budgets allow, and go.

surge: one more node ──► it is up ──► cordon an old one ──► evict, as budgets allow ──► empty: it goes ──► the next
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial

from msgspec.structs import replace

from kubesched.api.devices import ResourceSlice
from kubesched.api.meta import KubeObject
from kubesched.api.node import Node
from kubesched.api.pod import Pod
from kubesched.api.selectors import Selector, compile_selector
from kubesched.api.storage import CSINode
from kubesched.api.workloads import PodDisruptionBudget
from kubesched.controllers.pod_templates import share_of
from kubesched.simulate.nodes import belongs_to, leaves, new_node
from kubesched.simulate.simulation import Simulation

RETRY = 5.0
"""Seconds until an eviction that a budget forbade is tried again, as `kubectl drain` does."""


class BudgetTracker:
    """All budgets, and the pods that are up. All pods that were there at first have to be there."""

    def __init__(self, budgets: Iterable[PodDisruptionBudget], pods: Iterable[Pod]) -> None:
        """`pods` are all that should be there, those that wait included."""
        self._guards: dict[str, list[tuple[PodDisruptionBudget, Selector]]] = {}
        for budget in budgets:
            selector = compile_selector(budget.spec.selector)
            if not selector.nothing:
                self._guards.setdefault(budget.namespace, []).append((budget, selector))
        guarded: Counter[str] = Counter()
        self.up: Counter[str] = Counter()
        """By budget: how many of its pods are up."""
        for pod in pods:
            keys = [budget.key for budget in self.guarding(pod)]
            guarded.update(keys)
            self.up.update(keys if pod.spec.node_name else ())
        self.wanted = {
            budget.key: _needed(budget, guarded[budget.key], self.up[budget.key])
            for guards in self._guards.values()
            for budget, _ in guards
        }
        """By budget: how many of its pods have to be up."""

    def guarding(self, pod: Pod) -> list[PodDisruptionBudget]:
        guards = self._guards.get(pod.namespace, ())
        return [budget for budget, selector in guards if selector.matches(pod.metadata.labels)]

    def comes_up(self, pod: Pod) -> None:
        for budget in self.guarding(pod):
            self.up[budget.key] += 1

    def goes_down(self, pod: Pod) -> None:
        for budget in self.guarding(pod):
            self.up[budget.key] -= 1

    def allowed(self, budget: str) -> int:
        """How many of its pods may go now."""
        return max(0, self.up[budget] - self.wanted[budget])

    def forbid(self, pod: Pod) -> list[str]:
        """The budgets that forbid to evict the pod now."""
        return [budget.key for budget in self.guarding(pod) if not self.allowed(budget.key)]


def _needed(budget: PodDisruptionBudget, pods: int, up: int) -> int:
    """What the definition says of so many pods; without one, what the status leaves."""
    spec = budget.spec
    if spec.max_unavailable is not None:
        return max(0, pods - share_of(spec.max_unavailable, pods, round_up=True))
    if spec.min_available is not None:
        return share_of(spec.min_available, pods, round_up=True)
    return max(0, up - budget.status.disruptions_allowed)


@dataclass(frozen=True, slots=True)
class UpgradePace:
    """How an upgrade goes on. Times are in seconds."""

    surge: int = 1
    """How many nodes there may be besides those of the pool, and are replaced at once. Without any, a node goes before
    the one that replaces it comes."""
    node_startup: float = 60.0
    """From asking for a node until it is ready."""
    pod_startup: float = 10.0
    """From being placed until a pod counts as available to its budgets."""
    drain_timeout: float = 3600.0
    """After so long pods are evicted whatever their budgets say."""


@dataclass(frozen=True, slots=True)
class Forced:
    """A pod that was evicted against a budget, as it had not been allowed in time."""

    time: float
    pod: str
    node: str
    budgets: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Replaced:
    """A node that was upgraded."""

    node: str
    by: str
    began: float
    """When it was cordoned."""
    ended: float
    """When it was empty and went."""
    waited_for: tuple[str, ...] = ()
    """Budgets that made it wait."""


class RollingUpgrade:
    """An operation for a simulation, to be used once; afterwards it tells how it went."""

    def __init__(self, nodes: Iterable[str], pace: UpgradePace | None = None) -> None:
        self.pace = pace or UpgradePace()
        self.replaced: list[Replaced] = []
        self.forced: list[Forced] = []
        self._left = deque(nodes)
        self._starting: set[str] = set()
        """The uids of pods that are placed, and not up yet."""
        self._on: dict[str, dict[str, Pod]] = {node: {} for node in self._left}
        """By node that is to be replaced, and uid: the pods on it."""

    def begin(self, simulation: Simulation) -> None:
        self._simulation = simulation
        # Pods that wait arrive at the start: when they have, it begins.
        simulation.plan(0.0, self._start)

    def bound(self, pod: Pod) -> None:
        if pod.spec.node_name in self._on:
            self._on[pod.spec.node_name][pod.uid] = pod
        self._starting.add(pod.uid)
        self._simulation.plan(self._simulation.now + self.pace.pod_startup, partial(self._comes_up, pod))

    def gone(self, pod: Pod) -> None:
        self._on.get(pod.spec.node_name, {}).pop(pod.uid, None)
        if pod.uid in self._starting:
            self._starting.remove(pod.uid)
        else:
            self._budgets.goes_down(pod)

    def _comes_up(self, pod: Pod) -> None:
        if pod.uid in self._starting:
            self._starting.remove(pod.uid)
            self._budgets.comes_up(pod)

    # -- node by node -------------------------------------------------------------------------------------------------

    def _start(self) -> None:
        pods = self._simulation.objects(Pod)
        self._budgets = BudgetTracker(self._simulation.objects(PodDisruptionBudget), pods)
        for pod in pods:
            if pod.spec.node_name in self._on:
                self._on[pod.spec.node_name][pod.uid] = pod
        self._nodes = {node.name: node for node in self._simulation.objects(Node)}
        for _ in range(max(1, self.pace.surge)):
            self._next()

    def _next(self) -> None:
        if not self._left:
            return
        old = self._left.popleft()
        if self.pace.surge:
            self._later(self.pace.node_startup, partial(self._add_and_drain, old))
        else:
            self._cordon(old)

    def _add_and_drain(self, old: str) -> None:
        self._add(old, self._belongings(old))
        self._cordon(old)

    def _add(self, old: str, belongings: Iterable[KubeObject]) -> None:
        """The node that is there instead, with daemons like those that the old one has or had."""
        for obj in new_node(self._nodes[old], self._new_name(old), belongings):
            self._simulation.put(obj)

    def _new_name(self, old: str) -> str:
        name = f"{old}-new"
        while name in self._nodes:
            name += "-new"
        return name

    def _belongings(self, node: str) -> list[KubeObject]:
        of_drivers = (*self._simulation.objects(CSINode), *self._simulation.objects(ResourceSlice))
        return [obj for obj in (*of_drivers, *self._on[node].values()) if belongs_to(obj, node)]

    def _cordon(self, old: str) -> None:
        node = self._nodes[old]
        self._simulation.put(replace(node, spec=replace(node.spec, unschedulable=True)))
        self._drain(old, self._simulation.now, [])

    def _drain(self, old: str, began: float, waited_for: list[str]) -> None:
        now, in_time = self._simulation.now, self._simulation.now - began < self.pace.drain_timeout
        waits = False
        for pod in [pod for pod in self._on[old].values() if leaves(pod)]:
            forbidding = self._budgets.forbid(pod)
            if forbidding and in_time:
                waits = True
                waited_for += [budget for budget in forbidding if budget not in waited_for]
                continue
            if forbidding:
                self.forced.append(Forced(now, pod.key, old, tuple(forbidding)))
            self._simulation.evict(pod)
        if waits:
            self._later(RETRY, partial(self._drain, old, began, waited_for))
        else:
            self._replace(old, began, waited_for)

    def _replace(self, old: str, began: float, waited_for: list[str]) -> None:
        self.replaced.append(Replaced(old, self._new_name(old), began, self._simulation.now, tuple(waited_for)))
        belongings = self._belongings(old)
        for pod in list(self._on[old].values()):
            self._simulation.take_away(pod)
        for obj in (*(obj for obj in belongings if not isinstance(obj, Pod)), self._nodes[old]):
            self._simulation.take_away(obj)
        if self.pace.surge:
            self._next()
        else:
            self._later(self.pace.node_startup, partial(self._add_and_go_on, old, belongings))

    def _add_and_go_on(self, old: str, belongings: list[KubeObject]) -> None:
        self._add(old, belongings)
        self._next()

    def _later(self, seconds: float, action: Callable[[], None]) -> None:
        self._simulation.plan(self._simulation.now + seconds, action)
