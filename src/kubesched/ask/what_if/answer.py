"""The answer to "what if?": two outcomes of a cluster, and the difference between them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from kubesched.api.meta import KubeObject
from kubesched.api.node import Node
from kubesched.api.pod import Pod
from kubesched.api.pod_groups import PodGroup, group_key
from kubesched.api.well_known import ZONE
from kubesched.api.workloads import PodDisruptionBudget
from kubesched.config import SchedulerConfiguration
from kubesched.framework.registry import Registry
from kubesched.simulate.meter import NO_ZONE
from kubesched.simulate.nodes import is_daemon
from kubesched.simulate.report import Figures, Preempted, SimulationReport, Utilisation, figures_of, spread_of
from kubesched.simulate.rolling_upgrade import BudgetTracker, Forced, Replaced, RollingUpgrade
from kubesched.simulate.simulation import Progress, Simulation


@dataclass(frozen=True)
class ClusterOutcome:
    """A cluster once all that can happen has happened."""

    objects: tuple[KubeObject, ...]
    """The cluster before the simulation."""
    report: SimulationReport
    pods: dict[str, tuple[Pod, str]]
    """All that are there at the end, with the reasons of those that wait, each by the name of the one it came from."""
    nodes: dict[str, Node]
    settled: tuple[KubeObject, ...]
    """The whole cluster at the end: what workloads were to make is made, pods are where they were placed."""
    has_groups: bool = False
    """Whether pod groups are scheduled as such."""


def outcome(
    objects: Iterable[KubeObject],
    settings: SchedulerConfiguration,
    *,
    seed: int = 0,
    plugins: Registry | None = None,
    upgrade: RollingUpgrade | None = None,
    progress: Progress | None = None,
) -> ClusterOutcome:
    """Simulate a cluster until nothing changes any more. Pods that run go on: it is about this moment."""
    cluster = tuple(objects)
    simulation = Simulation(cluster, settings, seed=seed, plugins=plugins, operation=upgrade, pods_finish=False)
    report = simulation.run(progress)
    nodes = {node.name: node for node in simulation.objects(Node)}
    pods, settled = simulation.pods_at_the_end(), simulation.objects_at_the_end()
    return ClusterOutcome(cluster, report, pods, nodes, settled, settings.features.pod_groups)


@dataclass(frozen=True, slots=True)
class Moved:
    """A pod that is on another node than before, or on its first one."""

    pod: str
    from_node: str
    """Empty if it waited, or was not there."""
    to_node: str
    is_new: bool = False
    """Whether it is there only because of the changes."""
    unmanaged: bool = False
    """Whether it runs and has no owner: no controller would recreate it."""


@dataclass(frozen=True, slots=True)
class PodLeftWaiting:
    """A pod that has no node because of the changes."""

    pod: str
    from_node: str
    reason: str
    """In the words of its condition."""
    is_new: bool = False
    unmanaged: bool = False


@dataclass(frozen=True, slots=True)
class BudgetOutcome:
    """A disruption budget whose pods have to go elsewhere."""

    budget: str
    wanted: int
    """How many of its pods have to be up."""
    before: int
    """How many are up before."""
    after: int
    leaving: int
    """How many lose the node they are on."""
    short: bool
    """Whether fewer are up in the end than have to be, because of the changes."""
    slows: bool
    """Whether more have to leave than may at once: a drain would wait for some to be up again, or for ever."""


@dataclass(frozen=True, slots=True)
class Count:
    """A number before and after."""

    before: int
    after: int


@dataclass(frozen=True, slots=True)
class ShareChange:
    """What is requested of a resource, as a fraction of what there is; None where there is none of it."""

    before: float | None
    after: float | None


@dataclass(frozen=True, slots=True)
class Fullness:
    """A zone, or all nodes, before and after."""

    name: str
    nodes: Count
    pods: Count
    resources: dict[str, ShareChange]


@dataclass(frozen=True, slots=True)
class WorkloadSpread:
    """A workload whose pods are in other zones than before."""

    workload: str
    zones: dict[str, Count]


@dataclass(frozen=True, slots=True)
class GroupOutcome:
    """A pod group that the changes matter to: its pods run together, or wait together."""

    group: str
    needed: int
    """`minCount`: with fewer pods on nodes the group does not run."""
    pods: int
    """How many it has afterwards."""
    before: int
    """How many of them have nodes before."""
    after: int
    moved: int
    """How many of those are on another node than before."""
    runs: bool
    """Whether it has as many as it needs, afterwards."""
    reason: str
    """Why the others wait, in the words of the group's condition."""


