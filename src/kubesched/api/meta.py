"""The metadata of every Kubernetes object: names, labels, owners; and label selectors."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec.structs import replace

Int32 = Annotated[int, msgspec.Meta(ge=-(2**31), le=2**31 - 1)]


class Record(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True, gc=False):
    """A Kubernetes object or part of one: only the fields a scheduler reads; all others are ignored.

    Records hold no reference to the record that contains them, so the garbage collector need not visit them.
    """


class OwnerReference(Record, frozen=True):
    """Who created the object; the one with `controller` set manages it."""

    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool = False


class ObjectMeta(Record, frozen=True):
    """The metadata of any object."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    generate_name: str = ""
    resource_version: str = ""
    generation: int = 0
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    owner_references: tuple[OwnerReference, ...] = ()
    creation_timestamp: str = ""
    deletion_timestamp: str = ""
    finalizers: tuple[str, ...] = ()

    @property
    def controller(self) -> OwnerReference | None:
        """The owner that manages this object, if any."""
        return next((owner for owner in self.owner_references if owner.controller), None)


class LabelSelectorRequirement(Record, frozen=True):
    """One condition on a label."""

    key: str
    operator: Literal["In", "NotIn", "Exists", "DoesNotExist"]
    values: tuple[str, ...] = ()


class LabelSelector(Record, frozen=True):
    """A condition on labels: all of `match_labels` and all of `match_expressions`."""

    match_labels: dict[str, str] = {}
    match_expressions: tuple[LabelSelectorRequirement, ...] = ()


class KubeObject(Record, frozen=True):
    """An object that has a name of its own in the API."""

    api_version: str = ""
    kind: str = ""
    metadata: ObjectMeta = ObjectMeta()

    @property
    def name(self) -> str:
        return self.metadata.name

    @property
    def namespace(self) -> str:
        return self.metadata.namespace

    @property
    def key(self) -> str:
        """`namespace/name`, or just the name of what lives outside namespaces."""
        meta = self.metadata
        return f"{meta.namespace}/{meta.name}" if meta.namespace else meta.name

    def only_version_differs(self, other: KubeObject) -> bool:
        """Whether the objects are equal in all that a scheduler reads, except their versions."""
        version = self.metadata.resource_version
        return self == replace(other, metadata=replace(other.metadata, resource_version=version))

    @property
    def identity(self) -> str:
        """The uid, or the name without one: an object that was deleted and created again is another object."""
        return self.metadata.uid or self.key
