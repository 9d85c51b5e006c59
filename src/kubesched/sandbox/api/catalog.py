"""Which resources are served at this moment, and in which table and shape their objects are stored."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from kubesched.admission.kinds import SERVED
from kubesched.api.kinds import CORE_EVENTS, EVENTS, Object, Resource
from kubesched.sandbox.api import custom, event_shapes

Shape = Callable[[Object], Object]


class View(NamedTuple):
    """How objects of a resource differ from what is stored."""

    shown: Shape
    stored: Shape


_NEWER_EVENTS = View(event_shapes.newer, event_shapes.older)


class Catalog:
    """The built-in resources and those that CustomResourceDefinitions add."""

    def __init__(self) -> None:
        self._resources: dict[tuple[str, str, str], Resource] = {}
        self._views: dict[str, View] = {EVENTS.path: _NEWER_EVENTS}
        self._custom: dict[str, tuple[Resource, ...]] = {}
        self.edition = 0
        """Grows whenever the resources change."""
        for resource in SERVED:
            self._resources[_key(resource)] = resource

    def all(self) -> tuple[Resource, ...]:
        return tuple(self._resources.values())

    def lookup(self, group: str, version: str, plural: str) -> Resource | None:
        return self._resources.get((group, version, plural))

    def is_custom(self, resource: Resource) -> bool:
        return f"{resource.plural}.{resource.group}" in self._custom

    def view(self, resource: Resource) -> View | None:
        """None when what is stored is what is shown."""
        return self._views.get(resource.path)

    def define(self, definition: Object) -> None:
        """Serve what a CustomResourceDefinition says, in place of what it said before."""
        name = definition["metadata"]["name"]
        self.forget(name)
        # A definition of the same name does not replace what is built in.
        resources = tuple(each for each in custom.resources_of(definition) if _key(each) not in self._resources)
        self._custom[name] = resources
        storage = custom.storage_version(definition)
        for resource in resources:
            self._resources[_key(resource)] = resource
            if len(resources) > 1 or resource.api_version != storage:
                self._views[resource.path] = View(_relabelled(resource.api_version), _relabelled(storage))
        self.edition += 1

    def forget(self, name: str) -> tuple[Resource, ...]:
        """Serve the resources of a definition no longer."""
        resources = self._custom.pop(name, ())
        for resource in resources:
            self._resources.pop(_key(resource), None)
            self._views.pop(resource.path, None)
        self.edition += 1
        return resources


def table_of(resource: Resource) -> str:
    """The table of a resource. All versions share one, and so do the two shapes of events."""
    if not resource.group:
        return resource.plural
    return CORE_EVENTS.plural if resource is EVENTS else f"{resource.plural}.{resource.group}"


def _key(resource: Resource) -> tuple[str, str, str]:
    return resource.group, resource.version, resource.plural


def _relabelled(api_version: str) -> Shape:
    return lambda obj: {**obj, "apiVersion": api_version}
