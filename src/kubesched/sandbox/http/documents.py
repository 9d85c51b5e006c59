"""Documents about the server itself: what it serves, how it is, which version it is."""

from __future__ import annotations

from aiohttp import web

from kubesched.api.api_error import method_not_allowed, no_such_resource
from kubesched.api.kinds import RELEASE, Object
from kubesched.sandbox import discovery, openapi
from kubesched.sandbox.api import Api
from kubesched.sandbox.http.answers import formatted, large_answer
from kubesched.sandbox.http.content import Accepted, negotiate
from kubesched.sandbox.http.query import Query

VERSION = {
    "major": "1",
    "minor": "36",
    "emulationMajor": "1",
    "emulationMinor": "36",
    "minCompatibilityMajor": "1",
    "minCompatibilityMinor": "35",
    "gitVersion": RELEASE,
    "gitCommit": "",
    "gitTreeState": "clean",
    "buildDate": "1970-01-01T00:00:00Z",
    "goVersion": "none",
    "compiler": "none",
    "platform": "kubesched/sandbox",
}
_HEALTH = ("/healthz", "/livez", "/readyz")
_CHECKS = ("ping", "log", "storage")
_OPENAPI_PROTOBUF = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"
_EMPTY_OPENAPI = b"\x0a\x032.0\x12\x15\x0a\x0aKubernetes\x12\x07" + RELEASE.encode()
"""A document of version 2.0 without definitions, in protobuf. kubectl asks for it only about kinds that it did not find
in OpenAPI v3, and learns so that there is nothing to validate against."""
PUBLIC = frozenset((*_HEALTH, "/version"))
"""What needs no token."""


class Documents:
    """Answers everything that is not about objects."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self._made: dict[tuple[int, str, Accepted], tuple[bytes, str]] = {}

    async def answer(self, request: web.BaseRequest, path: str, query: Query) -> web.Response:
        if request.method not in ("GET", "HEAD"):
            raise method_not_allowed()
        path = path.rstrip("/") or "/"
        health = next((root for root in _HEALTH if path == root or path.startswith(f"{root}/")), None)
        if health is not None:
            return _health(path[len(health) + 1 :], query)
        if path == "/openapi/v2" and _OPENAPI_PROTOBUF in request.headers.get("Accept", ""):
            return web.Response(
                body=_EMPTY_OPENAPI,
                headers={"Content-Type": "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"},
            )
        accepted = negotiate(request.headers.get("Accept", "")) if path != "/openapi/v2" else Accepted()
        if query.text("pretty"):
            body, content_type = formatted(self._document(path, accepted)[0], accepted.media, pretty=True)
            return web.Response(body=body, headers={"Content-Type": content_type})
        body, content_type = self._made_once(path, accepted)
        return await large_answer(body, content_type, request.headers.get("Accept-Encoding", ""))

    def _made_once(self, path: str, accepted: Accepted) -> tuple[bytes, str]:
        """Documents change only with what is served, so each is made once per edition."""
        key = (self._api.catalog.edition, path, accepted)
        made = self._made.get(key)
        if made is None:
            document, parameters = self._document(path, accepted)
            body, content_type = formatted(document, accepted.media, pretty=False)
            if len(self._made) > 256:
                self._made.clear()
            made = self._made[key] = (body, content_type + parameters)
        return made

    def _document(self, path: str, accepted: Accepted) -> tuple[Object, str]:
        resources = self._api.catalog.all()
        parts = path.split("/")[1:]
        aggregated = accepted.shape == "APIGroupDiscoveryList"
        match parts:
            case ["version"]:
                return VERSION, ""
            case ["api" | "apis"] if aggregated:
                v2 = accepted.version == "v2"
                document = discovery.aggregated(parts[0] == "api", resources, v2=v2)
                return document, f";g=apidiscovery.k8s.io;v={accepted.version};as=APIGroupDiscoveryList"
            case ["api"]:
                return discovery.api_versions(), ""
            case ["apis"]:
                return discovery.api_group_list(resources), ""
            case ["apis", group]:
                return discovery.api_group(group, resources), ""
            case ["api", version]:
                return discovery.api_resource_list("", version, resources), ""
            case ["apis", group, version]:
                return discovery.api_resource_list(group, version, resources), ""
            case ["openapi", "v2"]:
                return openapi.openapi_v2(resources), ""
            case ["openapi", "v3"]:
                return openapi.openapi_v3_index(resources), ""
            case ["openapi", "v3", "api", version]:
                return openapi.openapi_v3("", version, resources), ""
            case ["openapi", "v3", "apis", group, version]:
                return openapi.openapi_v3(group, version, resources), ""
            case [""]:
                documents = ("/api", "/apis", "/openapi/v2", "/openapi/v3", "/version")
                return {"paths": sorted((*documents, *_HEALTH))}, ""
            case _:
                raise no_such_resource()


def _health(check: str, query: Query) -> web.Response:
    if check:
        if check not in _CHECKS:
            raise no_such_resource()
        return web.Response(text="ok")
    if query.flag("verbose"):
        lines = [f"[+]{name} ok" for name in _CHECKS]
        return web.Response(text="\n".join([*lines, "check passed", ""]))
    return web.Response(text="ok")
