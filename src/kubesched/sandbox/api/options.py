"""How a deletion is to be done, as a client says it in a body or a query."""

from __future__ import annotations

from typing import Any

import msgspec

from kubesched.api.api_error import bad_request


class DeleteOptions(msgspec.Struct, frozen=True):
    """The options of a deletion."""

    grace: int | None = None
    propagation: str | None = None
    uid: str | None = None
    resource_version: str | None = None
    dry_run: bool = False

    @classmethod
    def read(cls, body: Any) -> DeleteOptions:
        """From a DeleteOptions object; nothing at all is the default."""
        if body is None:
            return cls()
        if not isinstance(body, dict):
            raise bad_request("the DeleteOptions provided are unrecognized (must be of type object)")
        preconditions = _typed(body, "preconditions", dict) or {}
        propagation = _typed(body, "propagationPolicy", str)
        if propagation is None and (orphan := _typed(body, "orphanDependents", bool)) is not None:
            propagation = "Orphan" if orphan else "Background"
        return cls(
            grace=_typed(body, "gracePeriodSeconds", int),
            propagation=propagation,
            uid=_typed(preconditions, "uid", str),
            resource_version=_typed(preconditions, "resourceVersion", str),
            dry_run=is_dry_run(_typed(body, "dryRun", list) or []),
        )


def is_dry_run(values: list[Any]) -> bool:
    """Whether nothing is to be stored; only `All` is a way to say so."""
    wrong = [value for value in values if value != "All"]
    if wrong:
        raise bad_request(f'dryRun: Unsupported value: {wrong[0]!r}: supported values: "All"')
    return bool(values)


def _typed(body: dict[str, Any], key: str, kind: type) -> Any:
    value = body.get(key)
    if value is not None and (not isinstance(value, kind) or (kind is int and isinstance(value, bool))):
        raise bad_request(f"the DeleteOptions provided are unrecognized: {key} must be of type {kind.__name__}")
    return value
