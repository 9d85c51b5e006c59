"""What one attempt at a pod knows of its claims: from pre-filter to the writes before binding, or to their undoing."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from kubesched.api.device_claims import AllocationResult, ConsumerReference, ResourceClaim
from kubesched.api.devices import DeviceClass
from kubesched.api.pod import ExtendedResourceRequest, Pod
from kubesched.api.pod_groups import PodGroup
from kubesched.api.selectors import NodeTerm
from kubesched.framework.cycle import Cycle
from kubesched.framework.groups import group_of
from kubesched.framework.nodes import Nodes
from kubesched.plugins.dynamic_resources.claims import claims_of, consumer_of
from kubesched.plugins.dynamic_resources.extended import IN_MEMORY_NAME, ExtendedDemand, claim_for, demand_of, spec_with
from kubesched.plugins.dynamic_resources.writes import ClaimWrite
from kubesched.plugins.shared.devices.answers import ClusterDevices
from kubesched.plugins.shared.devices.demand import SearchTime
from kubesched.plugins.shared.devices.device_answer import DeviceAnswer
from kubesched.plugins.shared.devices.extended_resources import ServedResources, served_by_devices
from kubesched.plugins.shared.devices.search import BEST_ALTERNATIVE
from kubesched.state.columns import Bool, Int32
from kubesched.state.facts import StateKey


@dataclass(frozen=True)
class Variant:
    """Nodes on which devices must serve the same of the pod's extended resources: one demand for all of them."""

    rows: Bool
    answer: DeviceAnswer | None
    """None where there is nothing to allocate."""
    extended: ExtendedDemand
    claims: tuple[ResourceClaim, ...]
    """The claims to be allocated there, in the order of the demand."""


@dataclass
class ClaimAttempt:
    """The claims of the pod: those of its own, then the one for its extended resources, if there is one."""

    pod: Pod
    claims: list[ResourceClaim] = field(default_factory=list)
    consumers: list[ConsumerReference] = field(default_factory=list)
    """The consumer that each claim is reserved for: the pod, or its group if it is a claim of the group."""
    group: PodGroup | None = None
    """The group of the pod, if groups have claims."""
    has_extended_claim: bool = False
    """Whether the last claim is the one for extended resources."""
    nodes_of: dict[int, tuple[NodeTerm, ...]] = field(default_factory=dict)
    """By index of a claim that is allocated: the nodes that can use its devices, if those are not all."""
    lost: set[int] = field(default_factory=set)
    """Claims whose devices will not be ready."""
    variants: list[Variant] | None = None
    rejection_ids: Int32 | None = None
    unavailable: dict[int, Bool] = field(default_factory=dict)
    """By index of a claim that is allocated: the rows that cannot use it."""
    allocations: dict[int, AllocationResult] = field(default_factory=dict)
    """By index of a claim: what was set aside for it."""
    shared: dict[int, AllocationResult] = field(default_factory=dict)
    """By index of a claim: what another pod is about to get for it, and this one with it."""
    mappings: tuple[ExtendedResourceRequest, ...] = ()
    """Which request of the claim for extended resources serves which container."""
    writes: list[ClaimWrite] = field(default_factory=list)
    """Writes to claims that are due if the attempt fails."""

    @property
    def extended_claim(self) -> ResourceClaim | None:
        return self.claims[-1] if self.has_extended_claim else None

    @property
    def has_own_claims(self) -> bool:
        return len(self.claims) > self.has_extended_claim

    @property
    def has_leftover(self) -> bool:
        """Whether a claim for extended resources is left from an earlier attempt: it must go first."""
        extended = self.extended_claim
        return extended is not None and extended.name != IN_MEMORY_NAME

    def is_reserved(self, claim: ResourceClaim) -> bool:
        """Whether the pod may use the claim already, by itself or as one of its group."""
        uids = {self.pod.uid} if self.group is None else {self.pod.uid, self.group.metadata.uid}
        return any(consumer.uid in uids for consumer in claim.status.reserved_for)

    @property
    def needs_only_devices(self) -> bool:
        """Whether no claim that is allocated, and none for extended resources, has a say in where the pod fits."""
        return not (self.nodes_of or self.lost or self.has_extended_claim)

    @property
    def has_alternatives(self) -> bool:
        """Whether a claim would rather have one thing than another: only then is one node better for it."""
        return any(request.first_available for claim in self.claims for request in claim.spec.devices.requests)

    @property
    def must_wait(self) -> bool:
        """Whether a device of the pod has conditions to wait for, once a node is chosen."""
        allocated = (*self.allocations.values(), *(claim.status.allocation for claim in self.claims))
        return any(allocation is not None and allocation.must_wait for allocation in allocated)

    @property
    def to_allocate(self) -> list[int]:
        return [i for i, claim in enumerate(self.claims) if claim.status.allocation is None and i not in self.shared]

    def find_unavailable(self, nodes: Nodes) -> Bool:
        """Rows that cannot use a claim which is allocated; by claim they are in `unavailable` then."""
        for index in {*self.nodes_of, *self.lost}:
            terms = self.nodes_of.get(index)
            rows = nodes.none() if terms is None else ~nodes.selected_by(terms)
            self.unavailable[index] = ~nodes.none() if index in self.lost else rows
        unavailable = nodes.none()
        for rows in self.unavailable.values():
            unavailable |= rows
        return unavailable

    def variant_at(self, row: int) -> Variant:
        """The variant of one row; `find_variants` must have run."""
        assert self.variants is not None
        return next(variant for variant in self.variants if variant.rows[row])


