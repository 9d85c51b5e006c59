"""A device as selectors see it."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from kubesched.api.quantity import Quantity
from kubesched.cel.errors import AbsorbableError
from kubesched.cel.values import DomainMap, Value, readable
from kubesched.cel.versions import parse_semver

MODEST = 64
"""No device the API server accepts has longer texts or more attributes than this."""


class Version(msgspec.Struct, frozen=True):
    """A version as it is spelled in a slice."""

    text: str


AttributeValue = bool | int | str | Version | list["bool | int | str | Version"]


class CelDevice(msgspec.Struct, frozen=True, eq=False):
    """The `device` of an expression; build it with `view_device`, once per device, and ask many selectors."""

    driver: str
    attributes: DomainMap
    capacity: DomainMap
    allow_multiple_allocations: bool
    modest: bool
    """Whether it has no `problem` and stays within the API's limits, for which `worst_case_cost` holds."""
    problem: str | None = None
    """Why every evaluation for this device is an error; None if there is no reason."""

    def as_map(self) -> dict[str, Value]:
        """All of it, for expressions that pass the device around."""
        return {
            "driver": self.driver,
            "attributes": self.attributes,
            "capacity": self.capacity,
            "allowMultipleAllocations": self.allow_multiple_allocations,
        }


def view_device(
    driver: str,
    attributes: Mapping[str, AttributeValue | None],
    capacity: Mapping[str, Quantity],
    *,
    allow_multiple_allocations: bool = False,
) -> CelDevice:
    """A device of a slice, by its qualified names: those without a domain get the driver's.

    An attribute without a value that selectors know (None) makes every evaluation an error, as does a version that is
    none: then it is better to schedule nothing than to schedule wrongly.
    """
    driver = readable(driver)
    problem: str | None = None
    by_domain = DomainMap()
    for name, value in attributes.items():
        try:
            _put(by_domain, driver, name, _value_of(value))
        except AbsorbableError as error:
            problem = problem or f"attribute {name}: {error}"
    amounts = DomainMap()
    for name, quantity in capacity.items():
        _put(amounts, driver, name, quantity)
    texts = [driver, *attributes, *capacity, *(value for value in attributes.values() if isinstance(value, str))]
    has_lists = any(isinstance(value, list) for value in attributes.values())
    modest = (
        not has_lists and len(attributes) + len(capacity) <= MODEST and all(len(text) <= 3 * MODEST for text in texts)
    )
    return CelDevice(driver, by_domain, amounts, allow_multiple_allocations, modest and problem is None, problem)


def _value_of(value: AttributeValue | None) -> Value:
    if isinstance(value, list):
        return [_value_of(element) for element in value]
    if value is None:
        raise AbsorbableError("unsupported attribute value")
    if isinstance(value, Version):
        try:
            return parse_semver(value.text)
        except AbsorbableError as error:
            raise AbsorbableError(f"parse semantic version: {error}") from None
    return readable(value) if isinstance(value, str) else value


def _put(domains: DomainMap, driver: str, name: str, value: Value) -> None:
    domain, slash, identifier = readable(name).partition("/")
    if not slash:
        domain, identifier = driver, name
    domains.setdefault(domain, {})[identifier] = value
