"""Whether an applied configuration fits the field table well enough to say which fields it means."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kubesched.admission.schemas.table import CUSTOM, Type, object_type
from kubesched.api.api_error import ApiError, bad_request
from kubesched.api.kinds import Object, Resource
from kubesched.sandbox.patching.fieldsets import Path, field_step, spelled
from kubesched.sandbox.patching.structure import is_declared, is_listing, is_mapping, item_steps, present, type_of_field


def undeclared(resource: Resource, applied: Object) -> ApiError | None:
    """The 400 for fields that do not exist and lists whose items cannot be told apart."""
    errors = [f"{spelled(path)}: {why}" for path, why in _errors(object_type(resource), applied, ())]
    if not errors:
        return None
    metadata = applied.get("metadata")
    namespace, name = (
        (metadata.get("namespace", ""), metadata.get("name", "")) if isinstance(metadata, dict) else ("", "")
    )
    subject = f"{namespace}/{name}; {resource.api_version}, Kind={resource.kind}"
    told = errors[0] if len(errors) == 1 else "errors:\n" + "\n".join(f"  {error}" for error in errors)
    return bad_request(f"failed to create typed patch object ({subject}): {told}")


def _errors(type_: Type, value: Any, path: Path) -> Iterator[tuple[Path, str]]:
    if is_mapping(type_, value):
        for name, child in present(value):
            inner = (*path, field_step(name))
            if type_.shape == "struct" and type_.name != CUSTOM and not is_declared(type_, name):
                yield inner, "field not declared in schema"
            else:
                yield from _errors(type_of_field(type_, name), child, inner)
    elif is_listing(type_, value):
        yield from _list_errors(type_, value, path)
    elif type_.shape == "list" and not isinstance(value, list):
        yield path, f"expected list, got {value!r}"
    elif type_.shape in ("map", "struct") and not isinstance(value, dict):
        yield path, f"expected map, got {value!r}"


def _list_errors(type_: Type, items: list[Any], path: Path) -> Iterator[tuple[Path, str]]:
    seen: set[str] = set()
    for position, (step, item) in enumerate(zip(item_steps(type_, items), items)):
        if step.startswith("i:"):
            keys = " ".join(f'"{key}"' for key in type_.keys)
            yield (
                path,
                f"element {position}: associative list with keys has an element that omits all key fields [{keys}]",
            )
        elif step in seen:
            yield path, f"duplicate entries for key {spelled((step,))}"
        else:
            seen.add(step)
            yield from _errors(type_.item, item, (*path, step))
