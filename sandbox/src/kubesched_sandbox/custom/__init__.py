"""Custom resources by the schemas of their CustomResourceDefinitions: pruned, filled in and checked."""

from __future__ import annotations

from functools import lru_cache

import msgspec

from kubesched.admission.rules import Mistakes
from kubesched.api.kinds import Object, Resource
from kubesched_sandbox.custom.rules import check_rules, compile_rules
from kubesched_sandbox.custom.structure import Schema, fill_in_defaults, prune, unknown_fields
from kubesched_sandbox.custom.validation import check_value

__all__ = ["CustomSchema", "check_definition", "custom_schema"]


class CustomSchema:
    """The schema of one version of a custom resource."""

    def __init__(self, schema: Schema) -> None:
        self.schema = schema

    def completed(self, obj: Object) -> Object:
        """A copy without unknown fields, and with defaults where nothing is said."""
        whole: Object = fill_in_defaults(prune(obj, self.schema, is_resource=True), self.schema)
        return whole

    def unknown_in(self, obj: Object) -> list[str]:
        """The paths of fields that the schema does not have."""
        return unknown_fields(obj, self.schema, is_resource=True)

    def check(self, new: Object, old: Object | None, mistakes: Mistakes) -> None:
        """Note what is wrong with an object. Fields with the same mistake in the old object are left alone."""
        before = len(mistakes.found)
        fields = {key: value for key, value in new.items() if key not in ("apiVersion", "kind", "metadata")}
        check_value(fields, self.schema, "", mistakes, old=old)
        if len(mistakes.found) == before:
            check_rules(new, self.schema, mistakes, old=old)


def custom_schema(resource: Resource) -> CustomSchema | None:
    """The schema of a custom resource; None of one that has none, and of all that is built in."""
    return _read(resource.schema) if resource.schema else None


@lru_cache(maxsize=1024)
def _read(schema: bytes) -> CustomSchema:
    return CustomSchema(msgspec.json.decode(schema))


def check_definition(definition: Object, mistakes: Mistakes) -> None:
    """Note the rules of a definition that are no CEL."""
    for i, version in enumerate(definition["spec"]["versions"]):
        schema = (version.get("schema") or {}).get("openAPIV3Schema") or {}
        compile_rules(schema, f"spec.versions[{i}].schema.openAPIV3Schema", mistakes)
