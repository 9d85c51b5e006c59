"""What a deletion, a conflict and the less usual resources answer, compared with kube-apiserver v1.36."""

from __future__ import annotations

from typing import Any

import pytest
from tests.living_sandbox import workload
from tests.unit.sandbox.http.asking import CONFIG_MAPS, Asking, config, pod, with_server

DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"


@pytest.mark.parametrize(
    ("path", "body", "kind"),
    [
        ("/api/v1/namespaces", {"metadata": {"name": "x"}}, "Namespace"),
        ("/api/v1/namespaces/default/pods", pod("x"), "Pod"),
        ("/api/v1/namespaces/default/serviceaccounts", {"metadata": {"name": "x"}}, "ServiceAccount"),
        ("/apis/storage.k8s.io/v1/storageclasses", {"metadata": {"name": "x"}, "provisioner": "a.b/c"}, "StorageClass"),
        (CONFIG_MAPS, config("x"), "Status"),
    ],
)
def test_a_deletion_answers_with_the_object_where_kubernetes_does(path: str, body: Any, kind: str) -> None:
    async def test(ask: Asking) -> None:
        assert (await ask("POST", path, body)).status == 201
        deleted = await ask("DELETE", f"{path}/x", {"gracePeriodSeconds": 0})
        assert (deleted.status, deleted.json["kind"]) == (200, kind)
        if kind == "Namespace":
            assert deleted.json["status"] == {"phase": "Terminating"}

    with_server(test)


def test_an_apply_that_conflicts_with_a_scale_names_the_subresource() -> None:
    async def test(ask: Asking) -> None:
        headers = {"Content-Type": "application/apply-patch+yaml"}
        applied = {"apiVersion": "apps/v1", "kind": "Deployment", **workload(replicas=1)}
        path = f"{DEPLOYMENTS}/web?fieldManager=me"
        assert (await ask("PATCH", path, applied, headers=headers)).status == 201
        merge = {"Content-Type": "application/merge-patch+json", "User-Agent": "kubectl/v1"}
        await ask("PATCH", f"{DEPLOYMENTS}/web/scale", {"spec": {"replicas": 3}}, headers=merge)
        conflict = await ask("PATCH", path, applied, headers=headers)
        assert conflict.status == 409
        who = 'conflict with "kubectl" with subresource "scale" using apps/v1'
        assert conflict.json["message"].startswith(f"Apply failed with 1 conflict: {who}")

    with_server(test)
