"""Kinds beyond workloads: those that act (schedules, limits, quotas, runtimes), and those that say that they do not."""

from __future__ import annotations

import pytest
from tests.running_sandbox import Sandbox

WAIT = "--timeout=100s"


@pytest.fixture(scope="module")
def team(sandbox: Sandbox) -> str:
    """A namespace with limits and a quota."""
    sandbox.kubectl("create", "namespace", "team")
    limits = """
apiVersion: v1
kind: LimitRange
metadata: {name: limits, namespace: team}
spec:
  limits:
  - type: Container
    default: {cpu: 500m, memory: 512Mi}
    defaultRequest: {cpu: 250m, memory: 256Mi}
    max: {cpu: "1"}
"""
    sandbox.kubectl("apply", "-f", "-", stdin=limits)
    hard = "--hard=pods=3,requests.cpu=1,services=1,count/configmaps=2"
    sandbox.kubectl("-n", "team", "create", "quota", "share", hard)
    return "team"


def test_containers_that_say_nothing_get_the_defaults_of_a_limit_range(sandbox: Sandbox, team: str) -> None:
    sandbox.kubectl("-n", team, "run", "modest", "--image=nginx")
    found = sandbox.kubectl("-n", team, "get", "pod", "modest", "-o", "jsonpath={.spec..resources}")
    assert found == '{"limits":{"cpu":"500m","memory":"512Mi"},"requests":{"cpu":"250m","memory":"256Mi"}}'
    sandbox.kubectl("-n", team, "delete", "pod", "modest", "--now")


def test_a_pod_beyond_the_limits_is_refused(sandbox: Sandbox, team: str) -> None:
    greedy = '{"spec": {"containers": [{"name": "a", "image": "a", "resources": {"limits": {"cpu": "2"}}}]}}'
    told = sandbox.kubectl("-n", team, "run", "greedy", "--image=nginx", f"--overrides={greedy}", fails=True)
    assert "maximum cpu usage per Container is 1, but limit is 2" in told


def test_a_quota_is_charged_refuses_and_gives_back(sandbox: Sandbox, team: str) -> None:
    sandbox.kubectl("-n", team, "create", "deployment", "web", "--image=nginx", "--replicas=5")
    sandbox.kubectl("-n", team, "wait", "--for=jsonpath={.status.readyReplicas}=3", "deployment/web", WAIT)
    told = sandbox.kubectl("-n", team, "run", "fourth", "--image=nginx", fails=True)
    assert "exceeded quota: share, requested: pods=1, used: pods=3, limited: pods=3" in told
    assert "exceeded quota" in sandbox.kubectl("-n", team, "describe", "replicaset")
    described = sandbox.kubectl("-n", team, "describe", "quota", "share")
    assert ["pods", "3", "3"] in [line.split() for line in described.splitlines()]
    sandbox.kubectl("-n", team, "delete", "deployment", "web", "--cascade=foreground", WAIT)
    sandbox.kubectl("-n", team, "wait", "--for=jsonpath={.status.used.pods}=0", "quota/share", WAIT)
    sandbox.kubectl("-n", team, "create", "service", "clusterip", "one", "--tcp=80")
    assert "limited: services=1" in sandbox.kubectl(
        "-n", team, "create", "service", "clusterip", "two", "--tcp=80", fails=True
    )


def test_a_runtime_class_brings_its_overhead_and_must_be_there(sandbox: Sandbox) -> None:
    kata = "apiVersion: node.k8s.io/v1\nkind: RuntimeClass\nmetadata: {name: kata}\nhandler: kata\n"
    told = sandbox.kubectl(
        "run", "boxed", "--image=a", '--overrides={"spec": {"runtimeClassName": "kata"}}', fails=True
    )
    assert 'pod rejected: RuntimeClass "kata" not found' in told
    sandbox.kubectl("apply", "-f", "-", stdin=kata + "overhead: {podFixed: {cpu: 250m}}\n")
    sandbox.kubectl("run", "boxed", "--image=a", '--overrides={"spec": {"runtimeClassName": "kata"}}')
    assert sandbox.kubectl("get", "pod", "boxed", "-o", "jsonpath={.spec.overhead.cpu}") == "250m"
    sandbox.kubectl("delete", "pod/boxed", "runtimeclass/kata", "--now")


def test_a_cron_job_shows_its_schedule_and_can_be_run_by_hand(sandbox: Sandbox) -> None:
    sandbox.kubectl("create", "cronjob", "report", "--image=busybox", "--schedule=0 3 * * *", "--", "true")
    assert sandbox.kubectl("get", "cronjob", "report", "--no-headers").split()[:9] == [
        *("report", "0", "3", "*", "*", "*", "<none>", "False", "0"),
    ]
    sandbox.kubectl("create", "job", "now", "--from=cronjob/report")
    sandbox.kubectl("wait", "--for=condition=Complete", "job/now", WAIT)
    told = sandbox.kubectl("create", "cronjob", "never", "--image=a", "--schedule=61 * * * *", fails=True)
    assert "spec.schedule: Invalid value" in told
    sandbox.kubectl("delete", "cronjob/report")


def test_what_has_no_effect_here_says_so(sandbox: Sandbox) -> None:
    webhook = (
        "apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingWebhookConfiguration\nmetadata: {name: quiet}\n"
        "webhooks: [{name: a.example.com, clientConfig: {service: {name: a, namespace: default}}, sideEffects: None,"
        " admissionReviewVersions: [v1]}]\n"
    )
    told = sandbox.kubectl("apply", "-f", "-", "--warnings-as-errors", stdin=webhook, fails=True)
    assert "Warning: in a sandbox, webhooks of a Service that selects pods are never called" in told


def test_every_kind_of_a_server_is_listed_and_watched(sandbox: Sandbox) -> None:
    kinds = sandbox.kubectl("api-resources", "--verbs=list,watch,create,patch", "-o", "name").split()
    assert {
        *("horizontalpodautoscalers.autoscaling", "ingresses.networking.k8s.io", "networkpolicies.networking.k8s.io"),
        *("roles.rbac.authorization.k8s.io", "endpointslices.discovery.k8s.io", "limitranges", "resourcequotas"),
        *("certificatesigningrequests.certificates.k8s.io", "runtimeclasses.node.k8s.io", "endpoints"),
        *("volumeattributesclasses.storage.k8s.io", "cronjobs.batch", "apiservices.apiregistration.k8s.io"),
    } <= set(kinds)
    sandbox.kubectl("get", ",".join(kinds), "-A")


def test_a_signing_request_is_approved(sandbox: Sandbox) -> None:
    request = """
apiVersion: certificates.k8s.io/v1
kind: CertificateSigningRequest
metadata: {name: bob}
spec: {request: aGk=, signerName: example.com/signer, usages: [client auth]}
"""
    sandbox.kubectl("apply", "-f", "-", stdin=request)
    assert "kubernetes-admin" in sandbox.kubectl("get", "csr", "bob")
    sandbox.kubectl("certificate", "approve", "bob")
    assert sandbox.kubectl("get", "csr", "bob", "--no-headers").split()[-1] == "Approved"
    sandbox.kubectl("delete", "csr", "bob")
