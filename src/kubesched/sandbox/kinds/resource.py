"""What the API server knows of a kind: its names, where it lives, what can be done with it."""

from __future__ import annotations

from typing import Any, TypeAlias

import msgspec

Object: TypeAlias = dict[str, Any]
"""A Kubernetes object as JSON. What is stored is never changed in place: a change is a new object."""

ALL_VERBS = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")


class Resource(msgspec.Struct, frozen=True):
    """One resource of the API, as discovery describes it."""

    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool = True
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    subresources: tuple[str, ...] = ("status",)
    verbs: tuple[str, ...] = ALL_VERBS
    singular: str = ""
    """The kind in lower case, unless said otherwise."""

    def __post_init__(self) -> None:
        if not self.singular:
            msgspec.structs.force_setattr(self, "singular", self.kind.lower())

    @property
    def api_version(self) -> str:
        """As objects carry it: v1, apps/v1, ..."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def qualified(self) -> str:
        """As error messages name it: pods, deployments.apps, ..."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @property
    def path(self) -> str:
        """Where all objects of this kind are found: /api/v1/pods, /apis/apps/v1/deployments, ..."""
        return f"/{'apis' if self.group else 'api'}/{self.api_version}/{self.plural}"