@dataclass(frozen=True, slots=True)
class Upgraded:
    """How a rolling upgrade went."""

    seconds: float
    replaced: tuple[Replaced, ...]
    forced: tuple[Forced, ...]


@dataclass(frozen=True)
class WhatIfAnswer:
    """The difference that changes to a cluster make."""

    changes: tuple[str, ...]
    seed: int
    moved: tuple[Moved, ...]
    placed: tuple[Moved, ...]
    """Pods that have a node only because of the changes: those that waited, and new ones."""
    waiting: tuple[PodLeftWaiting, ...]
    gone: tuple[str, ...]
    """Pods that are deleted, and that no controller recreates."""
    interrupted: tuple[str, ...]
    """Pods of Jobs that run, and lose their node: what they have done so far is lost."""
    evictions: tuple[Preempted, ...]
    """By pods of higher priority, and only because of the changes."""
    budgets: tuple[BudgetOutcome, ...]
    total: Fullness
    zones: tuple[Fullness, ...]
    spread: dict[str, ShareChange]
    """By resource: the standard deviation between the nodes that offer it."""
    workloads: tuple[WorkloadSpread, ...]
    before: Figures
    after: Figures
    groups: tuple[GroupOutcome, ...] = ()
    """Pod groups, where they are scheduled as such: those that do not run first."""
    upgrade: Upgraded | None = None

    @property
    def is_nothing(self) -> bool:
        """Whether no pod is treated otherwise."""
        return not (self.moved or self.placed or self.waiting or self.gone or self.evictions)

    @property
    def reasons(self) -> list[tuple[str, list[PodLeftWaiting]]]:
        """Waiting pods by the reason, that of most pods first."""
        groups: dict[str, list[PodLeftWaiting]] = {}
        for pod in self.waiting:
            groups.setdefault(pod.reason, []).append(pod)
        return sorted(groups.items(), key=lambda group: -len(group[1]))

    @property
    def broken_budgets(self) -> tuple[str, ...]:
        """Budgets that are not kept: too few pods are up in the end, or some were evicted against it."""
        forced = self.upgrade.forced if self.upgrade is not None else ()
        short = [budget.budget for budget in self.budgets if budget.short]
        return tuple(dict.fromkeys([*short, *(budget for eviction in forced for budget in eviction.budgets)]))