NOTES = StateKey[ClaimAttempt]("DynamicResources")
"""Where in the notes of a cycle the attempt is found."""


def begin_attempt(cycle: Cycle) -> ClaimAttempt:
    """An attempt at the pod, with all claims that it has. Raises ClaimNotReadyError."""
    pod, state = cycle.pod, cycle.state
    attempt = ClaimAttempt(pod)
    if state.features.group_claims:
        attempt.group = group_of(pod, state)
    for entry, claim in claims_of(pod, state):
        attempt.claims.append(claim)
        attempt.consumers.append(consumer_of(pod, entry, attempt.group))
    if served_by_devices(cycle):
        attempt.claims.append(state.companion(ClusterDevices).ledger.extended_claim_of(pod) or claim_for(pod))
        attempt.consumers.append(consumer_of(pod))
        attempt.has_extended_claim = True
    return attempt


def find_variants(attempt: ClaimAttempt, cycle: Cycle, resources: frozenset[str], time: SearchTime) -> list[Variant]:
    """Search for devices on all rows, with the requests that each of them needs."""
    table = cycle.state.nodes
    everywhere = np.ones(table.size, dtype=np.bool_)
    if not attempt.has_extended_claim:
        return [_variant(attempt, cycle, everywhere, ExtendedDemand(), time)]
    served = cycle.state.companion(ServedResources)
    classes: dict[str, DeviceClass] = {
        name: device_class for name in resources if (device_class := served.class_of(name))
    }
    masks = np.zeros(table.size, dtype=np.int64)
    names = sorted(classes)
    for bit, name in enumerate(names):
        masks |= (table.allocatable[table.resource_id(name), : table.size] == 0).astype(np.int64) << bit
    variants = []
    for mask in np.unique(masks).tolist():
        needed = {name: classes[name].name for bit, name in enumerate(names) if mask >> bit & 1}
        variants.append(_variant(attempt, cycle, masks == mask, demand_of(cycle.pod, needed), time, bool(needed)))
    return variants


def _variant(
    attempt: ClaimAttempt,
    cycle: Cycle,
    rows: Bool,
    extended: ExtendedDemand,
    time: SearchTime,
    is_needed: bool = True,
) -> Variant:
    claims = tuple(attempt.claims[i] for i in attempt.to_allocate)
    if not claims or not (is_needed or attempt.has_own_claims):
        return Variant(rows, None, extended, ())
    is_last_extended = attempt.extended_claim is claims[-1]
    specs = [claim.spec for claim in (claims[:-1] if is_last_extended else claims)]
    if is_last_extended:
        specs.append(spec_with(extended.requests))
    answer = cycle.state.companion(ClusterDevices).answer(specs, time, cycle.facts)
    return Variant(rows, answer, extended, claims)


def score_of_allocated(claims: Iterable[ResourceClaim]) -> int:
    """What claims that have their devices already add to the score of every node."""
    score = 0
    for claim in claims:
        if claim.status.allocation is None:
            continue
        requests = {device.request for device in claim.status.allocation.devices.results}
        for request in claim.spec.devices.requests:
            for position, alternative in enumerate(request.first_available):
                if f"{request.name}/{alternative.name}" in requests:
                    score += BEST_ALTERNATIVE - position
    return score
