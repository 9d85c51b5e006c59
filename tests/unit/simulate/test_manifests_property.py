from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from kubesched import config
from kubesched.api.yaml import documents
from kubesched.simulate.cluster import ClusterModel
from kubesched.simulate.manifests import ManifestError, Manifests, loads
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
EXAMPLES = Path(__file__).parents[3] / "examples"
EXAMPLE: list[Any] = [
    item
    for directory in ("shop", "gpus")
    for file in sorted((EXAMPLES / directory).iterdir())
    for document in documents(file.read_text())
    for item in document.value.get("items", [document.value])
]


@st.composite
def spoiled_examples(draw: st.DrawFn) -> dict[str, Any]:
    """The objects of the example, with one value, anywhere in one of them, replaced by something else."""
    items = copy.deepcopy(EXAMPLE)
    place: Any = draw(st.sampled_from(items))
    while True:
        key = draw(st.sampled_from(sorted(place) if isinstance(place, dict) else range(len(place))))
        if not isinstance(place[key], dict | list) or not place[key] or draw(st.integers(0, 4)) == 0:
            place[key] = draw(VALUES)
            return {"apiVersion": "v1", "kind": "List", "items": items}
        place = place[key]


def read(data: str | bytes) -> Manifests | list[str]:
    try:
        return loads(data)
    except ManifestError as error:
        return error.lines


@settings(max_examples=150, deadline=None)
@given(VALUES | spoiled_examples())
def test_any_value_is_either_read_and_scheduled_or_refused_with_lines(value: Any) -> None:
    found = read(json.dumps(value))
    if isinstance(found, Manifests):
        place(ClusterModel(found.objects, config.default()))
    else:
        assert found
        assert all("\n" not in line for line in found)


@settings(max_examples=150, deadline=None)
@given(st.text(alphabet="{}[]:,-&*!|>'\"%@` \n\tab1", max_size=40) | st.text(max_size=20))
def test_any_text_is_either_read_or_refused_with_lines(text: str) -> None:
    assert read(text.encode(errors="replace")) != []
