"""Autoscalers in virtual time: workloads grow with what their pods use, and shrink when that has lasted."""

from __future__ import annotations

from typing import Any

import pytest
from tests.living_sandbox import LivingSandbox, deployment, template

from kubesched.api.kinds import AUTOSCALERS, DEPLOYMENTS, OLDER_AUTOSCALERS, PODS, Object
from kubesched_sandbox.api.usage import USAGE, Usage

TARGET = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}

_HALF = {"averageUtilization": 50, "type": "Utilization"}
UTILIZATION = {"type": "Resource", "resource": {"name": "cpu", "target": _HALF}}
_TEN = {"type": "AverageValue", "averageValue": "10"}
REQUESTS_PER_SECOND = {"type": "Pods", "pods": {"metric": {"name": "rps"}, "target": _TEN}}


def a_deployment(replicas: int = 2, cpu: str = "100m", nodes: int = 3) -> LivingSandbox:
    cluster = LivingSandbox(nodes)
    made = template()
    made["spec"]["containers"] = [{"name": "app", "image": "a", "resources": {"requests": {"cpu": cpu} if cpu else {}}}]
    deployment(cluster, replicas=replicas, template=made)
    cluster.run(10)
    return cluster


def scaled(cluster: LivingSandbox, most: int = 20, share: int = 50, **spec: Any) -> Object:
    metric = {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": share}}
    metrics = [{"type": "Resource", "resource": metric}]
    wanted = {"scaleTargetRef": TARGET, "maxReplicas": most, "metrics": metrics, **spec}
    return cluster.create(AUTOSCALERS, {"metadata": {"name": "web"}, "spec": wanted})


def load(cluster: LivingSandbox, usage: str) -> None:
    cluster.change(DEPLOYMENTS, "web", {"metadata": {"annotations": {USAGE: usage}}})


def replicas(cluster: LivingSandbox) -> int:
    return int(cluster.get(DEPLOYMENTS, "web")["spec"]["replicas"])


def conditions(cluster: LivingSandbox) -> dict[str, tuple[str, str]]:
    found = cluster.get(AUTOSCALERS, "web")["status"]["conditions"]
    return {each["type"]: (each["status"], each["reason"]) for each in found}


def test_a_shared_load_is_spread_until_each_pod_has_its_target() -> None:
    cluster = a_deployment()
    load(cluster, "cpu=600m")
    scaled(cluster)
    cluster.run(60)
    assert replicas(cluster) == 12  # 600m at 50% of 100m each
    status = cluster.get(AUTOSCALERS, "web")["status"]
    assert status["currentMetrics"][0]["resource"]["current"] == {"averageUtilization": 50, "averageValue": "50m"}
    assert conditions(cluster)["ScalingActive"] == ("True", "ValidMetricFound")
    assert any(message.startswith("New size: 6; reason: cpu resource util") for message in cluster.messages("web"))


def test_growth_doubles_at_most_and_the_maximum_holds() -> None:
    cluster = a_deployment()
    load(cluster, "cpu=100")
    scaled(cluster, most=13)
    assert replicas(cluster) == 6  # four more, which is more than twice as many
    cluster.run(16)
    assert replicas(cluster) == 12
    cluster.run(20)
    assert replicas(cluster) == 13
    assert conditions(cluster)["ScalingLimited"] == ("True", "TooManyReplicas")


def test_it_shrinks_only_after_the_load_was_low_for_a_while() -> None:
    cluster = a_deployment(replicas=8)
    load(cluster, "cpu=400m")
    scaled(cluster)
    cluster.run(30)
    assert replicas(cluster) == 8
    load(cluster, "cpu=100m")
    cluster.run(250)
    assert replicas(cluster) == 8
    cluster.run(90)
    assert replicas(cluster) == 2


def test_behavior_says_how_fast_it_may_shrink() -> None:
    cluster = a_deployment(replicas=8)
    one_a_minute = {"stabilizationWindowSeconds": 0, "policies": [{"type": "Pods", "value": 1, "periodSeconds": 60}]}
    load(cluster, "cpu=10m")
    scaled(cluster, behavior={"scaleDown": one_a_minute})
    cluster.run(121)
    assert replicas(cluster) in (5, 6)


@pytest.mark.parametrize(
    ("cpu", "metric", "reason"),
    [("", UTILIZATION, "FailedGetResourceMetric"), ("1", REQUESTS_PER_SECOND, "FailedGetPodsMetric")],
    ids=["without requests", "of another kind"],
)
def test_a_metric_that_cannot_be_had_is_said_to_be_missing(cpu: str, metric: Object, reason: str) -> None:
    cluster = a_deployment(cpu=cpu)
    scaled(cluster, metrics=[metric])
    assert replicas(cluster) == 2
    assert conditions(cluster)["ScalingActive"] == ("False", reason)
    assert reason in cluster.reasons("web")


def test_the_older_shape_is_the_same_autoscaler() -> None:
    cluster = a_deployment()
    spec = {"scaleTargetRef": TARGET, "maxReplicas": 5, "targetCPUUtilizationPercentage": 70}
    cluster.create(OLDER_AUTOSCALERS, {"metadata": {"name": "web"}, "spec": spec})
    metric = cluster.get(AUTOSCALERS, "web")["spec"]["metrics"][0]["resource"]
    assert metric == {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 70}}
    target = {"type": "AverageValue", "averageValue": "1"}
    newer = {"type": "Resource", "resource": {"name": "memory", "target": target}}
    cluster.change(AUTOSCALERS, "web", {"spec": {"metrics": [newer], "behavior": {"scaleUp": {}}}})
    shown = cluster.get(OLDER_AUTOSCALERS, "web")
    cluster.api.update(OLDER_AUTOSCALERS, "default", "web", {**shown, "spec": {**shown["spec"], "maxReplicas": 9}})
    spec = cluster.get(AUTOSCALERS, "web")["spec"]
    assert (spec["maxReplicas"], spec["metrics"], "scaleUp" in spec["behavior"]) == (9, [newer], True)


def test_usage_is_half_of_what_is_requested_unless_an_annotation_says_otherwise() -> None:
    cluster = a_deployment()
    first, second = cluster.running()
    assert Usage(cluster.api).of(first) == {"app": {"cpu": 50, "memory": 0}}
    load(cluster, "cpu=1,memory=2Gi")
    cluster.change(PODS, second["metadata"]["name"], {"metadata": {"annotations": {USAGE: "cpu=150%,memory=much"}}})
    usage = Usage(cluster.api)
    by_name = {pod["metadata"]["name"]: usage.of(pod)["app"] for pod in usage.pods}
    assert by_name[second["metadata"]["name"]] == {"cpu": 150, "memory": 0}
    assert by_name[first["metadata"]["name"]] == {"cpu": 500, "memory": 1 << 30}


@pytest.mark.parametrize("share", [50, 60, 80])
def test_an_autoscaler_comes_to_rest_though_nothing_says_what_pods_use(share: int) -> None:
    cluster = a_deployment(replicas=4)
    scaled(cluster, most=60, share=share)
    cluster.run(900)
    assert replicas(cluster) <= 4
