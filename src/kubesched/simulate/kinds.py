"""Which objects in a manifest matter to scheduling, which are of other kinds, and which are of no kind at all."""

from __future__ import annotations

import difflib
from functools import lru_cache
from typing import Any, NamedTuple

from kubesched.api.kinds import BUILT_IN, KINDS, Resource
from kubesched.api.meta import KubeObject
from kubesched.api.schema import Mistake
from kubesched.simulate.workload_kinds import WORKLOADS, Workload

DEFAULT_NAMESPACE = "default"

LIST = "List"


class ReadAs(NamedTuple):
    """The resource of an object, and the record that it is read as."""

    resource: Resource
    record: type[KubeObject]

    @property
    def makes_pods(self) -> bool:
        """Whether pods are made from its template, which are new even if the object itself comes from a server."""
        return issubclass(self.record, Workload)


_KINDS = {name: ReadAs(kind.resource, kind.record) for name, kind in KINDS.items()}
_WORKLOADS = {
    name: ReadAs(resource, WORKLOADS[name])
    for (version, name), resource in BUILT_IN.items()
    if name in WORKLOADS and version in ("apps/v1", "batch/v1")
}


def kind_of(api_version: Any, kind: Any, *, workloads: bool = False) -> ReadAs | Mistake | None:
    """How to read an object; None if scheduling does not look at such objects; or what is wrong with its name.

    With `workloads`, those that make pods are read too, with their templates.
    """
    for field, value in (("kind", kind), ("apiVersion", api_version)):
        if value in (None, ""):
            return Mistake(field, "required field is missing")
        if not isinstance(value, str):
            return Mistake(field, f"expected a string, got {value!r}")
    return _kind_of(api_version, kind, workloads)


@lru_cache
def _kind_of(api_version: str, kind: str, workloads: bool) -> ReadAs | Mistake | None:
    found = (workloads and _WORKLOADS.get(kind)) or _KINDS.get(kind)
    if not found or found.resource.api_version == api_version:
        return found or None
    if not _is_of_kubernetes(api_version):
        return None
    served = found.resource.api_version
    return Mistake("apiVersion", f"{api_version!r} has no kind {kind}; Kubernetes v1.36 serves it as {served!r}")


def is_known(api_version: str, kind: str) -> bool:
    """Whether Kubernetes itself has this kind, so that there is nothing odd about it in a manifest."""
    return (api_version, kind) in BUILT_IN or (
        _is_of_kubernetes(api_version) and any(name == kind for _, name in BUILT_IN)
    )


def nearest_kind(kind: str) -> str:
    """The kind that the author may have meant; empty if there is none."""
    by_lower = {name.lower(): name for _, name in BUILT_IN}
    close = difflib.get_close_matches(kind.lower(), by_lower, n=1, cutoff=0.75)
    return by_lower[close[0]] if close else ""


def _is_of_kubernetes(api_version: str) -> bool:
    """Whether Kubernetes itself has this group. Others may have kinds of the same name, such as Knative's Service."""
    group = api_version.rpartition("/")[0]
    return "." not in group or group.endswith(".k8s.io")
