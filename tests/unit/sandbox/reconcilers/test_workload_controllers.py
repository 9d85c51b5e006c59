from __future__ import annotations

import pytest
from tests.living_sandbox import LivingSandbox, is_live, pod, template, with_image, workload

from kubesched.api.kinds import (
    DAEMON_SETS,
    NODES,
    PERSISTENT_VOLUME_CLAIMS,
    PODS,
    REPLICA_SETS,
    REPLICATION_CONTROLLERS,
    RESOURCE_QUOTAS,
    STATEFUL_SETS,
    Object,
)
from kubesched_sandbox.api.conditions import is_ready
from kubesched_sandbox.nodes.manifests import node_manifest
from kubesched_sandbox.reconcilers.replica_sets import in_order_of_deletion


def names(pods: list[Object]) -> list[str]:
    return [each["metadata"]["name"] for each in pods]


# -- ReplicaSets ------------------------------------------------------------------------------------------------------


def test_replica_set_replaces_pods_that_are_deleted_or_have_failed() -> None:
    cluster = LivingSandbox()
    cluster.create(REPLICA_SETS, workload())
    cluster.run(10)
    first, second, *_ = cluster.pods()
    cluster.delete(PODS, first["metadata"]["name"])
    failed = {**second, "status": {**second["status"], "phase": "Failed"}}
    cluster.api.update(PODS, "default", second["metadata"]["name"], failed, subresource="status")
    cluster.run(10)
    assert len(cluster.running()) == 3
    assert first["metadata"]["name"] not in names(cluster.pods())


def test_replica_set_whose_pods_are_refused_tries_again_after_a_longer_wait_each_time() -> None:
    """Each refusal names another pod: were it written each time, the write would be a reason to try again at once."""
    cluster = LivingSandbox()
    quota = {"metadata": {"name": "none"}, "spec": {"hard": {"pods": "0"}}}
    cluster.create(RESOURCE_QUOTAS, quota)
    cluster.create(REPLICA_SETS, workload(replicas=1))
    cluster.run(60)
    assert 1 < len(cluster.messages("web")) < 20
    assert cluster.pods() == []


def test_replica_set_tells_of_the_pods_it_creates_and_deletes() -> None:
    cluster = LivingSandbox()
    cluster.create(REPLICA_SETS, workload(replicas=1))
    (only,) = names(cluster.pods())
    cluster.change(REPLICA_SETS, "web", {"spec": {"replicas": 0}})
    assert sorted(cluster.messages("web")) == [f"Created pod: {only}", f"Deleted pod: {only}"]


def test_replica_set_takes_in_orphans_that_match_and_lets_go_of_pods_that_no_longer_do() -> None:
    cluster = LivingSandbox()
    orphan = pod("orphan")
    orphan["metadata"]["labels"] = {"app": "web"}
    cluster.create(PODS, orphan)
    cluster.create(REPLICA_SETS, workload(replicas=2))
    assert len(cluster.pods()) == 2
    assert cluster.get(PODS, "orphan")["metadata"]["ownerReferences"][0]["name"] == "web"
    cluster.change(PODS, "orphan", {"metadata": {"labels": {"app": "other"}}})
    assert not cluster.get(PODS, "orphan")["metadata"].get("ownerReferences")
    assert len(cluster.pods("app=web")) == 2


def test_pods_that_do_least_good_are_deleted_first() -> None:
    def placed(name: str, node: str, ready: bool, cost: str = "0") -> Object:
        conditions = [{"type": "Ready", "status": "True" if ready else "False"}]
        metadata: Object = {"name": name, "creationTimestamp": "2027-01-01T00:00:00Z"}
        metadata["annotations"] = {"controller.kubernetes.io/pod-deletion-cost": cost}
        status = {"phase": "Running", "conditions": conditions}
        return {"metadata": metadata, "spec": {"nodeName": node} if node else {}, "status": status}

    pods = [
        placed("dear", "a", True, "10"),
        placed("ready", "b", True),
        placed("crowded", "c", True),
        placed("crowded-too", "c", True),
        placed("unready", "d", False),
        placed("pending", "", False),
    ]
    assert names(in_order_of_deletion(pods)) == ["pending", "unready", "crowded", "crowded-too", "ready", "dear"]


def test_replication_controllers_work_as_replica_sets_do() -> None:
    cluster = LivingSandbox()
    spec = {"replicas": 2, "selector": {"app": "web"}, "template": template()}
    cluster.create(REPLICATION_CONTROLLERS, {"metadata": {"name": "old"}, "spec": spec})
    cluster.run(10)
    assert cluster.get(REPLICATION_CONTROLLERS, "old")["status"]["readyReplicas"] == 2


