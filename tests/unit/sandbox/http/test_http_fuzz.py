"""Whatever a client sends, it is told in a Status what was wrong; the server never fails."""

from __future__ import annotations

import asyncio
import contextlib
import copy
from typing import Any

import msgspec
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.sandbox_server import fresh_api, serving
from tests.unit.admission.examples import EXAMPLES, example

from kubesched.admission import SERVED
from kubesched.api.api_error import ApiError
from kubesched.api.kinds import Resource
from kubesched_sandbox.api import Api
from kubesched_sandbox.http.protobuf import MAGIC

_SUBRESOURCES = ["status", "scale", "binding", "eviction", "token", "finalize", "resize", "ephemeralcontainers", "x"]
_SEGMENTS = st.one_of(
    st.sampled_from(["", "v1", "default", "web", "pods", "namespaces", "watch", "%00", "%ff", "%2F", ".", "..", "é"]),
    st.text(alphabet=st.characters(codec="utf-8", exclude_characters=" ?#\r\n"), max_size=8),
)
_WILD_PATHS = st.builds(
    lambda start, parts: start + "/".join(parts),
    st.sampled_from(["/", "/api/", "/apis/", "/openapi/", "/api/v1/namespaces/default/pods/"]),
    st.lists(_SEGMENTS, max_size=6),
)


def _collection(resource: Resource) -> str:
    root = f"/apis/{resource.api_version}" if resource.group else "/api/v1"
    return f"{root}/namespaces/default/{resource.plural}" if resource.namespaced else f"{root}/{resource.plural}"


_OPTIONS = [
    "labelSelector", "fieldSelector", "limit", "continue", "resourceVersion", "resourceVersionMatch", "dryRun",
    "sendInitialEvents", "allowWatchBookmarks", "fieldValidation", "fieldManager", "force", "pretty", "includeObject",
    "gracePeriodSeconds", "propagationPolicy", "orphanDependents", "verbose",
]  # fmt: skip
_VALUES = st.one_of(
    st.sampled_from(
        ["", "true", "0", "-1", "1", "99999999999999999999", "1e3", "a=b", "a%3Db", "a in (b)", "metadata.name=web",
         "!", "Exact", "NotOlderThan", "All", "Strict", "Foreground", "eyJ9", "eyJzbmFwc2hvdCI6MX0",
         "%00", "%ff", "None"]
    ),
    st.text(max_size=6),
)  # fmt: skip
_QUERIES = st.lists(st.tuples(st.sampled_from(_OPTIONS), _VALUES), max_size=4)
_PATCHES = [
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
    "application/apply-patch+yaml",
]
_CONTENT_TYPES = [
    "application/json",
    "application/yaml",
    "application/vnd.kubernetes.protobuf",
    "text/plain",
    "",
    "application/json; charset=utf-8",
]
_ACCEPTS = st.sampled_from(
    [
        "",
        "*/*",
        "application/yaml",
        "application/json;as=Table;v=v1;g=meta.k8s.io",
        "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1",
        "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList",
        "application/vnd.kubernetes.protobuf",
        "a;b;c",
        "=;,=",
    ]
)
_LEAVES = st.one_of(
    st.none(), st.booleans(), st.integers(-(2**63), 2**63 - 1), st.floats(), st.text(max_size=5), st.just("web")
)
_NAMES = st.sampled_from(
    ["apiVersion", "kind", "metadata", "spec", "status", "name", "namespace", "labels", "annotations", "finalizers",
     "containers", "replicas", "selector", "template", "target", "deleteOptions", "preconditions", "uid", "versions",
     "ownerReferences", "managedFields", "data", "conditions", "path", "op", "value", "group", "names", "generateName"]
)  # fmt: skip
_JSON = st.recursive(
    _LEAVES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_NAMES | st.text(max_size=3), inner, max_size=4),
    max_leaves=12,
)


@st.composite
def _objects(draw: st.DrawFn, resource: Resource) -> Any:
    """A good object of a kind, with something in it exchanged for something else."""
    obj = copy.deepcopy(example(resource)) if resource in EXAMPLES else {"metadata": {"name": "web"}, "spec": {}}
    obj["metadata"]["name"] = draw(st.sampled_from(["web", "web", "web", "other"]))
    obj["metadata"].pop("uid", None)
    for _ in range(draw(st.sampled_from([0, 1, 1, 2]))):
        place: Any = obj
        for _ in range(draw(st.integers(0, 4))):
            keys = list(place) if isinstance(place, dict) else list(range(len(place)))
            inner = [key for key in keys if isinstance(place[key], dict | list) and place[key]]
            if not inner:
                break
            place = place[draw(st.sampled_from(inner))]
        if isinstance(place, dict):
            place[draw(st.sampled_from(sorted(place)) | _NAMES if place else _NAMES)] = draw(_JSON)
        elif place:
            place[draw(st.integers(0, len(place) - 1))] = draw(_JSON)
    return obj


