from __future__ import annotations

import json
import subprocess
import time

import pytest
import yaml
from tests.running_sandbox import KUBECTL, Sandbox

from kubesched.api.kinds import CORE_EVENTS

WAIT = "--timeout=100s"


def manifest(name: str, replicas: int = 2, image: str = "nginx") -> str:
    labels = {"app": name}
    spec = {"containers": [{"name": "app", "image": image, "resources": {"requests": {"cpu": "10m"}}}]}
    template = {"metadata": {"labels": labels}, "spec": spec}
    return yaml.safe_dump(
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": name, "labels": labels},
            "spec": {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template},
        }
    )


def names(sandbox: Sandbox, kind: str, *arguments: str) -> list[str]:
    return sandbox.kubectl("get", kind, "-o", "name", *arguments).split()


@pytest.fixture
def web(sandbox: Sandbox) -> str:
    """A Deployment that is up."""
    if "deployment.apps/web" not in names(sandbox, "deployments"):
        sandbox.kubectl("create", "deployment", "web", "--image=nginx", "--replicas=3")
    settled_pods(sandbox)
    return "deployment/web"


def settled_pods(sandbox: Sandbox) -> list[str]:
    """The pods of that Deployment, once its rollout is done and the pods that it replaced are gone."""
    sandbox.kubectl("rollout", "status", "deployment/web", WAIT)
    deadline = time.monotonic() + 100
    while len(pods := names(sandbox, "pods", "-l", "app=web")) != 3:
        assert time.monotonic() < deadline, pods
    return pods


# -- looking ----------------------------------------------------------------------------------------------------------


def test_nodes_show_as_ready_with_their_addresses(sandbox: Sandbox) -> None:
    sandbox.kubectl("wait", "--for=condition=Ready", "node", "--all", WAIT)
    shown = sandbox.kubectl("get", "nodes", "-o", "wide")
    header, *rows = shown.splitlines()
    assert header.split()[:6] == ["NAME", "STATUS", "ROLES", "AGE", "VERSION", "INTERNAL-IP"]
    assert len(rows) == 4
    assert all(row.split()[1] == "Ready" and "172.16." in row for row in rows)


def test_versions_and_resources_are_listed(sandbox: Sandbox) -> None:
    assert "Server Version: v1.3" in sandbox.kubectl("version")
    versions = sandbox.kubectl("api-versions").split()
    assert {"v1", "apps/v1", "batch/v1", "policy/v1", "resource.k8s.io/v1"} <= set(versions)
    resources = sandbox.kubectl("api-resources")
    assert "deployments" in resources
    assert "deploy" in resources
    assert "ok" in sandbox.kubectl("get", "--raw", "/readyz")


def test_fields_are_explained(sandbox: Sandbox) -> None:
    told = sandbox.kubectl("explain", "pods.spec")
    assert "FIELD: spec <PodSpec>" in told
    assert "nodeName" in told


def test_the_user_may_do_everything(sandbox: Sandbox) -> None:
    assert sandbox.kubectl("auth", "can-i", "create", "pods").strip() == "yes"


# -- workloads --------------------------------------------------------------------------------------------------------


def test_fifty_replicas_come_up_and_are_scaled(sandbox: Sandbox) -> None:
    sandbox.kubectl("create", "deployment", "many", "--image=nginx", "--replicas=50")
    assert "successfully rolled out" in sandbox.kubectl("rollout", "status", "deployment/many", WAIT)
    rows = sandbox.kubectl("get", "pods", "-l", "app=many", "-o", "wide", "--no-headers").splitlines()
    assert len(rows) == 50
    assert all(row.split()[1:3] == ["1/1", "Running"] and " node-" in row for row in rows)
    sandbox.kubectl("scale", "deployment/many", "--replicas=5")
    sandbox.kubectl("wait", "--for=jsonpath={.status.replicas}=5", "deployment/many", WAIT)
    sandbox.kubectl("delete", "deployment", "many", "--cascade=foreground", WAIT)
    assert names(sandbox, "pods", "-l", "app=many") == []


def test_a_rollout_is_restarted_and_undone(sandbox: Sandbox, web: str) -> None:
    before = settled_pods(sandbox)
    sandbox.kubectl("rollout", "restart", web)
    assert not set(before) & set(settled_pods(sandbox))
    sandbox.kubectl("set", "image", web, "nginx=nginx:2")
    sandbox.kubectl("rollout", "status", web, WAIT)
    revisions = sandbox.kubectl("rollout", "history", web)
    assert sum(line[:1].isdigit() for line in revisions.splitlines()) == 3
    assert "rolled back" in sandbox.kubectl("rollout", "undo", web)
    sandbox.kubectl("rollout", "status", web, WAIT)
    assert sandbox.kubectl("get", web, "-o", "jsonpath={..image}") == "nginx"


