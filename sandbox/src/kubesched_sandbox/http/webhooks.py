"""Admission webhooks: those that can be reached are asked about what clients and controllers write.

One can be reached by its `url`, or by a Service that is an external name or has EndpointSlices that somebody has
written. A webhook behind pods of the sandbox is not asked, since nothing runs in them.
"""

from __future__ import annotations

import base64
import ssl
import uuid
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import aiohttp
import msgspec

from kubesched.api.api_error import ApiError
from kubesched.api.kinds import ENDPOINT_SLICES, NAMESPACES, SERVICES, Object, Resource
from kubesched.api.meta import LabelSelector
from kubesched.api.selectors import compile_selector
from kubesched.cel.errors import CompileError, EvaluationError
from kubesched.cel.expression import compile_expression
from kubesched.http.listen import host_and_port
from kubesched_sandbox.api import Api
from kubesched_sandbox.api.reviewing import Patches
from kubesched_sandbox.api.tokens import UserInfo

GROUP = "admissionregistration.k8s.io"
_KINDS = ("mutatingwebhookconfigurations", "validatingwebhookconfigurations")
_SECONDS = 10
_PORT, _SERVICE_NAME = 443, "kubernetes.io/service-name"
Webhook = Mapping[str, Any]


class Write(NamedTuple):
    """What a client is about to write."""

    operation: str
    """CREATE, UPDATE or DELETE."""
    resource: Resource
    subresource: str
    namespace: str
    name: str
    user: UserInfo
    dry_run: bool