def test_a_large_set_is_filled_and_emptied_in_slices() -> None:
    cluster = LivingSandbox()
    cluster.create(REPLICA_SETS, workload(replicas=180))
    cluster.run(10)
    assert cluster.get(REPLICA_SETS, "web")["status"]["readyReplicas"] == 180
    cluster.change(REPLICA_SETS, "web", {"spec": {"replicas": 0}})
    cluster.run(10)
    assert cluster.pods() == []


# -- StatefulSets -----------------------------------------------------------------------------------------------------


def stateful(replicas: int = 3, **spec: object) -> Object:
    return workload("db", replicas, serviceName="db", **spec)


def claim_template(name: str = "data") -> Object:
    storage = {"requests": {"storage": "1Gi"}}
    return {"metadata": {"name": name}, "spec": {"accessModes": ["ReadWriteOnce"], "resources": storage}}


def test_stateful_set_starts_one_pod_after_the_other() -> None:
    cluster = LivingSandbox()
    cluster.create(STATEFUL_SETS, stateful())
    assert names(cluster.pods()) == ["db-0"]
    while not is_ready(cluster.get(PODS, "db-0")):
        assert names(cluster.pods()) == ["db-0"]
        cluster.run(0.1)
    assert names(cluster.pods()) == ["db-0", "db-1"]
    cluster.run(20)
    assert names(cluster.running()) == ["db-0", "db-1", "db-2"]


def test_parallel_stateful_set_starts_all_pods_at_once() -> None:
    cluster = LivingSandbox()
    cluster.create(STATEFUL_SETS, stateful(podManagementPolicy="Parallel"))
    assert names(cluster.pods()) == ["db-0", "db-1", "db-2"]


def test_stateful_set_shrinks_from_the_last_pod_and_keeps_its_claims() -> None:
    cluster = LivingSandbox()
    cluster.create(STATEFUL_SETS, stateful(volumeClaimTemplates=[claim_template()]))
    cluster.run(20)
    cluster.change(STATEFUL_SETS, "db", {"spec": {"replicas": 1}})
    assert [each["metadata"]["name"] for each in cluster.pods() if not is_live(each)] == ["db-2"]
    cluster.run(20)
    assert names(cluster.pods()) == ["db-0"]
    assert names(cluster.api.select(PERSISTENT_VOLUME_CLAIMS)) == ["data-db-0", "data-db-1", "data-db-2"]


def test_stateful_pod_comes_back_under_its_name_with_its_claim() -> None:
    cluster = LivingSandbox()
    cluster.create(STATEFUL_SETS, stateful(1, volumeClaimTemplates=[claim_template()]))
    cluster.run(10)
    before = cluster.get(PODS, "db-0")
    cluster.delete(PODS, "db-0")
    cluster.run(10)
    after = cluster.get(PODS, "db-0")
    assert after["metadata"]["uid"] != before["metadata"]["uid"]
    assert after["spec"]["volumes"][0] == {"name": "data", "persistentVolumeClaim": {"claimName": "data-db-0"}}
    assert (after["spec"]["hostname"], after["spec"]["subdomain"]) == ("db-0", "db")


def test_stateful_update_goes_from_the_last_pod_to_the_partition() -> None:
    cluster = LivingSandbox()
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"partition": 1}}
    cluster.create(STATEFUL_SETS, stateful(updateStrategy=strategy))
    cluster.run(20)
    cluster.change(STATEFUL_SETS, "db", with_image("db:2"))
    assert [each["metadata"]["name"] for each in cluster.pods() if not is_live(each)] == ["db-2"]
    cluster.run(30)
    used = [each["spec"]["containers"][0]["image"] for each in cluster.pods()]
    assert used == ["nginx", "db:2", "db:2"]
    status = cluster.get(STATEFUL_SETS, "db")["status"]
    assert status["currentRevision"] != status["updateRevision"]
    cluster.delete(PODS, "db-0")
    cluster.run(20)
    assert cluster.get(PODS, "db-0")["spec"]["containers"][0]["image"] == "nginx"


def test_stateful_set_takes_its_orphans_in_again() -> None:
    cluster = LivingSandbox()
    cluster.create(STATEFUL_SETS, stateful())
    cluster.run(20)
    before = {each["metadata"]["uid"] for each in cluster.pods()}
    cluster.delete(STATEFUL_SETS, "db", propagation="Orphan")
    cluster.run(5)
    cluster.create(STATEFUL_SETS, stateful())
    cluster.run(5)
    assert {each["metadata"]["uid"] for each in cluster.pods()} == before
    assert cluster.get(STATEFUL_SETS, "db")["status"]["readyReplicas"] == 3


