"""What is written about a pod, in the shape in which the API takes it; and a client without a cluster."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from kubesched.api.pod import Pod, PodCondition
from kubesched.framework.client import ClientError, pod_status_patch
from kubesched.framework.plugin import PluginContext
from kubesched.scheduler.run_now import run_now
from kubesched.testing import make_pod

REFUSED = PodCondition(type="PodScheduled", status="False", reason="Unschedulable", message="no room")
NOW = "2026-01-02T03:04:05Z"


def pod_of_generation(generation: int) -> Pod:
    pod = make_pod("p").build()
    return replace(pod, metadata=replace(pod.metadata, uid="1-2-3", generation=generation))


def test_condition_says_which_generation_of_the_pod_was_looked_at() -> None:
    patch = pod_status_patch(pod_of_generation(3), REFUSED, None, NOW)
    assert patch == {
        "metadata": {"uid": "1-2-3"},
        "status": {
            "conditions": [
                {
                    "type": "PodScheduled",
                    "status": "False",
                    "reason": "Unschedulable",
                    "message": "no room",
                    "lastTransitionTime": NOW,
                    "observedGeneration": 3,
                }
            ]
        },
    }


def test_condition_of_a_pod_without_generations_does_not_mention_any() -> None:
    (condition,) = pod_status_patch(pod_of_generation(0), REFUSED, None, NOW)["status"]["conditions"]
    assert "observedGeneration" not in condition


def test_write_of_a_plugin_is_refused_where_there_is_no_cluster() -> None:
    async def write() -> None:
        await PluginContext().client.create("ConfigMap", {"metadata": {"name": "c"}})

    with pytest.raises(ClientError, match="there is no cluster here"):
        run_now(write())
