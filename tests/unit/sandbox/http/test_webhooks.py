"""Admission webhooks are asked about what clients write, as kube-apiserver asks them."""

from __future__ import annotations

import base64
import contextlib
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest
from aiohttp import web
from tests.unit.sandbox.http.asking import CONFIG_MAPS, PODS, Answer, Asking, with_server

from kubesched.http.listen import server_context
from kubesched_sandbox.http import self_signed
from kubesched_sandbox.http.controller_reviews import ControllerReviews
from kubesched_sandbox.reconcilers import Runner, standard_reconcilers

CONFIGURATIONS = "/apis/admissionregistration.k8s.io/v1/{}webhookconfigurations"
POD = {"metadata": {"name": "web"}, "spec": {"containers": [{"name": "web", "image": "nginx"}]}}
CERTIFICATE = self_signed(["127.0.0.1", "policy.default.svc"])
Said = dict[str, Any]
Review = Callable[[Said], Said]


class Reviewer:
    """A webhook that answers as it is told, and keeps what it was asked."""

    def __init__(self, review: Review) -> None:
        self._review = review
        self.asked: list[Said] = []
        self.url, self.port = "", 0

    async def _answer(self, request: web.Request) -> web.Response:
        asked = (await request.json())["request"]
        self.asked.append(asked)
        said = {"uid": asked["uid"], "allowed": True, **self._review(asked)}
        return web.json_response({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": said})

    @contextlib.asynccontextmanager
    async def listening(self) -> AsyncIterator[Reviewer]:
        app = web.Application()
        app.router.add_post("/review", self._answer)
        runner = web.AppRunner(app)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=server_context(CERTIFICATE))
        await site.start()
        self.port = runner.addresses[0][1]
        self.url = f"https://127.0.0.1:{self.port}/review"
        try:
            yield self
        finally:
            await runner.cleanup()


async def configure(ask: Asking, url: str, kind: str = "validating", **hook: Any) -> Answer:
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["*"], "resources": ["pods"]}
    authority = base64.b64encode(CERTIFICATE.chain).decode()
    told = {
        "name": "policy.example.com",
        "clientConfig": {"url": url, "caBundle": authority},
        "rules": [rule],
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        **hook,
    }
    answer = await ask("POST", CONFIGURATIONS.format(kind), {"metadata": {"name": f"{kind}-it"}, "webhooks": [told]})
    assert answer.status == 201, answer.raw
    return answer


def reviewed(test: Callable[[Asking, Reviewer], Awaitable[None]], review: Review = lambda _: {}) -> None:
    async def main(ask: Asking) -> None:
        async with Reviewer(review).listening() as reviewer:
            await test(ask, reviewer)

    with_server(main)


def patch_of(*operations: Said) -> Said:
    return {"patchType": "JSONPatch", "patch": base64.b64encode(json.dumps(operations).encode()).decode()}


def test_a_webhook_that_denies_is_quoted_and_nothing_is_written() -> None:
    async def test(ask: Asking, reviewer: Reviewer) -> None:
        await configure(ask, reviewer.url)
        answer = await ask("POST", PODS, POD)
        assert answer.status == 403
        assert answer.json["message"] == 'admission webhook "policy.example.com" denied the request: no latest tags'
        assert (await ask("GET", PODS)).names == []
        (asked,) = reviewer.asked
        assert (asked["operation"], asked["namespace"], asked["name"]) == ("CREATE", "default", "web")
        assert asked["object"]["spec"]["containers"][0]["terminationMessagePath"], "defaults are given before"
        assert asked["oldObject"] is None

    reviewed(test, lambda _: {"allowed": False, "status": {"code": 403, "message": "no latest tags"}})


def test_what_a_mutating_webhook_patches_is_stored_and_seen_by_those_that_validate() -> None:
    def review(asked: Said) -> Said:
        labels = asked["object"]["metadata"].get("labels")
        return (
            {"warnings": [f"seen {labels}"]}
            if labels
            else patch_of({"op": "add", "path": "/metadata/labels", "value": {"team": "a"}})
        )

    async def test(ask: Asking, reviewer: Reviewer) -> None:
        await configure(ask, reviewer.url, "mutating")
        await configure(ask, reviewer.url, "validating")
        answer = await ask("POST", PODS, POD)
        assert answer.json["metadata"]["labels"] == {"team": "a"}
        assert (await ask("GET", f"{PODS}/web")).json["metadata"]["labels"] == {"team": "a"}
        assert "seen {'team': 'a'}" in answer.headers["Warning"]

    reviewed(test, review)


def test_updates_patches_and_deletions_are_asked_about_with_what_was_there() -> None:
    async def test(ask: Asking, reviewer: Reviewer) -> None:
        await ask("POST", PODS, POD)
        await configure(ask, reviewer.url)
        merge = {"Content-Type": "application/merge-patch+json"}
        patched = await ask("PATCH", f"{PODS}/web", {"metadata": {"labels": {"a": "b"}}}, headers=merge)
        assert patched.status == 200
        await ask("PUT", f"{PODS}/web", patched.json)
        await ask("DELETE", f"{PODS}/web")
        assert [asked["operation"] for asked in reviewer.asked] == ["UPDATE", "UPDATE", "DELETE"]
        assert reviewer.asked[0]["object"]["metadata"]["labels"] == {"a": "b"}
        assert "labels" not in reviewer.asked[0]["oldObject"]["metadata"]
        assert reviewer.asked[2]["object"] is None
        assert reviewer.asked[2]["oldObject"]["metadata"]["name"] == "web"

    reviewed(test)


