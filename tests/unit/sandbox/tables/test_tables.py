"""What `kubectl get` shows."""

from __future__ import annotations

import copy
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.admission.cluster import Cluster
from tests.unit.admission.examples import ROCKETS, example

from kubesched.admission import SERVED, admit_create
from kubesched.api import kinds
from kubesched.api.kinds import Object, Resource
from kubesched_sandbox.tables import human_duration, table

NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)


def before(**ago: float) -> str:
    return (NOW - timedelta(**ago)).strftime("%Y-%m-%dT%H:%M:%SZ")


def row(resource: Resource, obj: Object, *, columns: list[Object] | None = None) -> dict[str, Any]:
    """The object's cells by the names of their columns."""
    metadata = {"name": "web", "creationTimestamp": before(hours=5), **obj.get("metadata", {})}
    made = table(resource, [{**obj, "metadata": metadata}], now=NOW, columns=columns)
    names = [column["name"] for column in made["columnDefinitions"]]
    return dict(zip(names, made["rows"][0]["cells"], strict=True))


def pod(*, phase: str = "Pending", metadata: Object | None = None, spec: Object | None = None, **status: Any) -> Object:
    spec = {"containers": [{"name": "main"}], **(spec or {})}
    return {"metadata": metadata or {}, "spec": spec, "status": {"phase": phase, **status}}


def container(state: Object, *, ready: bool = False, restarts: int = 0, **more: Any) -> Object:
    return {"name": "main", "state": state, "ready": ready, "restartCount": restarts, **more}


RUNNING: Object = {"running": {}}


# -- ages -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("seconds", "told"),
    [
        (-5, "<invalid>"),
        (-1, "0s"),
        (0, "0s"),
        (119, "119s"),
        (120, "2m"),
        (125, "2m5s"),
        (599, "9m59s"),
        (601, "10m"),
        (3 * 3600 - 1, "179m"),
        (3 * 3600, "3h"),
        (3 * 3600 + 60, "3h1m"),
        (8 * 3600 + 60, "8h"),
        (47 * 3600, "47h"),
        (48 * 3600, "2d"),
        (49 * 3600, "2d1h"),
        (8 * 86400 + 3600, "8d"),
        (729 * 86400, "729d"),
        (730 * 86400, "2y"),
        (731 * 86400, "2y1d"),
        (9 * 365 * 86400 + 86400, "9y"),
    ],
)
def test_ages_get_coarser_the_older_they_are(seconds: int, told: str) -> None:
    assert human_duration(seconds) == told


# -- pods -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("obj", "ready", "status"),
    [
        (pod(), "0/1", "Pending"),
        (pod(conditions=[{"type": "PodScheduled", "reason": "SchedulingGated"}]), "0/1", "SchedulingGated"),
        (
            pod(containerStatuses=[container({"waiting": {"reason": "ContainerCreating"}})]),
            "0/1",
            "ContainerCreating",
        ),
        (pod(phase="Running", containerStatuses=[container(RUNNING, ready=True)]), "1/1", "Running"),
        (
            pod(phase="Running", containerStatuses=[container({"waiting": {"reason": "CrashLoopBackOff"}})]),
            "0/1",
            "CrashLoopBackOff",
        ),
        (
            pod(phase="Succeeded", containerStatuses=[container({"terminated": {"reason": "Completed"}})]),
            "0/1",
            "Completed",
        ),
        (
            pod(phase="Failed", containerStatuses=[container({"terminated": {"reason": "Error", "exitCode": 1}})]),
            "0/1",
            "Error",
        ),
        (
            pod(phase="Failed", containerStatuses=[container({"terminated": {"exitCode": 137}})]),
            "0/1",
            "ExitCode:137",
        ),
        (pod(phase="Failed", reason="Evicted"), "0/1", "Evicted"),
        (pod(phase="Running", metadata={"deletionTimestamp": before(seconds=1)}), "0/1", "Terminating"),
        (
            pod(phase="Succeeded", metadata={"deletionTimestamp": before(seconds=1)}),
            "0/1",
            "Succeeded",
        ),
        (
            pod(spec={"initContainers": [{"name": "main"}, {"name": "b"}]}, initContainerStatuses=[container(RUNNING)]),
            "0/1",
            "Init:0/2",
        ),
        (
            pod(
                spec={"initContainers": [{"name": "main"}]},
                initContainerStatuses=[container({"terminated": {"exitCode": 2, "reason": "Error"}})],
            ),
            "0/1",
            "Init:Error",
        ),
        (
            pod(
                phase="Running",
                spec={"initContainers": [{"name": "main", "restartPolicy": "Always"}]},
                initContainerStatuses=[container(RUNNING, ready=True, started=True)],
                containerStatuses=[container(RUNNING, ready=True)],
            ),
            "2/2",
            "Running",
        ),
        (
            pod(
                phase="Running",
                containerStatuses=[container(RUNNING, ready=True), container({"terminated": {"reason": "Completed"}})],
            ),
            "1/1",
            "NotReady",
        ),
    ],
)
def test_status_of_a_pod_is_told_in_one_word(obj: Object, ready: str, status: str) -> None:
    cells = row(kinds.PODS, obj)
    assert (cells["Ready"], cells["Status"]) == (ready, status)


