"""Pods: what is filled in, what is refused, what may change."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from tests.unit.admission.cluster import Cluster, refused

from kubesched.admission import admit_create, admit_update, deletion_grace
from kubesched.api.api_error import ApiError
from kubesched.api.kinds import PODS, PRIORITY_CLASSES, Object

EMPTY = Cluster()


def pod(*, labels: dict[str, str] | None = None, container: Object | None = None, **spec: Any) -> Object:
    main = {"name": "main", "image": "nginx:1.27", **(container or {})}
    metadata: Object = {"name": "web", "namespace": "default"}
    if labels:
        metadata["labels"] = labels
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": [main], **spec}}


def created(obj: Object, cluster: Cluster = EMPTY) -> Object:
    return admit_create(PODS, obj, cluster)


def updated(old: Object, subresource: str = "", **changes: Any) -> Object:
    new = copy.deepcopy(old)
    new["spec"].update(changes)
    return admit_update(PODS, old, new, subresource, EMPTY)


def faults_of(obj: Object) -> list[tuple[str, str]]:
    return refused(lambda: created(obj))


# -- defaults ---------------------------------------------------------------------------------------------------------


def test_plain_pod_gets_what_the_server_fills_in() -> None:
    spec = created(pod())["spec"]
    assert spec["restartPolicy"] == "Always"
    assert spec["dnsPolicy"] == "ClusterFirst"
    assert spec["schedulerName"] == "default-scheduler"
    assert spec["terminationGracePeriodSeconds"] == 30
    assert spec["securityContext"] == {}
    assert spec["enableServiceLinks"] is True
    assert spec["serviceAccountName"] == spec["serviceAccount"] == "default"
    assert spec["containers"][0]["terminationMessagePath"] == "/dev/termination-log"


def test_new_pod_is_pending_whatever_status_the_client_sends() -> None:
    asked = {**pod(), "status": {"phase": "Running", "podIP": "10.0.0.1"}}
    assert created(asked)["status"] == {"phase": "Pending", "qosClass": "BestEffort"}


def test_what_the_client_sent_is_not_changed() -> None:
    asked = pod(container={"resources": {"limits": {"cpu": "1"}}}, volumes=[{"name": "v"}])
    before = copy.deepcopy(asked)
    created(asked)
    assert asked == before


@pytest.mark.parametrize(
    ("image", "policy"),
    [
        ("nginx", "Always"),
        ("nginx:latest", "Always"),
        ("nginx:1.27", "IfNotPresent"),
        ("registry:5000/nginx", "Always"),
        ("nginx@sha256:abc", "IfNotPresent"),
    ],
)
def test_images_without_a_fixed_tag_are_always_pulled(image: str, policy: str) -> None:
    assert created(pod(container={"image": image}))["spec"]["containers"][0]["imagePullPolicy"] == policy


def test_what_is_limited_is_requested() -> None:
    resources = {"limits": {"cpu": "2", "memory": "1Gi"}, "requests": {"cpu": "1"}}
    assert created(pod(container={"resources": resources}))["spec"]["containers"][0]["resources"]["requests"] == {
        "cpu": "1",
        "memory": "1Gi",
    }


def test_pod_limited_as_a_whole_requests_what_its_containers_do() -> None:
    container = {"resources": {"requests": {"cpu": "300m"}}}
    made = created(pod(container=container, resources={"limits": {"cpu": "1", "memory": "1Gi"}}))
    assert made["spec"]["resources"]["requests"] == {"cpu": "300m", "memory": "1Gi"}


def test_empty_words_are_filled_in_like_absent_ones() -> None:
    spec = created(pod(restartPolicy="", container={"imagePullPolicy": ""}))["spec"]
    assert (spec["restartPolicy"], spec["containers"][0]["imagePullPolicy"]) == ("Always", "IfNotPresent")


@pytest.mark.parametrize(
    ("resources", "quality"),
    [
        ({}, "BestEffort"),
        ({"requests": {"cpu": "1"}}, "Burstable"),
        ({"limits": {"cpu": "1", "memory": "1Gi"}}, "Guaranteed"),
        ({"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "1000m", "memory": "1Gi"}}, "Guaranteed"),
        ({"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "500m", "memory": "1Gi"}}, "Burstable"),
    ],
)
def test_quality_of_service_follows_from_requests_and_limits(resources: Object, quality: str) -> None:
    assert created(pod(container={"resources": resources}))["status"]["qosClass"] == quality


def test_ports_are_tcp_and_those_on_the_hosts_network_are_the_hosts() -> None:
    ports = created(pod(hostNetwork=True, container={"ports": [{"containerPort": 80}]}))["spec"]["containers"][0]
    assert ports["ports"] == [{"containerPort": 80, "protocol": "TCP", "hostPort": 80}]


def test_probes_get_their_rhythm() -> None:
    probe = created(pod(container={"readinessProbe": {"httpGet": {"port": 80}}}))["spec"]["containers"][0]
    assert probe["readinessProbe"] == {
        "httpGet": {"port": 80, "path": "/", "scheme": "HTTP"},
        "timeoutSeconds": 1,
        "periodSeconds": 10,
        "successThreshold": 1,
        "failureThreshold": 3,
    }


def test_pod_waits_five_minutes_on_a_silent_node_unless_it_says_otherwise() -> None:
    own = {"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 5}
    tolerations = created(pod(tolerations=[own]))["spec"]["tolerations"]
    assert [(each["key"], each["tolerationSeconds"]) for each in tolerations] == [
        ("node.kubernetes.io/not-ready", 5),
        ("node.kubernetes.io/unreachable", 300),
    ]


def test_null_means_absent() -> None:
    assert created(pod(nodeName=None, restartPolicy=None))["spec"]["restartPolicy"] == "Always"
    assert "nodeName" not in created(pod(nodeName=None))["spec"]


def test_label_keys_of_spread_constraints_become_part_of_the_selector() -> None:
    constraint = {
        "maxSkew": 1,
        "topologyKey": "zone",
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "web"}},
        "matchLabelKeys": ["rev"],
    }
    made = created(pod(labels={"app": "web", "rev": "7"}, topologySpreadConstraints=[constraint]))
    selector = made["spec"]["topologySpreadConstraints"][0]["labelSelector"]
    assert selector["matchExpressions"] == [{"key": "rev", "operator": "In", "values": ["7"]}]
    assert updated(made, activeDeadlineSeconds=9)["spec"]["topologySpreadConstraints"][0]["labelSelector"] == selector


# -- priority ---------------------------------------------------------------------------------------------------------


def priority_class(name: str, value: int, **more: Any) -> Object:
    return {"metadata": {"name": name}, "value": value, **more}


def test_priority_comes_from_the_class() -> None:
    cluster = Cluster().having(PRIORITY_CLASSES, priority_class("high", 1000, preemptionPolicy="Never"))
    spec = created(pod(priorityClassName="high"), cluster)["spec"]
    assert (spec["priority"], spec["preemptionPolicy"]) == (1000, "Never")


def test_pods_without_a_class_get_the_default_class() -> None:
    cluster = Cluster().having(PRIORITY_CLASSES, priority_class("normal", 10, globalDefault=True))
    spec = created(pod(), cluster)["spec"]
    assert (spec["priority"], spec["priorityClassName"]) == (10, "normal")


def test_system_classes_are_known_in_every_cluster() -> None:
    assert created(pod(priorityClassName="system-node-critical"))["spec"]["priority"] == 2_000_001_000


def test_unknown_class_is_forbidden() -> None:
    with pytest.raises(ApiError) as error:
        created(pod(priorityClassName="y"))
    assert error.value.code == 403
    assert error.value.message == 'pods "web" is forbidden: no PriorityClass with name y was found'


def test_priority_that_disagrees_with_the_class_is_forbidden() -> None:
    with pytest.raises(ApiError, match=r"the integer value of priority \(5\) must not be provided in pod spec"):
        created(pod(priority=5))


# -- what is refused --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("obj", "fault"),
    [
        (pod(containers=[]), ("spec.containers", "Required value")),
        (pod(container={"image": ""}), ("spec.containers[0].image", "Required value")),
        (pod(container={"name": ""}), ("spec.containers[0].name", "Required value")),
        (
            pod(restartPolicy="Sometimes"),
            (
                "spec.restartPolicy",
                'Unsupported value: "Sometimes": supported values: "Always", "OnFailure", "Never"',
            ),
        ),
        (
            pod(container={"ports": [{"containerPort": 70000}]}),
            (
                "spec.containers[0].ports[0].containerPort",
                "Invalid value: 70000: must be between 1 and 65535, inclusive",
            ),
        ),
        (
            pod(container={"resources": {"requests": {"cpu": "2"}, "limits": {"cpu": "1"}}}),
            (
                "spec.containers[0].resources.requests",
                'Invalid value: "2": must be less than or equal to cpu limit of 1',
            ),
        ),
        (
            pod(container={"resources": {"limits": {"a.com/gpu": "1500m"}}}),
            ("spec.containers[0].resources.limits[a.com/gpu]", 'Invalid value: "1500m": must be an integer'),
        ),
        (
            pod(container={"resources": {"limits": {"a.com/gpu": "2"}, "requests": {"a.com/gpu": "1"}}}),
            ("spec.containers[0].resources.requests", 'Invalid value: "1": must be equal to a.com/gpu limit of 2'),
        ),
        (
            pod(container={"resources": {"requests": {"cpu": "-1"}}}),
            (
                "spec.containers[0].resources.requests[cpu]",
                'Invalid value: "-1": must be greater than or equal to 0',
            ),
        ),
        (
            pod(container={"volumeMounts": [{"name": "data", "mountPath": "/data"}]}),
            ("spec.containers[0].volumeMounts[0].name", 'Not found: "data"'),
        ),
        (
            pod(nodeName="n1", schedulingGates=[{"name": "wait"}]),
            ("spec.nodeName", "Forbidden: cannot be set until all schedulingGates have been cleared"),
        ),
        (
            pod(schedulingGates=[{"name": "a"}, {"name": "a"}]),
            ("spec.schedulingGates[1]", 'Duplicate value: "a"'),
        ),
        (
            pod(tolerations=[{"key": "a", "operator": "Maybe"}]),
            (
                "spec.tolerations[0].operator",
                'Unsupported value: "Maybe": supported values: "Equal", "Exists"',
            ),
        ),
        (
            pod(tolerations=[{"operator": "Exists", "tolerationSeconds": 3}]),
            (
                "spec.tolerations[0].effect",
                "Invalid value: \"\": effect must be 'NoExecute' when `tolerationSeconds` is set",
            ),
        ),
        (
            pod(topologySpreadConstraints=[{"maxSkew": 0, "topologyKey": "z", "whenUnsatisfiable": "DoNotSchedule"}]),
            ("spec.topologySpreadConstraints[0].maxSkew", "Invalid value: 0: must be greater than zero"),
        ),
        (
            pod(affinity={"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {}}}),
            (
                "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms",
                "Required value: must have at least one node selector term",
            ),
        ),
    ],
)
def test_mistakes_are_told_with_their_path_in_kubernetes_words(obj: Object, fault: tuple[str, str]) -> None:
    assert faults_of(obj)[0] == fault


def test_names_that_are_no_dns_names_are_refused_in_the_words_users_search_for() -> None:
    bad = pod()
    bad["metadata"]["name"] = "My_Pod"
    [(field, message)] = faults_of(bad)
    assert field == "metadata.name"
    assert message == (
        'Invalid value: "My_Pod": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '
        "'-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for "
        r"validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
    )


def test_all_mistakes_are_told_at_once() -> None:
    assert [field for field, _ in faults_of(pod(container={"image": "", "name": "A"}, dnsPolicy="x"))] == [
        "spec.containers[0].name",
        "spec.containers[0].image",
        "spec.dnsPolicy",
    ]


def test_wrong_type_is_a_bad_request() -> None:
    with pytest.raises(ApiError) as error:
        created(pod(containers="nginx"))
    assert error.value.code == 400
    assert error.value.message == (
        'Pod in version "v1" cannot be handled as a Pod: json: cannot unmarshal string '
        "into Go struct field PodSpec.spec.containers of type []v1.Container"
    )


# -- what may change --------------------------------------------------------------------------------------------------


def test_image_may_change_and_counts_as_a_new_generation() -> None:
    old = created(pod())
    containers = [{**old["spec"]["containers"][0], "image": "nginx:1.28"}]
    new = updated(old, containers=containers)
    assert new["spec"]["containers"][0]["image"] == "nginx:1.28"
    assert new["metadata"]["generation"] == 2


def test_changed_labels_are_no_new_generation() -> None:
    old = created(pod())
    new = {**old, "metadata": {**old["metadata"], "labels": {"a": "b"}}}
    assert admit_update(PODS, old, new, "", EMPTY)["metadata"] == {**old["metadata"], "labels": {"a": "b"}}


def test_node_is_only_set_by_binding() -> None:
    [(field, message)] = refused(lambda: updated(created(pod()), nodeName="n1"))
    assert field == "spec"
    assert message.startswith("Forbidden: pod updates may not change fields other than `spec.containers[*].image`,")


def test_tolerations_may_be_added_but_not_taken_away() -> None:
    extra = {"key": "a", "operator": "Exists"}
    old = created(pod(tolerations=[extra]))
    more = [*old["spec"]["tolerations"], {"key": "b", "operator": "Exists"}]
    assert updated(old, tolerations=more)["spec"]["tolerations"] == more
    assert refused(lambda: updated(old, tolerations=more[1:])) == [
        ("spec.tolerations", "Forbidden: existing toleration can not be modified except its tolerationSeconds")
    ]


def test_gates_may_only_be_removed() -> None:
    old = created(pod(schedulingGates=[{"name": "a"}]))
    assert updated(old, schedulingGates=[])["spec"]["schedulingGates"] == []
    assert refused(lambda: updated(old, schedulingGates=[{"name": "b"}])) == [
        (
            "spec.schedulingGates[0].name",
            "Forbidden: only deletion is allowed, but found new scheduling gate 'b'",
        )
    ]


def test_gated_pod_may_become_choosier_about_nodes() -> None:
    old = created(pod(schedulingGates=[{"name": "a"}], nodeSelector={"zone": "x"}))
    narrower = {"zone": "x", "disk": "ssd"}
    assert updated(old, nodeSelector=narrower)["spec"]["nodeSelector"] == narrower
    [(field, message)] = refused(lambda: updated(old, nodeSelector={"disk": "ssd"}))
    assert field == "spec.nodeSelector"
    assert message.endswith("only additions to spec.nodeSelector are allowed (no mutations or deletions)")


def test_pod_without_gates_may_not_change_its_node_selector() -> None:
    [(field, _)] = refused(lambda: updated(created(pod()), nodeSelector={"disk": "ssd"}))
    assert field == "spec"


def test_update_without_what_admission_filled_in_is_no_change() -> None:
    old = created(pod())
    new = pod(serviceAccountName="default")
    assert admit_update(PODS, old, new, "", EMPTY)["spec"] == old["spec"]


def test_status_is_only_written_through_its_subresource() -> None:
    old = created(pod())
    new = {**old, "status": {"phase": "Running"}, "spec": {}}
    assert admit_update(PODS, old, {**old, "status": {"phase": "Running"}}, "", EMPTY)["status"] == old["status"]
    through = admit_update(PODS, old, new, "status", EMPTY)
    assert (through["status"], through["spec"]) == ({"phase": "Running"}, old["spec"])
    assert through["metadata"]["generation"] == 1


def test_name_and_uid_are_immutable() -> None:
    old = created({**pod(), "metadata": {**pod()["metadata"], "uid": "u1"}})
    renamed = {**old, "metadata": {**old["metadata"], "name": "other", "uid": "u2"}}
    assert refused(lambda: admit_update(PODS, old, renamed, "", EMPTY)) == [
        ("metadata.name", 'Invalid value: "other": field is immutable'),
        ("metadata.uid", 'Invalid value: "u2": field is immutable'),
    ]


def test_resize_changes_cpu_and_memory_and_nothing_else() -> None:
    old = created(pod(container={"resources": {"requests": {"cpu": "1"}}}))
    bigger = {**old["spec"]["containers"][0], "resources": {"requests": {"cpu": "2"}}}
    assert updated(old, "resize", containers=[bigger])["spec"]["containers"] == [bigger]
    assert refused(lambda: updated(old, "resize", containers=[{**bigger, "image": "x:1"}])) == [
        ("spec", "Forbidden: only cpu and memory resources are mutable")
    ]


def test_resize_may_not_change_the_quality_of_service() -> None:
    old = created(pod(container={"resources": {"requests": {"cpu": "1"}}}))
    unlimited = {**old["spec"]["containers"][0], "resources": {}}
    assert refused(lambda: updated(old, "resize", containers=[unlimited])) == [
        ("spec", 'Invalid value: "Burstable": Pod QOS Class may not change as a result of resizing')
    ]


def test_ephemeral_containers_are_added_only_through_their_subresource() -> None:
    old = created(pod())
    debugger = {"name": "debug", "image": "busybox:1"}
    assert updated(old, "ephemeralcontainers", ephemeralContainers=[debugger])["spec"]["ephemeralContainers"]
    assert refused(lambda: updated(old, ephemeralContainers=[debugger]))[0][0] == "spec"


# -- deletion ---------------------------------------------------------------------------------------------------------


def test_only_pods_that_run_somewhere_are_given_time_to_end() -> None:
    waiting = created(pod())
    running = {**waiting, "spec": {**waiting["spec"], "nodeName": "n1"}}
    ended = {**running, "status": {"phase": "Succeeded"}}
    assert deletion_grace(PODS, waiting, None) == 0
    assert deletion_grace(PODS, running, None) > 0
    assert [deletion_grace(PODS, each, None) for each in (waiting, running, ended)] == [0, 30, 0]
    assert deletion_grace(PODS, running, 5) == 5
    assert deletion_grace(PODS, running, 0) == 0
