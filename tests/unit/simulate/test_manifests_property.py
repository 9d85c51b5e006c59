from __future__ import annotations

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from kubesched import config
from kubesched.api.kinds import KINDS
from kubesched.simulate.cluster import SimulatedCluster
from kubesched.simulate.kinds import API_VERSIONS
from kubesched.simulate.manifests import ManifestError, loads
from kubesched.simulate.placement import place

WORDS = [
    "metadata", "name", "labels", "spec", "status", "containers", "resources", "requests", "limits", "cpu", "affinity",
    "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms", "matchExpressions", "key",
    "operator", "values", "tolerations", "taints", "effect", "capacity", "allocatable", "items", "startTime", "pods",
    "In", "Gt", "Exists", "NoSchedule", "100m", "1Gi", "-5", "a", "n1", "zone", "2026-01-01T00:00:00Z", "priority",
    "topologySpreadConstraints", "maxSkew", "topologyKey", "whenUnsatisfiable", "DoNotSchedule", "labelSelector",
]  # fmt: skip
SCALARS = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5)
)
KEYS = st.sampled_from(WORDS) | st.text(max_size=3)
VALUES: st.SearchStrategy[Any] = st.recursive(
    SCALARS | st.sampled_from(WORDS),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=12,
)
OBJECTS = st.builds(
    lambda kind, fields, name: {
        "metadata": {"name": name},
        **fields,
        "apiVersion": API_VERSIONS[kind],
        "kind": kind,
    },
    st.sampled_from(sorted(KINDS)),
    st.dictionaries(st.sampled_from(["metadata", "spec", "status"]), VALUES, max_size=2),
    st.sampled_from(["a", "b"]),
)


def test_every_kind_has_a_version() -> None:
    assert API_VERSIONS.keys() == KINDS.keys()


@settings(max_examples=150, deadline=None)
@given(VALUES | OBJECTS, st.booleans())
def test_any_value_is_either_read_and_scheduled_or_refused_with_lines(value: Any, in_a_list: bool) -> None:
    if in_a_list:
        value = {"apiVersion": "v1", "kind": "List", "items": [value]}
    try:
        manifests = loads(json.dumps(value))
    except ManifestError as error:
        assert error.lines
        assert all("\n" not in line for line in error.lines)
        return
    place(SimulatedCluster(manifests.objects, config.default()))


@settings(max_examples=150, deadline=None)
@given(st.text(alphabet="{}[]:,-&*!|>'\"%@` \n\tab1", max_size=40) | st.text(max_size=20))
def test_any_text_is_either_read_or_refused_with_lines(text: str) -> None:
    try:
        loads(text.encode(errors="replace"))
    except ManifestError as error:
        assert error.lines
