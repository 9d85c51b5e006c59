"""Nodes as people look at them: what a kubelet would have written."""

from __future__ import annotations

import json
import time

from tests.running_sandbox import Sandbox

WAIT = "--timeout=100s"


def test_an_extended_resource_is_advertised_as_the_official_task_says(sandbox: Sandbox) -> None:
    patch = '[{"op": "add", "path": "/status/capacity/example.com~1dongle", "value": "4"}]'
    sandbox.kubectl("patch", "node", "node-1", "--subresource=status", "--type=json", "-p", patch)
    sandbox.kubectl("wait", r"--for=jsonpath={.status.allocatable.example\.com/dongle}=4", "node/node-1", WAIT)
    asks = {"name": "a", "image": "nginx", "resources": {"limits": {"example.com/dongle": "3"}}}
    overrides = json.dumps({"spec": {"containers": [asks]}})
    for name in ("first", "second"):
        sandbox.kubectl("run", name, "--image=nginx", f"--overrides={overrides}")
    sandbox.kubectl("wait", "--for=condition=Ready", "pod/first", WAIT)
    assert "Insufficient example.com/dongle" in sandbox.kubectl("describe", "pod", "second")
    sandbox.kubectl("delete", "pod", "first", "second", "--now")
    remove = '[{"op": "remove", "path": "/status/capacity/example.com~1dongle"}]'
    sandbox.kubectl("patch", "node", "node-1", "--subresource=status", "--type=json", "-p", remove)
    deadline = time.monotonic() + 100
    while "dongle" in sandbox.kubectl("get", "node", "node-1", "-o", "jsonpath={.status.allocatable}"):
        assert time.monotonic() < deadline


def test_kubelets_are_of_the_version_of_the_server(sandbox: Sandbox) -> None:
    server = json.loads(sandbox.kubectl("version", "-o", "json"))["serverVersion"]["gitVersion"]
    kubelets = sandbox.kubectl("get", "nodes", "-o", "jsonpath={.items[*].status.nodeInfo.kubeletVersion}").split()
    assert set(kubelets) == {server}


def test_a_node_tells_of_itself_what_a_kubelet_tells(sandbox: Sandbox) -> None:
    sandbox.kubectl("wait", "--for=condition=Ready", "node/node-0", WAIT)
    node = json.loads(sandbox.kubectl("get", "node", "node-0", "-o", "json"))
    for key in ("capacity", "allocatable"):
        assert node["status"][key].keys() >= {"cpu", "memory", "ephemeral-storage", "pods"}
    conditions = {each["type"]: (each["status"], each["reason"]) for each in node["status"]["conditions"]}
    assert conditions == {
        "MemoryPressure": ("False", "KubeletHasSufficientMemory"),
        "DiskPressure": ("False", "KubeletHasNoDiskPressure"),
        "PIDPressure": ("False", "KubeletHasSufficientPID"),
        "Ready": ("True", "KubeletReady"),
    }
    lease = json.loads(sandbox.kubectl("-n", "kube-node-lease", "get", "lease", "node-0", "-o", "json"))
    assert lease["spec"].keys() == {"holderIdentity", "leaseDurationSeconds", "renewTime"}
    assert (lease["spec"]["holderIdentity"], lease["spec"]["leaseDurationSeconds"]) == ("node-0", 40)
    assert lease["metadata"]["ownerReferences"][0]["kind"] == "Node"


def test_a_node_that_is_created_with_nothing_but_its_name_is_complete(sandbox: Sandbox) -> None:
    node = 'apiVersion: v1\nkind: Node\nmetadata: {name: late, annotations: {kubesched.io/hollow: "true"}}\n'
    sandbox.kubectl("apply", "-f", "-", stdin=node)
    sandbox.kubectl("wait", "--for=condition=Ready", "node/late", WAIT)
    found = json.loads(sandbox.kubectl("get", "node", "late", "-o", "json"))
    assert found["status"]["allocatable"]["cpu"] == "8"
    assert found["metadata"]["labels"]["kubernetes.io/hostname"] == "late"
    sandbox.kubectl("delete", "node", "late")
