"""The DynamicResources plugin: finds devices for a pod's claims, sets them aside, and writes what became of them."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from functools import partial
from typing import Any

import msgspec
import numpy as np

from kubesched.api.device_claims import AllocationResult, ResourceClaim
from kubesched.api.devices import DeviceClass
from kubesched.api.pod import Pod
from kubesched.api.pod_groups import PodGroup, group_key
from kubesched.api.selectors import compile_node_selector
from kubesched.config.args import DynamicResourcesArgs
from kubesched.config.defaults import BINDING_TIMEOUT, SEARCH_TIMEOUT
from kubesched.framework.client import ClientError, SchedulerMode
from kubesched.framework.cycle import Cycle, CycleStateMissingError
from kubesched.framework.diagnosis import Diagnosis
from kubesched.framework.events import Interest
from kubesched.framework.groups import GroupPostFilterResult, GroupWhatIf, PodGroupPostFilterPlugin
from kubesched.framework.nodes import Nodes
from kubesched.framework.plugin import (
    FilterPlugin,
    PluginContext,
    PostFilterPlugin,
    PostFilterResult,
    PreBindPlugin,
    PreEnqueuePlugin,
    PreFilterPlugin,
    ReservePlugin,
    ScorePlugin,
    WhatIfRunner,
)
from kubesched.framework.reads import PodFields, Reads, Scope
from kubesched.framework.status import SKIP, Status, error, unresolvable, unschedulable
from kubesched.plugins.dynamic_resources.attempt import (
    NOTES,
    ClaimAttempt,
    Variant,
    begin_attempt,
    find_variants,
    score_of_allocated,
)
from kubesched.plugins.dynamic_resources.claim_binding import ClaimBinding, is_lost
from kubesched.plugins.dynamic_resources.claims import (
    ClaimNotReadyError,
    claims_of,
    interests,
    request_rejection,
)
from kubesched.plugins.dynamic_resources.explaining import ExplainedClaims
from kubesched.plugins.dynamic_resources.extended import spec_with
from kubesched.plugins.dynamic_resources.giving_back import (
    NO_CLAIMS,
    STILL_NOT_SCHEDULABLE,
    FailedPod,
    for_group,
    for_pod,
    in_the_way,
)
from kubesched.plugins.dynamic_resources.joining import JoinedConsumers
from kubesched.plugins.dynamic_resources.writes import ClaimGoneAnotherWayError, DeleteClaim, UnreserveClaim
from kubesched.plugins.shared.arithmetic import scaled_to_maximum
from kubesched.plugins.shared.devices.allocation import allocations
from kubesched.plugins.shared.devices.answers import ClusterDevices
from kubesched.plugins.shared.devices.demand import SearchTime
from kubesched.plugins.shared.devices.extended_resources import extended_resources, served_by_devices, unserved
from kubesched.plugins.shared.devices.ledger import ANY_POD
from kubesched.state.cluster import ClusterState
from kubesched.state.columns import Int32, Int64

CANNOT_ALLOCATE = unresolvable("cannot allocate all claims")
INVALID_POOLS = unresolvable("invalid resource pools were encountered")
NOT_AVAILABLE = unresolvable("resourceclaim not available on the node")
HAS_LEFTOVER = unresolvable("cannot schedule extended resource claim")
CANNOT_FIT = unresolvable("cannot fit resource")


class DynamicResources(
    PreEnqueuePlugin,
    PreFilterPlugin,
    FilterPlugin,
    PostFilterPlugin,
    PodGroupPostFilterPlugin,
    ScorePlugin,
    ReservePlugin,
    PreBindPlugin,
    ExplainedClaims,
):
    """Claims that are allocated must be within reach; for the others devices must be found.

    What is to be written is kept as data in the `ClaimAttempt` until it may be: before binding, or when all failed.
    """

    name = NOTES.name
    pre_filter_reads = Reads(PodFields.SPEC | PodFields.RESOURCE_CLAIMS | PodFields.NAMESPACE, Scope.CLAIMS)
    filter_reads = post_filter_reads = Reads(
        PodFields.SPEC | PodFields.RESOURCE_CLAIMS | PodFields.NAMESPACE, Scope.CLUSTER
    )
    score_reads = Reads(PodFields.SPEC, Scope.NODE_OBJECT)

    def __init__(self, args: DynamicResourcesArgs | None = None, context: PluginContext | None = None) -> None:
        super().__init__(args, context)
        args, features = args or DynamicResourcesArgs(), self.context.features
        # What may be allocated at all (shares, taints, counters) is the business of the search, see `ClusterDevices`.
        self.waits_for_devices = features.device_binding_conditions
        self.binding_timeout = float(BINDING_TIMEOUT if args.binding_timeout is None else args.binding_timeout)
        timeout = SEARCH_TIMEOUT if args.filter_timeout is None else args.filter_timeout
        self._filter_timeout = float(timeout) if features.device_search_timeout else 0.0
        self._knows_alternatives = features.device_alternatives
        self._no_claims = unschedulable() if features.release.quiet_claims else NO_CLAIMS
        self._no_help = unschedulable() if features.release.quiet_claims else STILL_NOT_SCHEDULABLE

    def events_to_register(self) -> tuple[Interest, ...]:
        return interests(self.context.features.release, is_batched=self.context.handle.mode is SchedulerMode.BATCHED)

    # -- before any node ----------------------------------------------------------------------------------------------

    def pre_enqueue(self, pod: Pod, state: ClusterState) -> Status | None:
        if not pod.spec.resource_claims:
            return None
        try:
            claims_of(pod, state)
        except ClaimNotReadyError as missing:
            return unresolvable(str(missing))
        return None

    def pre_filter(self, cycle: Cycle) -> Status | None:
        pod = cycle.pod
        if not pod.spec.resource_claims and not extended_resources(cycle):
            return SKIP
        cycle.write(NOTES, ClaimAttempt(pod))  # for post_filter, if a claim is not ready
        try:
            attempt = begin_attempt(cycle)
        except ClaimNotReadyError as missing:
            return unresolvable(str(missing))
        if not attempt.claims:
            return SKIP
        for index, claim in enumerate(attempt.claims):
            rejection = self._look_at(index, claim, attempt, cycle)
            if rejection is not None:
                return rejection
        cycle.write(NOTES, attempt)
        return None

    def _look_at(self, index: int, claim: ResourceClaim, attempt: ClaimAttempt, cycle: Cycle) -> Status | None:
        allocation = claim.status.allocation
        pending = self._view(cycle).ledger.pending_for(self._sharers(cycle), claim) if allocation is None else None
        if pending is not None:
            attempt.shared[index] = allocation = pending
        if allocation is not None:
            if allocation.node_selector is not None:
                attempt.nodes_of[index] = compile_node_selector(allocation.node_selector)
            if self.waits_for_devices and is_lost(claim, self.context.now(), self.binding_timeout):
                attempt.lost.add(index)
            return None
        if self._view(cycle).ledger.is_pending(claim):
            return unresolvable(f"resource claim {claim.key} is in the process of being allocated")
        if claim is attempt.extended_claim:
            return None
        for request in claim.spec.devices.requests:
            if request.exactly is None and request.first_available and not self._knows_alternatives:
                where = f"resource claim {claim.key}, request {request.name}"
                return unresolvable(f"{where}: has subrequests, but the DRAPrioritizedList feature is disabled")
            rejection = request_rejection(claim, request, cycle)
            if rejection is not None:
                return rejection
        return None

    # -- nodes --------------------------------------------------------------------------------------------------------

    def filter(self, cycle: Cycle, nodes: Nodes) -> Int32:
        attempt = cycle.read(NOTES)
        if attempt.rejection_ids is None or len(attempt.rejection_ids) != cycle.state.nodes.size:
            attempt.rejection_ids = self._judge(attempt, cycle)
        return nodes.take(attempt.rejection_ids)

    def _judge(self, attempt: ClaimAttempt, cycle: Cycle) -> Int32:
        """The rejection ids of every row, the most telling one first."""
        everywhere, table = Nodes(cycle.state), cycle.state.nodes
        if attempt.has_leftover:
            return self.reject(~everywhere.none(), HAS_LEFTOVER)
        # All nodes together get the time that kube-scheduler, which has many threads, gives each of them.
        time = SearchTime(cycle.budget, self._filter_timeout)
        attempt.variants = find_variants(attempt, cycle, served_by_devices(cycle), time)
        answer = attempt.variants[0].answer
        if attempt.needs_only_devices and answer is not None and not answer.failures:
            return self.reject(~answer.fits, CANNOT_ALLOCATE)
        unavailable = attempt.find_unavailable(everywhere)
        ids: Int32 = np.zeros(table.size, dtype=np.int32)
        for variant in attempt.variants:
            if variant.answer is None and not attempt.has_own_claims:
                continue
            ids[variant.rows & unavailable] = self.rejections.id_of(NOT_AVAILABLE)
            if variant.answer is not None:
                self._reject_without_devices(ids, variant, cycle)
        if attempt.has_extended_claim:
            ids[unserved(cycle)] = self.rejections.id_of(CANNOT_FIT)
        return ids

    def _reject_without_devices(self, ids: Int32, variant: Variant, cycle: Cycle) -> None:
        answer, view = variant.answer, self._view(cycle)
        assert answer is not None
        ids[variant.rows & ~answer.fits] = self.rejections.id_of(CANNOT_ALLOCATE)
        live = cycle.state.nodes.live
        for row, outcome in answer.failures.items():
            if not variant.rows[row] or not live[row]:
                continue
            if outcome.error is None:
                ids[row] = self.rejections.id_of(INVALID_POOLS)
            else:
                ids[row] = self.rejections.id_of(error(view.message_of(outcome.error, row, variant.claims)))

    # -- no node fits -------------------------------------------------------------------------------------------------

    def post_filter(
        self, cycle: Cycle, diagnosis: Diagnosis, what_if: WhatIfRunner
    ) -> tuple[PostFilterResult | None, Status | None]:
        """Give back an idle claim that keeps the pod from other nodes, or one left from an earlier attempt."""
        attempt = cycle.find(NOTES)
        if attempt is None:
            # Where an earlier pre-filter rejected the pod outright, this one was not asked, and kube-scheduler says so.
            return None, self._no_claims if self.name in cycle.skipped_filters else error("not found")
        if not attempt.claims:
            return None, self._no_claims
        text = for_pod(attempt, self.in_the_way(attempt, diagnosis))
        if text is STILL_NOT_SCHEDULABLE:
            return None, self._no_help
        cycle.defer(self._binding(cycle, attempt).undo)
        return None, text

    def pod_group_post_filter(
        self, group: PodGroup, pods: Sequence[Pod], state: ClusterState, what_if: GroupWhatIf
    ) -> tuple[GroupPostFilterResult | None, Status | None]:
        """The same for all pods of a group that found no node; then claims of the group.

        A group with a topology constraint is left alone: a claim that keeps it from one domain need not from another.
        """
        failing = [
            FailedPod(cycle, attempt, self.in_the_way(attempt, diagnosis))
            for cycle, diagnosis in (() if group.topology_key else what_if.failed)
            if (attempt := cycle.find(NOTES)) and attempt.claims
        ]
        reasons, writing = for_group(group, failing, state)
        for failed in writing:
            failed.cycle.defer(self._binding(failed.cycle, failed.attempt).undo)
        return None, unschedulable(*reasons)

    def in_the_way(self, attempt: ClaimAttempt, diagnosis: Diagnosis) -> list[ResourceClaim]:
        """Claims that are not available where the pod might run otherwise."""
        outcome = diagnosis.filter_outcome
        if attempt.rejection_ids is None or outcome is None:
            return []
        return in_the_way(attempt, attempt.rejection_ids == self.rejections.id_of(NOT_AVAILABLE), outcome)

    # -- which node is best -------------------------------------------------------------------------------------------

    def sign(self, cycle: Cycle) -> Hashable:
        """Scores of pods without claims are the same. Equal pods with other claims may score differently."""
        attempt = cycle.find(NOTES) if self._knows_alternatives else None
        may_differ = attempt is not None and (attempt.claims or cycle.pod.spec.resource_claims)
        return None if may_differ else ()

    def score(self, cycle: Cycle, nodes: Nodes) -> Int64 | int:
        attempt = cycle.find(NOTES)
        if attempt is None and self._knows_alternatives and self.name not in cycle.skipped_filters:
            raise CycleStateMissingError(self.name)
        if attempt is None or not self._knows_alternatives or not attempt.has_alternatives:
            return 0
        scores = np.zeros(cycle.state.nodes.size, dtype=np.int64)
        for variant in attempt.variants or ():
            if variant.answer is not None:
                scores[variant.rows] = variant.answer.scores[variant.rows] + score_of_allocated(attempt.claims)
        return nodes.take(scores)

    def normalize(self, cycle: Cycle, scores: Any, nodes: Nodes) -> Int64 | int:
        return scaled_to_maximum(scores)

    # -- once a node is chosen ----------------------------------------------------------------------------------------

    def reserve(self, cycle: Cycle, pod: Pod, node_name: str) -> Status | None:
        attempt = cycle.find(NOTES)
        if attempt is None:
            return None
        ledger, sharers = self._view(cycle).ledger, self._sharers(cycle)
        for index, allocation in attempt.shared.items():
            attempt.allocations[index] = allocation
            ledger.set_aside(attempt.claims[index], allocation, sharers)
        if not (to_allocate := attempt.to_allocate):
            return None
        if attempt.variants is None:
            self.filter(cycle, Nodes(cycle.state))
        row = cycle.state.nodes.row_of[node_name]
        variant = attempt.variant_at(row)
        if variant.answer is None:
            return None  # a device plugin of the node serves the pod
        new_allocations = self.allocations_on(cycle, row)
        if new_allocations is None:
            return error("claim allocation not found for node")
        attempt.mappings = variant.extended.mappings
        for index, allocation in zip(to_allocate, new_allocations):
            claim = attempt.claims[index]
            attempt.allocations[index] = allocation
            if claim is attempt.extended_claim:
                spec = spec_with(variant.extended.requests)
                attempt.claims[index] = claim = msgspec.structs.replace(claim, spec=spec)
            ledger.set_aside(claim, allocation, sharers)
        return None

    def allocations_on(self, cycle: Cycle, row: int) -> list[AllocationResult] | None:
        """What the claims that are to be allocated would get on a row; None if they cannot be."""
        variant = cycle.read(NOTES).variant_at(row)
        devices = None if variant.answer is None else variant.answer.outcomes[row].found
        if devices is None:
            return None
        view, state = self._view(cycle), cycle.state
        class_of = partial(state.objects.get, DeviceClass)
        attempt = f"{cycle.pod.uid}/{state.objects.version(ResourceClaim)}"
        inventory, release = view.inventories.of(row), state.features.release
        return allocations(devices, inventory, state.nodes.names[row], variant.claims, class_of, release, attempt)

    def unreserve(self, cycle: Cycle, pod: Pod, node_name: str) -> None:
        """Free the devices that were set aside; a reservation that was written already is to be undone."""
        attempt = cycle.find(NOTES)
        if attempt is None:
            return
        ledger = self._view(cycle).ledger
        attempt.writes = []
        for index, claim in enumerate(attempt.claims):
            if index in attempt.allocations:
                ledger.release(claim)
            if claim is attempt.extended_claim:
                if attempt.has_leftover:
                    attempt.writes.append(DeleteClaim(claim))
            elif claim.status.allocation is not None and claim.is_reserved_for(pod.uid):
                attempt.writes.append(UnreserveClaim(claim, pod.uid))
        if attempt.writes:
            cycle.defer(self._binding(cycle, attempt).undo)

    def pre_bind_pre_flight(self, cycle: Cycle, pod: Pod, node_name: str) -> Status | None:
        attempt = cycle.find(NOTES)
        return SKIP if attempt is None or not attempt.claims else None

    def takes_long(self, cycle: Cycle, pod: Pod, node_name: str) -> bool:
        """Whether devices are waited for. Writing claims takes no longer than the binding that comes next, and yet
        kube-scheduler announces it.
        """
        is_announced = self.context.handle.mode is SchedulerMode.PARITY
        return is_announced or (self.waits_for_devices and cycle.read(NOTES).must_wait)

    async def pre_bind(self, cycle: Cycle, pod: Pod, node_name: str) -> Status | None:
        """Write the claims of the pod, and wait for devices that take a while to be ready."""
        attempt = cycle.find(NOTES)
        if attempt is None:
            return None
        binding = self._binding(cycle, attempt)
        try:
            await binding.bind()
            if self.waits_for_devices:
                await binding.wait_for_devices(node_name, self.binding_timeout)
        except (ClientError, ClaimGoneAnotherWayError) as failure:
            return error(str(failure))
        return None

    # -- the rest -----------------------------------------------------------------------------------------------------

    def _binding(self, cycle: Cycle, attempt: ClaimAttempt) -> ClaimBinding:
        return ClaimBinding(attempt, self._view(cycle).ledger, cycle.state.companion(JoinedConsumers), self.context)

    def _sharers(self, cycle: Cycle) -> str:
        """Which pods may count on what is set aside for a claim of this one; empty if none."""
        if self.context.handle.mode is SchedulerMode.BATCHED:
            return ANY_POD
        return "" if cycle.run_post_filter else group_key(cycle.pod)  # pods of a group that are decided together

    def _view(self, cycle: Cycle) -> ClusterDevices:
        return cycle.state.companion(ClusterDevices)