def test_restarts_say_when_the_last_one_was() -> None:
    ended = {"terminated": {"finishedAt": before(minutes=3)}}
    obj = pod(containerStatuses=[container(RUNNING, restarts=4, lastState=ended)])
    assert row(kinds.PODS, obj)["Restarts"] == "4 (3m ago)"
    assert row(kinds.PODS, pod())["Restarts"] == "0"


def test_wide_columns_of_pods_tell_where_they_are() -> None:
    spec = {"nodeName": "n1", "readinessGates": [{"conditionType": "a"}, {"conditionType": "b"}]}
    obj = pod(spec=spec, podIPs=[{"ip": "10.0.0.7"}], conditions=[{"type": "a", "status": "True"}])
    cells = row(kinds.PODS, obj)
    wide = {key: cells[key] for key in ("IP", "Node", "Nominated Node", "Readiness Gates")}
    assert wide == {"IP": "10.0.0.7", "Node": "n1", "Nominated Node": "<none>", "Readiness Gates": "1/2"}


# -- other kinds ------------------------------------------------------------------------------------------------------


def test_nodes_tell_whether_they_take_pods() -> None:
    node = {
        "metadata": {"labels": {"node-role.kubernetes.io/worker": "", "node-role.kubernetes.io/db": ""}},
        "spec": {"unschedulable": True},
        "status": {
            "conditions": [{"type": "Ready", "status": "False"}],
            "nodeInfo": {"kubeletVersion": "v1.36.0"},
            "addresses": [{"type": "InternalIP", "address": "10.1.0.1"}],
        },
    }
    assert row(kinds.NODES, node) == {
        "Name": "web",
        "Status": "NotReady,SchedulingDisabled",
        "Roles": "db,worker",
        "Age": "5h",
        "Version": "v1.36.0",
        "Internal-IP": "10.1.0.1",
        "External-IP": "<none>",
        "OS-Image": "<unknown>",
        "Kernel-Version": "<unknown>",
        "Container-Runtime": "<unknown>",
    }
    assert row(kinds.NODES, {})["Status"] == "Unknown"


def test_deployments_tell_how_far_they_are() -> None:
    deployment = {
        "spec": {
            "replicas": 3,
            "selector": {"matchLabels": {"app": "web"}, "matchExpressions": [{"key": "a", "operator": "Exists"}]},
            "template": {"spec": {"containers": [{"name": "x", "image": "i:1"}, {"name": "y", "image": "j:2"}]}},
        },
        "status": {"readyReplicas": 2, "updatedReplicas": 3, "availableReplicas": 1},
    }
    assert row(kinds.DEPLOYMENTS, deployment) == {
        "Name": "web",
        "Ready": "2/3",
        "Up-to-date": 3,
        "Available": 1,
        "Age": "5h",
        "Containers": "x,y",
        "Images": "i:1,j:2",
        "Selector": "a,app=web",
    }


def test_jobs_tell_their_progress_and_how_long_it_took() -> None:
    status: Object = {"succeeded": 1, "startTime": before(minutes=4), "completionTime": before(minutes=1)}
    job = {"spec": {"completions": 3}, "status": status}
    cells = row(kinds.JOBS, job)
    assert (cells["Status"], cells["Completions"], cells["Duration"]) == ("Running", "1/3", "3m")
    done = {**job, "status": {**status, "conditions": [{"type": "Complete", "status": "True"}]}}
    assert row(kinds.JOBS, done)["Status"] == "Complete"


def test_services_tell_how_they_are_reached() -> None:
    spec = {
        "type": "LoadBalancer",
        "clusterIP": "10.96.0.9",
        "ports": [{"port": 80, "nodePort": 31000, "protocol": "TCP"}],
    }
    cells = row(kinds.SERVICES, {"spec": spec})
    assert (cells["Cluster-IP"], cells["External-IP"], cells["Port(s)"]) == ("10.96.0.9", "<pending>", "80:31000/TCP")


def test_claims_tell_size_and_modes_once_they_are_bound() -> None:
    claim: Object = {"spec": {"storageClassName": "fast"}, "status": {"phase": "Pending"}}
    assert (row(kinds.PERSISTENT_VOLUME_CLAIMS, claim)["Capacity"], claim["status"]["phase"]) == ("", "Pending")
    bound = {
        "spec": {"volumeName": "v"},
        "status": {"phase": "Bound", "capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce", "ReadOnlyMany"]},
    }
    cells = row(kinds.PERSISTENT_VOLUME_CLAIMS, bound)
    assert (cells["Capacity"], cells["Access Modes"], cells["Status"]) == ("1Gi", "RWO,ROX", "Bound")


def test_default_storage_class_is_marked() -> None:
    marked = {"metadata": {"annotations": {"storageclass.kubernetes.io/is-default-class": "true"}}}
    assert row(kinds.STORAGE_CLASSES, marked)["Name"] == "web (default)"