class Webhooks:
    """Asks the webhooks that are configured."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self._resources = [api.catalog.lookup(GROUP, "v1", plural) for plural in _KINDS]

    def are_asked(self, write: Write) -> bool:
        """Whether there may be any about such a write."""
        return any(_has_rule(hook, write) for i in range(len(_KINDS)) for hook in self._configured(i))

    async def review(
        self, write: Write, old: Object | None, propose: Callable[[Patches], Object | None]
    ) -> tuple[Patches, tuple[str, ...]]:
        """The JSON patches that webhooks ask for, and their warnings. Raises ApiError if one says no.

        `propose` makes what would be written with some patches, None for a deletion, and writes nothing.
        """
        patches: list[Any] = []
        warnings: list[str] = []
        new = propose(patches)
        for i in range(len(_KINDS)):
            for hook in self._configured(i):
                if not self._matches(hook, write, new, old):
                    continue
                answer = await self._answer(hook, _request(write, new, old))
                warnings += answer.get("warnings") or ()
                if not answer.get("allowed"):
                    raise _denied(hook, answer.get("status") or {})
                if not i and answer.get("patch"):
                    patches.append(msgspec.json.decode(base64.b64decode(answer["patch"])))
                    new = propose(patches)
        return patches, tuple(warnings)

    def _configured(self, i: int) -> Iterator[Webhook]:
        resource = self._resources[i]
        for configuration in self._api.select(resource) if resource is not None else ():
            for hook in configuration.get("webhooks") or ():
                if not self._is_hollow((hook.get("clientConfig") or {}).get("service")):
                    yield hook

    def _is_hollow(self, service: Object | None) -> bool:
        """Whether there are only pods of the sandbox behind it."""
        found = None if service is None else self._api.find(SERVICES, service["namespace"], service["name"])
        return found is not None and bool(found["spec"].get("selector"))

    async def _answer(self, hook: Webhook, review: Object) -> Object:
        """What the webhook says; if it cannot be asked, what its failure policy does."""
        where = ""
        try:
            where, name = self._address(hook["clientConfig"])
            return await _said(hook, where, name, review)
        except (aiohttp.ClientError, TimeoutError, OSError, KeyError, TypeError, ValueError) as error:
            if hook.get("failurePolicy") == "Ignore":
                return {"allowed": True}
            why = str(error) or type(error).__name__
            raise _failed(hook, f"{where}: {why}" if where else why) from None

    def _address(self, client: Object) -> tuple[str, str | None]:
        """Where it is asked, and the name in its certificate if that is another; a ValueError if nowhere."""
        service = client.get("service")
        if not service:
            return client["url"], None
        namespace, name, port = service["namespace"], service["name"], service.get("port") or _PORT
        host = self._host(namespace, name, port)
        return f"https://{host}/{(service.get('path') or '').lstrip('/')}", f"{name}.{namespace}.svc"

    def _host(self, namespace: str, name: str, port: int) -> str:
        service = self._api.find(SERVICES, namespace, name)
        if service is None:
            raise ValueError(f'service "{name}" not found in namespace "{namespace}"')
        if service["spec"].get("type") == "ExternalName":
            return f"{service['spec']['externalName']}:{port}"
        known = next((candidate for candidate in service["spec"].get("ports") or () if candidate["port"] == port), None)
        if known is None:
            raise ValueError(f'service "{namespace}/{name}" has no port {port}')
        for slice_ in self._api.select(ENDPOINT_SLICES, namespace, labels=f"{_SERVICE_NAME}={name}"):
            ports = [
                each["port"] for each in slice_.get("ports") or () if each.get("name", "") == known.get("name", "")
            ]
            for endpoint in slice_.get("endpoints") or ():
                if ports and (endpoint.get("conditions") or {}).get("ready", True) is not False:
                    return host_and_port(endpoint["addresses"][0], ports[0])
        raise ValueError(f'no endpoints available for service "{namespace}/{name}"')

    def _matches(self, hook: Webhook, write: Write, new: Object | None, old: Object | None) -> bool:
        if not _has_rule(hook, write) or not self._in_namespace(hook, write, new or old):
            return False
        selector = hook.get("objectSelector")
        if selector and not any(_selects(selector, obj) for obj in (new, old) if obj is not None):
            return False
        return _meets_conditions(hook, _request(write, new, old)["request"])

    def _in_namespace(self, hook: Webhook, write: Write, obj: Object | None) -> bool:
        selector = hook.get("namespaceSelector")
        if not selector or (not write.namespace and write.resource is not NAMESPACES):
            return True
        about = obj if write.resource is NAMESPACES else self._api.find(NAMESPACES, "", write.namespace)
        return about is None or _selects(selector, about)


def _selects(selector: Object, obj: Object) -> bool:
    labels = obj["metadata"].get("labels") or {}
    return compile_selector(msgspec.convert(selector, LabelSelector)).matches(labels)


def _has_rule(hook: Webhook, write: Write) -> bool:
    """As kube-apiserver reads rules: of an object, of all its subresources (`pods/*`), or of all (`*/*`)."""
    resource, sub = write.resource, write.subresource
    if resource.group == GROUP:
        return False  # or nobody could take away a webhook that denies everything
    names = {f"{plural}/{part}" for plural in (resource.plural, "*") for part in (sub, "*")}
    names |= set() if sub else {resource.plural, "*"}
    return any(
        {"*", write.operation} & set(rule.get("operations") or ())
        and {"*", resource.group} & set(rule.get("apiGroups") or ())
        and {"*", resource.version} & set(rule.get("apiVersions") or ())
        and names & set(rule.get("resources") or ())
        and rule.get("scope", "*") in ("*", "Namespaced" if resource.namespaced else "Cluster")
        for rule in hook.get("rules") or ()
    )


def _meets_conditions(hook: Webhook, request: Object) -> bool:
    """A condition that is false decides; one that cannot be evaluated does by the failure policy."""
    seen = {"object": request.get("object"), "oldObject": request.get("oldObject"), "request": request}
    for condition in hook.get("matchConditions") or ():
        try:
            if compile_expression(condition["expression"], tuple(seen)).evaluate(seen) is not True:
                return False
        except (CompileError, EvaluationError) as error:
            if hook.get("failurePolicy") == "Ignore":
                return False
            raise _failed(hook, f"match condition {condition['name']}: {error}") from None
    return True


def _request(write: Write, new: Object | None, old: Object | None) -> Object:
    resource = write.resource
    kind = {"group": resource.group, "version": resource.version, "kind": resource.kind}
    about = {"group": resource.group, "version": resource.version, "resource": resource.plural}
    request: Object = {
        "uid": str(uuid.uuid4()),
        "kind": kind,
        "requestKind": kind,
        "resource": about,
        "requestResource": about,
        "name": write.name or (new or {}).get("metadata", {}).get("name", ""),
        "operation": write.operation,
        "userInfo": write.user.describe(),
        "object": new,
        "oldObject": old,
        "dryRun": write.dry_run,
    }
    if write.namespace:
        request["namespace"] = write.namespace
    if write.subresource:
        request |= {"subResource": write.subresource, "requestSubResource": write.subresource}
    return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}


async def _said(hook: Webhook, where: str, name: str | None, review: Object) -> Object:
    """What the server at an address answers; `name` is who it has to be."""
    client = hook["clientConfig"]
    timeout = aiohttp.ClientTimeout(total=hook.get("timeoutSeconds") or _SECONDS)
    authority = base64.b64decode(client["caBundle"]).decode() if client.get("caBundle") else None
    trusted = ssl.create_default_context(cadata=authority)
    async with (
        aiohttp.ClientSession(timeout=timeout) as session,
        session.post(where, json=review, ssl=trusted, server_hostname=name) as said,
    ):
        if said.status != 200:
            raise ValueError(f"the server answered {said.status}")
        answer = msgspec.json.decode(await said.read())["response"]
    if answer["uid"] != review["request"]["uid"]:
        raise ValueError("response.uid is not that of the request")
    return dict(answer)


def _failed(hook: Webhook, why: str) -> ApiError:
    message = f'failed calling webhook "{hook["name"]}": {why}'
    details = {"causes": [{"message": message}]}
    return ApiError(500, "InternalError", f"Internal error occurred: {message}", details)


def _denied(hook: Webhook, status: Object) -> ApiError:
    said = status.get("message") or status.get("reason")
    words = f'admission webhook "{hook["name"]}" denied the request'
    code = max(int(status.get("code") or 0), 400)
    return ApiError(code, status.get("reason") or "", f"{words}: {said}" if said else f"{words} without explanation")