def test_stateful_sets_and_daemon_sets_roll_out(sandbox: Sandbox) -> None:
    both = []
    for kind in ("StatefulSet", "DaemonSet"):
        loaded = yaml.safe_load(manifest(kind.lower()))
        loaded["kind"] = kind
        if kind == "DaemonSet":
            del loaded["spec"]["replicas"]
        else:
            loaded["spec"]["serviceName"] = "sets"
        both.append(yaml.safe_dump(loaded))
    sandbox.kubectl("apply", "-f", "-", stdin="---\n".join(both))
    sandbox.kubectl("rollout", "status", "statefulset/statefulset", WAIT)
    sandbox.kubectl("rollout", "status", "daemonset/daemonset", WAIT)
    assert names(sandbox, "pods", "-l", "app=statefulset") == ["pod/statefulset-0", "pod/statefulset-1"]
    assert len(names(sandbox, "pods", "-l", "app=daemonset")) == 4
    sandbox.kubectl("rollout", "restart", "statefulset/statefulset", "daemonset/daemonset")
    sandbox.kubectl("rollout", "status", "statefulset/statefulset", WAIT)
    sandbox.kubectl("rollout", "status", "daemonset/daemonset", WAIT)
    sandbox.kubectl("rollout", "undo", "daemonset/daemonset")
    sandbox.kubectl("rollout", "status", "daemonset/daemonset", WAIT)
    sandbox.kubectl("delete", "statefulset/statefulset", "daemonset/daemonset")


def test_a_job_completes(sandbox: Sandbox) -> None:
    sandbox.kubectl("create", "job", "once", "--image=busybox", "--", "true")
    sandbox.kubectl("wait", "--for=condition=Complete", "job/once", WAIT)
    assert sandbox.kubectl("get", "job", "once", "--no-headers").split()[:3] == ["once", "Complete", "1/1"]
    sandbox.kubectl("delete", "job", "once")


def test_orphans_stay_when_their_owner_is_deleted_alone(sandbox: Sandbox) -> None:
    sandbox.kubectl("create", "deployment", "alone", "--image=nginx")
    sandbox.kubectl("rollout", "status", "deployment/alone", WAIT)
    sandbox.kubectl("delete", "deployment", "alone", "--cascade=orphan", WAIT)
    kept = names(sandbox, "replicasets", "-l", "app=alone")
    assert len(kept) == 1
    owners = sandbox.kubectl("get", kept[0], "-o", "jsonpath={.metadata.ownerReferences}")
    assert owners in ("", "[]")
    sandbox.kubectl("delete", kept[0], WAIT)
    sandbox.kubectl("wait", "--for=delete", "pods", "-l", "app=alone", WAIT)


def test_a_deleted_pod_is_replaced(sandbox: Sandbox, web: str) -> None:
    victim = settled_pods(sandbox)[0]
    sandbox.kubectl("delete", victim, WAIT)
    assert victim not in settled_pods(sandbox)


# -- nodes ------------------------------------------------------------------------------------------------------------


def test_a_cordoned_node_gets_no_pods_until_it_is_uncordoned(sandbox: Sandbox) -> None:
    sandbox.kubectl("cordon", "node-0")
    assert "Ready,SchedulingDisabled" in sandbox.kubectl("get", "node", "node-0")
    sandbox.kubectl(
        "wait", "--for=jsonpath={.spec.taints[0].key}=node.kubernetes.io/unschedulable", "node/node-0", WAIT
    )
    sandbox.kubectl("uncordon", "node-0")
    assert "SchedulingDisabled" not in sandbox.kubectl("get", "node", "node-0")


def test_a_drained_node_loses_its_pods_but_those_of_daemons(sandbox: Sandbox, web: str) -> None:
    loaded = yaml.safe_load(manifest("agent"))
    loaded["kind"] = "DaemonSet"
    del loaded["spec"]["replicas"]
    sandbox.kubectl("apply", "-f", "-", stdin=yaml.safe_dump(loaded))
    sandbox.kubectl("rollout", "status", "daemonset/agent", WAIT)
    sandbox.kubectl("drain", "node-1", "--ignore-daemonsets", "--delete-emptydir-data", WAIT)
    left = names(sandbox, "pods", "--field-selector=spec.nodeName=node-1")
    assert len(left) == 1
    assert left[0].startswith("pod/agent-")
    sandbox.kubectl("uncordon", "node-1")
    sandbox.kubectl("delete", "daemonset", "agent")
    sandbox.kubectl("rollout", "status", web, WAIT)


