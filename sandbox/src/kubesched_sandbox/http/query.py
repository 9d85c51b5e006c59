"""What a URL asks for: the resource, object or subresource of its path, and the options of its query."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple
from urllib.parse import parse_qsl, unquote

from kubesched.api.api_error import bad_request, invalid
from kubesched.api.kinds import Resource
from kubesched.api.schema import Mistake
from kubesched_sandbox.api.reading import DeleteOptions, is_dry_run

_BOOLEANS = {"": True, "1": True, "true": True, "True": True, "t": True, "0": False, "false": False, "False": False}
_MOST = 2**63 - 1
_LIST_OPTIONS = Resource("meta.k8s.io", "v1", "listoptions", "ListOptions")
_FIELD_VALIDATION = ("Ignore", "Warn", "Strict")


class Query:
    """Parameters by name; of one given twice the first counts."""

    __slots__ = ("_values",)

    def __init__(self, text: str) -> None:
        self._values: dict[str, list[str]] = {}
        if not text:
            return
        try:
            pairs = parse_qsl(text, keep_blank_values=True, errors="strict", max_num_fields=256)
        except ValueError as error:
            raise bad_request(f"the query cannot be read: {error}") from None
        for key, value in pairs:
            self._values.setdefault(key, []).append(value)

    def text(self, name: str, default: str = "") -> str:
        values = self._values.get(name)
        return default if values is None else values[0]

    def flag(self, name: str, default: bool = False) -> bool:
        values = self._values.get(name)
        if values is None:
            return default
        flag = _BOOLEANS.get(values[0])
        if flag is None:
            raise bad_request(f'{name}: strconv.ParseBool: parsing "{values[0]}": invalid syntax')
        return flag

    def number(self, name: str) -> int | None:
        """A number that is not negative, or None when it is not given."""
        text = self.text(name)
        if not text:
            return None
        digits = text[1:] if text[0] == "-" else text
        if not digits.isascii() or not digits.isdigit():
            raise bad_request(f'{name}: strconv.ParseInt: parsing "{text}": invalid syntax')
        if len(digits) > 19 or int(digits) > _MOST:
            raise bad_request(f'{name}: strconv.ParseInt: parsing "{text}": value out of range')
        return int(text)

    def resource_version(self) -> int | None:
        """The resourceVersion asked for; None when there is none."""
        text = self.text("resourceVersion")
        if not text:
            return None
        if not text.isascii() or not text.isdigit() or len(text) > 19:
            raise bad_request(
                f'resourceVersion: Invalid value: "{text}": strconv.ParseUint: parsing "{text}": invalid syntax'
            )
        return int(text)

    def dry_run(self) -> bool:
        return is_dry_run(self._values.get("dryRun", []))

    def field_validation(self) -> str:
        text = self.text("fieldValidation") or "Warn"
        if text not in _FIELD_VALIDATION:
            raise bad_request(
                f'fieldValidation: Unsupported value: "{text}": supported values: "Ignore", "Strict", "Warn"'
            )
        return text

    def delete_options(self, body: DeleteOptions) -> DeleteOptions:
        """Options of a deletion, where the query adds to what the body says."""
        grace = self.number("gracePeriodSeconds")
        propagation = self.text("propagationPolicy") or None
        orphan = self.text("orphanDependents")
        if propagation is None and orphan:
            propagation = "Orphan" if self.flag("orphanDependents") else "Background"
        return DeleteOptions(
            body.grace if grace is None else grace,
            body.propagation if propagation is None else propagation,
            body.uid,
            body.resource_version,
            body.dry_run or self.dry_run(),
        )


def bad_list_option(field: str, message: str, reason: str = "FieldValueForbidden") -> Exception:
    return invalid(_LIST_OPTIONS, "", [Mistake(field, message, reason)])


class Target(NamedTuple):
    """An object, a collection or a subresource. An empty name stands for the whole collection."""

    group: str
    version: str
    plural: str
    namespace: str | None = None
    name: str = ""
    subresource: str = ""
    watch: bool = False
    """Asked for by the older way of watching, a prefix in the path."""


_NAMESPACE_SUBRESOURCES = ("status", "finalize")


@lru_cache(maxsize=4096)
def target_of(path: str) -> Target | None:
    """The target of a path below /api or /apis; None when it names no resource."""
    parts = path.split("/")[1:]
    if parts and parts[-1] == "":
        parts.pop()
    if parts[:1] == ["api"] and len(parts) >= 3:
        group, version, rest = "", parts[1], parts[2:]
    elif parts[:1] == ["apis"] and len(parts) >= 4:
        group, version, rest = parts[1], parts[2], parts[3:]
    else:
        return None
    rest = [_decoded(part) for part in rest]
    watch = rest[0] == "watch" and len(rest) > 1
    if watch:
        rest = rest[1:]
    namespace: str | None = None
    if rest[0] == "namespaces" and len(rest) > 2 and not (len(rest) == 3 and rest[2] in _NAMESPACE_SUBRESOURCES):
        namespace, rest = rest[1], rest[2:]
    if len(rest) > 3 or "" in rest or namespace == "":
        return None
    name = rest[1] if len(rest) > 1 else ""
    subresource = rest[2] if len(rest) > 2 else ""
    return Target(group, version, rest[0], namespace, name, subresource, watch)


def _decoded(part: str) -> str:
    if "%" not in part:
        return part
    try:
        text = unquote(part, errors="strict")
    except UnicodeDecodeError:
        raise bad_request("the path is not valid UTF-8") from None
    if "\0" in text:
        raise bad_request("the path contains a NUL byte")
    return text