@pytest.mark.parametrize(
    "hook",
    [
        {"namespaceSelector": {"matchLabels": {"reviewed": "yes"}}},
        {"objectSelector": {"matchLabels": {"reviewed": "yes"}}},
        {"matchConditions": [{"name": "not-web", "expression": "object.metadata.name != 'web'"}]},
        {"rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["UPDATE"], "resources": ["*"]}]},
        {"rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["*"], "resources": ["pods/status"]}]},
    ],
)
def test_what_rules_selectors_and_conditions_leave_out_is_not_asked_about(hook: dict[str, Any]) -> None:
    async def test(ask: Asking, reviewer: Reviewer) -> None:
        await configure(ask, reviewer.url, **hook)
        assert (await ask("POST", PODS, POD)).status == 201
        assert (await ask("POST", CONFIG_MAPS, {"metadata": {"name": "c"}})).status == 201
        assert reviewer.asked == []

    reviewed(test)


@pytest.mark.parametrize(("policy", "status"), [("Fail", 500), ("Ignore", 201)])
def test_one_that_cannot_be_reached_is_dealt_with_by_its_failure_policy(policy: str, status: int) -> None:
    async def test(ask: Asking, reviewer: Reviewer) -> None:
        await configure(ask, "https://127.0.0.1:1/review", failurePolicy=policy)
        answer = await ask("POST", PODS, POD)
        assert answer.status == status
        if status == 500:
            assert 'failed calling webhook "policy.example.com"' in answer.json["message"]

    reviewed(test)


def test_webhooks_that_deny_everything_can_be_taken_away() -> None:
    everything = [{"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["*"], "resources": ["*/*"]}]

    async def test(ask: Asking, reviewer: Reviewer) -> None:
        await configure(ask, reviewer.url, rules=everything)
        assert (await ask("POST", CONFIG_MAPS, {"metadata": {"name": "c"}})).status == 400
        assert (await ask("DELETE", f"{CONFIGURATIONS.format('validating')}/validating-it")).status == 200
        assert (await ask("POST", CONFIG_MAPS, {"metadata": {"name": "c"}})).status == 201

    reviewed(test, lambda _: {"allowed": False})


SERVICES = "/api/v1/namespaces/default/services"
BEHIND_A_SERVICE = {"service": {"name": "policy", "namespace": "default", "path": "/review"}}


async def serve_as(ask: Asking, reviewer: Reviewer, **spec: Any) -> Said:
    """Make the service `policy`; with ports, whose endpoint is the reviewer. What a client config has to say."""
    answer = await ask("POST", SERVICES, {"metadata": {"name": "policy"}, "spec": spec})
    assert answer.status == 201, answer.raw
    slices = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices"
    if "ports" in spec:
        endpoints = {
            "metadata": {"name": "by-hand", "labels": {"kubernetes.io/service-name": "policy"}},
            "addressType": "IPv4",
            "endpoints": [{"addresses": ["127.0.0.1"]}],
            "ports": [{"name": "", "port": reviewer.port, "protocol": "TCP"}],
        }
        assert (await ask("POST", slices, endpoints)).status == 201
    return {**BEHIND_A_SERVICE, "caBundle": base64.b64encode(CERTIFICATE.chain).decode()}


def test_one_behind_a_service_is_found_by_the_endpoints_that_somebody_wrote() -> None:
    async def test(ask: Asking, reviewer: Reviewer) -> None:
        client = await serve_as(ask, reviewer, ports=[{"port": 443, "targetPort": reviewer.port}])
        await configure(ask, "", clientConfig=client)
        assert (await ask("POST", PODS, POD)).json["message"].endswith("denied the request: no")
        assert len(reviewer.asked) == 1

    reviewed(test, lambda _: {"allowed": False, "status": {"code": 403, "message": "no"}})


def test_one_behind_a_service_with_an_external_name_is_called_there() -> None:
    async def test(ask: Asking, reviewer: Reviewer) -> None:
        client = await serve_as(ask, reviewer, type="ExternalName", externalName="localhost")
        client["service"] = {**client["service"], "port": reviewer.port}
        await configure(ask, "", clientConfig=client)
        assert (await ask("POST", PODS, POD)).status == 201
        assert len(reviewer.asked) == 1

    reviewed(test)


def test_one_behind_a_service_has_to_prove_that_it_is_that_service() -> None:
    async def test(ask: Asking, reviewer: Reviewer) -> None:
        client = await serve_as(ask, reviewer, ports=[{"port": 443}])
        other = self_signed(["policy.default.svc"])
        await configure(ask, "", clientConfig={**client, "caBundle": base64.b64encode(other.chain).decode()})
        answer = await ask("POST", PODS, POD)
        assert (answer.status, reviewer.asked) == (500, [])
        assert "certificate verify failed" in answer.json["message"]

    reviewed(test)


@pytest.mark.parametrize(
    ("spec", "why"),
    [
        (None, 'service "policy" not found in namespace "default"'),
        ({"ports": [{"port": 443}]}, 'no endpoints available for service "default/policy"'),
        ({"ports": [{"port": 80}]}, 'service "default/policy" has no port 443'),
    ],
)
@pytest.mark.parametrize("policy", ["Fail", "Ignore"])
def test_a_service_without_endpoints_is_dealt_with_by_the_failure_policy(
    spec: dict[str, Any] | None, why: str, policy: str
) -> None:
    async def test(ask: Asking, reviewer: Reviewer) -> None:
        if spec is not None:
            assert (await ask("POST", SERVICES, {"metadata": {"name": "policy"}, "spec": spec})).status == 201
        await configure(ask, "", clientConfig=BEHIND_A_SERVICE, failurePolicy=policy)
        answer = await ask("POST", PODS, POD)
        if policy == "Ignore":
            assert answer.status == 201
        else:
            assert answer.status == 500
            assert answer.json["message"].endswith(f'failed calling webhook "policy.example.com": {why}')

    reviewed(test)


def test_one_behind_hollow_pods_is_not_called_and_a_warning_says_so() -> None:
    async def test(ask: Asking, reviewer: Reviewer) -> None:
        client = await serve_as(ask, reviewer, selector={"app": "policy"}, ports=[{"port": 443}])
        answer = await configure(ask, "", clientConfig=client)
        assert "webhooks of a Service that selects pods are never called" in answer.headers["Warning"]
        assert (await ask("POST", PODS, POD)).status == 201
        assert reviewer.asked == []
        assert "Warning" not in (await configure(ask, reviewer.url, "mutating")).headers

    reviewed(test)


# -- what controllers write ------------------------------------------------------------------------------------------

REPLICA_SETS = "/apis/apps/v1/namespaces/default/replicasets"
WEB = {
    "metadata": {"name": "web"},
    "spec": {
        "replicas": 2,
        "selector": {"matchLabels": {"app": "web"}},
        "template": {"metadata": {"labels": {"app": "web"}}, "spec": POD["spec"]},
    },
}


@contextlib.asynccontextmanager
async def controllers(ask: Asking) -> AsyncIterator[None]:
    """The controllers of a sandbox at work."""
    api = ask.server.api
    reviews = api.reviewer = ControllerReviews(api)
    runner = Runner(api, standard_reconcilers(api))
    runner.start()
    try:
        yield
    finally:
        await runner.stop()
        await reviews.stop()


def test_pods_of_a_replica_set_are_patched_as_those_of_clients_are() -> None:
    label = {"op": "add", "path": "/metadata/labels/team", "value": "a"}

    async def test(ask: Asking, reviewer: Reviewer) -> None:
        async with controllers(ask):
            await configure(ask, reviewer.url, "mutating")
            await ask("POST", REPLICA_SETS, WEB)
            added = [event["object"]["metadata"] for event in await ask.events(f"{PODS}?watch=true", 2)]
        assert [each["labels"] for each in added] == [{"app": "web", "team": "a"}] * 2
        assert len((await ask("GET", PODS)).names) == 2, "none is made twice while the webhook is asked"
        first = reviewer.asked[0]
        assert (first["operation"], first["userInfo"]["username"]) == ("CREATE", "system:kube-controller-manager")

    reviewed(test, lambda asked: patch_of(label) if asked["operation"] == "CREATE" else {})


def test_a_replica_set_says_why_its_pods_are_denied() -> None:
    async def test(ask: Asking, reviewer: Reviewer) -> None:
        async with controllers(ask):
            await configure(ask, reviewer.url)
            made = (await ask("POST", REPLICA_SETS, WEB)).json["metadata"]["resourceVersion"]
            (told,) = await ask.events(f"{REPLICA_SETS}?watch=true&resourceVersion={made}", 1)
            (condition,) = told["object"]["status"]["conditions"]
        assert (condition["type"], condition["reason"]) == ("ReplicaFailure", "FailedCreate")
        assert condition["message"] == 'admission webhook "policy.example.com" denied the request: no latest tags'
        assert (await ask("GET", PODS)).names == []

    reviewed(test, lambda _: {"allowed": False, "status": {"code": 403, "message": "no latest tags"}})


def test_what_no_rule_names_is_not_held_up() -> None:
    rules = [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["UPDATE"], "resources": ["pods"]}]

    async def test(ask: Asking, reviewer: Reviewer) -> None:
        async with controllers(ask):
            await configure(ask, reviewer.url, rules=rules)
            await ask("POST", REPLICA_SETS, WEB)
            await ask.events(f"{PODS}?watch=true", 2)
        assert reviewer.asked == []

    reviewed(test, lambda _: {"allowed": False})
