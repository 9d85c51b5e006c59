"""Faults on demand: rules that make the server misbehave, for tests and for curious people."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from typing import Literal, get_args

import msgspec

from kubesched.api.api_error import ApiError
from kubesched.api.errors import UserError
from kubesched.api.kinds import Resource

What = Literal["drop-watch", "delay", "410", "409", "429", "500-before", "500-after", "duplicate", "reorder", "freeze"]
_WHATS = get_args(What)


_WATCH_FAULTS = ("drop-watch", "duplicate", "reorder", "freeze", "410")
"""What can happen to an event on its way to a client."""


class Rule(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True, forbid_unknown_fields=True):
    """One kind of misbehaviour, how often and to whom."""

    what: What
    probability: float = 1.0
    verb: str = ""
    """create, get, list, watch, update, patch, delete, ...; empty: any."""
    resource: str = ""
    """The plural, with the subresource if there is one: pods, pods/binding; empty: any."""
    count: int | None = None
    """How often it happens at most."""
    seconds: float = 1.0
    """How long a delay is."""
    retry_after: int = 1
    """What a 429 asks for."""

    def concerns(self, verb: str, resource: str) -> bool:
        return self.verb in ("", verb) and self.resource in ("", resource)


class FaultError(UserError):
    """A rule that cannot be read."""


def parse_fault(text: str) -> Rule:
    """A rule in the words of --fault: `429:p=0.1,verb=create,resource=pods,retry-after=1`."""
    what, _, options = text.partition(":")
    if what not in _WHATS:
        raise FaultError(f"{what!r} is no fault; there are {', '.join(_WHATS)}")
    fields: dict[str, object] = {"what": what}
    for option in filter(None, options.split(",")):
        name, equals, value = option.partition("=")
        if not equals or name.strip() not in _OPTIONS:
            raise FaultError(f"{option!r} is no option; there are {', '.join(_OPTIONS)}, each with =value")
        field, kind = _OPTIONS[name.strip()]
        try:
            fields[field] = kind(value.strip())
        except ValueError:
            raise FaultError(f"{option!r}: expected {_EXPECTED[kind]}") from None
    return check(msgspec.convert(fields, Rule))


def check(rule: Rule) -> Rule:
    """Refuse a rule that makes no sense."""
    if not 0 <= rule.probability <= 1:
        raise FaultError(f"probability {rule.probability}: must be between 0 and 1")
    if not 0 <= rule.seconds <= 3600:
        raise FaultError(f"seconds {rule.seconds}: must be between 0 and 3600")
    if rule.retry_after < 0 or (rule.count is not None and rule.count < 0):
        raise FaultError("count and retry-after must not be negative")
    return rule


_OPTIONS: dict[str, tuple[str, Callable[[str], object]]] = {
    "p": ("probability", float),
    "verb": ("verb", str),
    "resource": ("resource", str),
    "count": ("count", int),
    "seconds": ("seconds", float),
    "retry-after": ("retryAfter", int),
}
_EXPECTED: dict[Callable[[str], object], str] = {float: "a number", int: "a whole number"}


class Faults:
    """The rules in force. All chance comes from one seed, so a run can be repeated."""

    def __init__(self, rules: Iterable[Rule] = (), seed: int = 0) -> None:
        self._rng = random.Random(seed)
        self._seed = seed
        self.replace(rules)

    @property
    def active(self) -> bool:
        return bool(self.rules)

    def replace(self, rules: Iterable[Rule], seed: int | None = None) -> None:
        """From now on these rules, counted anew."""
        if seed is not None:
            self._seed = seed
            self._rng.seed(seed)
        self.rules = tuple(check(rule) for rule in rules)
        self._times = [0] * len(self.rules)

    def status(self) -> dict[str, object]:
        """What the admin endpoint shows."""
        counted = [{**msgspec.to_builtins(rule), "happened": times} for rule, times in zip(self.rules, self._times)]
        return {"seed": self._seed, "rules": counted}

    def delay(self, verb: str, resource: str) -> float:
        """Seconds that a request has to wait."""
        return sum(rule.seconds for rule in self._hits(("delay",), verb, resource))

    def freezes(self, verb: str, resource: str) -> bool:
        """Whether a request is never answered."""
        return any(True for _ in self._hits(("freeze",), verb, resource))

    def before(self, verb: str, resource: str) -> ApiError | None:
        """The error that a request gets instead of being done."""
        hits = self._hits(("410", "409", "429", "500-before"), verb, resource)
        return next((_error(rule) for rule in hits), None)

    def after(self, verb: str, resource: str) -> ApiError | None:
        """The error that a request gets although it was done."""
        return next((_error(rule) for rule in self._hits(("500-after",), verb, resource)), None)

    def for_event(self, resource: Resource) -> What | None:
        """What happens to one event of one watch."""
        return next((rule.what for rule in self._hits(_WATCH_FAULTS, "watch", resource.plural)), None)

    def _hits(self, whats: tuple[str, ...], verb: str, resource: str) -> Iterable[Rule]:
        for index, rule in enumerate(self.rules):
            if rule.what not in whats or not rule.concerns(verb, resource):
                continue
            if rule.count is not None and self._times[index] >= rule.count:
                continue
            if self._rng.random() < rule.probability:
                self._times[index] += 1
                yield rule


def _error(rule: Rule) -> ApiError:
    match rule.what:
        case "410":
            return ApiError(410, "Expired", "too old resource version: injected fault")
        case "409":
            return ApiError(409, "Conflict", "Operation cannot be fulfilled: injected fault")
        case "429":
            message = "Too many requests, please try again later."
            return ApiError(429, "TooManyRequests", message, retry_after=rule.retry_after)
        case _:
            return ApiError(500, "InternalError", f"Internal error occurred: injected fault {rule.what}")
