"""What the claims of a pod ask for, made ready to be searched for on any node.

Pods that are alike ask for the same. What was found out about kinds of devices for one of them serves the others.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from weakref import WeakKeyDictionary

from kubesched.api.device_claims import (
    ALL_DEVICES,
    EXACT_COUNT,
    DeviceRequest,
    DeviceSubRequest,
    DeviceToleration,
    ExactDeviceRequest,
    ResourceClaimSpec,
)
from kubesched.api.devices import DeviceClass, DeviceTaint
from kubesched.api.quantity import QuantityText
from kubesched.cel import Names
from kubesched.config.features import DEFAULT_FEATURES, Features
from kubesched.framework.budget import UNLIMITED, Budget, Expense, TurnOverError
from kubesched.plugins.shared.devices.capacity import Amounts, CapacityError, CapacityRules, amounts_taken
from kubesched.plugins.shared.devices.device_equivalence import DeviceEquivalence
from kubesched.plugins.shared.devices.device_kinds import DeviceFrame, DeviceKind
from kubesched.plugins.shared.devices.selecting import CompiledExpressions, DeviceSelection, Selectors

BLOCKING_EFFECTS = ("NoSchedule", "NoExecute")


class AllocationError(Exception):
    """Why a search cannot go on at all. The text may name the claim, a pool, a device and the node."""

    def __init__(self, text: str, *, claim: int = 0, pool: int = 0, spot: int = 0, is_passing: bool = False) -> None:
        super().__init__(text)
        self.text = text
        """With {claim}, {claim_name}, {pool}, {device}, {device_name} and {node} where those come."""
        self.claim = claim
        self.pool = pool
        self.spot = spot
        self.is_passing = is_passing
        """Whether the same search may end otherwise another time: it took too long."""


_STEPS_BETWEEN_LOOKS = 64
_EVALUATIONS_BETWEEN_LOOKS = 4
_STEPS_IN_VAIN = 10_000
_MOST_SELECTED = 1 << 13
_BYTES_PER_REQUEST, _BYTES_PER_DEVICE = 2500, 100
"""What a request takes, and what is known about one device."""
_DEVICES = Expense("DynamicResources", "the devices of its claims")


class SearchTime:
    """How long the search for the devices of one pod may go on: until it is to pause, and until it is given up.

    A turn ends only after something was found out that is kept: or the search would never come to an end.
    """

    __slots__ = ("_budget", "_evaluations", "_has_progressed", "_steps", "_timeout", "fruitless")

    def __init__(self, budget: Budget = UNLIMITED, timeout: float = 0.0) -> None:
        """`timeout` is in seconds, for all turns and all nodes together; 0 for none."""
        self._budget = budget
        self._timeout = timeout
        self._steps = 0
        self._evaluations = 0
        self._has_progressed = False
        self.fruitless = 0
        """Steps since anything was found out that is kept for good."""

    @property
    def is_in_vain(self) -> bool:
        """Whether a search that is given up would be again, if devices and their use stay as they are."""
        return self.fruitless > _STEPS_IN_VAIN

    def step(self) -> None:
        """The search takes a step."""
        self._steps += 1
        self.fruitless += 1
        if self._steps % _STEPS_BETWEEN_LOOKS == 0:
            self._has_progressed = True
            self.look()

    def evaluated(self) -> None:
        """A selector has been evaluated for a device, and the answer is kept."""
        self._has_progressed = True
        self.fruitless = 0
        self._evaluations += 1
        if self._evaluations % _EVALUATIONS_BETWEEN_LOOKS == 0:
            self.look()

    def evaluated_again(self) -> None:
        """A selector was compiled again, and has been evaluated for a device. The answer is kept."""
        self._has_progressed = True
        self.look()

    def prepared(self) -> None:
        """A selector has been compiled, or the devices of a node collected. There is no search yet to be given up."""
        self.fruitless = 0
        self._budget.end_turn(_DEVICES)

    def look(self) -> None:
        """TurnOverError or AllocationError if the search is to end here."""
        if self._timeout and self._budget.is_exceeded(self._timeout, _DEVICES):
            raise AllocationError("node {node}: timed out trying to allocate devices", is_passing=True)
        if self._has_progressed:
            self._budget.end_turn(_DEVICES)

    def wait(self) -> None:
        """Nothing can be done now: TurnOverError, unless all must be done in one turn."""
        self._budget.end_turn(_DEVICES, at_once=True)

    def let_others_go_first(self) -> None:
        """To be called where the search is known to take long."""
        if self._budget.is_first_turn:
            raise TurnOverError(_DEVICES)


class RequestDemand:
    """One request, or one of its alternatives, with what is known about kinds of devices."""

    def __init__(
        self,
        request: str,
        spec: ExactDeviceRequest | DeviceSubRequest,
        selection: DeviceSelection,
        *,
        claim: int,
        features: Features,
        compiled: CompiledExpressions,
    ) -> None:
        self.request_name = request
        self.subrequest = spec.name if isinstance(spec, DeviceSubRequest) else ""
        self.name = f"{request}/{self.subrequest}" if self.subrequest else request
        """As it is named in an allocation."""
        self.spec = spec
        self.claim = claim
        self.takes_all = spec.allocation_mode == ALL_DEVICES
        self.count = spec.count
        self.has_admin_access = isinstance(spec, ExactDeviceRequest) and bool(spec.admin_access)
        self.selection = selection
        self._compiled = compiled
        self._judged = -1, 0
        """A number whose devices are being judged, and how many of the selectors hold for them."""
        self.is_refused = bool(spec.derived_attributes) and features.release.derived_attributes_refused
        """Whether it asks for what only a feature has that is off."""
        capacity = spec.capacity if features.device_capacity else None
        self._capacity: Mapping[str, QuantityText] = capacity.requests if capacity else {}
        self._rules = CapacityRules(features.fractional_capacity, features.release.capacity_errors)
        self.selected: dict[int, bool | str] = {}
        """By the number of devices that look alike: whether they are selected, or what broke."""
        self._amounts: WeakKeyDictionary[DeviceFrame, Amounts | str | CapacityError] = WeakKeyDictionary()
        self._kept_away: WeakKeyDictionary[DeviceFrame, DeviceTaint | None] = WeakKeyDictionary()

    def selects(self, kind: DeviceKind, number: int, time: SearchTime, spot: int = 0) -> bool:
        """Whether the selectors of class and request choose devices of this number. AllocationError if they break."""
        answer = self.selected.get(number)
        if answer is None:
            answer = self._judge(kind, number, time)
            if len(self.selected) >= _MOST_SELECTED:
                self.selected.clear()
            self.selected[number] = answer
            time.evaluated()
        if isinstance(answer, str):
            raise AllocationError(answer, claim=self.claim, spot=spot)
        return answer

    def _judge(self, kind: DeviceKind, number: int, time: SearchTime) -> bool | str:
        """As `DeviceSelection.judge`. Expressions that have to be compiled again may take more than a turn."""
        selection = self.selection
        device = selection.view(kind)
        judged, begun = self._judged
        for position in range(begun if judged == number else 0, len(selection.expressions)):
            expression = selection.expressions[position]
            if is_new := not expression.is_compiled:
                self._compiled.compile(expression)
            answer = selection.judge_by(position, device, time.look)
            if answer is not True:
                return answer
            if is_new:
                self._judged = number, position + 1
                time.evaluated_again()
        return True

    def amounts(self, kind: DeviceKind, spot: int = 0, device: str = "{device}") -> Amounts | str:
        """What is taken of the capacities of such a device; or why it is not enough.

        Raises an AllocationError, which names the device so, if no device is to be tried any more.
        """
        amounts = self._amounts.get(kind.frame)
        if amounts is None:
            try:
                amounts = amounts_taken(self._capacity, kind.frame, self._rules)
            except CapacityError as error:
                amounts = error.with_traceback(None)
            self._amounts[kind.frame] = amounts
        if isinstance(amounts, CapacityError):
            name = escaped(self.subrequest or self.request_name)
            text = f"claim {{claim}}, request {name}: checking capacity for device {device}: {escaped(str(amounts))}"
            raise AllocationError(text, claim=self.claim, spot=spot)
        return amounts

    def kept_away_by(self, kind: DeviceKind) -> DeviceTaint | None:
        """The first taint of such a device that is not tolerated."""
        frame = kind.frame
        if not frame.taints:
            return None
        if frame not in self._kept_away:
            self._kept_away[frame] = next((taint for taint in frame.taints if self._is_kept_away(taint)), None)
        return self._kept_away[frame]

    def _is_kept_away(self, taint: DeviceTaint) -> bool:
        return taint.effect in BLOCKING_EFFECTS and not any(_tolerates(t, taint) for t in self.spec.tolerations)


@dataclass(frozen=True, eq=False)
class ClaimDemand:
    """One claim: its requests, each with its alternatives (one, if it has no others)."""

    spec: ResourceClaimSpec
    requests: tuple[tuple[RequestDemand, ...], ...]


class Demand:
    """Claims to be allocated together, in order. Compared by identity."""

    def __init__(
        self,
        specs: Sequence[ResourceClaimSpec],
        classes: Mapping[str, DeviceClass],
        selectors: Selectors,
        features: Features = DEFAULT_FEATURES,
    ) -> None:
        self.features = features
        self.fault: AllocationError | None = None
        """A mistake in the claims or classes themselves, for every node; None if there is none."""
        self.claims: tuple[ClaimDemand, ...] = ()
        self.likeness = DeviceEquivalence(None)
        self._compiled = CompiledExpressions()
        try:
            self.claims = tuple(
                ClaimDemand(
                    spec,
                    tuple(self._alternatives(request, i, classes, selectors) for request in spec.devices.requests),
                )
                for i, spec in enumerate(specs)
            )
        except AllocationError as error:
            self.fault = error
        self._uncompiled = [expression for request in self.requests for expression in request.selection.expressions]

    @property
    def requests(self) -> Iterator[RequestDemand]:
        """All requests of all claims, with all alternatives."""
        return (request for claim in self.claims for alternatives in claim.requests for request in alternatives)

    @property
    def order_matters(self) -> bool:
        """Whether a device cannot stand for another that looks the same, as it is tried before or after others.

        Requests for all devices take them one by one, and fail with the first; or a device must be distinct only from
        the last one of each request.
        """
        if any(request.takes_all for request in self.requests):
            return True
        constraints = (constraint for claim in self.claims for constraint in claim.spec.devices.constraints)
        return not self.features.release.distinct_from_all and any(
            constraint.distinct_attribute for constraint in constraints
        )

    @property
    def size(self) -> int:
        """Bytes, about: its expressions, as they are written and compiled, and what is known about devices."""
        return self._compiled.size + sum(
            _BYTES_PER_REQUEST
            + _BYTES_PER_DEVICE * len(request.selected)
            + sum(len(expression.text) for expression in request.selection.expressions)
            for request in self.requests
        )

    def compile(self, time: SearchTime) -> None:
        """Compile its expressions. TurnOverError if that takes long; what was compiled is known from then on."""
        while self._uncompiled:
            self._compiled.compile(self._uncompiled.pop())
            time.prepared()

    @property
    def names(self) -> Names | None:
        """The attributes that are looked at; None for any."""
        names: set[str] = set()
        for claim in self.claims:
            for constraint in claim.spec.devices.constraints:
                names.add(constraint.match_attribute or constraint.distinct_attribute or "")
        for request in self.requests:
            names_read = request.selection.names
            if names_read is None:
                return None
            names |= names_read
        return frozenset(names)

    def _alternatives(
        self, request: DeviceRequest, claim: int, classes: Mapping[str, DeviceClass], selectors: Selectors
    ) -> tuple[RequestDemand, ...]:
        features = self.features
        alternatives = request.first_available or ((request.exactly,) if request.exactly is not None else ())
        if not features.device_capacity and not features.has_plain_devices:
            _refuse_capacity(request, alternatives, claim)
        demands: list[RequestDemand] = []
        for spec in alternatives:
            name = spec.name if isinstance(spec, DeviceSubRequest) else request.name
            where = f"claim {{claim}}, request {escaped(name)}"
            for number, selector in enumerate(spec.selectors):
                if selector.cel is None:
                    text = f"{where}, selector #{number}: CEL expression empty (unsupported selector type?)"
                    raise AllocationError(text, claim=claim)
            device_class = classes.get(spec.device_class_name)
            if device_class is None:
                class_name = escaped(spec.device_class_name)
                text = f'{where}: could not retrieve device class {class_name}: deviceclass "{class_name}" not found'
                raise AllocationError(text, claim=claim)
            if spec.allocation_mode not in (EXACT_COUNT, ALL_DEVICES):
                raise AllocationError(f"{where}: unsupported count mode {escaped(spec.allocation_mode)}", claim=claim)
            selection = selectors.of(device_class, spec.selectors)
            demands.append(
                RequestDemand(request.name, spec, selection, claim=claim, features=features, compiled=self._compiled)
            )
        return tuple(demands)


def _refuse_capacity(
    request: DeviceRequest, alternatives: Sequence[ExactDeviceRequest | DeviceSubRequest], claim: int
) -> None:
    for spec in alternatives:
        if spec.capacity is not None:
            subject = f"subrequest {spec.name}" if isinstance(spec, DeviceSubRequest) else f"request {request.name}"
            reason = "has capacity requests, but the DRAConsumableCapacity feature is disabled"
            raise AllocationError(f"claim {{claim}}, {escaped(subject)}: {reason}", claim=claim)


def escaped(text: str) -> str:
    """Text that goes into that of an AllocationError as it is."""
    return text.replace("{", "{{").replace("}", "}}")


def _tolerates(toleration: DeviceToleration, taint: DeviceTaint) -> bool:
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    if toleration.operator in ("", "Equal"):
        return toleration.value == taint.value
    return toleration.operator == "Exists"
