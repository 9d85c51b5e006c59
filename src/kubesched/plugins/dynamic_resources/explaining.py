"""Why devices were chosen or not: every device within reach of a node, with what speaks against it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from kubesched.api.device_claims import ResourceClaim
from kubesched.framework.advice import NodeShortfall
from kubesched.framework.cycle import Cycle
from kubesched.framework.diagnosis import FilterOutcome
from kubesched.framework.nodes import NodeView
from kubesched.framework.plugin import Details, ExplainPlugin, Section
from kubesched.plugins.advice.devices import DeviceAdvice
from kubesched.plugins.dynamic_resources.attempt import NOTES, ClaimAttempt, Variant
from kubesched.plugins.shared.devices.answers import ClusterDevices
from kubesched.plugins.shared.devices.capacity import Amounts
from kubesched.plugins.shared.devices.constraints import begin
from kubesched.plugins.shared.devices.demand import AllocationError, RequestDemand
from kubesched.plugins.shared.devices.inventory import DeviceUse, Inventory
from kubesched.plugins.shared.devices.ledger import DeviceId
from kubesched.plugins.shared.devices.pools import Spot
from kubesched.plugins.shared.devices.search import Chosen, FoundDevices
from kubesched.state.cluster import ClusterState


@dataclass(frozen=True, slots=True)
class DeviceVerdict:
    """One device, in the order in which devices are tried."""

    device: str
    """`driver/pool/name`."""
    is_chosen: bool
    reason: str
    """What rules it out; or that it would do, or is not needed."""


@dataclass(frozen=True, slots=True)
class RequestDevices:
    """All devices for one request of a claim, or for one of its alternatives."""

    claim: str
    request: str
    wants: str
    """In words: `2 of class gpu`."""
    devices: tuple[DeviceVerdict, ...]


@dataclass(frozen=True, slots=True)
class NodeDevices:
    """The devices that were considered on one node."""

    node: str
    found: bool
    """Whether all claims can be allocated there."""
    notes: tuple[str, ...]
    """About pools that are not used, and claims that are allocated already."""
    requests: tuple[RequestDevices, ...]


_MOST_NODES = 40
"""Devices are many, and what is said of them is long."""

_MOST_HOLDERS = 4

Holders = Mapping[DeviceId, Sequence[str]]


class ExplainedClaims(ExplainPlugin, DeviceAdvice):
    """The part of DynamicResources that speaks to people."""

    explained_as = "devices"

    def explain(self, cycle: Cycle, outcome: FilterOutcome, node: str) -> Details:
        attempt = cycle.find(NOTES)
        if attempt is None or attempt.variants is None:
            return Details()
        return explain_claims(attempt, cycle.state, node, outcome)

    def shortfall(self, cycle: Cycle, node: NodeView) -> NodeShortfall | None:
        attempt = cycle.find(NOTES)
        text = devices_in_use(attempt, cycle.state, node) if attempt is not None and attempt.variants else ""
        return NodeShortfall(text) if text else None


def explain_claims(attempt: ClaimAttempt, state: ClusterState, winner: str, outcome: FilterOutcome) -> Details:
    """What devices were considered for the claims of a pod: on the winner, then on nodes that lack nothing else, by
    name. Devices of a node that the pod does not ask for are left out."""
    view, nodes = state.companion(ClusterDevices), state.nodes

    def others(name: str) -> int:
        row = nodes.row_of[name]
        rejected = [status for status in outcome.rejections_of(row) if status.plugin != "DynamicResources"]
        return len(rejected) if outcome.considered[row] else len(outcome.columns) + 1

    names = sorted(nodes.order.names(), key=lambda name: (name != winner, others(name), name))[:_MOST_NODES]
    holders = view.ledger.holders()
    nodes_explained = tuple(explain_devices(attempt, view, nodes.row_of[name], name, holders) for name in names)
    return Details(tuple(map(_section, nodes_explained)), nodes_explained)


def devices_in_use(attempt: ClaimAttempt, state: ClusterState, node: NodeView) -> str:
    """Why a node cannot allocate the claims, if others hold devices within its reach: how many, and who. Empty if all
    are free, or the allocator has said what is wrong."""
    view, row = state.companion(ClusterDevices), state.nodes.row_of[node.name]
    answer, inventory = attempt.variant_at(row).answer, view.inventories.of(row)
    if answer is None or answer.outcomes[row].error is not None:
        return ""
    busy = inventory.use(view.ledger).busy
    near = [(spot.id, busy >> i & 1) for i, spot in enumerate(inventory.spots) if spot.is_reachable]
    busy_devices = [device for device, is_busy in near if is_busy]
    if not busy_devices:
        return ""
    holders = view.ledger.holders()
    claims = list(dict.fromkeys(claim for device in busy_devices for claim in holders[device]))
    more = f" and {len(claims) - _MOST_HOLDERS} more" if len(claims) > _MOST_HOLDERS else ""
    devices = "device is" if len(near) == 1 else f"devices {'is' if len(busy_devices) == 1 else 'are'}"
    who = ", ".join(claims[:_MOST_HOLDERS]) + more
    return f"cannot allocate all claims: {len(busy_devices)} of {len(near)} {devices} in use by {who}"


def _section(node: NodeDevices) -> Section:
    rows: list[tuple[str, ...]] = []
    for request in node.requests:
        title = f"{request.claim} {request.request}: {request.wants}"
        for device in request.devices:
            rows.append((title, device.device, "yes" if device.is_chosen else "", device.reason))
            title = ""
        if not request.devices:
            rows.append((title, "none within reach", "", ""))
    columns = ("Request", "Device", "Chosen", "Reason") if rows else ()
    return Section(f"Devices on {node.node}", node.node, node.notes, columns, tuple(rows))


def explain_devices(
    attempt: ClaimAttempt, view: ClusterDevices, row: int, node_name: str, holders: Holders
) -> NodeDevices:
    """The devices that were considered on a row. The devices of the attempt must have been searched for."""
    variant, inventory = attempt.variant_at(row), view.inventories.of(row)
    notes = [*_pools(inventory), *_allocated(attempt, row)]
    if variant.answer is None:
        return NodeDevices(node_name, True, tuple(notes), ())
    outcome = variant.answer.outcomes[row]
    if outcome.error is not None:
        notes.append(view.message_of(outcome.error, row, variant.claims))
    explanation = _NodeExplanation(variant, inventory, inventory.use(view.ledger), holders, outcome.found)
    return NodeDevices(node_name, outcome.found is not None, tuple(notes), tuple(explanation.requests()))


class _NodeExplanation:
    """One node, asked about every request and device."""

    def __init__(
        self, variant: Variant, inventory: Inventory, use: DeviceUse, holders: Holders, solution: FoundDevices | None
    ) -> None:
        assert variant.answer is not None
        self._features = variant.answer.demand.features
        self._variant = variant
        self._inventory = inventory
        self._use = use
        self._holders = holders
        self._solution = solution
        self._consumed = {spot: dict(amounts) for spot, amounts in use.consumed}
        self._beside: list[list[tuple[RequestDemand, Spot]]] = [[] for _ in variant.claims]
        """Per claim the devices that constraints are about: those chosen, or those that would be tried first."""
        self._users: dict[int, tuple[str, Chosen]] = {}
        for number, devices in enumerate(solution.claims if solution is not None else ()):
            self._users.update((chosen.spot, (variant.claims[number].name, chosen)) for chosen in devices)
            self._beside[number] = [(chosen.request, inventory.spots[chosen.spot]) for chosen in devices]

    def requests(self) -> Iterator[RequestDevices]:
        assert self._variant.answer is not None
        for number, (claim, demand) in enumerate(zip(self._variant.claims, self._variant.answer.demand.claims)):
            for alternatives in demand.requests:
                for request in alternatives:
                    yield RequestDevices(
                        claim.name,
                        request.name,
                        _request_text(request),
                        tuple(
                            DeviceVerdict("/".join(spot.id), *self._verdict(number, request, i, claim))
                            for i, spot in enumerate(self._inventory.spots)
                        ),
                    )

    def _verdict(self, number: int, request: RequestDemand, i: int, claim: ResourceClaim) -> tuple[bool, str]:
        chosen = [] if self._solution is None else self._solution.claims[number]
        if any(choice.request is request and choice.spot == i for choice in chosen):
            return True, ""
        return False, self._objection(request, i, claim)

    def _objection(self, request: RequestDemand, i: int, claim: ResourceClaim) -> str:
        """The first thing that speaks against a device, in the order of the search."""
        spot = self._inventory.spots[i]
        if not request.has_admin_access and self._use.busy >> i & 1:
            return f"in use by {', '.join(self._holders[spot.id])}"
        if spot.is_withheld:
            return "has binding conditions, but the feature gate DRADeviceBindingConditions is off"
        refusal = request.selection.refusal(spot.kind)
        if refusal is not None:
            where, expression = refusal
            judged = request.selection.judge(spot.kind)
            where = where.format(claim=claim.key)
            text = str(judged).format(claim=claim.key, device="/".join(spot.id))
            return f"{where} is false: {expression}" if judged is False else text
        if not spot.is_reachable:
            return "not for this node"
        return (
            self._too_little(request, i, spot)
            or self._too_few_counters(i, spot)
            or _taint(request, spot)
            or self._constraint(request, spot, claim)
            or self._not_needed(i)
        )

    def _too_little(self, request: RequestDemand, i: int, spot: Spot) -> str:
        try:
            amounts: Amounts | str = request.amounts(spot.kind)
        except AllocationError as error:
            return error.text.format(claim="", device="/".join(spot.id))
        if isinstance(amounts, str):
            return amounts
        for name, amount in amounts.items():
            consumed = self._consumed.get(i, {}).get(name, 0)
            if consumed + amount.nano > spot.kind.frame.capacity[name].nano:
                remainder = amount._replace(nano=spot.kind.frame.capacity[name].nano - consumed)
                return f"has only {remainder.text} of {name} left, {amount.text} would be taken"
        return ""

    def _too_few_counters(self, i: int, spot: Spot) -> str:
        pool = self._inventory.pool_of[i]
        remaining = dict(zip(self._inventory.pools[pool].counters, self._use.counters[pool]))
        if not spot.kind.frame.consumes or (spot.kind.frame.is_shared and i in self._consumed):
            return ""
        if any(name not in remaining for name, _ in spot.kind.frame.consumes):
            return "draws from counters, but the feature gate DRAPartitionableDevices is off"
        short = next((f"{name[0]}/{name[1]}" for name, nano in spot.kind.frame.consumes if remaining[name] < nano), "")
        short = short or next((f"{name[0]}/{name[1]}" for name, nano in remaining.items() if nano < 0), "")
        return f"too little left of counter {short}" if short else ""

    def _constraint(self, request: RequestDemand, spot: Spot, claim: ResourceClaim) -> str:
        """What the device breaks together with those that were chosen, or would have been tried first."""
        for number, spec in enumerate(claim.spec.devices.constraints):
            constraint = begin(spec, self._features)
            if constraint is None or not constraint.concerns(request.request_name, request.subrequest):
                continue
            kind = "matchAttribute" if spec.match_attribute is not None else "distinctAttribute"
            where = f"constraint #{number} ({kind} {constraint.attribute})"
            if spot.kind.attribute(constraint.attribute) is None:
                return f"{where}: has no such attribute"
            beside = [
                (other, other_spot)
                for other, other_spot in self._beside[request.claim]
                if constraint.concerns(other.request_name, other.subrequest)
            ]
            for other, other_spot in beside:
                constraint.add(other.request_name, other_spot.kind)
            if not constraint.add(request.request_name, spot.kind):
                names = ", ".join(other_spot.device.name for _, other_spot in beside)
                return f"{where} would not hold beside {names}"
        if self._solution is None:
            self._try(request, spot)
        return ""

    def _try(self, request: RequestDemand, spot: Spot) -> None:
        """Where nothing was found, the first devices that nothing speaks against show why the others do not go."""
        beside = self._beside[request.claim]
        count = sum(other is request for other, _ in beside)
        if count < request.count and not any(other_spot is spot for _, other_spot in beside):
            beside.append((request, spot))

    def _not_needed(self, i: int) -> str:
        if self._solution is None:
            return "would do"
        if i in self._users:
            claim, chosen = self._users[i]
            return f"given to request {chosen.request.name} of {claim}"
        return "not needed"


def _pools(inventory: Inventory) -> Iterator[str]:
    for pool in inventory.pools:
        if pool.is_incomplete:
            yield f"pool {pool.title} is being updated: not all of its slices are there"
        elif pool.fault:
            yield f"pool {pool.title} is invalid: {pool.fault}"


def _allocated(attempt: ClaimAttempt, row: int) -> Iterator[str]:
    for index, claim in enumerate(attempt.claims):
        allocation = claim.status.allocation
        if allocation is None:
            continue
        devices = ", ".join("/".join(device.id) for device in allocation.devices.results)
        cannot = index in attempt.unavailable and attempt.unavailable[index][row]
        why = "its devices will not be ready" if index in attempt.lost else "this node cannot use them"
        yield f"claim {claim.name} has {devices or 'no devices'}" + (f": {why}" if cannot else "")


def _taint(request: RequestDemand, spot: Spot) -> str:
    taint = request.kept_away_by(spot.kind)
    if taint is None:
        return ""
    value = f"={taint.value}" if taint.value else ""
    return f"taint {taint.key}{value}:{taint.effect} is not tolerated"


def _request_text(request: RequestDemand) -> str:
    number = "all" if request.takes_all else str(request.count)
    access = " with admin access" if request.has_admin_access else ""
    return f"{number} of class {request.spec.device_class_name}{access}"