@st.composite
def _requests(draw: st.DrawFn) -> Any:
    """Mostly requests that make sense, each wrong in some way or none."""
    method = draw(st.sampled_from(["GET", "POST", "POST", "PUT", "PUT", "PATCH", "PATCH", "DELETE", "OPTIONS"]))
    resource = draw(st.sampled_from(SERVED))
    path = _collection(resource)
    if method != "POST" or draw(st.integers(0, 3)) == 0:
        path += "/" + draw(st.sampled_from(["web", "web", "web", "other", "%41"]))
        if draw(st.integers(0, 3)) == 0:
            path += "/" + draw(st.sampled_from(resource.subresources or ("status",)) | st.sampled_from(_SUBRESOURCES))
    if draw(st.integers(0, 9)) == 0:
        path = draw(_WILD_PATHS)
    good = draw(st.integers(0, 4)) > 0
    types = _PATCHES if method == "PATCH" else _CONTENT_TYPES[:1]
    content_type = draw(st.sampled_from(types if good else [*_PATCHES, *_CONTENT_TYPES]))
    wild = st.one_of(
        st.none(),
        st.binary(max_size=40),
        _JSON.map(msgspec.json.encode),
        st.binary(max_size=30).map(b"k8s\x00".__add__),
        st.lists(st.dictionaries(_NAMES, _JSON, max_size=3), max_size=2).map(msgspec.json.encode),
    )
    body = draw(_objects(resource).map(msgspec.json.encode) if good and method != "DELETE" else wild)
    query = draw(_QUERIES) if draw(st.booleans()) else []
    if method == "PATCH" and good:
        query = [*query, ("fieldManager", "fuzz"), ("force", "true")]
    return method, path, query, content_type, draw(_ACCEPTS), body


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(_requests(), min_size=5, max_size=12))
def test_nothing_that_is_sent_makes_the_server_fail(requests: list[Any]) -> None:
    asyncio.run(_send(requests))


async def _send(requests: list[Any]) -> None:
    async with serving(_furnished()) as server:
        reader, writer = await asyncio.open_connection(server.host, server.port)
        for method, path, query, content_type, accept, body in requests:
            text = "&".join(f"{key}={_quoted(value)}" for key, value in query)
            target = _quoted(path) + (f"?{text}" if text else "")
            await _exchange(reader, writer, method, target, content_type, accept, body)
        writer.close()


def _furnished() -> Api:
    """A cluster with one object of every kind that can be had without others."""
    api = fresh_api()
    for resource in EXAMPLES:
        obj = {**example(resource), "metadata": {**example(resource).get("metadata", {}), "name": "web"}}
        with contextlib.suppress(ApiError):
            api.create(resource, "default" if resource.namespaced else "", obj)
    return api


def _quoted(text: str) -> str:
    """What a careless client leaves as it is, and the little that HTTP itself cannot carry."""
    return "".join(c if "!" <= c <= "~" and c not in "#?" else "".join(f"%{b:02x}" for b in c.encode()) for c in text)


async def _exchange(
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    method: str,
    target: str,
    content_type: str,
    accept: str,
    body: bytes | None,
) -> None:
    lines = [f"{method} {target} HTTP/1.1", "Host: localhost", f"Content-Length: {len(body or b'')}"]
    lines += [f"Content-Type: {content_type}"] if content_type else []
    lines += [f"Accept: {accept}"] if accept else []
    writer.write("\r\n".join([*lines, "", ""]).encode() + (body or b""))
    head = (await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 120)).decode().lower()
    status = int(head.split(" ", 2)[1])
    length = next(int(line.split(":")[1]) for line in head.split("\r\n") if line.startswith("content-length:"))
    answer = await reader.readexactly(length)
    assert status < 500 or b'"reason":"Timeout"' in answer, (method, target, content_type, body, answer)
    if status >= 400 and not answer.startswith(MAGIC):
        told = msgspec.json.decode(answer)
        assert (told["kind"], told["code"]) == ("Status", status), answer