def test_finished_stateful_update_has_one_revision() -> None:
    cluster = LivingSandbox()
    cluster.create(STATEFUL_SETS, stateful())
    cluster.run(20)
    cluster.change(STATEFUL_SETS, "db", with_image("db:2"))
    cluster.run(60)
    status = cluster.get(STATEFUL_SETS, "db")["status"]
    assert status["currentRevision"] == status["updateRevision"]
    assert status["updatedReplicas"] == status["readyReplicas"] == 3


# -- DaemonSets -------------------------------------------------------------------------------------------------------


def daemon(**spec: object) -> Object:
    selector = {"matchLabels": {"app": "agent"}}
    return {"metadata": {"name": "agent"}, "spec": {"selector": selector, "template": template("agent"), **spec}}


def nodes_of(cluster: LivingSandbox) -> list[str]:
    return sorted(each["spec"]["nodeName"] for each in cluster.running())


def test_daemon_set_has_a_pod_on_every_node_also_on_later_ones() -> None:
    cluster = LivingSandbox()
    cluster.create(DAEMON_SETS, daemon())
    cluster.run(10)
    assert nodes_of(cluster) == ["node-0", "node-1", "node-2"]
    cluster.hollow.add([node_manifest("late")])
    cluster.run(10)
    assert nodes_of(cluster) == ["late", "node-0", "node-1", "node-2"]
    status = cluster.get(DAEMON_SETS, "agent")["status"]
    assert status["desiredNumberScheduled"] == status["numberAvailable"] == 4


def test_daemon_pods_are_bound_to_their_node_by_affinity_and_tolerate_its_troubles() -> None:
    cluster = LivingSandbox(nodes=1, binder=False)
    cluster.create(DAEMON_SETS, daemon())
    (only,) = cluster.pods()
    required = only["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    field = {"key": "metadata.name", "operator": "In", "values": ["node-0"]}
    assert required["nodeSelectorTerms"] == [{"matchFields": [field]}]
    tolerated = {(each["key"], each["effect"]) for each in only["spec"]["tolerations"]}
    assert ("node.kubernetes.io/unschedulable", "NoSchedule") in tolerated
    assert ("node.kubernetes.io/not-ready", "NoExecute") in tolerated


def test_daemon_set_avoids_nodes_that_it_does_not_select_or_tolerate() -> None:
    cluster = LivingSandbox()
    cluster.change(NODES, "node-1", {"spec": {"taints": [{"key": "mine", "effect": "NoSchedule"}]}})
    cluster.change(NODES, "node-2", {"metadata": {"labels": {"disk": "ssd"}}})
    cluster.create(DAEMON_SETS, daemon())
    cluster.run(10)
    assert nodes_of(cluster) == ["node-0", "node-2"]
    changed = {"spec": {"template": {"spec": {"nodeSelector": {"disk": "ssd"}}}}}
    cluster.change(DAEMON_SETS, "agent", changed)
    cluster.run(20)
    assert nodes_of(cluster) == ["node-2"]


def test_daemon_pod_stays_where_a_new_taint_only_keeps_new_pods_away() -> None:
    cluster = LivingSandbox()
    cluster.create(DAEMON_SETS, daemon())
    cluster.run(10)
    cluster.change(NODES, "node-1", {"spec": {"taints": [{"key": "mine", "effect": "NoSchedule"}]}})
    cluster.run(10)
    assert nodes_of(cluster) == ["node-0", "node-1", "node-2"]
    assert cluster.get(DAEMON_SETS, "agent")["status"]["numberMisscheduled"] == 1


@pytest.mark.parametrize("rolling", [{"maxUnavailable": 1, "maxSurge": 0}, {"maxUnavailable": 0, "maxSurge": 1}])
def test_daemon_update_replaces_pods_a_few_at_a_time(rolling: Object) -> None:
    cluster = LivingSandbox()
    cluster.create(DAEMON_SETS, daemon(updateStrategy={"type": "RollingUpdate", "rollingUpdate": rolling}))
    cluster.run(10)
    least = 3
    cluster.change(DAEMON_SETS, "agent", with_image("agent:2"))
    for _ in range(300):
        cluster.run(0.1)
        ready = {each["spec"]["nodeName"] for each in cluster.running() if is_ready(each)}
        least = min(least, len(ready))
    assert {each["spec"]["containers"][0]["image"] for each in cluster.running()} == {"agent:2"}
    assert len(cluster.running()) == 3
    assert least == 3 - rolling["maxUnavailable"]
