"""The search for devices on one node: first fit, depth first, turning back whenever it gets stuck.

Claims in order, their requests in order, devices of a request in the order of the inventory and never backwards, so
that every combination is tried once. The first solution is taken; nothing is optimised.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import NamedTuple

from kubesched.framework.budget import TurnOverError
from kubesched.plugins.shared.devices.capacity import Amounts
from kubesched.plugins.shared.devices.constraints import AttributeConstraint, begin
from kubesched.plugins.shared.devices.demand import AllocationError, Demand, RequestDemand, SearchTime, escaped
from kubesched.plugins.shared.devices.device_kinds import CounterName
from kubesched.plugins.shared.devices.inventory import DeviceUse, Inventory

MOST_DEVICES = 32
"""Per claim."""
BEST_ALTERNATIVE = 8
"""The score of the first alternative; each further one scores one less."""

Path = tuple[tuple[int, bool] | int, ...]
"""Where a search was interrupted: per request the alternative, and whether all before it were too many devices; per
device the spot."""


class Chosen(NamedTuple):
    """A device for a request: which spot, and what is taken of its capacities if it is shared."""

    request: RequestDemand
    spot: int
    amounts: Amounts | None


@dataclass(frozen=True, eq=False, slots=True)
class FoundDevices:
    """A solution: the devices of each claim, in the order in which they were chosen."""

    claims: tuple[tuple[Chosen, ...], ...]
    selected: tuple[tuple[RequestDemand, ...], ...]
    """Per claim and request the alternative that was taken."""
    score: int


class _TooManyDevices(Exception):  # noqa: N818 - a turning point of the search, not an error
    """More than a claim may have, whichever devices are chosen for the request at hand."""


class Search:
    """One search; to be used once.

    If its turn ends, `path` is where it had come to. Another search, in the same inventory in the same use, goes on
    from there: it makes the same choices up to that point, without those that led nowhere.
    """

    def __init__(
        self, demand: Demand, inventory: Inventory, use: DeviceUse, time: SearchTime | None = None, path: Path = ()
    ) -> None:
        self._demand = demand
        self._inventory = inventory
        self._spots = inventory.spots
        self._numbers = demand.likeness.view(inventory).numbers
        self._busy = use.busy
        self._order_matters = demand.order_matters
        self._consumed = {spot: dict(amounts) for spot, amounts in use.consumed}
        self._shares = use.shares if demand.features.release.every_share_counts else ()
        self._left: list[dict[CounterName, int]] = [
            dict(zip(pool.counters, left)) for pool, left in zip(inventory.pools, use.counters)
        ]
        self._taken = [0] * len(demand.claims)
        """Per claim a bit for each device that is given to it for now."""
        self._shared: dict[int, list[Amounts]] = {}
        """By spot: what is given away of a shared device for now."""
        self._constraints: list[list[AttributeConstraint]] = []
        self._constraints_of: dict[RequestDemand, list[AttributeConstraint]] = {}
        self._devices_of: dict[RequestDemand, list[int]] = {}
        """For requests that take all devices: which those are."""
        self._drawn: list[bool] = []
        """Per device taken, in order, whether it drew from counters."""
        self._results: list[list[Chosen]] = [[] for _ in demand.claims]
        self._selected: list[list[RequestDemand]] = [[] for _ in demand.claims]
        self._time = time or SearchTime()
        self._ahead = list(reversed(path))
        """The rest of the path to follow, the last step first."""
        self._behind: list[tuple[int, bool] | int] = []
        """The path to where the turn ended, the last first."""

    def run(self) -> FoundDevices | None:
        """The first solution; None if there is none. Raises an AllocationError."""
        fault = self._demand.fault
        if fault is not None:
            raise AllocationError(fault.text, claim=fault.claim)
        for number in range(len(self._demand.claims)):
            self._prepare(number)
        try:
            if not self._claim(0):
                return None
        except _TooManyDevices:
            raise AllocationError("allocation max size exceeded") from None
        score = sum(
            BEST_ALTERNATIVE - requests.index(alternative)
            for claim, selected in zip(self._demand.claims, self._selected)
            for requests, alternative in zip(claim.requests, selected)
            if alternative.subrequest
        )
        return FoundDevices(tuple(map(tuple, self._results)), tuple(map(tuple, self._selected)), score)

    @property
    def path(self) -> Path:
        return *reversed(self._behind), *reversed(self._ahead)

    # -- before the search --------------------------------------------------------------------------------------------

    def _prepare(self, number: int) -> None:
        claim = self._demand.claims[number]
        fewest = sum(min(self._count(request) for request in alternatives) for alternatives in claim.requests)
        if fewest > MOST_DEVICES:
            text = f"claim {{claim}}: number of requested devices {fewest} exceeds the claim limit of {MOST_DEVICES}"
            raise AllocationError(text, claim=number)
        constraints: list[AttributeConstraint] = []
        for i, spec in enumerate(claim.spec.devices.constraints):
            constraint = begin(spec, self._demand.features)
            if constraint is None:
                text = f"claim {{claim}}, constraint #{i}: empty constraint (unsupported constraint type?)"
                raise AllocationError(text, claim=number)
            constraints.append(constraint)
        self._constraints.append(constraints)

    def _count(self, request: RequestDemand) -> int:
        name = escaped(request.subrequest or request.request_name)
        if request.is_refused:
            text = f"claim {{claim}}, request {name}: cannot handle request with derived attributes"
            raise AllocationError(f"{text}, the feature is disabled", claim=request.claim)
        if not request.takes_all:
            return request.count
        where = f"claim {{claim}}, request {name}: asks for all devices, but resource pool {{pool}} is currently"
        spots: list[int] = []
        first = 0
        for position, pool in enumerate(self._inventory.pools):
            if not pool.is_usable:
                fault = "being updated" if pool.is_incomplete else "invalid"
                raise AllocationError(f"{where} {fault}", claim=request.claim, pool=position)
            for spot in range(first, first + len(pool.spots)):
                self._time.step()
                if self._suits(request, spot, of_all=True):
                    spots.append(spot)
            first += len(pool.spots)
        self._devices_of[request] = spots
        return len(spots)

    # -- the search ---------------------------------------------------------------------------------------------------

    def _claim(self, number: int) -> bool:
        return number == len(self._demand.claims) or self._request(number, 0)

    def _request(self, claim: int, number: int) -> bool:
        requests = self._demand.claims[claim].requests
        if number == len(requests):
            try:
                return self._claim(claim + 1)
            except _TooManyDevices:
                return False  # with other devices for this claim, the next may have other alternatives
        selected = self._selected[claim]
        first, all_too_many = self._alternative_ahead()
        for position in range(first, len(requests[number])):
            request = requests[number][position]
            selected[number:] = [request]
            try:
                if self._devices(claim, number, request, 0, 0):
                    return True
                all_too_many = False
            except _TooManyDevices:
                continue  # another alternative may need fewer
            except TurnOverError:
                self._behind.append((position, all_too_many))
                raise
        if all_too_many:
            raise _TooManyDevices
        return False

    def _devices(self, claim: int, number: int, request: RequestDemand, count_so_far: int, start: int) -> bool:
        """Choose the devices that the request still needs, from a spot on; then those of all later requests."""
        self._time.step()
        of_all = self._devices_of[request] if request.takes_all else None
        if of_all is not None and not of_all:
            return False
        count = request.count if of_all is None else len(of_all)
        if count_so_far >= count:
            return self._request(claim, number + 1)
        if len(self._results[claim]) + count - count_so_far > MOST_DEVICES:
            raise _TooManyDevices
        blocked = self._blocked(claim, request)
        failed: set[Hashable] = set()
        for spot in range(self._spot_ahead(start), len(self._spots)) if of_all is None else (of_all[count_so_far],):
            if of_all is None and (blocked >> spot & 1 or self._likes_of(spot) in failed):
                continue
            is_done = is_taken = False
            try:
                if of_all is not None or self._suits(request, spot):
                    is_taken = self._take(claim, request, spot, must=of_all is not None)
                    is_done = is_taken and self._devices(claim, number, request, count_so_far + 1, spot + 1)
            except TurnOverError:
                if of_all is None:
                    self._behind.append(spot)
                raise
            finally:
                if is_taken and not is_done:
                    self._give_back(claim, request, spot)
            if is_done:
                return True
            if is_taken and not request.has_admin_access:
                failed.add(self._likes_of(spot))
        return False

    def _likes_of(self, spot: int) -> Hashable:
        """Equal for devices that are free and the same to all requests: where one leads nowhere, so do the others."""
        if self._is_shared(spot) or self._order_matters:
            return spot
        return self._numbers[spot], self._inventory.pool_of[spot]

    def _alternative_ahead(self) -> tuple[int, bool]:
        ahead = self._ahead.pop() if self._ahead else (0, True)
        assert isinstance(ahead, tuple)
        return ahead

    def _spot_ahead(self, start: int) -> int:
        ahead = self._ahead.pop() if self._ahead else start
        assert isinstance(ahead, int)
        return ahead

    # -- one device ---------------------------------------------------------------------------------------------------

    def _blocked(self, claim: int, request: RequestDemand) -> int:
        """A bit per device that is in use, and so not for the request; none for a request with admin access."""
        if request.has_admin_access:
            return self._taken[claim]
        blocked = self._busy
        for held in self._taken:
            blocked |= held
        return blocked

    def _suits(self, request: RequestDemand, spot: int, *, of_all: bool = False) -> bool:
        """Whether the request may have the device, whichever claim has it now."""
        device = self._spots[spot]
        if device.is_withheld or not request.selects(device.kind, self._numbers[spot], self._time, spot):
            return False
        if not device.is_reachable:
            return False
        if of_all and self._demand.features.release.all_means_all:
            return not isinstance(request.amounts(device.kind, spot, "{device_name}"), str)
        return self._has_room(request, spot)

    def _has_room(self, request: RequestDemand, spot: int) -> bool:
        kind = self._spots[spot].kind
        amounts = request.amounts(kind, spot)
        if isinstance(amounts, str):
            return False
        consumed, shared = self._consumed.get(spot), self._shared.get(spot)
        if not consumed and not shared:
            return True
        for name, amount in amounts.items():
            total = amount.nano + (consumed.get(name, 0) if consumed else 0)
            total += sum(share[name].nano for share in shared) if shared else 0
            if total > kind.frame.capacity[name].nano:
                return False
        return True

    def _take(self, claim: int, request: RequestDemand, spot: int, *, must: bool = False) -> bool:
        """Give the device to the request, if nothing speaks against it."""
        kind = self._spots[spot].kind
        if must and self._blocked(claim, request) >> spot & 1:
            return False
        if kind.frame.consumes and not self._demand.features.device_partitions:
            return False
        draws = bool(kind.frame.consumes) and not (kind.frame.is_shared and self._is_shared(spot))
        if draws and not self._draw(spot):
            return False
        if request.kept_away_by(kind) is not None:
            self._put_back(spot, draws)
            return False
        concerned = self._concerned(claim, request)
        for position, constraint in enumerate(concerned):
            if not constraint.add(request.request_name, kind):
                for added in reversed(concerned[:position]):
                    added.remove(request.request_name)
                self._put_back(spot, draws)
                if must:
                    name = escaped(request.subrequest or request.request_name)
                    text = f"claim {{claim}}, request {name}: cannot add device {{device}} because a claim constraint"
                    raise AllocationError(f"{text} would not be satisfied", claim=claim, spot=spot)
                return False
        if must and not self._has_room(request, spot):
            for added in reversed(concerned):
                added.remove(request.request_name)
            self._put_back(spot, draws)
            return False
        amounts: Amounts | None = None
        if kind.frame.is_shared:
            share = request.amounts(kind)
            assert not isinstance(share, str)
            amounts = share
            self._shared.setdefault(spot, []).append(amounts)
        else:
            self._taken[claim] |= 1 << spot
        self._drawn.append(draws)
        self._results[claim].append(Chosen(request, spot, amounts))
        return True

    def _is_shared(self, spot: int) -> bool:
        """Whether shares of the device are held: its counters were drawn from for the first of them."""
        return spot in self._consumed or spot in self._shared or spot in self._shares

    def _give_back(self, claim: int, request: RequestDemand, spot: int) -> None:
        chosen = self._results[claim].pop()
        if chosen.amounts is not None:
            self._shared[spot].pop()
            if not self._shared[spot]:
                del self._shared[spot]
        else:
            self._taken[claim] &= ~(1 << spot)
        for constraint in reversed(self._concerned(claim, request)):
            constraint.remove(request.request_name)
        self._put_back(spot, self._drawn.pop())

    def _concerned(self, claim: int, request: RequestDemand) -> list[AttributeConstraint]:
        """The constraints that devices of the request must keep."""
        concerned = self._constraints_of.get(request)
        if concerned is None:
            constraints = self._constraints[claim]
            concerned = [
                constraint
                for constraint in constraints
                if constraint.concerns(request.request_name, request.subrequest)
            ]
            self._constraints_of[request] = concerned
        return concerned

    # -- counters -----------------------------------------------------------------------------------------------------

    def _draw(self, spot: int) -> bool:
        """Take from the counters of the pool what the device needs; False if then there were too little of any."""
        counters = self._left[self._inventory.pool_of[spot]]
        for counter, nano in self._spots[spot].kind.frame.consumes:
            counters[counter] -= nano
        if all(nano >= 0 for nano in counters.values()):
            return True
        self._put_back(spot, True)
        return False

    def _put_back(self, spot: int, has_drawn: bool) -> None:
        if has_drawn:
            counters = self._left[self._inventory.pool_of[spot]]
            for counter, nano in self._spots[spot].kind.frame.consumes:
                counters[counter] += nano
