"""Changes of the cluster that may help: one more node, and pods that leave."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Sequence

from msgspec.structs import replace

from kubesched.api.device_claims import ResourceClaim, ResourceClaimStatus
from kubesched.api.pod import Pod
from kubesched.api.well_known import ZONE
from kubesched.framework.plugin import FilterPlugin
from kubesched.plugins.shared.devices.answers import ClusterDevices
from kubesched.questions.pools import one_more, pools_of
from kubesched.questions.remedies.remedy import Edit, NewNode, Option, Sort, created
from kubesched.questions.remedies.trial import Trials
from kubesched.state.cluster import ClusterState
from kubesched.state.facts import PodFacts
from kubesched.state.pods import PlacedPod

MOST_MODELS = 30
HIGHEST_PRIORITY = 2**31 - 1


# -- nodes ------------------------------------------------------------------------------------------------------------


def new_node_options(state: ClusterState) -> Iterator[Option]:
    """One more node of each pool, in each of its zones."""
    pools = pools_of(state)
    models = [(pool, model) for pool in pools for model in pool.models]
    models += [(pool, model) for pool in pools for model in pool.others]
    for place, (pool, model) in enumerate(models[:MOST_MODELS]):
        zone = model.metadata.labels.get(ZONE, "") if len(pool.models) > 1 else ""
        edits = tuple(created(obj) for obj in one_more(state, model))
        kind = NewNode(pool.title, model.name, (zone,) if zone else ())
        yield Option(Sort.ADD_NODE, kind.text, edits, place, "new node", new=kind)


def one_per_pool(options: Iterable[Option]) -> Iterator[Option]:
    """The options, with new nodes of one pool in several zones as one that names the zones."""
    pools: dict[str, list[Option]] = {}
    for option in options:
        if option.new is None:
            yield option
        else:
            pools.setdefault(option.new.pool, []).append(option)
    for alike in pools.values():
        kinds = [option.new for option in alike if option.new is not None]
        merged = kinds[0]._replace(zones=tuple(dict.fromkeys(zone for kind in kinds for zone in kind.zones)))
        yield dataclasses.replace(alike[0], text=merged.text, new=merged)


# -- pods that leave --------------------------------------------------------------------------------------------------


def leaving_options(pod: Pod, state: ClusterState) -> Iterator[Option]:
    """Pods that are being deleted are gone soon."""
    leaving = [placed.pod for placed in state.pods.at if placed is not None and placed.pod.is_terminating]
    if leaving:
        text = f"Wait until {_listed(leaving)} {'is' if len(leaving) == 1 else 'are'} gone: being deleted already"
        yield Option(Sort.WAIT_FOR_PODS, text, without_pods(leaving, state), len(leaving), "leaving")


def eviction_option(trials: Trials, pod: Pod) -> Option | None:
    """The pods that would have to leave if priorities did not matter: what preemption would do for the highest."""
    spec = replace(pod.spec, priority=HIGHEST_PRIORITY, preemption_policy="PreemptLowerPriority", scheduling_gates=())
    status = replace(pod.status, nominated_node_name="")
    decision = trials.decide(replace(pod, spec=spec, status=status))
    result = decision.post_filter
    if result is None or not result.nominated:
        return None
    victims = [victim.pod for victim in result.victims]
    return eviction(victims, trials.state, result.nominated) if victims else None


def heeded_options(trials: Trials, pod: Pod, *, most: int) -> Iterator[Option]:
    """Single pods that a filter looks at, wherever they are: one that keeps the pod out of a zone need not be on the
    node that the pod goes to."""
    decision = trials.decide(replace(pod, spec=replace(pod.spec, preemption_policy="Never")))
    outcome = decision.trace.filter_outcome
    if outcome is None:
        return
    rejecting = {rejections.plugin for rejections, _ in outcome.columns}
    profile = trials.cluster.profiles[decision.profile]
    filters = [f for f in profile.at("filter", FilterPlugin) if f.name in rejecting and f.looks_at_pods]
    heeded: list[Pod] = []
    judged: dict[int, bool] = {}
    for placed in trials.state.pods.at:
        if placed is None or _is_daemon(placed):
            continue
        facts = id(placed.facts)
        if facts not in judged:
            judged[facts] = any(plugin.depends_on_pod(decision.cycle, placed) for plugin in filters)
        if judged[facts]:
            heeded.append(placed.pod)
        if len(heeded) > most:
            return
    for other in heeded:
        yield eviction([other], trials.state, other.spec.node_name)


def sharing_ports(victims: Sequence[Pod], state: ClusterState, node: str) -> list[Pod]:
    """Other pods there that have claimed a port of those that leave; by rights there are none."""
    leaving = {victim.identity for victim in victims}
    ports = {port for victim in victims for port in _ports(state.facts(victim))}
    sharing: list[Pod] = []
    there = state.pods.pods_on(state.nodes.row_of[node]) if ports else ()
    while True:
        more = [p for p in there if p.pod.identity not in leaving and not ports.isdisjoint(_ports(p.facts))]
        if not more:
            return sharing
        for placed in more:
            leaving.add(placed.pod.identity)
            ports |= _ports(placed.facts)
            sharing.append(placed.pod)


def _ports(facts: PodFacts) -> set[tuple[str, int]]:
    return {(port.protocol, port.port) for port in facts.ports}


def _is_daemon(placed: PlacedPod) -> bool:
    owner = placed.pod.metadata.controller
    return owner is not None and owner.kind == "DaemonSet"


def eviction(victims: Sequence[Pod], state: ClusterState, node: str) -> Option:
    victims = [*victims, *sharing_ports(victims, state, node)]
    ends = [pod for pod in victims if (owner := pod.metadata.controller) is not None and owner.kind == "Job"]
    if len(ends) == len(victims):
        text = f"Wait until {_listed(victims)} on {node} {'has' if len(victims) == 1 else 'have'} ended, or evict"
        text += " it" if len(victims) == 1 else " them"
    else:
        text = f"Evict {_listed(victims)} from {node}"
    return Option(Sort.EVICT, text, without_pods(victims, state), len(victims), "evictions")


def _listed(pods: Sequence[Pod]) -> str:
    names = [pod.key for pod in pods]
    return ", ".join(names) if len(names) <= 4 else f"{', '.join(names[:3])} and {len(names) - 3} more"


def without_pods(pods: Iterable[Pod], state: ClusterState) -> tuple[Edit, ...]:
    """The pods gone, and what only they had claimed free again."""
    ledger = state.companion(ClusterDevices).ledger
    edits: list[Edit] = []
    for pod in pods:
        edits.append(Edit(pod, lambda _: None))
        extended = ledger.extended_claim_of(pod)
        if extended is not None:
            edits.append(Edit(extended, lambda _: None))
        names = [entry.resource_claim_name for entry in pod.spec.resource_claims]
        names += [status.resource_claim_name for status in pod.status.resource_claim_statuses]
        for name in dict.fromkeys(name for name in names if name is not None):
            claim = ledger.claim(name, pod.namespace)
            if claim is not None and claim.is_reserved_for(pod.uid):
                edits.append(Edit(claim, _released_by(pod)))
    return tuple(edits)


def _released_by(pod: Pod) -> Callable[[ResourceClaim], ResourceClaim]:
    def released(claim: ResourceClaim) -> ResourceClaim:
        others = tuple(user for user in claim.status.reserved_for if user.uid != pod.uid)
        return replace(claim, status=replace(claim.status, reserved_for=others) if others else ResourceClaimStatus())

    return released
