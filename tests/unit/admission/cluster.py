"""A cluster as admission sees it, and what it refuses."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import pytest

from kubesched.api.api_error import ApiError
from kubesched.api.kinds import Object, Resource
from kubesched.api.release import V1_36, Release


class Cluster:
    """Objects that are there already."""

    def __init__(self, objects: Iterable[tuple[Resource, Object]] = (), release: Release = V1_36) -> None:
        self._objects = tuple(objects)
        self.release = release

    def having(self, resource: Resource, *objects: Object) -> Cluster:
        return Cluster((*self._objects, *((resource, each) for each in objects)), self.release)

    def find(self, resource: Resource, namespace: str, name: str) -> Object | None:
        named = (each for each in self.select(resource, namespace or None) if each["metadata"]["name"] == name)
        return next(named, None)

    def select(self, resource: Resource, namespace: str | None = None) -> Iterable[Object]:
        return [
            each
            for kind, each in self._objects
            if kind == resource and namespace in (None, each["metadata"].get("namespace"))
        ]


def refused(attempt: Callable[[], object]) -> list[tuple[str, str]]:
    """Every field that was found wrong, with the words for it."""
    with pytest.raises(ApiError) as error:
        attempt()
    assert error.value.code == 422, error.value.message
    return [(cause["field"], cause["message"]) for cause in error.value.details["causes"]]
