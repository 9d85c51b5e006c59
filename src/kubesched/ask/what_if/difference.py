"""Two outcomes of a cluster side by side: what is different, and by whom."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from kubesched.api.pod import Pod
from kubesched.api.pod_groups import PodGroup, group_key
from kubesched.api.well_known import ZONE
from kubesched.api.workloads import PodDisruptionBudget
from kubesched.ask.what_if.answer import (
    BudgetOutcome,
    Count,
    Fullness,
    GroupOutcome,
    Moved,
    PodLeftWaiting,
    ShareChange,
    Upgraded,
    WhatIfAnswer,
    WorkloadSpread,
)
from kubesched.ask.what_if.outcome import ClusterOutcome
from kubesched.simulate.budgets import BudgetTracker
from kubesched.simulate.meter import NO_ZONE
from kubesched.simulate.report import Preempted, SimulationReport, Utilisation, figures_of, spread_of


def difference(
    before: ClusterOutcome,
    after: ClusterOutcome,
    changes: Sequence[str],
    *,
    seed: int = 0,
    upgrade: Upgraded | None = None,
) -> WhatIfAnswer:
    """What is different afterwards. Daemons come and go with their nodes: only those that wait are told of."""
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
        elif is_on and not was_on and not (is_new and _is_daemon(pod)):
            placed.append(Moved(key, "", is_on, is_new, unmanaged))
    gone = [key for key, (pod, _) in before.pods.items() if key not in after.pods and not _is_daemon(pod)]
    first, then = before.report, after.report
    return WhatIfAnswer(
        changes=tuple(changes),
        seed=seed,
        moved=tuple(sorted(moved, key=lambda each: each.pod)),
        placed=tuple(sorted(placed, key=lambda each: each.pod)),
        waiting=tuple(sorted(waiting, key=lambda each: each.pod)),
        gone=tuple(sorted(gone)),
        evictions=_new_evictions(first.preemptions, then.preemptions),
        budgets=tuple(_budgets(before, after)),
        total=_fullness("all", first.total, then.total),
        zones=_zones(first.by_zone, then.by_zone),
        spread=_spread(first, then),
        workloads=tuple(_workloads(before, after)),
        before=figures_of(first),
        after=figures_of(then),
        groups=group_outcomes(before, after),
        upgrade=upgrade,
    )


def _is_daemon(pod: Pod) -> bool:
    owner = pod.metadata.controller
    return owner is not None and owner.kind == "DaemonSet"


def _new_evictions(before: Iterable[Preempted], after: Iterable[Preempted]) -> tuple[Preempted, ...]:
    known = {(each.preemptor, each.victims) for each in before}
    return tuple(each for each in after if (each.preemptor, each.victims) not in known)


# -- budgets -----------------------------------------------------------------------------------------------------------


def _budgets(before: ClusterOutcome, after: ClusterOutcome) -> Iterable[BudgetOutcome]:
    """Those that the changes matter to."""
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
    return Fullness(name, nodes, pods, _changes(*shares))


def _changes(before: Mapping[str, float], after: Mapping[str, float]) -> dict[str, ShareChange]:
    return {name: ShareChange(before.get(name), after.get(name)) for name in {**before, **after}}


def _spread(before: SimulationReport, after: SimulationReport) -> dict[str, ShareChange]:
    sides = ({name: spread_of(side, name) for name in side.total.resources} for side in (before, after))
    return _changes(*sides)


def _workloads(before: ClusterOutcome, after: ClusterOutcome) -> Iterable[WorkloadSpread]:
    """Those of which another number of pods is in some zone."""
    first, then = _zones_of_workloads(before), _zones_of_workloads(after)
    for workload in sorted({*first, *then}):
        was, is_now = first.get(workload, Counter()), then.get(workload, Counter())
        if was != is_now:
            zones = sorted({*was, *is_now})
            yield WorkloadSpread(workload, {zone: Count(was[zone], is_now[zone]) for zone in zones})


def _zones_of_workloads(side: ClusterOutcome) -> dict[str, Counter[str]]:
    found: dict[str, Counter[str]] = {}
    for pod, _ in side.pods.values():
        owner, node = pod.metadata.controller, side.nodes.get(pod.spec.node_name)
        if owner is not None and node is not None and not _is_daemon(pod):
            zone = node.metadata.labels.get(ZONE, NO_ZONE)
            found.setdefault(f"{pod.namespace}/{owner.kind.lower()}/{owner.name}", Counter())[zone] += 1
    return found


_Members = dict[str, tuple[Pod, str]]
"""The pods of a group with the reasons of those that wait, by the names that they had at first."""


def group_outcomes(before: ClusterOutcome, after: ClusterOutcome) -> tuple[GroupOutcome, ...]:
    """Those that the changes matter to. None if groups are not scheduled as such."""
    return tuple(sorted(_told(before, after), key=lambda each: (each.runs, each.group))) if after.has_groups else ()


def _told(before: ClusterOutcome, after: ClusterOutcome) -> Iterator[GroupOutcome]:
    first, then = _members(before), _members(after)
    for group in after.settled:
        if not isinstance(group, PodGroup):
            continue
        was, is_now = first.get(group.key, {}), then.get(group.key, {})
        nodes, nodes_now = _nodes(was), _nodes(is_now)
        if nodes == nodes_now and was.keys() == is_now.keys():
            continue
        yield GroupOutcome(
            group.key,
            group.min_count,
            len(is_now),
            len(nodes),
            len(nodes_now),
            sum(key in nodes and nodes[key] != node for key, node in nodes_now.items()),
            len(nodes_now) >= group.min_count,
            _reason(group, is_now),
        )


def _reason(group: PodGroup, members: _Members) -> str:
    """What the condition of a group says that was tried; else what its pods say."""
    waiting = [reason for pod, reason in members.values() if not pod.spec.node_name]
    said = [condition.message for condition in group.status.conditions if condition.status == "False"]
    return next(filter(None, (*said, *waiting)), "") if waiting else ""


def _members(side: ClusterOutcome) -> dict[str, _Members]:
    found: dict[str, _Members] = {}
    for key, (pod, reason) in side.pods.items():
        if group := group_key(pod):
            found.setdefault(group, {})[key] = (pod, reason)
    return found


def _nodes(members: _Members) -> dict[str, str]:
    return {key: pod.spec.node_name for key, (pod, _) in members.items() if pod.spec.node_name}
