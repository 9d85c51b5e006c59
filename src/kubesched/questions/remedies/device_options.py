"""Changes of claims for devices that may help: devices that others hold, and fewer of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from msgspec.structs import replace

from kubesched.api.device_claims import ResourceClaim, ResourceClaimStatus
from kubesched.api.pod import Pod
from kubesched.api.requests import is_extended, pod_requests
from kubesched.questions.remedies.cluster_options import eviction
from kubesched.questions.remedies.levels import Levels
from kubesched.questions.remedies.remedy import Edit, Option, Sort
from kubesched.state.cluster import ClusterState


def device_options(pod: Pod, state: ClusterState, *, most: int) -> Iterator[Option]:
    """An idle claim gives its devices back, or the pods that use one leave; or the pod's own claims ask for fewer."""
    if not pod.spec.resource_claims and not any(is_extended(name) for name in pod_requests(pod)):
        return
    for entry in pod.spec.resource_claims:
        own = state.objects.get(ResourceClaim, entry.resource_claim_name or "", pod.namespace)
        if own is not None and own.status.allocation is None:
            for i, request in enumerate(own.spec.devices.requests):
                if request.exactly is not None and request.exactly.count > 1:
                    yield _FewerDevices(own, i).option(1)
    claims = [claim for claim in state.objects.all(ResourceClaim) if claim.status.allocation is not None]
    placed = {each.pod.uid: each.pod for each in state.pods.at if each is not None} if claims else {}
    for claim in claims[:most]:
        users = [placed[user.uid] for user in claim.status.reserved_for if user.uid in placed]
        if not claim.status.reserved_for:
            text = f"Deallocate the claim {claim.key}, which no pod uses"
            edit = Edit(claim, lambda claim: replace(claim, status=ResourceClaimStatus()))
            yield Option(Sort.RELEASE_CLAIM, text, (edit,), 0.0, f"claim {claim.key}")
        elif users and len(users) == len(claim.status.reserved_for) and pod.uid not in placed:
            yield eviction(users, state, users[0].spec.node_name)


class _FewerDevices:
    """Smaller counts of one request of a claim."""

    def __init__(self, claim: ResourceClaim, i: int) -> None:
        self._claim = claim
        self._i = i
        exactly = claim.spec.devices.requests[i].exactly
        self._asked = (exactly.count if exactly is not None else None) or 1

    def option(self, count: int) -> Option:
        request, asked = self._claim.spec.devices.requests[self._i], self._asked
        text = f"Ask for {count} instead of {asked} devices in request {request.name} of the claim {self._claim.name}"
        edit = Edit(self._claim, self._made(count))
        about = f"devices {self._claim.name} {self._i}"
        return Option(Sort.FEWER_DEVICES, text, (edit,), (asked - count) / asked, about, tune=self._tuned)

    def _made(self, count: int) -> Callable[[ResourceClaim], ResourceClaim]:
        def make(claim: ResourceClaim) -> ResourceClaim:
            requests = list(claim.spec.devices.requests)
            exactly = requests[self._i].exactly
            assert exactly is not None
            requests[self._i] = replace(requests[self._i], exactly=replace(exactly, count=count))
            devices = replace(claim.spec.devices, requests=tuple(requests))
            return replace(claim, spec=replace(claim.spec, devices=devices))

        return make

    def _tuned(self, fits: Callable[[Option], bool]) -> Option:
        return self.option(Levels(lambda count: fits(self.option(count))).greatest(1, self._asked - 1))
