"""The real kubectl against a bare API server: no controllers, only what the server itself answers."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.sandbox_server import serving_in_thread

from kubesched.http.listen import server_context
from kubesched_sandbox.http import kubeconfig, self_signed, write_kubeconfig

pytestmark = pytest.mark.skipif(shutil.which("kubectl") is None, reason="there is no kubectl on the PATH")

WIDGETS: dict[str, Any] = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "widgets.x.io"},
    "spec": {
        "group": "x.io",
        "scope": "Namespaced",
        "names": {"plural": "widgets", "kind": "Widget", "shortNames": ["wd"]},
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
WIDGET = {"apiVersion": "x.io/v1", "kind": "Widget", "metadata": {"name": "w"}, "spec": {"size": 7}}


class Kubectl:
    def __init__(self, home: Path) -> None:
        self._environment = {**os.environ, "KUBECONFIG": str(home / "kubeconfig"), "HOME": str(home)}

    def __call__(self, *words: str, given: Any = None) -> str:
        text = None if given is None else yaml.safe_dump(given)
        done = subprocess.run(
            ["kubectl", *words], env=self._environment, input=text, capture_output=True, text=True, timeout=120
        )
        return done.stdout + done.stderr


@pytest.fixture(scope="module")
def kubectl(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kubectl]:
    home = tmp_path_factory.mktemp("kubectl")
    made = self_signed(["127.0.0.1"])
    with serving_in_thread(token="secret", tls=server_context(made)) as server:
        write_kubeconfig(home / "kubeconfig", kubeconfig(server.url, token="secret", authority=made.chain))
        yield Kubectl(home)


def test_a_deployment_is_created_scaled_and_deleted(kubectl: Kubectl) -> None:
    assert kubectl("create", "deployment", "web", "--image=nginx", "--replicas=3") == "deployment.apps/web created\n"
    assert kubectl("scale", "deployment", "web", "--replicas=5") == "deployment.apps/web scaled\n"
    assert kubectl("get", "deployment", "web", "-o", "jsonpath={.spec.replicas}") == "5"
    assert "deployment.apps/web restarted" in kubectl("rollout", "restart", "deployment", "web")
    assert "deleted" in kubectl("delete", "deployment", "web")


def test_a_pod_is_run_shown_labelled_and_deleted(kubectl: Kubectl) -> None:
    assert "pod/p created" in kubectl("run", "p", "--image=nginx")
    head, row = kubectl("get", "pods").splitlines()
    assert head.split() == ["NAME", "READY", "STATUS", "RESTARTS", "AGE"]
    assert row.split()[:3] == ["p", "0/1", "Pending"]
    assert "labeled" in kubectl("label", "pod", "p", "tier=front")
    assert kubectl("get", "pods", "-l", "tier in (front)", "-o", "name") == "pod/p\n"
    assert "Service Account:  default" in kubectl("describe", "pod", "p")
    assert "deleted" in kubectl("delete", "pod", "p")


def test_objects_are_applied_from_the_client_and_from_the_server(kubectl: Kubectl) -> None:
    settings = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "s"}, "data": {"a": "1"}}
    assert "created" in kubectl("apply", "-f", "-", given=settings)
    assert "unchanged" in kubectl("apply", "-f", "-", given=settings)
    assert "configured" in kubectl("apply", "-f", "-", given={**settings, "data": {"a": "2"}})
    applied = kubectl("apply", "--server-side", "--force-conflicts", "-f", "-", given={**settings, "data": {"b": "3"}})
    assert "serverside-applied" in applied
    wrong = {**settings, "dataa": {}}
    assert 'unknown field "dataa"' in kubectl("apply", "--server-side", "-f", "-", given=wrong)


def test_a_custom_resource_is_defined_and_used(kubectl: Kubectl) -> None:
    assert "created" in kubectl("apply", "-f", "-", given=WIDGETS)
    assert "condition met" in kubectl("wait", "--for=condition=established", "crd/widgets.x.io")
    assert "widget.x.io/w created" in kubectl("apply", "-f", "-", given=WIDGET)
    assert [line.split() for line in kubectl("get", "wd").splitlines()] == [["NAME", "SIZE"], ["w", "7"]]
    assert "deleted" in kubectl("delete", "crd", "widgets.x.io")
    assert "could not find the requested resource" in kubectl("apply", "-f", "-", given=WIDGET)


def test_a_namespace_comes_and_goes(kubectl: Kubectl) -> None:
    assert "created" in kubectl("create", "namespace", "shop")
    assert "created" in kubectl("create", "secret", "generic", "s", "--from-literal=a=b", "-n", "shop")
    assert "deleted" in kubectl("delete", "namespace", "shop")
    assert "NotFound" in kubectl("get", "namespace", "shop")


def test_questions_about_the_server_are_answered(kubectl: Kubectl) -> None:
    assert "v1.36.4" in kubectl("version")
    assert kubectl("auth", "can-i", "delete", "pods").strip() == "yes"
    assert "kubernetes-admin" in kubectl("auth", "whoami")
    assert "deployments" in kubectl("api-resources", "--api-group=apps")
    assert "FIELD: image <string>" in kubectl("explain", "pod.spec.containers.image")


def test_a_token_of_a_service_account_is_accepted_as_its_user(kubectl: Kubectl) -> None:
    token = kubectl("create", "token", "default", "--duration=20m").strip()
    assert len(token.split(".")) == 3
    shown = kubectl(f"--token={token}", "auth", "whoami", "-o", "jsonpath={.status.userInfo.username}")
    assert shown == "system:serviceaccount:default:default"
    elsewhere = kubectl("create", "token", "default", "--audience=vault").strip()
    assert "Unauthorized" in kubectl(f"--token={elsewhere}", "auth", "whoami")


def test_a_token_that_cannot_be_issued_is_refused_as_in_a_cluster(kubectl: Kubectl) -> None:
    told = kubectl("create", "token", "default", "--duration=5m")
    assert 'TokenRequest.authentication.k8s.io "" is invalid: spec.expirationSeconds: Invalid value: 300' in told
    assert 'serviceaccounts "nobody" not found' in kubectl("create", "token", "nobody")
    bound = ("--bound-object-kind=Secret", "--bound-object-name=missing")
    assert 'secrets "missing" not found' in kubectl("create", "token", "default", *bound)


def test_the_keys_of_tokens_are_published(kubectl: Kubectl) -> None:
    configuration = yaml.safe_load(kubectl("get", "--raw", "/.well-known/openid-configuration"))
    assert configuration["issuer"] == "https://kubernetes.default.svc.cluster.local"
    (key,) = yaml.safe_load(kubectl("get", "--raw", "/openid/v1/jwks"))["keys"]
    assert configuration["jwks_uri"].endswith("/openid/v1/jwks")
    assert configuration["id_token_signing_alg_values_supported"] == [key["alg"]]


def test_the_statuses_of_components_are_shown(kubectl: Kubectl) -> None:
    head, *rows, deprecated = kubectl("get", "componentstatuses").splitlines()
    assert deprecated == "Warning: v1 ComponentStatus is deprecated in v1.19+"
    assert head.split() == ["NAME", "STATUS", "MESSAGE", "ERROR"]
    assert [row.split()[:2] for row in rows] == [
        ["controller-manager", "Healthy"],
        ["etcd-0", "Healthy"],
        ["scheduler", "Unhealthy"],
    ]
    assert "Healthy" in kubectl("get", "cs", "etcd-0")
    assert "NotFound" in kubectl("get", "cs", "etcd-1")