def test_taints_labels_and_annotations_come_and_go(sandbox: Sandbox) -> None:
    sandbox.kubectl("taint", "node", "node-2", "dedicated=gpu:NoSchedule")
    assert "dedicated=gpu:NoSchedule" in sandbox.kubectl("describe", "node", "node-2")
    sandbox.kubectl("taint", "node", "node-2", "dedicated:NoSchedule-")
    sandbox.kubectl("label", "node", "node-2", "tier=gold")
    assert names(sandbox, "nodes", "-l", "tier=gold") == ["node/node-2"]
    sandbox.kubectl("label", "node", "node-2", "tier-")
    sandbox.kubectl("annotate", "node", "node-2", "note=hello")
    assert "note: hello" in sandbox.kubectl("describe", "node", "node-2")


# -- people reading ---------------------------------------------------------------------------------------------------


def test_pods_and_nodes_are_described_with_their_events(sandbox: Sandbox, web: str) -> None:
    pod = settled_pods(sandbox)[0]
    told = sandbox.kubectl("describe", pod)
    assert "Status:           Running" in told
    assert "Started container nginx" in told
    assert "Allocated resources" in sandbox.kubectl("describe", "node", "node-0")
    assert "ScalingReplicaSet" in sandbox.kubectl("get", "events")
    assert "Scaled up replica set" in sandbox.kubectl("events", "--for", web)


def test_logs_fail_with_a_clear_error(sandbox: Sandbox, web: str) -> None:
    told = sandbox.kubectl("logs", web, fails=True)
    assert "hollow pods run no containers" in told


def test_a_watch_shows_changes(sandbox: Sandbox) -> None:
    sandbox.kubectl("create", "configmap", "seen", "--from-literal=a=b")
    command = [str(KUBECTL), f"--kubeconfig={sandbox.kubeconfig}", "get", "configmap", "seen", "-w", "--no-headers"]
    options = ["--output-watch-events", "--request-timeout=100s"]
    with subprocess.Popen([*command, *options], stdout=subprocess.PIPE, text=True) as watch:
        assert watch.stdout is not None
        assert watch.stdout.readline().split()[:3] == ["ADDED", "seen", "1"]
        sandbox.kubectl("patch", "configmap", "seen", "-p", '{"data": {"c": "d"}}')
        assert watch.stdout.readline().split()[:3] == ["MODIFIED", "seen", "2"]
        sandbox.kubectl("delete", "configmap", "seen")
        assert watch.stdout.readline().split()[:2] == ["DELETED", "seen"]
        watch.terminate()


# -- writing ----------------------------------------------------------------------------------------------------------


def test_applying_twice_changes_nothing(sandbox: Sandbox) -> None:
    text = manifest("applied")
    assert "created" in sandbox.kubectl("apply", "-f", "-", stdin=text)
    sandbox.kubectl("rollout", "status", "deployment/applied", WAIT)
    before = sandbox.kubectl("get", "deployment", "applied", "-o", "jsonpath={.metadata.generation}")
    assert "unchanged" in sandbox.kubectl("apply", "-f", "-", stdin=text)
    assert sandbox.kubectl("get", "deployment", "applied", "-o", "jsonpath={.metadata.generation}") == before
    assert sandbox.kubectl("diff", "-f", "-", stdin=text) == ""
    told = sandbox.kubectl("diff", "-f", "-", stdin=manifest("applied", image="nginx:2"), fails=True)
    assert "+        image: nginx:2" in told or "+      - image: nginx:2" in told
    assert "configured" in sandbox.kubectl("apply", "-f", "-", stdin=manifest("applied", replicas=1))
    sandbox.kubectl("wait", "--for=jsonpath={.status.replicas}=1", "deployment/applied", WAIT)
    sandbox.kubectl("delete", "-f", "-", stdin=text)


def test_server_side_apply_knows_who_owns_a_field(sandbox: Sandbox) -> None:
    text = manifest("owned")
    assert "serverside-applied" in sandbox.kubectl("apply", "--server-side", "-f", "-", stdin=text)
    assert "serverside-applied" in sandbox.kubectl("apply", "--server-side", "-f", "-", stdin=text)
    other = manifest("owned", replicas=4)
    told = sandbox.kubectl("apply", "--server-side", "--field-manager=other", "-f", "-", stdin=other, fails=True)
    assert "conflict" in told
    assert ".spec.replicas" in told
    sandbox.kubectl("apply", "--server-side", "--field-manager=other", "--force-conflicts", "-f", "-", stdin=other)
    sandbox.kubectl("wait", "--for=jsonpath={.status.replicas}=4", "deployment/owned", WAIT)
    sandbox.kubectl("delete", "deployment", "owned")


