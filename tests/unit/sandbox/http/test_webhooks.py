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

CONFIGURATIONS = "/apis/admissionregistration.k8s.io/v1/{}webhookconfigurations"
POD = {"metadata": {"name": "web"}, "spec": {"containers": [{"name": "web", "image": "nginx"}]}}
CERTIFICATE = self_signed(["127.0.0.1"])
Said = dict[str, Any]
Review = Callable[[Said], Said]


class Reviewer:
    """A webhook that answers as it is told, and keeps what it was asked."""

    def __init__(self, review: Review) -> None:
        self._review = review
        self.asked: list[Said] = []
        self.url = ""

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
        self.url = f"https://127.0.0.1:{runner.addresses[0][1]}/review"
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


def test_those_of_a_service_are_not_called_and_a_warning_says_so() -> None:
    async def test(ask: Asking, reviewer: Reviewer) -> None:
        service = {"service": {"name": "policy", "namespace": "default"}}
        answer = await configure(ask, reviewer.url, clientConfig=service)
        assert "webhooks of a Service are stored, and never called" in answer.headers["Warning"]
        assert (await ask("POST", PODS, POD)).status == 201
        assert "Warning" not in (await configure(ask, reviewer.url, "mutating")).headers

    reviewed(test)
