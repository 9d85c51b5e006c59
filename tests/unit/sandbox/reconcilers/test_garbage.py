from __future__ import annotations

from tests.living_sandbox import LivingSandbox, deployment, pod
from tests.sandbox_server import fresh_api

from kubesched.api.kinds import CONFIG_MAPS, CORE_EVENTS, DEPLOYMENTS, NAMESPACES, PODS, REPLICA_SETS, Object, Resource
from kubesched_sandbox.reconcilers.events import EventExpiry


def owned_by(name: str, *owners: Object) -> Object:
    references = [{"apiVersion": "v1", "kind": "ConfigMap", **owner} for owner in owners]
    return {"metadata": {"name": name, "ownerReferences": references}}


def reference(obj: Object, **more: object) -> Object:
    return {"name": obj["metadata"]["name"], "uid": obj["metadata"]["uid"], **more}


def exists(cluster: LivingSandbox, name: str, resource: Resource = CONFIG_MAPS) -> bool:
    return cluster.api.find(resource, "default", name) is not None


def test_dependents_follow_their_owner_down_all_levels() -> None:
    cluster = LivingSandbox()
    deployment(cluster)
    cluster.run(10)
    cluster.delete(DEPLOYMENTS, "web", propagation="Background")
    assert cluster.api.select(REPLICA_SETS) == []
    cluster.run(10)
    assert cluster.pods() == []


def test_foreground_deletion_waits_for_the_last_dependent() -> None:
    cluster = LivingSandbox()
    deployment(cluster)
    cluster.run(10)
    cluster.delete(DEPLOYMENTS, "web", propagation="Foreground")
    assert exists(cluster, "web", DEPLOYMENTS)
    assert len(cluster.pods()) == 3
    cluster.run(10)
    assert not exists(cluster, "web", DEPLOYMENTS)
    assert cluster.pods() == []


def test_orphans_lose_the_reference_and_stay() -> None:
    cluster = LivingSandbox()
    deployment(cluster)
    cluster.run(10)
    cluster.delete(DEPLOYMENTS, "web", propagation="Orphan")
    cluster.run(10)
    (replica_set,) = cluster.api.select(REPLICA_SETS)
    assert not exists(cluster, "web", DEPLOYMENTS)
    assert not replica_set["metadata"].get("ownerReferences")
    assert len(cluster.running()) == 3


def test_object_with_a_second_owner_stays_and_forgets_the_first() -> None:
    cluster = LivingSandbox()
    first = cluster.create(CONFIG_MAPS, {"metadata": {"name": "first"}})
    second = cluster.create(CONFIG_MAPS, {"metadata": {"name": "second"}})
    cluster.create(CONFIG_MAPS, owned_by("child", reference(first), reference(second)))
    cluster.delete(CONFIG_MAPS, "first")
    child = cluster.get(CONFIG_MAPS, "child")
    assert [each["name"] for each in child["metadata"]["ownerReferences"]] == ["second"]
    cluster.delete(CONFIG_MAPS, "second")
    assert not exists(cluster, "child")


def test_owner_of_the_same_name_but_another_uid_is_no_owner() -> None:
    cluster = LivingSandbox()
    cluster.create(CONFIG_MAPS, {"metadata": {"name": "owner"}})
    cluster.create(CONFIG_MAPS, owned_by("child", {"name": "owner", "uid": "of-an-earlier-one"}))
    assert not exists(cluster, "child")


def test_owner_that_waits_is_not_held_by_a_dependent_that_does_not_block() -> None:
    cluster = LivingSandbox()
    owner = cluster.create(CONFIG_MAPS, {"metadata": {"name": "owner"}})
    child = owned_by("child", reference(owner))
    child["metadata"]["finalizers"] = ["example.com/held"]
    cluster.create(CONFIG_MAPS, child)
    cluster.delete(CONFIG_MAPS, "owner", propagation="Foreground")
    assert not exists(cluster, "owner")
    assert exists(cluster, "child")


def test_namespace_goes_when_its_pods_have_ended() -> None:
    cluster = LivingSandbox()
    cluster.create(NAMESPACES, {"metadata": {"name": "passing"}})
    cluster.create(PODS, pod("last"), namespace="passing")
    cluster.run(10)
    cluster.delete(NAMESPACES, "passing")
    cluster.run(10)
    assert cluster.api.find(NAMESPACES, "", "passing") is None
    assert cluster.pods(namespace="passing") == []


def test_events_go_after_an_hour() -> None:
    cluster = LivingSandbox(nodes=1)
    deployment(cluster, replicas=1)
    cluster.run(10)
    assert cluster.reasons("web") == ["ScalingReplicaSet"]
    cluster.run(3600)
    assert cluster.api.select(CORE_EVENTS, "default") == []


def test_events_are_forgotten_after_an_hour() -> None:
    now = 1_700_000_000.0
    api = fresh_api(clock=lambda: now)
    expiry = EventExpiry(api)
    api.subscribe((CORE_EVENTS,), expiry.observe)
    about = {"involvedObject": {"kind": "Pod", "name": "p", "namespace": "default"}}
    for name in ("once", "again"):
        api.create(CORE_EVENTS, "default", {"metadata": {"name": name}, **about})
    now += 3000
    expiry.reconcile(now)
    assert len(api.select(CORE_EVENTS)) == 2
    api.patch(CORE_EVENTS, "default", "again", {"count": 2, "lastTimestamp": "2023-11-14T23:03:20Z"})
    now += 700
    expiry.reconcile(now)
    assert [event["metadata"]["name"] for event in api.select(CORE_EVENTS)] == ["again"]
