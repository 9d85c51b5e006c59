"""What is found below an object: which kind it speaks and what can be done with it."""

from __future__ import annotations

from functools import lru_cache

import msgspec

from kubesched.api.kinds import Resource


class Subresource(msgspec.Struct, frozen=True):
    """One subresource. An empty group and version mean those of the resource it belongs to."""

    name: str
    kind: str
    group: str = ""
    version: str = ""
    verbs: tuple[str, ...] = ("get", "patch", "update")


_CREATE = ("create",)
_SCALE = Subresource("scale", "Scale", "autoscaling", "v1")
_SPECIAL = {
    "pods/binding": Subresource("binding", "Binding", verbs=_CREATE),
    "pods/eviction": Subresource("eviction", "Eviction", "policy", "v1", _CREATE),
    "serviceaccounts/token": Subresource("token", "TokenRequest", "authentication.k8s.io", "v1", _CREATE),
    "namespaces/finalize": Subresource("finalize", "Namespace", verbs=("update",)),
}
"""Subresources of core/v1 that do not simply read and write their own object."""


@lru_cache(maxsize=1024)
def subresources(resource: Resource) -> tuple[Subresource, ...]:
    """The subresources in order of their names."""
    return tuple(_subresource(resource, name) for name in sorted(resource.subresources))


def _subresource(resource: Resource, name: str) -> Subresource:
    if name == "scale":
        return _SCALE
    special = _SPECIAL.get(f"{resource.plural}/{name}") if not resource.group else None
    return special or Subresource(name, resource.kind)
