"""What is wrong with an object, field by field, in Kubernetes' words."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from kubesched.api.api_error import ApiError, invalid
from kubesched.api.kinds import Object, Resource
from kubesched.api.schema import Mistake

IMMUTABLE = "field is immutable"
NEGATIVE = "must be greater than or equal to 0"
NOT_POSITIVE = "must be greater than zero"
REQUIRED = "FieldValueRequired"


class Mistakes:
    """Collects what is wrong, so that a client learns everything at once."""

    __slots__ = ("found", "refusal")

    def __init__(self) -> None:
        self.found: list[Mistake] = []
        self.refusal: ApiError | None = None
        """The answer of an admission plugin that would not have the object; a server looks no further then."""

    def required(self, field: str, why: str = "") -> None:
        self._add(field, "Required value", why, REQUIRED)

    def invalid(self, field: str, value: Any, why: str) -> None:
        self._add(field, f"Invalid value: {_shown(value)}", why, "FieldValueInvalid")

    def invalid_each(self, field: str, value: Any, whys: Iterable[str]) -> None:
        for why in whys:
            self.invalid(field, value, why)

    def unsupported(self, field: str, value: Any, supported: Iterable[str]) -> None:
        known = ", ".join(_shown(each) for each in supported)
        self._add(field, f"Unsupported value: {_shown(value)}", f"supported values: {known}", "FieldValueNotSupported")

    def forbidden(self, field: str, why: str) -> None:
        self._add(field, "Forbidden", why, "FieldValueForbidden")

    def duplicate(self, field: str, value: Any) -> None:
        self._add(field, f"Duplicate value: {_shown(value)}", "", "FieldValueDuplicate")

    def not_found(self, field: str, value: Any) -> None:
        self._add(field, f"Not found: {_shown(value)}", "", "FieldValueNotFound")

    def too_long(self, field: str, limit: int) -> None:
        self._add(field, "Too long", f"may not be more than {limit} bytes", "FieldValueTooLong")

    def too_many(self, field: str, count: int, limit: int) -> None:
        self._add(field, f"Too many: {count}", f"must have at most {limit} items", "FieldValueTooMany")

    def immutable(self, field: str, new: Any, old: Any) -> None:
        """The field may not change."""
        if new != old:
            self.invalid(field, new, IMMUTABLE)

    def not_empty(self, field: str, value: Any, why: str = "") -> None:
        """The field is not left out."""
        if not value:
            self.required(field, why)

    def one_of(self, field: str, value: str, supported: Sequence[str]) -> None:
        """The field holds one of these values."""
        if value not in supported:
            self.unsupported(field, value, supported)

    def chosen(self, field: str, value: str, supported: Sequence[str]) -> None:
        """The field holds one of these values, and is not left out."""
        if not value:
            self.required(field)
        else:
            self.one_of(field, value, supported)

    def named(self, field: str, name: Any, rule: Callable[[Any], Iterable[str]]) -> None:
        """The field holds a name or a number as the rule wants it."""
        if not name:
            self.required(field)
        else:
            self.invalid_each(field, name, rule(name))

    def unique(self, field: str, value: Any, seen: set[Any]) -> None:
        """No earlier item has this value; the next ones may not either."""
        if value in seen:
            self.duplicate(field, value)
        seen.add(value)

    def not_negative(self, field: str, value: int | None) -> None:
        if value is not None and value < 0:
            self.invalid(field, value, NEGATIVE)

    def all(self) -> list[Mistake]:
        """Those of a refusal too."""
        if self.refusal is None:
            return self.found
        return [*self.found, *(self.refusal.mistakes or [Mistake("", self.refusal.message)])]

    def raise_for(self, resource: Resource, obj: Object) -> None:
        """Refuse the object if anything was found."""
        if self.refusal is not None:
            raise self.refusal
        if self.found:
            raise invalid(resource, (obj.get("metadata") or {}).get("name") or "", self.found)

    def _add(self, field: str, message: str, why: str, reason: str) -> None:
        self.found.append(Mistake(field, f"{message}: {why}" if why else message, reason))


def _shown(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
