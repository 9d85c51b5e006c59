"""Whatever a client sends: it gets an answer or an error in Kubernetes' form, never a crash, and changes nothing."""

from __future__ import annotations

import contextlib
import copy
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kubesched.api.api_error import ApiError
from kubesched.api.json_patch import json_patch
from kubesched.api.kinds import PODS, Resource
from kubesched.api.merge_patch import merge_patch
from kubesched_sandbox.patching import apply, strategic_merge, track

NOW = "2026-01-01T00:00:00Z"
WIDGETS = Resource("example.com", "v1", "widgets", "Widget")
KEYS = (
    "metadata",
    "spec",
    "status",
    "labels",
    "finalizers",
    "managedFields",
    "containers",
    "ports",
    "name",
    "containerPort",
    "tolerations",
    "$patch",
    "$retainKeys",
    "$setElementOrder/containers",
    "$deleteFromPrimitiveList/finalizers",
    "$setElementOrder",
)
scalars = st.none() | st.booleans() | st.integers(0, 3) | st.sampled_from(["a", "b", "delete", "replace", "merge"])
anything = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=4),
    max_leaves=12,
)
shaped = st.fixed_dictionaries(
    {},
    optional={
        "metadata": st.fixed_dictionaries({}, optional={"finalizers": anything, "labels": anything}),
        "spec": st.dictionaries(st.sampled_from(KEYS), anything, max_size=4),
    },
)


def pod() -> dict[str, Any]:
    ports = [{"containerPort": 80, "protocol": "TCP"}, {"containerPort": 80, "protocol": "UDP"}]
    containers = [{"name": "a", "ports": ports}, {"name": "b"}]
    metadata = {"name": "web", "labels": {"a": "b"}, "finalizers": ["a", "b"]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": containers}}


def survives(patching: Any) -> None:
    live = pod()
    with contextlib.suppress(ApiError):
        assert isinstance(patching(live), dict)
    assert live == pod()


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(anything | shaped)
def test_odd_strategic_merge_patches(patch: Any) -> None:
    before = copy.deepcopy(patch)
    survives(lambda live: strategic_merge(PODS, live, patch))
    assert patch == before


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(anything | shaped)
def test_odd_merge_patches(patch: Any) -> None:
    survives(lambda live: merge_patch(live, patch))


operations = st.fixed_dictionaries(
    {
        "op": st.sampled_from(["add", "remove", "replace", "move", "copy", "test"]) | anything,
        "path": st.lists(st.sampled_from(["spec", "containers", "0", "-", "1", "name", ""])).map("/".join) | anything,
    },
    optional={"from": st.sampled_from(["/spec", "/spec/containers/0", "/a", ""]), "value": anything},
)


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(operations, max_size=3) | anything)
def test_odd_json_patches(patch: Any) -> None:
    survives(lambda live: json_patch(live, patch))


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(shaped, st.sampled_from([PODS, WIDGETS]), st.booleans())
def test_odd_configurations(drawn: Any, resource: Resource, force: bool) -> None:
    wanted = {"apiVersion": resource.api_version, "kind": resource.kind, **drawn}
    survives(lambda live: apply(resource, live, wanted, manager="odd", force=force, now=NOW))


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(anything)
def test_odd_managed_fields(entries: Any) -> None:
    def write(live: Any) -> Any:
        applied = apply(PODS, None, live, manager="alice", force=False, now=NOW)
        metadata = {**applied["metadata"], "managedFields": entries}
        return track(PODS, applied, {**applied, "metadata": metadata}, manager="odd", now=NOW)

    survives(write)