def difference(
    before: ClusterOutcome,
    after: ClusterOutcome,
    changes: Sequence[str],
    *,
    seed: int = 0,
    upgrade: Upgraded | None = None,
) -> WhatIfAnswer:
    """What is different afterwards. Daemons come and go with their nodes: only pending ones are listed."""
    moved: list[Moved] = []
    placed: list[Moved] = []
    waiting: list[PodLeftWaiting] = []
    given = {obj.key: obj for obj in before.objects if isinstance(obj, Pod)}
    for key, (pod, reason) in after.pods.items():
        # One that is evicted either way is not new: it was where it is given.
        earlier = before.pods[key][0] if key in before.pods else given.get(key)
        was_on, is_on = earlier.spec.node_name if earlier is not None else "", pod.spec.node_name
        runs = key in given and bool(given[key].spec.node_name)
        is_new, unmanaged = earlier is None, runs and pod.metadata.controller is None
        if not is_on and (is_new or was_on):
            waiting.append(PodLeftWaiting(key, was_on, reason, is_new, unmanaged))
        elif was_on and is_on != was_on:
            moved.append(Moved(key, was_on, is_on, unmanaged=unmanaged))
        elif is_on and not was_on and not (is_new and is_daemon(pod)):
            placed.append(Moved(key, "", is_on, is_new, unmanaged))
    gone = [key for key, (pod, _) in before.pods.items() if key not in after.pods and not is_daemon(pod)]
    first, last = before.report, after.report
    return WhatIfAnswer(
        changes=tuple(changes),
        seed=seed,
        moved=tuple(sorted(moved, key=lambda pod_change: pod_change.pod)),
        placed=tuple(sorted(placed, key=lambda pod_change: pod_change.pod)),
        waiting=tuple(sorted(waiting, key=lambda pod_change: pod_change.pod)),
        gone=tuple(sorted(gone)),
        interrupted=_interrupted_jobs(given, (*moved, *waiting), gone),
        evictions=_new_evictions(first.preemptions, last.preemptions),
        budgets=tuple(_budgets(before, after)),
        total=_fullness("all", first.total, last.total),
        zones=_zones(first.by_zone, last.by_zone),
        spread=_spread(first, last),
        workloads=tuple(_workloads(before, after)),
        before=figures_of(first),
        after=figures_of(last),
        groups=group_outcomes(before, after),
        upgrade=upgrade,
    )


def _interrupted_jobs(
    given: Mapping[str, Pod], displaced: Iterable[Moved | PodLeftWaiting], gone: Iterable[str]
) -> tuple[str, ...]:
    names = [pod_change.pod for pod_change in displaced if pod_change.from_node]
    running = (given[name] for name in (*names, *gone) if name in given and given[name].spec.node_name)
    owners = ((pod.key, pod.metadata.controller) for pod in running)
    return tuple(sorted(key for key, owner in owners if owner is not None and owner.kind == "Job"))


def _new_evictions(before: Iterable[Preempted], after: Iterable[Preempted]) -> tuple[Preempted, ...]:
    keys = {(eviction.preemptor, eviction.victims) for eviction in before}
    return tuple(eviction for eviction in after if (eviction.preemptor, eviction.victims) not in keys)


# -- budgets -----------------------------------------------------------------------------------------------------------


def _budgets(before: ClusterOutcome, after: ClusterOutcome) -> Iterable[BudgetOutcome]:
    """The budgets whose pods the changes move or stop."""
    guards = [obj for obj in after.objects if isinstance(obj, PodDisruptionBudget)]
    if not guards:
        return
    first = BudgetTracker(guards, (pod for pod, _ in before.pods.values()))
    then = BudgetTracker(guards, (pod for pod, _ in after.pods.values()))
    leaving: Counter[str] = Counter()
    for key, (pod, _) in before.pods.items():
        now = after.pods.get(key)
        if pod.spec.node_name and (now is None or now[0].spec.node_name != pod.spec.node_name):
            leaving.update(budget.key for budget in first.guarding(pod))
    for budget, wanted in first.wanted.items():
        up, later = first.up.get(budget, 0), then.up.get(budget, 0)
        short = later < wanted and later < up
        if leaving[budget] or short:
            slows = leaving[budget] > first.allowed(budget)
            yield BudgetOutcome(budget, wanted, up, later, leaving[budget], short, slows)


# -- fullness and spread -----------------------------------------------------------------------------------------------


def _zones(before: Iterable[Utilisation], after: Iterable[Utilisation]) -> tuple[Fullness, ...]:
    first, then = ({zone.name: zone for zone in zones} for zones in (before, after))
    return tuple(_fullness(name, first.get(name), then.get(name)) for name in sorted({*first, *then}))


