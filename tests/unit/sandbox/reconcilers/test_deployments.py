from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.living_sandbox import LivingSandbox, deployment, is_live, with_image, workload

from kubesched.api.kinds import DEPLOYMENTS, PODS, REPLICA_SETS, Object
from kubesched.controllers import rollout
from kubesched_sandbox.api import ApiEvent
from kubesched_sandbox.api.conditions import condition_of, is_active, is_ready
from kubesched_sandbox.reconcilers.deployments import is_complete


def rolling(surge: int | str, unavailable: int | str) -> Object:
    return {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": surge, "maxUnavailable": unavailable}}


def images(cluster: LivingSandbox) -> set[str]:
    return {pod["spec"]["containers"][0]["image"] for pod in cluster.running("app=web")}


def revision(obj: Object) -> str:
    return str(obj["metadata"]["annotations"]["deployment.kubernetes.io/revision"])


def test_deployment_brings_up_its_pods_and_says_so() -> None:
    cluster = LivingSandbox()
    deployment(cluster, replicas=5)
    cluster.run(10)
    web = cluster.get(DEPLOYMENTS, "web")
    counts = {key: web["status"].get(key) for key in ("replicas", "updatedReplicas", "availableReplicas")}
    assert counts == {"replicas": 5, "updatedReplicas": 5, "availableReplicas": 5}
    assert web["status"]["observedGeneration"] == web["metadata"]["generation"]
    assert (condition_of(web, "Available") or {})["status"] == "True"
    assert (condition_of(web, "Progressing") or {})["reason"] == "NewReplicaSetAvailable"
    assert len(cluster.running("app=web")) == 5


def test_new_template_gets_a_replica_set_of_the_next_revision() -> None:
    cluster = LivingSandbox()
    deployment(cluster)
    cluster.run(10)
    cluster.change(DEPLOYMENTS, "web", with_image("nginx:2"))
    cluster.run(60)
    sets = cluster.api.select(REPLICA_SETS)
    assert sorted((revision(each), each["spec"]["replicas"]) for each in sets) == [("1", 0), ("2", 3)]
    assert revision(cluster.get(DEPLOYMENTS, "web")) == "2"
    assert images(cluster) == {"nginx:2"}


def test_patch_that_changes_nothing_is_no_write_even_in_the_middle_of_a_rollout() -> None:
    cluster = LivingSandbox()
    deployment(cluster)
    cluster.run(10)
    for _ in range(60):
        cluster.api.patch(DEPLOYMENTS, "default", "web", with_image("nginx:2"))
        before = cluster.get(DEPLOYMENTS, "web")
        assert cluster.api.patch(DEPLOYMENTS, "default", "web", with_image("nginx:2")) == before
        cluster.run(0.1)


def test_deployment_is_written_no_more_once_its_rollout_is_complete() -> None:
    """So `kubectl patch` after `kubectl rollout status` sees no change but its own."""
    cluster = LivingSandbox()
    deployment(cluster)
    cluster.run(10)
    written: list[Object] = []
    cluster.api.subscribe((DEPLOYMENTS,), lambda event: written.append(event.object), replay=False)
    cluster.change(DEPLOYMENTS, "web", with_image("nginx:2"))
    cluster.run(60)
    assert [is_complete(each) for each in written].index(True) == len(written) - 1


def test_returning_to_an_old_template_reuses_its_replica_set_as_the_newest_revision() -> None:
    cluster = LivingSandbox()
    deployment(cluster)
    cluster.run(10)
    for image in ("nginx:2", "nginx"):
        cluster.change(DEPLOYMENTS, "web", with_image(image))
        cluster.run(60)
    sets = cluster.api.select(REPLICA_SETS)
    assert sorted((revision(each), each["spec"]["replicas"]) for each in sets) == [("2", 0), ("3", 3)]


def test_recreate_ends_every_old_pod_before_a_new_one_begins() -> None:
    cluster = LivingSandbox()
    deployment(cluster, strategy={"type": "Recreate"})
    cluster.run(10)
    seen: list[set[str]] = []
    cluster.api.subscribe(
        (PODS,),
        lambda _: seen.append({pod["spec"]["containers"][0]["image"] for pod in cluster.api.select(PODS, "default")}),
    )
    cluster.change(DEPLOYMENTS, "web", with_image("nginx:2"))
    cluster.run(60)
    assert images(cluster) == {"nginx:2"}
    assert {"nginx", "nginx:2"} not in seen


def test_paused_deployment_scales_but_does_not_roll_out() -> None:
    cluster = LivingSandbox()
    deployment(cluster)
    cluster.run(10)
    cluster.change(DEPLOYMENTS, "web", {"spec": {"paused": True, "replicas": 5, **with_image("nginx:2")["spec"]}})
    cluster.run(30)
    assert len(cluster.running("app=web")) == 5
    assert images(cluster) == {"nginx"}
    cluster.change(DEPLOYMENTS, "web", {"spec": {"paused": False}})
    cluster.run(60)
    assert images(cluster) == {"nginx:2"}


def test_history_keeps_as_many_replica_sets_as_asked_for() -> None:
    cluster = LivingSandbox()
    deployment(cluster, replicas=1, revisionHistoryLimit=1)
    for number in range(4):
        cluster.change(DEPLOYMENTS, "web", with_image(f"nginx:{number}"))
        cluster.run(30)
    assert len(cluster.api.select(REPLICA_SETS)) == 2


def test_rollout_that_makes_no_progress_is_said_to_be_stuck() -> None:
    cluster = LivingSandbox(nodes=0)
    deployment(cluster, progressDeadlineSeconds=60)
    cluster.run(59)
    assert (condition_of(cluster.get(DEPLOYMENTS, "web"), "Progressing") or {})["status"] == "True"
    cluster.run(2)
    progressing = condition_of(cluster.get(DEPLOYMENTS, "web"), "Progressing") or {}
    assert (progressing["status"], progressing["reason"]) == ("False", "ProgressDeadlineExceeded")


def test_pods_count_as_available_only_after_min_ready_seconds() -> None:
    cluster = LivingSandbox()
    deployment(cluster, minReadySeconds=30)
    cluster.run(10)
    assert cluster.get(DEPLOYMENTS, "web")["status"].get("availableReplicas", 0) == 0
    cluster.run(30)
    assert cluster.get(DEPLOYMENTS, "web")["status"]["availableReplicas"] == 3


def test_annotations_of_the_deployment_are_passed_on() -> None:
    cluster = LivingSandbox()
    web = workload()
    web["metadata"]["annotations"] = {"kubernetes.io/change-cause": "first"}
    cluster.create(DEPLOYMENTS, web)
    assert cluster.api.select(REPLICA_SETS)[0]["metadata"]["annotations"]["kubernetes.io/change-cause"] == "first"


def test_orphaned_replica_set_with_the_same_template_is_taken_in_again() -> None:
    cluster = LivingSandbox()
    deployment(cluster)
    cluster.run(10)
    pods = {pod["metadata"]["uid"] for pod in cluster.pods()}
    cluster.delete(DEPLOYMENTS, "web", propagation="Orphan")
    cluster.run(5)
    deployment(cluster)
    cluster.run(10)
    assert {pod["metadata"]["uid"] for pod in cluster.pods()} == pods
    assert len(cluster.api.select(REPLICA_SETS)) == 1


@pytest.mark.parametrize(
    ("replicas", "surge", "unavailable", "expected"),
    [
        (10, "25%", "25%", (3, 2)),
        (3, "25%", "25%", (1, 0)),
        (4, 0, 0, (0, 1)),
        (5, 2, 0, (2, 0)),
        (1, 0, "100%", (0, 1)),
    ],
)
def test_percentages_are_rounded_up_for_surge_and_down_for_unavailable(
    replicas: int, surge: int | str, unavailable: int | str, expected: tuple[int, int]
) -> None:
    web = {"spec": {"replicas": replicas, "strategy": rolling(surge, unavailable)}}
    assert (rollout.max_surge(web), rollout.max_unavailable(web)) == expected


class Watcher:
    """Looks at every step of a rollout, and remembers the worst."""

    def __init__(self, cluster: LivingSandbox) -> None:
        self._cluster = cluster
        self.most = 0
        self.least: int | None = None
        cluster.api.subscribe((PODS,), self._look, replay=False)

    def _look(self, _: ApiEvent) -> None:
        pods = [pod for pod in self._cluster.api.select(PODS, "default") if is_active(pod)]
        ready = sum(map(is_ready, pods))
        self.most = max(self.most, len(pods))
        self.least = ready if self.least is None else min(self.least, ready)


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    replicas=st.integers(1, 8),
    surge=st.integers(0, 3),
    unavailable=st.integers(0, 3),
    pauses=st.lists(st.floats(0, 4), min_size=1, max_size=4),
)
def test_rollouts_never_have_too_many_pods_nor_too_few_ready_ones(
    replicas: int, surge: int, unavailable: int, pauses: list[float]
) -> None:
    unavailable = unavailable if surge or unavailable else 1
    cluster = LivingSandbox()
    deployment(cluster, replicas=replicas, strategy=rolling(surge, unavailable))
    cluster.run(10)
    watcher = Watcher(cluster)
    for number, pause in enumerate(pauses):
        cluster.change(DEPLOYMENTS, "web", with_image(f"nginx:{number}"))
        cluster.run(pause)
    cluster.run(200)
    assert images(cluster) == {f"nginx:{len(pauses) - 1}"}
    assert watcher.most <= replicas + surge
    assert watcher.least is None or watcher.least >= replicas - unavailable