@pytest.mark.parametrize(
    ("resource", "event"),
    [
        (
            kinds.CORE_EVENTS,
            {
                "involvedObject": {"kind": "Pod", "name": "web"},
                "message": "no room ",
                "lastTimestamp": before(seconds=30),
                "count": 3,
            },
        ),
        (
            kinds.EVENTS,
            {
                "regarding": {"kind": "Pod", "name": "web"},
                "note": "no room",
                "eventTime": before(hours=1),
                "series": {"count": 3, "lastObservedTime": before(seconds=30)},
            },
        ),
    ],
)
def test_events_read_the_same_in_both_shapes(resource: Resource, event: Object) -> None:
    cells = row(resource, event)
    assert (cells["Last Seen"], cells["Object"], cells["Message"], cells["Count"]) == ("30s", "pod/web", "no room", "3")


def test_resource_claims_tell_their_state() -> None:
    claim: Object = {"status": {"allocation": {}, "reservedFor": [{"name": "web"}]}}
    assert row(kinds.RESOURCE_CLAIMS, claim)["State"] == "allocated,reserved"
    assert row(kinds.RESOURCE_CLAIMS, {})["State"] == "pending"


# -- custom resources -------------------------------------------------------------------------------------------------


def test_custom_resource_without_columns_has_name_and_age() -> None:
    assert row(ROCKETS, {}) == {"Name": "web", "Age": "5h"}


@pytest.mark.parametrize(
    ("kind", "path", "shown"),
    [
        ("string", ".spec.stage", "second"),
        ("integer", ".spec.engines", 9),
        ("boolean", ".spec.crewed", False),
        ("string", ".spec.crewed", "false"),
        ("date", ".metadata.creationTimestamp", "5h"),
        ("string", '.status.conditions[?(@.type=="Ready")].status', "True"),
        ("string", ".status.conditions[*].type", "Ready,Fueled"),
        ("string", ".status.conditions[1].type", "Fueled"),
        ("string", r".metadata.labels.example\.com/pad", "39A"),
        ("string", ".metadata.labels['example.com/pad']", "39A"),
        ("string", ".spec.missing.deeper", None),
        ("integer", ".spec.stage", None),
        ("string", ".spec[", None),
    ],
)
def test_custom_columns_follow_their_path(kind: str, path: str, shown: Any) -> None:
    rocket = {
        "metadata": {"labels": {"example.com/pad": "39A"}},
        "spec": {"stage": "second", "engines": 9, "crewed": False},
        "status": {"conditions": [{"type": "Ready", "status": "True"}, {"type": "Fueled", "status": "False"}]},
    }
    assert row(ROCKETS, rocket, columns=[{"name": "It", "type": kind, "jsonPath": path}])["It"] == shown


# -- the table as a whole ---------------------------------------------------------------------------------------------


def test_rows_carry_as_much_of_the_object_as_is_asked_for() -> None:
    obj = {"kind": "Pod", **pod(metadata={"name": "web"})}
    whole = table(kinds.PODS, [obj], now=NOW, include="Object", list_meta={"resourceVersion": "7"})
    assert whole["metadata"] == {"resourceVersion": "7"}
    assert whole["rows"][0]["object"] == obj
    assert table(kinds.PODS, [obj], now=NOW)["rows"][0]["object"] == {
        "kind": "PartialObjectMetadata",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": {"name": "web"},
    }
    assert "object" not in table(kinds.PODS, [obj], now=NOW, include="None")["rows"][0]


@pytest.mark.parametrize("resource", SERVED, ids=lambda resource: resource.qualified)
def test_every_kind_has_a_table_that_kubectl_can_show(resource: Resource) -> None:
    obj = example(resource)
    if "get" in resource.verbs:
        obj = admit_create(resource, obj, Cluster())
    made = table(resource, [obj], now=NOW)
    definitions = made["columnDefinitions"]
    assert len(definitions) == len(made["rows"][0]["cells"])
    assert all(set(column) == {"name", "type", "format", "description", "priority"} for column in definitions)
    assert sum(column["format"] == "name" for column in definitions) == 1


json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=5,
)


@settings(max_examples=200, deadline=None)
@given(st.sampled_from(SERVED), json, json, st.lists(json, max_size=2))
def test_whatever_an_object_holds_can_be_shown(
    resource: Resource, metadata: Any, status: Any, items: list[Any]
) -> None:
    obj = copy.deepcopy(example(resource))
    obj["metadata"] = metadata
    obj["status"] = status if status is None or isinstance(status, dict) else {"conditions": items, "phase": status}
    obj["status"] = {**(obj["status"] or {}), "containerStatuses": items, "initContainerStatuses": items}
    assert len(table(resource, [obj], now=NOW)["rows"]) == 1


@given(st.text(max_size=30), json)
def test_any_path_of_a_custom_column_is_shown_somehow(path: str, spec: Any) -> None:
    columns: list[Object] = [{"name": "It", "type": "string", "jsonPath": path}]
    assert len(table(ROCKETS, [{"spec": spec}], now=NOW, columns=columns)["rows"][0]["cells"]) == 2