@pytest.mark.parametrize(
    ("kind", "patch"),
    [
        ("strategic", {"spec": {"template": {"spec": {"containers": [{"name": "nginx", "image": "nginx:3"}]}}}}),
        ("merge", {"metadata": {"labels": {"by": "merge"}}}),
        ("json", [{"op": "add", "path": "/metadata/annotations/by", "value": "json"}]),
    ],
)
def test_objects_are_patched_in_every_way(sandbox: Sandbox, web: str, kind: str, patch: object) -> None:
    assert "patched" in sandbox.kubectl("patch", web, "--type", kind, "-p", json.dumps(patch))
    # kubectl compares the object before and after: a status that is written in between would be a change too.
    sandbox.kubectl("rollout", "status", web, WAIT)
    assert "no change" in sandbox.kubectl("patch", web, "--type", kind, "-p", json.dumps(patch))


def test_a_namespace_goes_with_all_that_is_in_it(sandbox: Sandbox) -> None:
    sandbox.kubectl("create", "namespace", "passing")
    sandbox.kubectl("-n", "passing", "create", "deployment", "web", "--image=nginx", "--replicas=3")
    sandbox.kubectl("-n", "passing", "rollout", "status", "deployment/web", WAIT)
    assert "default" in sandbox.kubectl("-n", "passing", "get", "serviceaccounts")
    sandbox.kubectl("delete", "namespace", "passing", WAIT)
    assert sandbox.kubectl("get", "pods", "-n", "passing") == ""
    assert sandbox.call(lambda api: api.select(CORE_EVENTS, "passing")) == []


def test_custom_kinds_are_served_and_collected(sandbox: Sandbox) -> None:
    definition = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"plural": "widgets", "singular": "widget", "kind": "Widget", "shortNames": ["wd"]},
            "versions": [
                {
                    "name": "v1",
                    "served": True,
                    "storage": True,
                    "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
                    "additionalPrinterColumns": [{"name": "Size", "type": "integer", "jsonPath": ".spec.size"}],
                }
            ],
        },
    }
    sandbox.kubectl("apply", "-f", "-", stdin=yaml.safe_dump(definition))
    sandbox.kubectl("wait", "--for=condition=Established", "crd/widgets.example.com", WAIT)
    widget = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "one"}, "spec": {"size": 3}}
    sandbox.kubectl("apply", "-f", "-", stdin=yaml.safe_dump(widget))
    assert sandbox.kubectl("get", "wd", "--no-headers").split()[:2] == ["one", "3"]
    uid = sandbox.kubectl("get", "widget", "one", "-o", "jsonpath={.metadata.uid}")
    owner = {"apiVersion": "example.com/v1", "kind": "Widget", "name": "one", "uid": uid}
    owned = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "of-one", "ownerReferences": [owner]}}
    sandbox.kubectl("apply", "-f", "-", stdin=yaml.safe_dump(owned))
    sandbox.kubectl("delete", "widget", "one")
    sandbox.kubectl("wait", "--for=delete", "configmap/of-one", WAIT)
    sandbox.kubectl("delete", "crd", "widgets.example.com")
    # Which words it uses depends on whether kubectl still remembers the kind.
    told = sandbox.kubectl("get", "widgets", fails=True)
    assert "could not find the requested resource" in told or "doesn't have a resource type" in told


def test_a_pod_is_resized_in_place(sandbox: Sandbox) -> None:
    container = {"name": "main", "image": "app", "resources": {"requests": {"cpu": "1"}}}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "grows"}, "spec": {"containers": [container]}}
    sandbox.kubectl("apply", "-f", "-", stdin=json.dumps(pod))
    sandbox.kubectl("wait", "--for=condition=ready", "pod/grows")
    larger = {"spec": {"containers": [{"name": "main", "resources": {"requests": {"cpu": "2"}}}]}}
    sandbox.kubectl("patch", "pod", "grows", "--subresource=resize", "-p", json.dumps(larger))
    has = "jsonpath={.status.containerStatuses[0].resources.requests.cpu}=2"
    sandbox.kubectl("wait", f"--for={has}", "pod/grows", "--timeout=30s")
    sandbox.kubectl("delete", "pod", "grows", "--force")


def test_an_apply_that_conflicts_with_a_scale_names_the_subresource(sandbox: Sandbox, web: str) -> None:
    sandbox.kubectl("scale", web, "--replicas=2")
    wanted = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": {"replicas": 3}}
    told = sandbox.kubectl("apply", "--server-side", "-f", "-", stdin=json.dumps(wanted), fails=True)
    assert 'conflict with "kubectl" with subresource "scale" using apps/v1: .spec.replicas' in told
