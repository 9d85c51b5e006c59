"""One pass over the pending pods: each is decided in the order of the queue and stands on its node for those after it.

`capacity` counts how many copies of one pod find a node that way.

No pod is evicted and none is tried twice: what preemption would do is reported, not done. Permit and binding are left
out, as there is no API server to write to.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from heapq import nsmallest

from msgspec.structs import replace

from kubesched.api.change import Change
from kubesched.api.meta import KubeObject, ObjectMeta, OwnerReference
from kubesched.api.pod import PersistentVolumeClaimSource, Pod, PodStatus, Volume
from kubesched.api.storage import ClaimStatus, PersistentVolumeClaim
from kubesched.api.well_known import ZONE
from kubesched.framework.cycle import Cycle
from kubesched.framework.decision import Decision, Outcome
from kubesched.framework.status import Status
from kubesched.plugins.default_preemption.candidates import Candidate, EvictionBudgets
from kubesched.plugins.default_preemption.dry_run import DryRun
from kubesched.plugins.default_preemption.plugin import NOT_HELPFUL, PreemptionDetails
from kubesched.simulate.claims import settle_claims
from kubesched.simulate.cluster import ClusterModel
from kubesched.simulate.kinds import PodWorkload, StatefulSet
from kubesched.simulate.meter import NO_ZONE
from kubesched.state.cluster import ClusterState
from kubesched.state.pods import PlacedPod

MOST_OTHERS = 100
"""The most nodes besides the chosen one for which a proposal says what making room there would take."""


@dataclass(frozen=True, slots=True)
class Victim:
    """A pod that would have to go, and the disruption budgets that guard it."""

    pod: str
    priority: int
    budgets: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ProposedEviction:
    """What it would take to make room on one node."""

    node: str
    victims: tuple[Victim, ...]
    budget_violations: int = 0


@dataclass(frozen=True, slots=True)
class NoHelp:
    """Nodes on which evicting others would change nothing, and why."""

    reason: str
    nodes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PreemptionProposal:
    """The outcome of asking whether room can be made."""

    chosen: ProposedEviction | None = None
    others: tuple[ProposedEviction, ...] = ()
    """Further nodes where it could be done, the least costly first."""
    no_help: tuple[NoHelp, ...] = ()
    message: str = ""
    """Why nothing can be done, as the pod's condition tells it."""


def preemption_of(decision: Decision, state: ClusterState) -> PreemptionProposal | None:
    """All that the post-filters found; None if they were not asked."""
    result, status = decision.post_filter, decision.post_filter_status
    if result is None and status is None:
        return None
    chosen = chosen_eviction(decision, state)
    message = status.message if status is not None else ""
    details = result.details if result is not None else None
    if not isinstance(details, PreemptionDetails) or details.run is None:
        return PreemptionProposal(chosen, message=message)
    reader = _Reader(state)
    candidates = (
        (candidate.cost, state.nodes.names[candidate.row], candidate) for candidate in details.run.candidates()
    )
    others = [candidate for _, _, candidate in nsmallest(MOST_OTHERS + 1, candidates, key=lambda ranked: ranked[:2])]
    return PreemptionProposal(
        chosen=chosen,
        others=tuple(reader.eviction(candidate) for candidate in others if candidate.row != details.best[0]),
        no_help=reader.no_help(details.run),
        message=message,
    )


def chosen_eviction(decision: Decision, state: ClusterState) -> ProposedEviction | None:
    """What preemption would do, if it can do anything."""
    result = decision.post_filter
    if result is None or not result.nominated:
        return None
    reader = _Reader(state)
    details = result.details
    if isinstance(details, PreemptionDetails) and details.run is not None:
        return reader.eviction(details.run.candidate(details.best[0]))
    # A plugin of the user's own names a node and victims, without further details.
    return ProposedEviction(result.nominated, reader.victims(result.victims))


class _Reader:
    """Turns rows and placed pods into names."""

    def __init__(self, state: ClusterState) -> None:
        self._names = state.nodes.names
        self._live = state.nodes.live
        self._size = state.nodes.size
        self._budgets = EvictionBudgets(state.objects, state.features.release)

    def eviction(self, candidate: Candidate) -> ProposedEviction:
        return ProposedEviction(self._names[candidate.row], self.victims(candidate.victims), candidate.violations)

    def victims(self, pods: Iterable[PlacedPod]) -> tuple[Victim, ...]:
        return tuple(
            Victim(placed.pod.key, placed.pod.priority, tuple(budget.name for budget in self._budgets.of(placed.facts)))
            for placed in pods
        )

    def no_help(self, run: DryRun) -> tuple[NoHelp, ...]:
        """Nodes where preemption does not help, by reason: first those where evictions were tried."""
        nodes: dict[str, list[str]] = {}
        for status, rows in run.failures:
            nodes.setdefault(status.message, []).extend(self._names[row] for row in rows.tolist())
        potential = set(run.potential.tolist())
        untried = [self._names[row] for row in range(self._size) if self._live[row] and row not in potential]
        if untried:
            nodes.setdefault(NOT_HELPFUL, []).extend(untried)
        return tuple(NoHelp(reason, tuple(sorted(names))) for reason, names in nodes.items())


