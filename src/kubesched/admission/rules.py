"""The rules of a kind, the mistakes that they find, and the checks of metadata, which every kind has."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol

import msgspec

from kubesched.admission import names
from kubesched.admission.reading import fill_all, mapping, metadata_of, sequence, text
from kubesched.api.api_error import ApiError, invalid
from kubesched.api.kinds import Object, Resource
from kubesched.api.release import Release
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
        """The refusal of an admission plugin; an API server does not validate the object any further then."""

    def required(self, field: str, why: str = "") -> None:
        self._add(field, "Required value", why, REQUIRED)

    def invalid(self, field: str, value: Any, why: str) -> None:
        self._add(field, f"Invalid value: {_show(value)}", why, "FieldValueInvalid")

    def invalid_whole(self, field: str, why: str) -> None:
        """As `invalid`, of an object or a list, which the message does not show."""
        self._add(field, "Invalid value", why, "FieldValueInvalid")

    def invalid_each(self, field: str, value: Any, whys: Iterable[str]) -> None:
        for why in whys:
            self.invalid(field, value, why)

    def unsupported(self, field: str, value: Any, supported: Iterable[str]) -> None:
        why = f"supported values: {', '.join(map(_show, supported))}"
        self._add(field, f"Unsupported value: {_show(value)}", why, "FieldValueNotSupported")

    def forbidden(self, field: str, why: str) -> None:
        self._add(field, "Forbidden", why, "FieldValueForbidden")

    def duplicate(self, field: str, value: Any) -> None:
        self._add(field, f"Duplicate value: {_show(value)}", "", "FieldValueDuplicate")

    def not_found(self, field: str, value: Any) -> None:
        self._add(field, f"Not found: {_show(value)}", "", "FieldValueNotFound")

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

    def required_one_of(self, field: str, value: str, supported: Sequence[str]) -> None:
        """The field is not left out, and holds one of these values."""
        if not value:
            self.required(field)
        else:
            self.one_of(field, value, supported)

    def required_valid(self, field: str, value: Any, rule: Callable[[Any], Iterable[str]]) -> None:
        """The field is not left out, and the rule finds nothing wrong with its value."""
        if not value:
            self.required(field)
        else:
            self.invalid_each(field, value, rule(value))

    def unique(self, field: str, value: Any, seen: set[Any]) -> None:
        """No earlier item has this value. Adds it to `seen`, for the next items."""
        if value in seen:
            self.duplicate(field, value)
        seen.add(value)

    def not_negative(self, field: str, value: int | None) -> None:
        if value is not None and value < 0:
            self.invalid(field, value, NEGATIVE)

    def all(self) -> list[Mistake]:
        """The mistakes, those of a refusal included."""
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


def _show(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


# -- metadata, which every kind has -----------------------------------------------------------------------------------


_ANNOTATIONS_LIMIT = 256 * 1024
_SET_BY_SERVER = ("uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds")
_IMMUTABLE = ("name", "namespace", *_SET_BY_SERVER)
NameRule = Callable[[str], names.Reasons]


def check_metadata(resource: Resource, obj: Object, name_rule: NameRule, mistakes: Mistakes) -> None:
    metadata = metadata_of(obj)
    if prefix := text(metadata, "generateName"):
        # The server appends letters, so the prefix may end in a dash.
        name_start = f"{prefix[:-1]}a" if prefix.endswith("-") else prefix
        mistakes.invalid_each("metadata.generateName", prefix, name_rule(name_start))
    name = text(metadata, "name")
    if not name:
        mistakes.required("metadata.name", "name or generateName is required")
    else:
        mistakes.invalid_each("metadata.name", name, name_rule(name))
    _check_namespace(resource, text(metadata, "namespace"), mistakes)
    if metadata.get("labels"):
        check_labels(mapping(metadata, "labels"), "metadata.labels", mistakes)
    if metadata.get("annotations"):
        check_annotations(mapping(metadata, "annotations"), "metadata.annotations", mistakes)
    if metadata.get("ownerReferences"):
        _check_owners(sequence(metadata, "ownerReferences"), mistakes)
    for finalizer in sequence(metadata, "finalizers"):
        mistakes.invalid_each("metadata.finalizers", finalizer, names.label_key(finalizer))


def _check_namespace(resource: Resource, namespace: str, mistakes: Mistakes) -> None:
    if not resource.namespaced:
        if namespace:
            mistakes.forbidden("metadata.namespace", "not allowed on this type")
    else:
        mistakes.required_valid("metadata.namespace", namespace, names.label)


def check_labels(labels: Mapping[str, str | None], field: str, mistakes: Mistakes) -> None:
    """A value that is null is the empty string, as in Go."""
    for key, value in labels.items():
        mistakes.invalid_each(field, key, names.label_key(key))
        mistakes.invalid_each(field, value, names.label_value(value or ""))


def check_annotations(annotations: Mapping[str, str | None], field: str, mistakes: Mistakes) -> None:
    for key in annotations:
        # Unlike a label's, the domain of an annotation's key may be in upper case.
        mistakes.invalid_each(field, key, names.label_key(key.lower()))
    if sum(len(key) + len((value or "").encode()) for key, value in annotations.items()) > _ANNOTATIONS_LIMIT:
        mistakes.too_long(field, _ANNOTATIONS_LIMIT)


def _check_owners(owners: list[Object], mistakes: Mistakes) -> None:
    field = "metadata.ownerReferences"
    controllers: list[str] = []
    for owner in owners:
        for key in ("apiVersion", "kind", "name", "uid"):
            if not text(owner, key):
                why = "version must not be empty" if key == "apiVersion" else "must not be empty"
                mistakes.invalid(f"{field}.{key}", "", why)
        if owner.get("controller") is True:
            controllers.append(f"{owner.get('kind')}/{owner.get('name')}")
    if len(controllers) > 1:
        why = f"Only one reference can have Controller set to true. Found {controllers[0]} and {controllers[1]}"
        mistakes.invalid(field, owners, f'"true" in references for {why}')


def check_metadata_update(new: Object, old: Object, mistakes: Mistakes) -> None:
    """Fill in what the server set and the client left out; nobody may change it."""
    metadata, before = new["metadata"], metadata_of(old)
    for key in _SET_BY_SERVER:
        if metadata.get(key) in (None, "") and key in before:
            metadata[key] = before[key]
    for key in _IMMUTABLE:
        mistakes.immutable(f"metadata.{key}", metadata.get(key), before.get(key))
    added = set(sequence(metadata, "finalizers")) - set(sequence(before, "finalizers"))
    if added and "deletionTimestamp" in before:
        shown = ", ".join(f'"{finalizer}"' for finalizer in sorted(added))
        why = "no new finalizers can be added if the object is being deleted, found new finalizers"
        mistakes.forbidden("metadata.finalizers", f"{why} []string{{{shown}}}")


# -- rules ------------------------------------------------------------------------------------------------------------


class Reader(Protocol):
    """What admission may look up in the cluster, and the release of its API server."""

    release: Release

    def find(self, resource: Resource, namespace: str, name: str) -> Object | None: ...

    def select(self, resource: Resource, namespace: str | None = None) -> Iterable[Object]: ...


Defaults = Callable[[Object], None]
"""Sets in place what the client left out; called on updates too, so it must change nothing the second time."""
Admit = Callable[[Object, Reader], None]
"""Sets in place, once at creation, what depends on other objects; may refuse the new object by an ApiError."""
CarryOver = Callable[[Object, Object], None]
"""Sets in the new object what an update may leave out because the old one has it; takes the new, then the old."""
Check = Callable[[Object, Mistakes], None]
CheckUpdate = Callable[[Object, Object, Mistakes], None]
"""Takes the new object, then the old."""
AdmitUpdate = Callable[[Object, Object, Reader], None]
"""May refuse an update, by an ApiError, because of other objects; takes the new object, then the old."""
SubresourceWrite = Callable[[Object, Object, Mistakes], Object]
"""Takes the new object, then the old; returns the object that is to be stored."""


NewStatus = Callable[[Object], Object]


def _no_status(_: Object) -> Object:
    return {}


def _nothing(*_: object) -> None:
    return None


class Rules(msgspec.Struct, frozen=True, kw_only=True):
    """What the API server does for one kind beyond the types of its fields."""

    name: NameRule = names.subdomain
    fills: Mapping[str, Any] = {}
    """Values of fields that the client may leave out, as deep as the fields are; {} for a field that must be there."""
    defaults: Defaults = _nothing
    """Defaults that depend on other fields."""
    admit: Admit = _nothing
    carry_over: CarryOver = _nothing
    check: Check = _nothing
    check_create: Check = _nothing
    """What only new objects are checked for."""
    immutable: tuple[str, ...] = ()
    """Fields that an update may not change."""
    check_update: CheckUpdate = _nothing
    """What only updates are checked for."""
    admit_update: AdmitUpdate = _nothing
    new_status: NewStatus | None = _no_status
    """The status of a new object of a kind that has one as a subresource; None: as the client says."""
    subresource_writes: Mapping[str, SubresourceWrite] = {}
    """By the name of the subresource: how a write to it changes the object. The status needs none."""
    counts_generations: bool = False
    """Whether metadata.generation tells clients that the spec changed."""

    def complete(self, obj: Object) -> None:
        """Set in place what the client left out."""
        fill_all(obj, self.fills)
        self.defaults(obj)
