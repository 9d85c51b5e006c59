"""`kubectl top`, `kubectl autoscale` and `kubectl debug` on pods in which nothing runs."""

from __future__ import annotations

import json

import pytest
from tests.running_sandbox import Sandbox

from kubesched_sandbox.api.usage import USAGE

WAIT = "--timeout=100s"


@pytest.fixture(scope="module")
def web(sandbox: Sandbox) -> str:
    sandbox.kubectl("create", "deployment", "web", "--image=nginx", "--replicas=2")
    sandbox.kubectl("set", "resources", "deployment/web", "--requests=cpu=100m,memory=64Mi")
    sandbox.kubectl("rollout", "status", "deployment/web", WAIT)
    return "deployment/web"


def test_top_shows_what_pods_and_nodes_use(sandbox: Sandbox, web: str) -> None:
    rows = [line.split() for line in sandbox.kubectl("top", "pods", "-l", "app=web", "--no-headers").splitlines()]
    assert [row[1:] for row in rows] == [["50m", "32Mi"]] * 2
    nodes = [line.split() for line in sandbox.kubectl("top", "nodes", "--no-headers").splitlines()]
    assert sum(int(row[1].removesuffix("m")) for row in nodes) == 100
    assert sandbox.kubectl("top", "pods", "-A", "--containers", "--sum").splitlines()[-1].split() == ["100m", "64Mi"]
    sandbox.kubectl("annotate", "pods", "-l", "app=web", f"{USAGE}=cpu=300%,memory=1Gi")
    rows = [line.split() for line in sandbox.kubectl("top", "pods", "-l", "app=web", "--no-headers").splitlines()]
    assert [row[1:] for row in rows] == [["300m", "1024Mi"]] * 2
    sandbox.kubectl("annotate", "pods", "-l", "app=web", f"{USAGE}-")


def test_autoscale_makes_a_deployment_grow_with_its_load(sandbox: Sandbox, web: str) -> None:
    sandbox.kubectl("annotate", web, f"{USAGE}=cpu=400m")
    sandbox.kubectl("autoscale", web, "--min=1", "--max=8", "--cpu-percent=80")
    sandbox.kubectl("wait", "--for=jsonpath={.status.desiredReplicas}=5", "hpa/web", WAIT)
    sandbox.kubectl("rollout", "status", web, WAIT)
    described = sandbox.kubectl("describe", "hpa", "web")
    assert "New size: 5; reason: cpu resource utilization (percentage of request) above target" in described
    assert "cpu: 200%/80%" in sandbox.kubectl("get", "hpa", "web")
    sandbox.kubectl("delete", "hpa", "web")
    sandbox.kubectl("annotate", web, f"{USAGE}-")


def test_debug_starts_a_container_and_says_why_there_is_nothing_to_attach_to(sandbox: Sandbox, web: str) -> None:
    pod = sandbox.kubectl("get", "pods", "-l", "app=web", "-o", "name").split()[0]
    sandbox.kubectl("debug", pod, "--image=busybox", "--container=shell")
    running = "{.status.ephemeralContainerStatuses[0].state.running.startedAt}"
    sandbox.kubectl("wait", f"--for=jsonpath={running}", pod, WAIT)
    told = sandbox.kubectl("debug", "-it", pod, "--image=busybox", "--container=second", fails=True, timeout=60)
    assert "hollow pods run no containers" in told
    found = json.loads(sandbox.kubectl("get", pod, "-o", "json"))
    assert [each["name"] for each in found["status"]["ephemeralContainerStatuses"]] == ["shell", "second"]
