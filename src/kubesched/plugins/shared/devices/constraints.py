"""Constraints of a claim: devices that must have an attribute in common, or must not have it twice."""

from __future__ import annotations

from collections.abc import Sequence

from kubesched.api.device_claims import DeviceConstraint
from kubesched.api.devices import AttributeValue
from kubesched.config.features import Features
from kubesched.plugins.shared.devices.device_kinds import UNKNOWN, DeviceKind

Value = tuple[str, AttributeValue]
"""The type of an attribute, and its value."""


class AttributeConstraint:
    """One constraint in one search: devices are added as they are chosen, and removed when the search turns back."""

    def __init__(self, attribute: str, requests: Sequence[str]) -> None:
        self.attribute = attribute
        self._requests = frozenset(requests)

    def concerns(self, request: str, alternative: str) -> bool:
        """Whether devices of this request count; an alternative may be named alone or with all of its request."""
        if not self._requests or request in self._requests:
            return True
        return bool(alternative) and f"{request}/{alternative}" in self._requests

    def add(self, request: str, kind: DeviceKind) -> bool:
        """Count the device; False, and nothing is counted, if that would break the constraint."""
        raise NotImplementedError

    def remove(self, request: str) -> None:
        """The opposite of the last `add` for the request."""
        raise NotImplementedError


class MatchAttribute(AttributeConstraint):
    """All devices have the same value."""

    def __init__(self, attribute: str, requests: Sequence[str]) -> None:
        super().__init__(attribute, requests)
        self._value: Value | None = None
        self._count = 0

    def add(self, request: str, kind: DeviceKind) -> bool:
        value = kind.attribute(self.attribute)
        if value is None or (self._count and (value != self._value or value is UNKNOWN)):
            return False
        self._value = value
        self._count += 1
        return True

    def remove(self, request: str) -> None:
        self._count -= 1


class DistinctAttribute(AttributeConstraint):
    """No two devices have the same value."""

    def __init__(self, attribute: str, requests: Sequence[str]) -> None:
        super().__init__(attribute, requests)
        self._values: list[Value] = []

    def add(self, request: str, kind: DeviceKind) -> bool:
        value = kind.attribute(self.attribute)
        if value is None or value in self._values or (value is UNKNOWN and self._values):
            return False
        self._values.append(value)
        return True

    def remove(self, request: str) -> None:
        self._values.pop()


class DistinctFromLast(AttributeConstraint):
    """The same as in v1.36, where of each request only the last device is remembered."""

    def __init__(self, attribute: str, requests: Sequence[str]) -> None:
        super().__init__(attribute, requests)
        self._last: dict[str, Value] = {}
        self._count = 0

    def add(self, request: str, kind: DeviceKind) -> bool:
        value = kind.attribute(self.attribute)
        if value is None or (self._count and (value in self._last.values() or (value is UNKNOWN and self._last))):
            return False
        self._last[request] = value
        self._count += 1
        return True

    def remove(self, request: str) -> None:
        self._last.pop(request, None)
        self._count -= 1


def begin(constraint: DeviceConstraint, features: Features) -> AttributeConstraint | None:
    """A constraint for a new search; None if it is of a kind that is not known."""
    if constraint.match_attribute is not None:
        return MatchAttribute(constraint.match_attribute, constraint.requests)
    if constraint.distinct_attribute is not None and not features.has_plain_devices:
        kind = DistinctAttribute if features.release.distinct_from_all else DistinctFromLast
        return kind(constraint.distinct_attribute, constraint.requests)
    return None
