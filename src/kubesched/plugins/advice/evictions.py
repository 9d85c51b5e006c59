"""Proposals to evict pods: the pods go, and what only they had claimed is free again."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from msgspec.structs import replace

from kubesched.api.device_claims import ResourceClaim, ResourceClaimStatus
from kubesched.api.pod import Pod
from kubesched.framework.advice import ObjectEdit, RemedyKind, RemedyProposal
from kubesched.plugins.shared.devices.answers import ClusterDevices
from kubesched.plugins.shared.devices.ledger import resource_claim_names
from kubesched.state.cluster import ClusterState
from kubesched.state.facts import PodFacts


def propose_eviction(victims: Sequence[Pod], state: ClusterState, node: str) -> RemedyProposal:
    """A proposal to evict pods from a node; Jobs end by themselves, so their pods may be waited for."""
    victims = [*victims, *sharing_ports(victims, state, node)]
    ends = [pod for pod in victims if (owner := pod.metadata.controller) is not None and owner.kind == "Job"]
    if len(ends) == len(victims):
        text = f"Wait until {list_pods(victims)} on {node} {'has' if len(victims) == 1 else 'have'} ended"
    else:
        text = f"Evict {list_pods(victims)} from {node}"
    return RemedyProposal(RemedyKind.EVICT, text, delete_pods(victims, state), len(victims), "evictions")


def sharing_ports(victims: Sequence[Pod], state: ClusterState, node: str) -> list[Pod]:
    """Other pods there that have claimed a port of those that leave; by rights there are none."""
    leaving = {victim.identity for victim in victims}
    ports = {port for victim in victims for port in _ports(state.facts(victim))}
    sharing: list[Pod] = []
    pods_there = state.pods.pods_on(state.nodes.row_of[node]) if ports else ()
    while True:
        new_sharers = [p for p in pods_there if p.pod.identity not in leaving and not ports.isdisjoint(_ports(p.facts))]
        if not new_sharers:
            return sharing
        for placed in new_sharers:
            leaving.add(placed.pod.identity)
            ports |= _ports(placed.facts)
            sharing.append(placed.pod)


def _ports(facts: PodFacts) -> set[tuple[str, int]]:
    return {(port.protocol, port.port) for port in facts.ports}


def delete_pods(pods: Iterable[Pod], state: ClusterState) -> tuple[ObjectEdit, ...]:
    """The pods gone, and what only they had claimed free again."""
    ledger = state.companion(ClusterDevices).ledger
    edits: list[ObjectEdit] = []
    for pod in pods:
        edits.append(ObjectEdit(pod, lambda _: None))
        extended = ledger.extended_claim_of(pod)
        if extended is not None:
            edits.append(ObjectEdit(extended, lambda _: None))
        for name in resource_claim_names(pod):
            claim = ledger.claim(name, pod.namespace)
            if claim is not None and claim.is_reserved_for(pod.uid):
                edits.append(ObjectEdit(claim, _release_by(pod)))
    return tuple(edits)


def _release_by(pod: Pod) -> Callable[[ResourceClaim], ResourceClaim]:
    def release(claim: ResourceClaim) -> ResourceClaim:
        others = tuple(user for user in claim.status.reserved_for if user.uid != pod.uid)
        return replace(claim, status=replace(claim.status, reserved_for=others) if others else ResourceClaimStatus())

    return release


def list_pods(pods: Sequence[Pod]) -> str:
    names = [pod.key for pod in pods]
    return ", ".join(names) if len(names) <= 4 else f"{', '.join(names[:3])} and {len(names) - 3} more"
