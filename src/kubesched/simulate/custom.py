"""Custom resources in manifests: which objects are of a resource that plugins wait for, and what they are then."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from kubesched.api.custom import CustomObject, custom_object
from kubesched.api.meta import ObjectMeta
from kubesched.api.schema import Mistake, convert
from kubesched.simulate.kinds import DEFAULT_NAMESPACE


class _Names(msgspec.Struct):
    plural: str
    kind: str


class _DefinitionSpec(msgspec.Struct):
    group: str
    names: _Names
    scope: str = "Namespaced"


class _Definition(msgspec.Struct):
    """As much of a CustomResourceDefinition as it takes to know its objects."""

    spec: _DefinitionSpec


class CustomResources:
    """What plugins wait for, as `plural.version.group`, and what definitions among the manifests say about it.

    An object tells its kind but not the plural. Where no definition does, it is the plural that most kinds have.
    """

    def __init__(self, awaited: Iterable[str] = ()) -> None:
        self._awaited = frozenset(awaited)
        self._defined_as: dict[tuple[str, str], _DefinitionSpec] = {}

    def define(self, content: dict[str, Any]) -> None:
        """Take note of an object, should it be a CustomResourceDefinition."""
        spec = _definition(content)
        if spec is not None:
            self._defined_as[spec.group, spec.names.kind] = spec

    def defines(self, content: dict[str, Any]) -> bool:
        """Whether the object is of a resource that a definition among the manifests describes."""
        group, _, _ = _text(content, "apiVersion").rpartition("/")
        return (group, _text(content, "kind")) in self._defined_as

    def is_awaited_definition(self, content: dict[str, Any]) -> bool:
        """Whether it defines a resource that plugins wait for."""
        spec = _definition(content)
        return spec is not None and (spec.names.plural, spec.group) in map(_plural_and_group, self._awaited)

    def read(self, content: dict[str, Any]) -> CustomObject | list[Mistake] | None:
        """The object as plugins find it; what is wrong with it; or None if no plugin waits for such objects."""
        api_version, kind = _text(content, "apiVersion"), _text(content, "kind")
        group, _, version = api_version.rpartition("/")
        definition = self._defined_as.get((group, kind))
        plural = definition.names.plural if definition is not None else _usual_plural(kind)
        resource = f"{plural}.{version}.{group}"
        if resource not in self._awaited:
            return None
        metadata, mistakes = convert(content.get("metadata") or {}, ObjectMeta, path="metadata")
        if metadata is None:
            return mistakes
        if not metadata.name:
            return [Mistake("metadata.name", "Required value: name or generateName is required")]
        if definition is not None:
            namespace = (metadata.namespace or DEFAULT_NAMESPACE) if definition.scope == "Namespaced" else ""
            metadata = msgspec.structs.replace(metadata, namespace=namespace)
            content = {**content, "metadata": _with_namespace(content.get("metadata") or {}, namespace)}
        return custom_object(resource, content, metadata)


def _definition(content: dict[str, Any]) -> _DefinitionSpec | None:
    group, _, _ = _text(content, "apiVersion").partition("/")
    if group != "apiextensions.k8s.io" or content.get("kind") != "CustomResourceDefinition":
        return None
    try:
        return msgspec.convert(content, _Definition).spec
    except msgspec.ValidationError:
        return None


def _with_namespace(metadata: dict[str, Any], namespace: str) -> dict[str, Any]:
    others = {field: value for field, value in metadata.items() if field != "namespace"}
    return {**others, "namespace": namespace} if namespace else others


def _plural_and_group(resource: str) -> tuple[str, str]:
    plural, _, group = resource.split(".", 2)
    return plural, group


def _usual_plural(kind: str) -> str:
    """As Kubernetes itself derives it from a kind."""
    singular = kind.lower()
    if singular.endswith("s"):
        return f"{singular}es"
    return f"{singular.removesuffix('y')}ies" if singular.endswith("y") else f"{singular}s"


def _text(content: dict[str, Any], field: str) -> str:
    value = content.get(field)
    return value if isinstance(value, str) else ""
