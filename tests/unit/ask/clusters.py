"""A cluster on the sandbox's API server for questions: nodes in two zones, a workload, budgets, volumes, devices."""

from __future__ import annotations

from tests.sandbox_server import fresh_api

from kubesched.api.kinds import DEPLOYMENTS, NODES, POD_DISRUPTION_BUDGETS, PODS, PRIORITY_CLASSES
from kubesched_sandbox.api import Api
from kubesched_sandbox.nodes import node_manifests

CONTAINER = {"name": "main", "image": "shop/web", "resources": {"requests": {"cpu": "500m", "memory": "64Mi"}}}


def shop() -> Api:
    """Four nodes, a pod that runs, one that waits and fits, and one that fits nowhere."""
    api = fresh_api()
    for node in node_manifests(4):
        api.create(NODES, "", node)
    api.create(PRIORITY_CLASSES, "", {"metadata": {"name": "vip"}, "value": 1000})
    labels = {"app": "web"}
    running = {
        "metadata": {"name": "web-1", "labels": labels},
        "spec": {"containers": [CONTAINER], "nodeName": "node-0"},
    }
    api.create(PODS, "default", running)
    api.create(PODS, "default", {"metadata": {"name": "web-2", "labels": labels}, "spec": {"containers": [CONTAINER]}})
    tall = {**CONTAINER, "resources": {"requests": {"cpu": "900"}}}
    api.create(
        PODS, "default", {"metadata": {"name": "tall"}, "spec": {"containers": [tall], "priorityClassName": "vip"}}
    )
    budget = {"metadata": {"name": "web"}, "spec": {"minAvailable": 1, "selector": {"matchLabels": labels}}}
    api.create(POD_DISRUPTION_BUDGETS, "default", budget)
    template = {"metadata": {"labels": {"app": "api"}}, "spec": {"containers": [CONTAINER], "priorityClassName": "vip"}}
    spec = {"replicas": 3, "selector": {"matchLabels": {"app": "api"}}, "template": template}
    api.create(DEPLOYMENTS, "default", {"metadata": {"name": "api"}, "spec": spec})
    return api
