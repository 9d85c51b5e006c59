"""DynamicResources' advice: free devices that others hold, or ask for fewer."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator

from msgspec.structs import replace

from kubesched.api.device_claims import ResourceClaim, ResourceClaimStatus
from kubesched.api.pod import Pod
from kubesched.api.requests import is_extended, pod_requests
from kubesched.framework.advice import AdvicePlugin, ObjectEdit, RemedyKind, RemedyProposal
from kubesched.framework.cycle import Cycle
from kubesched.framework.nodes import Nodes
from kubesched.plugins.advice.evictions import propose_eviction
from kubesched.state.cluster import ClusterState

MOST_CLAIMS = 40


class DeviceAdvice(AdvicePlugin):
    """Looks at the pod's own claims, and at the claims that hold devices."""

    def remedies(self, cycle: Cycle, nearest: Nodes, only_here: Nodes) -> Iterator[RemedyProposal]:
        pod = cycle.pod
        if pod.spec.resource_claims or any(is_extended(name) for name in pod_requests(pod)):
            yield from _fewer_devices(pod, cycle.state)
            yield from _released_claims(pod, cycle.state)


def _fewer_devices(pod: Pod, state: ClusterState) -> Iterator[RemedyProposal]:
    for entry in pod.spec.resource_claims:
        own = state.objects.get(ResourceClaim, entry.resource_claim_name or "", pod.namespace)
        if own is not None and own.status.allocation is None:
            for i, request in enumerate(own.spec.devices.requests):
                if request.exactly is not None and request.exactly.count > 1:
                    yield _FewerDevices(own, i).proposal(1)


def _released_claims(pod: Pod, state: ClusterState) -> Iterator[RemedyProposal]:
    """An idle claim gives its devices back, or the pods that use one leave."""
    claims = [claim for claim in state.objects.all(ResourceClaim) if claim.status.allocation is not None]
    pods = {placed.pod.uid: placed.pod for placed in state.pods.at if placed is not None} if claims else {}
    for claim in claims[:MOST_CLAIMS]:
        users = [pods[user.uid] for user in claim.status.reserved_for if user.uid in pods]
        if not claim.status.reserved_for:
            text = f"Deallocate the claim {claim.key}, which no pod uses"
            edit = ObjectEdit(claim, lambda claim: replace(claim, status=ResourceClaimStatus()))
            yield RemedyProposal(RemedyKind.RELEASE_CLAIM, text, (edit,), about=f"claim {claim.key}")
        elif users and len(users) == len(claim.status.reserved_for) and pod.uid not in pods:
            yield propose_eviction(users, state, users[0].spec.node_name)


class _FewerDevices:
    """Smaller counts of one request of a claim."""

    def __init__(self, claim: ResourceClaim, i: int) -> None:
        self._claim = claim
        self._i = i
        exactly = claim.spec.devices.requests[i].exactly
        self._count = (exactly.count if exactly is not None else None) or 1

    def proposal(self, count: int) -> RemedyProposal:
        request, most = self._claim.spec.devices.requests[self._i], self._count
        text = f"Ask for {count} instead of {most} devices in request {request.name} of the claim {self._claim.name}"
        edit = ObjectEdit(self._claim, self._with_count(count))
        about = f"devices {self._claim.name} {self._i}"
        return RemedyProposal(RemedyKind.FEWER_DEVICES, text, (edit,), (most - count) / most, about, tune=self._tune)

    def _with_count(self, count: int) -> Callable[[ResourceClaim], ResourceClaim]:
        def make(claim: ResourceClaim) -> ResourceClaim:
            requests = list(claim.spec.devices.requests)
            exactly = requests[self._i].exactly
            assert exactly is not None
            requests[self._i] = replace(requests[self._i], exactly=replace(exactly, count=count))
            devices = replace(claim.spec.devices, requests=tuple(requests))
            return replace(claim, spec=replace(claim.spec, devices=devices))

        return make

    def _tune(self, helps: Callable[[RemedyProposal], bool]) -> RemedyProposal:
        more = bisect_left(range(2, self._count), True, key=lambda count: not helps(self.proposal(count)))
        return self.proposal(1 + more)
