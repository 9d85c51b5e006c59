from __future__ import annotations

import pytest
from tests.living_sandbox import LivingSandbox, deployment, pod

from kubesched.api.api_error import ApiError
from kubesched.api.kinds import DEPLOYMENTS, POD_DISRUPTION_BUDGETS, PODS, Object
from kubesched_sandbox.api.conditions import condition_of


def budget(**spec: object) -> Object:
    return {"metadata": {"name": "web"}, "spec": {"selector": {"matchLabels": {"app": "web"}}, **spec}}


def status(cluster: LivingSandbox) -> tuple[int, ...]:
    found = cluster.get(POD_DISRUPTION_BUDGETS, "web")["status"]
    return tuple(found[key] for key in ("disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods"))


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({"minAvailable": 3}, (2, 5, 3, 5)),
        ({"minAvailable": "50%"}, (2, 5, 3, 5)),
        ({"maxUnavailable": 1}, (1, 5, 4, 5)),
        ({"maxUnavailable": "30%"}, (2, 5, 3, 5)),
        ({"minAvailable": 9}, (0, 5, 9, 5)),
    ],
)
def test_budget_counts_healthy_pods_against_what_is_desired(spec: Object, expected: tuple[int, ...]) -> None:
    cluster = LivingSandbox()
    cluster.create(POD_DISRUPTION_BUDGETS, budget(**spec))
    deployment(cluster, replicas=5)
    cluster.run(10)
    assert status(cluster) == expected


def test_eviction_uses_up_the_budget_until_the_replacement_is_ready() -> None:
    cluster = LivingSandbox()
    deployment(cluster, replicas=3)
    cluster.create(POD_DISRUPTION_BUDGETS, budget(maxUnavailable=1))
    cluster.run(10)
    first, second, _ = (each["metadata"]["name"] for each in cluster.pods())
    cluster.api.evict("default", first, {})
    cluster.settle()
    assert status(cluster)[:2] == (0, 2)
    with pytest.raises(ApiError, match="would violate the pod's disruption budget"):
        cluster.api.evict("default", second, {})
    cluster.run(10)
    assert status(cluster)[:2] == (1, 3)
    cluster.api.evict("default", second, {})


def test_scale_of_the_deployment_is_what_is_expected_even_before_its_pods_are_there() -> None:
    cluster = LivingSandbox()
    deployment(cluster, replicas=2)
    cluster.create(POD_DISRUPTION_BUDGETS, budget(maxUnavailable=1))
    cluster.run(10)
    cluster.change(DEPLOYMENTS, "web", {"spec": {"replicas": 6}})
    assert status(cluster) == (0, 2, 5, 6)


def test_budget_of_pods_without_a_controller_cannot_be_a_share() -> None:
    cluster = LivingSandbox()
    bare = pod("bare")
    bare["metadata"]["labels"] = {"app": "web"}
    cluster.create(PODS, bare)
    cluster.create(POD_DISRUPTION_BUDGETS, budget(maxUnavailable=1))
    cluster.run(5)
    condition = condition_of(cluster.get(POD_DISRUPTION_BUDGETS, "web"), "DisruptionAllowed") or {}
    assert (condition["status"], condition["reason"]) == ("False", "SyncFailed")


def test_pod_whose_labels_change_leaves_the_budget() -> None:
    cluster = LivingSandbox()
    bare = pod("bare")
    bare["metadata"]["labels"] = {"app": "web"}
    cluster.create(PODS, bare)
    cluster.create(POD_DISRUPTION_BUDGETS, budget(minAvailable=0))
    cluster.run(5)
    assert status(cluster) == (1, 1, 0, 1)
    cluster.change(PODS, "bare", {"metadata": {"labels": {"app": "other"}}})
    assert status(cluster) == (0, 0, 0, 0)


def test_eviction_of_all_pods_at_once_respects_budgets() -> None:
    cluster = LivingSandbox(nodes=1)
    deployment(cluster, replicas=2)
    cluster.create(POD_DISRUPTION_BUDGETS, budget(minAvailable=1))
    cluster.run(10)
    first, second = (each["metadata"]["name"] for each in cluster.pods())
    cluster.api.evict("default", first, {"metadata": {"name": first}})
    with pytest.raises(ApiError) as refused:
        cluster.api.evict("default", second, {"metadata": {"name": second}})
    assert refused.value.code == 429