@dataclass(frozen=True, slots=True)
class PodPlacement:
    """A pod with the node that was found for it."""

    pod: str
    priority: int
    node: str
    score: int
    feasible: int
    """How many nodes would have done."""
    ties: int
    """How many of them were equally good; one was drawn."""


@dataclass(frozen=True, slots=True)
class UnplacedPod:
    """A pod that stays pending, in the words of its condition; `eviction` is what preemption would do for it."""

    pod: str
    priority: int
    outcome: str
    message: str
    eviction: ProposedEviction | None = None


@dataclass(frozen=True, slots=True)
class PlacementReport:
    """What became of the pending pods, in the order in which they were tried."""

    nodes: int
    seed: int
    placed: tuple[PodPlacement, ...]
    unplaced: tuple[UnplacedPod, ...]


def place(cluster: ClusterModel) -> PlacementReport:
    """Place all pending pods. The cluster's state holds them afterwards."""
    placed, unplaced = by_outcome(place_one(cluster, pod) for pod in cluster.pending())
    return PlacementReport(cluster.state.nodes.live_count, cluster.seed, placed, unplaced)


def by_outcome(
    outcomes: Iterable[PodPlacement | UnplacedPod],
) -> tuple[tuple[PodPlacement, ...], tuple[UnplacedPod, ...]]:
    """The pods that found a node, and the pods that did not, in their order."""
    all_outcomes = list(outcomes)
    return (
        tuple(outcome for outcome in all_outcomes if isinstance(outcome, PodPlacement)),
        tuple(outcome for outcome in all_outcomes if isinstance(outcome, UnplacedPod)),
    )


def place_one(
    cluster: ClusterModel, pod: Pod, using: Callable[[Pod], Decision] | None = None
) -> PodPlacement | UnplacedPod:
    """Decide on one pod; if it finds a node, it stands there from now on. `using` takes the place of `schedule`."""
    engine = cluster.engine
    if not engine.knows(pod.spec.scheduler_name):
        text = f"waits for another scheduler: there is no profile {pod.spec.scheduler_name!r}"
        return UnplacedPod(pod.key, pod.priority, "skipped", text)
    if pod.is_terminating:
        return UnplacedPod(pod.key, pod.priority, "skipped", "is being deleted")
    decision = schedule(cluster, pod) if using is None else using(pod)
    if decision.outcome is not Outcome.SCHEDULED:
        eviction = chosen_eviction(decision, cluster.state)
        return UnplacedPod(pod.key, pod.priority, decision.outcome.value, decision.message, eviction)
    return PodPlacement(pod.key, pod.priority, decision.node, decision.score, decision.feasible, decision.draw.among)


def schedule(cluster: ClusterModel, pod: Pod) -> Decision:
    """Run PreEnqueue, the scheduling cycle and Reserve. A pod that finds a node stands there from now on."""
    decision = decide_on(cluster, pod)
    if decision.outcome is Outcome.SCHEDULED:
        with ExitStack() as undo:
            if reserve(cluster, decision, undo):
                undo.pop_all()
                placed = cluster.state.placed(pod)
                assert placed is not None
                cluster.state.apply(placed.pod)
                settle_claims(decision, cluster.state)
    return decision


def decide_on(cluster: ClusterModel, pod: Pod) -> Decision:
    """Run PreEnqueue and the scheduling cycle. The cluster stays as it is."""
    gate = cluster.engine.pre_enqueue(pod)
    if gate is not None:
        cycle = Cycle(pod, cluster.state)
        return Decision(pod, pod.spec.scheduler_name, Outcome.GATED, cycle, status=gate)
    return cluster.engine.decide(pod)


def reserve(cluster: ClusterModel, decision: Decision, undo: ExitStack) -> bool:
    """Assume the pod on its node and run Reserve. False if a plugin refuses: then the decision says so.

    If all plugins agree, `undo` gets a callback that takes assume and Reserve back.
    """
    with ExitStack() as when_plugin_breaks:
        when_plugin_breaks.callback(cluster.reserving.forget, decision)
        rejected = cluster.reserving.assume_and_reserve(decision)
        forgetting = when_plugin_breaks.pop_all()
    if rejected is not None:
        if rejected.is_rejection:
            rejected = Status(rejected.code, (f"{rejected.plugin}: {rejected.message}",), rejected.plugin)
        decision.outcome, decision.node, decision.status = Outcome.RESERVE_FAILED, "", rejected
        return False
    undo.enter_context(forgetting)
    return True


@dataclass(frozen=True, slots=True)
class CapacityAnswer:
    """What was found. If `stopped_by` is empty, all that were asked for fit, and more might."""

    pod: str
    nodes: int
    fit: int
    stopped_by: str
    by_zone: dict[str, int]
    by_node: dict[str, int]
    """Only nodes that got at least one, those with most first."""