_STEPS = st.one_of(
    st.tuples(st.just("scale"), st.integers(0, 8)),
    st.tuples(st.just("image"), st.integers(0, 3)),
    st.tuples(st.just("kill"), st.integers(0, 100)),
    st.tuples(st.just("wait"), st.integers(0, 5)),
    st.tuples(st.just("pause"), st.booleans()),
)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(steps=st.lists(_STEPS, max_size=8), strategy=st.sampled_from(("RollingUpdate", "Recreate")))
def test_whatever_happens_a_deployment_comes_to_what_it_should_be(steps: list[tuple[str, Any]], strategy: str) -> None:
    cluster = LivingSandbox()
    deployment(cluster, strategy={"type": strategy})
    replicas, image = 3, "nginx"
    for kind, value in steps:
        match kind:
            case "scale":
                replicas = value
                cluster.change(DEPLOYMENTS, "web", {"spec": {"replicas": value}})
            case "image":
                image = f"nginx:{value}"
                cluster.change(DEPLOYMENTS, "web", with_image(image))
            case "pause":
                cluster.change(DEPLOYMENTS, "web", {"spec": {"paused": value}})
            case "kill":
                if alive := [pod for pod in cluster.pods() if is_live(pod)]:
                    cluster.delete(PODS, alive[value % len(alive)]["metadata"]["name"])
            case _:
                cluster.run(value)
    cluster.change(DEPLOYMENTS, "web", {"spec": {"paused": False}})
    cluster.run(300)
    assert len(cluster.running("app=web")) == len(cluster.pods()) == replicas
    assert images(cluster) == ({image} if replicas else set())
    status = cluster.get(DEPLOYMENTS, "web")["status"]
    assert status.get("updatedReplicas", 0) == status.get("availableReplicas", 0) == replicas
