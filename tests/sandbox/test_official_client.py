"""The official Python client against the sandbox's API server: what its users do with a cluster."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from kubernetes import client, watch
from kubernetes.client.rest import ApiException
from kubernetes.leaderelection.electionconfig import Config
from kubernetes.leaderelection.leaderelection import LeaderElection
from kubernetes.leaderelection.resourcelock.leaselock import LeaseLock
from tests.sandbox_server import fresh_api, serving_in_thread

from kubesched.api.kinds import NODES
from kubesched_sandbox.api import Api

CONTAINER = {"name": "main", "image": "app:1", "resources": {"requests": {"cpu": "100m", "memory": "64Mi"}}}


@pytest.fixture
def api() -> Api:
    """A cluster with one node. Not to be touched from the test while it is served."""
    made = fresh_api()
    offered = {"cpu": "8", "memory": "32Gi", "pods": "110"}
    made.create(NODES, "", {"metadata": {"name": "node-1"}, "status": {"capacity": offered, "allocatable": offered}})
    return made


@pytest.fixture
def core(api: Api) -> Iterator[client.CoreV1Api]:
    """The client for core/v1; the default configuration of the other clients points to the same server."""
    before = client.Configuration._default
    with serving_in_thread(api) as server:
        client.Configuration.set_default(client.Configuration(host=server.url))
        with client.ApiClient() as connection:
            yield client.CoreV1Api(connection)
    client.Configuration.set_default(before)


def pod(name: str, **labels: str) -> dict[str, Any]:
    return {"metadata": {"name": name, "labels": labels}, "spec": {"containers": [CONTAINER]}}


def names(listed: Any) -> list[str]:
    return [item.metadata.name for item in listed.items]


def create(core: client.CoreV1Api, *pods: dict[str, Any]) -> None:
    for each in pods:
        core.create_namespaced_pod("default", each)


# -- objects ------------------------------------------------------------------------------------------------------


def test_a_created_pod_is_read_back_with_what_the_server_filled_in(core: client.CoreV1Api) -> None:
    created = core.create_namespaced_pod("default", pod("web"))
    read = core.read_namespaced_pod("web", "default")
    assert read.to_dict() == created.to_dict()
    assert read.metadata.uid
    assert read.metadata.creation_timestamp.tzinfo is not None
    assert (read.status.phase, read.spec.scheduler_name, read.spec.priority) == ("Pending", "default-scheduler", 0)


def test_typed_models_are_taken_as_well_as_dictionaries(core: client.CoreV1Api) -> None:
    container = client.V1Container(name="main", image="app:1")
    spec = client.V1PodSpec(containers=[container])
    model = client.V1Pod(metadata=client.V1ObjectMeta(generate_name="web-"), spec=spec)
    created = core.create_namespaced_pod("default", model)
    assert created.metadata.name.startswith("web-")
    assert created.spec.containers[0].image == "app:1"


def test_an_update_of_an_outdated_object_is_a_conflict(core: client.CoreV1Api) -> None:
    config_map = core.create_namespaced_config_map("default", {"metadata": {"name": "settings"}, "data": {"a": "1"}})
    config_map.data = {"a": "2"}
    core.replace_namespaced_config_map("settings", "default", config_map)
    with pytest.raises(ApiException) as refused:
        core.replace_namespaced_config_map("settings", "default", config_map)
    assert (refused.value.status, refused.value.reason) == (409, "Conflict")


def test_a_pod_is_deleted_at_once_when_nobody_runs_it(core: client.CoreV1Api) -> None:
    create(core, pod("web"))
    core.delete_namespaced_pod("web", "default")
    assert names(core.list_namespaced_pod("default")) == []


def test_a_collection_is_deleted_by_label(core: client.CoreV1Api) -> None:
    create(core, pod("web-1", app="web"), pod("web-2", app="web"), pod("db", app="db"))
    core.delete_collection_namespaced_pod("default", label_selector="app=web")
    assert names(core.list_namespaced_pod("default")) == ["db"]


def test_a_pod_is_bound_through_its_binding(core: client.CoreV1Api) -> None:
    create(core, pod("web"))
    target = client.V1ObjectReference(kind="Node", name="node-1")
    binding = client.V1Binding(metadata=client.V1ObjectMeta(name="web"), target=target)
    # The generated client expects a Binding in the answer, where Kubernetes sends a Status.
    core.create_namespaced_pod_binding("web", "default", binding, _preload_content=False)
    assert core.read_namespaced_pod("web", "default").spec.node_name == "node-1"


# -- patches ------------------------------------------------------------------------------------------------------


def test_a_strategic_merge_patch_merges_lists_by_their_keys(core: client.CoreV1Api) -> None:
    create(core, pod("web"))
    patch = {"spec": {"containers": [{"name": "main", "image": "app:2"}]}}
    patched = core.patch_namespaced_pod("web", "default", patch, _content_type="application/strategic-merge-patch+json")
    (container,) = patched.spec.containers
    assert (container.image, container.resources.requests["cpu"]) == ("app:2", "100m")


def test_a_merge_patch_with_null_takes_a_label_away(core: client.CoreV1Api) -> None:
    create(core, pod("web", app="web", tier="front"))
    patch = {"metadata": {"labels": {"tier": None}}}
    patched = core.patch_namespaced_pod("web", "default", patch, _content_type="application/merge-patch+json")
    assert patched.metadata.labels == {"app": "web"}


def test_a_json_patch_is_a_list_of_operations(core: client.CoreV1Api) -> None:
    create(core, pod("web", app="web"))
    patch = [{"op": "replace", "path": "/metadata/labels/app", "value": "shop"}]
    patched = core.patch_namespaced_pod("web", "default", patch, _content_type="application/json-patch+json")
    assert patched.metadata.labels == {"app": "shop"}


def test_an_apply_by_a_second_manager_conflicts_until_it_is_forced(core: client.CoreV1Api) -> None:
    def apply(value: str, manager: str, force: bool = False) -> Any:
        wanted = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings"}, "data": {"a": value}}
        return core.patch_namespaced_config_map(
            "settings",
            "default",
            wanted,
            field_manager=manager,
            force=force,
            _content_type="application/apply-patch+yaml",
        )

    apply("1", "first")
    with pytest.raises(ApiException) as refused:
        apply("2", "second")
    assert (refused.value.status, refused.value.reason) == (409, "Conflict")
    assert apply("2", "second", force=True).data == {"a": "2"}


# -- lists and watches --------------------------------------------------------------------------------------------


def test_a_list_comes_in_pages_of_one_snapshot(core: client.CoreV1Api) -> None:
    create(core, *(pod(f"web-{i}") for i in range(5)))
    first = core.list_namespaced_pod("default", limit=2)
    core.delete_namespaced_pod("web-4", "default")
    found, page = names(first), first
    assert first.metadata.remaining_item_count == 3
    while page.metadata._continue:
        page = core.list_namespaced_pod("default", limit=2, _continue=page.metadata._continue)
        found += names(page)
    assert found == [f"web-{i}" for i in range(5)]


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        ({"label_selector": "app=web"}, ["web-1", "web-2"]),
        ({"label_selector": "app in (web,db),tier!=back"}, ["web-1", "web-2"]),
        ({"label_selector": "!tier"}, ["web-1"]),
        ({"field_selector": "metadata.name=db"}, ["db"]),
        ({"field_selector": "spec.nodeName="}, ["db", "web-1", "web-2"]),
        ({"field_selector": "status.phase!=Pending"}, []),
    ],
)
def test_selectors_narrow_a_list(core: client.CoreV1Api, selector: dict[str, str], expected: list[str]) -> None:
    create(core, pod("web-1", app="web"), pod("web-2", app="web", tier="front"), pod("db", app="db", tier="back"))
    assert names(core.list_namespaced_pod("default", **selector)) == expected


def test_a_watch_tells_what_happened_since_a_list(core: client.CoreV1Api) -> None:
    since = core.list_namespaced_pod("default").metadata.resource_version
    create(core, pod("web", app="web"))
    core.patch_namespaced_pod("web", "default", {"metadata": {"labels": {"app": "shop"}}})
    core.delete_namespaced_pod("web", "default")
    told = []
    for event in watch.Watch().stream(core.list_namespaced_pod, "default", resource_version=since, timeout_seconds=60):
        told.append((event["type"], event["object"].metadata.labels["app"]))
        if event["type"] == "DELETED":
            break
    assert told == [("ADDED", "web"), ("MODIFIED", "shop"), ("DELETED", "shop")]


def test_a_watch_resumes_where_it_was(core: client.CoreV1Api) -> None:
    create(core, pod("web-1"))
    stream = watch.Watch()
    for _ in stream.stream(core.list_namespaced_pod, "default", timeout_seconds=60):
        stream.stop()
    create(core, pod("web-2"))
    resumed = stream.stream(
        core.list_namespaced_pod, "default", resource_version=stream.resource_version, timeout_seconds=60
    )
    assert next(resumed)["object"].metadata.name == "web-2"
    resumed.close()


def test_a_watch_ends_after_its_timeout(core: client.CoreV1Api) -> None:
    create(core, pod("web"))
    events = list(watch.Watch().stream(core.list_namespaced_pod, "default", timeout_seconds=1))
    assert [event["type"] for event in events] == ["ADDED"]


# -- errors -------------------------------------------------------------------------------------------------------


def test_errors_carry_kubernetes_reasons(core: client.CoreV1Api) -> None:
    create(core, pod("web"))
    attempts: list[tuple[int, str, Callable[[], object]]] = [
        (404, "NotFound", lambda: core.read_namespaced_pod("gone", "default")),
        (409, "AlreadyExists", lambda: create(core, pod("web"))),
        (422, "Invalid", lambda: create(core, pod("Not_A_Name"))),
        (404, "NotFound", lambda: core.create_namespaced_pod("nowhere", pod("web"))),
        (400, "BadRequest", lambda: core.list_namespaced_pod("default", label_selector="a b")),
    ]
    for code, reason, attempt in attempts:
        with pytest.raises(ApiException) as refused:
            attempt()
        status = json.loads(refused.value.body)
        assert (refused.value.status, status["kind"], status["reason"]) == (code, "Status", reason)


def test_an_invalid_object_names_the_field(core: client.CoreV1Api) -> None:
    with pytest.raises(ApiException) as refused:
        create(core, {"metadata": {"name": "web"}, "spec": {"containers": []}})
    status = json.loads(refused.value.body)
    assert status["message"] == 'Pod "web" is invalid: spec.containers: Required value'
    assert [cause["field"] for cause in status["details"]["causes"]] == ["spec.containers"]


# -- leader election ----------------------------------------------------------------------------------------------


def test_leadership_passes_on_when_the_leader_stops_renewing(core: client.CoreV1Api) -> None:
    led: list[str] = []
    stopped = threading.Event()

    def candidate(identity: str) -> LeaderElection:
        def lead() -> None:
            led.append(identity)
            raise RuntimeError("that will do")  # which makes it stop renewing

        config = Config(
            LeaseLock("lock", "default", identity),
            lease_duration=2,
            renew_deadline=1.5,
            retry_period=1,
            onstarted_leading=lead,
            onstopped_leading=stopped.set,
        )
        return LeaderElection(config)

    first, second = candidate("first"), candidate("second")
    first.run()
    assert stopped.is_set()
    assert not second.try_acquire_or_renew(), "the lease has not expired yet"
    second.run()
    assert led == ["first", "second"]
    lease = client.CoordinationV1Api().read_namespaced_lease("lock", "default")
    assert lease.spec.holder_identity == "second"