def model_of(obj: KubeObject) -> Pod | None:
    """The pod that is meant: a pod as it was before it was placed, or the template of a workload."""
    if isinstance(obj, Pod):
        return replace(obj, spec=replace(obj.spec, node_name=""), status=PodStatus())
    if isinstance(obj, PodWorkload) and obj.spec.template.spec.containers:
        template = obj.spec.template
        meta = replace(template.metadata, name=obj.name, namespace=obj.namespace)
        pod = Pod(api_version="v1", kind="Pod", metadata=meta, spec=template.spec)
        return _of_stateful_set(pod, obj) if isinstance(obj, StatefulSet) else pod
    return None


def _of_stateful_set(pod: Pod, owner: StatefulSet) -> Pod:
    """The pod with the volumes that its StatefulSet adds."""
    reference = OwnerReference(api_version="apps/v1", kind="StatefulSet", name=owner.name, controller=True)
    volumes = (
        Volume(name=template.name, persistent_volume_claim=PersistentVolumeClaimSource(claim_name=claim.name))
        for template, claim in zip(owner.spec.volume_claim_templates, claims_of_template(owner))
    )
    spec = replace(pod.spec, volumes=(*pod.spec.volumes, *volumes))
    return replace(pod, metadata=replace(pod.metadata, owner_references=(reference,)), spec=spec)


def claims_of_template(obj: KubeObject) -> tuple[PersistentVolumeClaim, ...]:
    """The claims of the first pod of a StatefulSet, which those of copies are like."""
    if not isinstance(obj, StatefulSet):
        return ()
    return tuple(
        replace(template, metadata=ObjectMeta(name=f"{template.name}-{obj.name}-0", namespace=obj.namespace))
        for template in obj.spec.volume_claim_templates
    )


def own_claims(pod: Pod, state: ClusterState) -> dict[str, PersistentVolumeClaim]:
    """By volume: the claims that a StatefulSet made for this pod alone, so that a copy would have others like them."""
    owner = pod.metadata.controller
    if owner is None or owner.kind != "StatefulSet":
        return {}
    claims: dict[str, PersistentVolumeClaim] = {}
    for volume in pod.spec.volumes:
        name = volume.persistent_volume_claim.claim_name if volume.persistent_volume_claim is not None else ""
        claim = state.objects.get(PersistentVolumeClaim, name, pod.namespace)
        if claim is not None and re.fullmatch(rf".+-{re.escape(owner.name)}-\d+", name):
            claims[volume.name] = claim
    return claims


def with_claims_anew(copy: Pod, own: Mapping[str, PersistentVolumeClaim]) -> tuple[Pod, list[PersistentVolumeClaim]]:
    """The copy with claims of its own, which have no volumes yet."""
    claims = {
        volume: replace(
            claim,
            metadata=ObjectMeta(name=f"{volume}-{copy.name}", namespace=copy.namespace, uid=f"{volume}/{copy.uid}"),
            spec=replace(claim.spec, volume_name=""),
            status=ClaimStatus(phase="Pending"),
        )
        for volume, claim in own.items()
    }
    volumes = tuple(
        replace(volume, persistent_volume_claim=PersistentVolumeClaimSource(claim_name=claims[volume.name].name))
        if volume.name in claims
        else volume
        for volume in copy.spec.volumes
    )
    return replace(copy, spec=replace(copy.spec, volumes=volumes)), list(claims.values())


def capacity(
    cluster: ClusterModel,
    model: Pod,
    *,
    most: int,
    progress: Callable[[int, int], None] | None = None,
    place: Callable[[Pod], PodPlacement | UnplacedPod] | None = None,
    create: Callable[[Change[KubeObject]], None] | None = None,
) -> CapacityAnswer:
    """Place copies of the pod, at most so many. No pod is evicted for them. The cluster holds them afterwards.

    `place` may place them in another way, such as for a while, and `create` make their claims.
    """
    place = place or (lambda pod: place_one(cluster, cluster.with_claims(pod)))
    create, own = create or cluster.handle, own_claims(model, cluster.state)
    on: Counter[str] = Counter()
    stopped_by = ""
    for i in range(most):
        name = f"{model.name}-copy-{i}"
        meta = replace(model.metadata, name=name, uid=f"{model.namespace}/{name}")
        # The status of a pod that waits names claims made for it, and perhaps a node: they are not the copy's.
        copy, claims = with_claims_anew(replace(model, metadata=meta, status=PodStatus()), own)
        for claim in claims:
            create(Change(None, claim))
        outcome = place(copy)
        if isinstance(outcome, UnplacedPod):
            stopped_by = outcome.message
            break
        on[outcome.node] += 1
        if progress is not None:
            progress(i + 1, most)
    table = cluster.state.nodes
    zones: Counter[str] = Counter()
    for node, count in on.items():
        zones[table.node(table.row_of[node]).metadata.labels.get(ZONE, NO_ZONE)] += count
    by_node = dict(sorted(on.items(), key=lambda item: (-item[1], item[0])))
    return CapacityAnswer(model.key, table.live_count, on.total(), stopped_by, dict(sorted(zones.items())), by_node)