def _fullness(name: str, before: Utilisation | None, after: Utilisation | None) -> Fullness:
    shares = [
        {resource: share.end for resource, share in side.resources.items()} if side is not None else {}
        for side in (before, after)
    ]
    nodes, pods = (
        Count(*(getattr(side, figure) if side is not None else 0 for side in (before, after)))
        for figure in ("nodes", "pods")
    )
    return Fullness(name, nodes, pods, _share_changes(*shares))


def _share_changes(before: Mapping[str, float], after: Mapping[str, float]) -> dict[str, ShareChange]:
    return {name: ShareChange(before.get(name), after.get(name)) for name in {**before, **after}}


def _spread(before: SimulationReport, after: SimulationReport) -> dict[str, ShareChange]:
    sides = ({name: spread_of(side, name) for name in side.total.resources} for side in (before, after))
    return _share_changes(*sides)


def _workloads(before: ClusterOutcome, after: ClusterOutcome) -> Iterable[WorkloadSpread]:
    """The workloads that have another number of pods in some zone."""
    first, then = _zones_of_workloads(before), _zones_of_workloads(after)
    for workload in sorted({*first, *then}):
        was, is_now = first.get(workload, Counter()), then.get(workload, Counter())
        if was != is_now:
            zones = sorted({*was, *is_now})
            yield WorkloadSpread(workload, {zone: Count(was[zone], is_now[zone]) for zone in zones})


def _zones_of_workloads(side: ClusterOutcome) -> dict[str, Counter[str]]:
    zones: dict[str, Counter[str]] = {}
    for pod, _ in side.pods.values():
        owner, node = pod.metadata.controller, side.nodes.get(pod.spec.node_name)
        if owner is not None and node is not None and not is_daemon(pod):
            zone = node.metadata.labels.get(ZONE, NO_ZONE)
            zones.setdefault(f"{pod.namespace}/{owner.kind.lower()}/{owner.name}", Counter())[zone] += 1
    return zones


_Members = dict[str, tuple[Pod, str]]
"""The pods of a group with the reasons of those that wait, by the names that they had at first."""


def group_outcomes(before: ClusterOutcome, after: ClusterOutcome) -> tuple[GroupOutcome, ...]:
    """The pod groups that the changes matter to. None if groups are not scheduled as such."""
    if not after.has_groups:
        return ()
    first, last = _members(before), _members(after)
    groups = (group for group in after.settled if isinstance(group, PodGroup))
    outcomes = (_group_outcome(group, first.get(group.key, {}), last.get(group.key, {})) for group in groups)
    return tuple(sorted(filter(None, outcomes), key=lambda group: (group.runs, group.group)))


def _group_outcome(group: PodGroup, before: _Members, after: _Members) -> GroupOutcome | None:
    """None if the changes do not matter to the group."""
    nodes, nodes_now = _nodes(before), _nodes(after)
    if nodes == nodes_now and before.keys() == after.keys():
        return None
    return GroupOutcome(
        group.key,
        group.min_count,
        len(after),
        len(nodes),
        len(nodes_now),
        sum(key in nodes and nodes[key] != node for key, node in nodes_now.items()),
        len(nodes_now) >= group.min_count,
        _reason(group, after),
    )


def _reason(group: PodGroup, members: _Members) -> str:
    """What the condition of a group says that was tried; else what its pods say."""
    waiting = [reason for pod, reason in members.values() if not pod.spec.node_name]
    said = [condition.message for condition in group.status.conditions if condition.status == "False"]
    return next(filter(None, (*said, *waiting)), "") if waiting else ""


def _members(side: ClusterOutcome) -> dict[str, _Members]:
    members: dict[str, _Members] = {}
    for key, (pod, reason) in side.pods.items():
        if group := group_key(pod):
            members.setdefault(group, {})[key] = (pod, reason)
    return members


def _nodes(members: _Members) -> dict[str, str]:
    return {key: pod.spec.node_name for key, (pod, _) in members.items() if pod.spec.node_name}
