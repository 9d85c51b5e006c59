"""Which objects in a manifest matter to scheduling, which are somebody else's business, and which are misnamed."""

from __future__ import annotations

import difflib
from typing import Any

from kubesched.api.kinds import BUILT_IN, KINDS
from kubesched.api.meta import KubeObject
from kubesched.api.schema import Mistake
from kubesched.simulate.workload_kinds import WORKLOADS

API_VERSIONS: dict[str, str] = {name: kind.resource.api_version for name, kind in KINDS.items()}
_WORKLOAD_VERSIONS = {name: "batch/v1" if name == "Job" else "apps/v1" for name in WORKLOADS}

NAMESPACED = frozenset(
    kind for (version, kind), resource in BUILT_IN.items() if resource.namespaced and version.endswith("v1")
)

DEFAULT_NAMESPACE = "default"

LIST = "List"


def kind_of(api_version: Any, kind: Any, *, workloads: bool = False) -> type[KubeObject] | Mistake | None:
    """The record for an object; None if scheduling does not look at such objects; or what is wrong with its name.

    With `workloads`, those that make pods are read too, with their templates.
    """
    for field, value in (("kind", kind), ("apiVersion", api_version)):
        if value in (None, ""):
            return Mistake(field, "required field is missing")
        if not isinstance(value, str):
            return Mistake(field, f"expected a string, got {value!r}")
    versions = {**API_VERSIONS, **_WORKLOAD_VERSIONS} if workloads else API_VERSIONS
    expected = versions.get(kind)
    if expected == api_version:
        return WORKLOADS[kind] if workloads and kind in WORKLOADS else KINDS[kind].record
    if expected is not None and _is_built_in(api_version):
        return Mistake("apiVersion", f"{api_version!r} has no kind {kind}; Kubernetes v1.36 serves it as {expected!r}")
    meant = _nearest(kind, [name for name, version in versions.items() if version == api_version])
    return Mistake("kind", f"{api_version!r} has no kind {kind!r}; did you mean {meant!r}?") if meant else None


def _is_built_in(api_version: str) -> bool:
    """Whether Kubernetes itself has this version. Others may have kinds of the same name, such as Knative's Service."""
    group = api_version.rpartition("/")[0]
    return "." not in group or group.endswith(".k8s.io")


def _nearest(kind: str, known: list[str]) -> str:
    by_lower = {name.lower(): name for name in known}
    close = difflib.get_close_matches(kind.lower(), by_lower, n=1, cutoff=0.8)
    return by_lower[close[0]] if close else ""
