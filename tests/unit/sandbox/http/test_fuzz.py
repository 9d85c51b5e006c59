"""Whatever a client sends, it is told in a Status what was wrong; the server never fails."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.sandbox_server import fresh_api, serving
from tests.unit.sandbox.http.asking import pod

from kubesched.sandbox import kinds
from kubesched.sandbox.kinds.served import SERVED

_PLURALS = sorted({resource.plural for resource in SERVED})
_GROUPS = sorted({resource.group for resource in SERVED if resource.group})
_SUBRESOURCES = ["status", "scale", "binding", "eviction", "token", "finalize", "resize", "ephemeralcontainers", "x"]
_SEGMENTS = st.one_of(
    st.sampled_from(["", "v1", "default", "web", "pods", "namespaces", "watch", "%00", "%ff", "%2F", ".", "..", "é"]),
    st.text(alphabet=st.characters(codec="utf-8", exclude_characters=" ?#\r\n"), max_size=8),
)
_PATHS = st.one_of(
    st.builds(
        lambda plural, name, sub: "/".join(["/api/v1/namespaces/default", plural, *name, *sub]),
        st.sampled_from(_PLURALS),
        st.lists(st.sampled_from(["web", "a", "%41"]), max_size=1),
        st.lists(st.sampled_from(_SUBRESOURCES), max_size=1),
    ),
    st.builds(
        lambda group, plural, name, sub: "/".join([f"/apis/{group}/v1", *plural, *name, *sub]),
        st.sampled_from(_GROUPS),
        st.sampled_from([["namespaces", "default", plural] for plural in _PLURALS] + [[plural] for plural in _PLURALS]),
        st.lists(st.sampled_from(["web", "a"]), max_size=1),
        st.lists(st.sampled_from(_SUBRESOURCES), max_size=1),
    ),
    st.builds(lambda start, parts: start + "/".join(parts), st.sampled_from(["/", "/api/", "/apis/", "/openapi/"]),
              st.lists(_SEGMENTS, max_size=6)),
)  # fmt: skip
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
_CONTENT_TYPES = st.sampled_from(
    [
        "application/json",
        "application/yaml",
        "application/vnd.kubernetes.protobuf",
        "application/json-patch+json",
        "application/merge-patch+json",
        "application/strategic-merge-patch+json",
        "application/apply-patch+yaml",
        "text/plain",
        "",
        "application/json; charset=utf-8",
    ]
)
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
_OBJECTS = st.builds(
    lambda metadata, rest: {**rest, "metadata": {"name": "web", **metadata}},
    st.dictionaries(_NAMES, _JSON, max_size=2),
    st.dictionaries(_NAMES, _JSON, max_size=4),
)
_BODIES = st.one_of(
    st.none(),
    st.binary(max_size=40),
    (_JSON | _OBJECTS).map(msgspec.json.encode),
    st.binary(max_size=30).map(b"k8s\x00".__add__),
)


@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.lists(
        st.tuples(
            st.sampled_from(["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]),
            _PATHS,
            _QUERIES,
            _CONTENT_TYPES,
            _ACCEPTS,
            _BODIES,
        ),
        min_size=5,
        max_size=15,
    )
)
def test_nothing_that_is_sent_makes_the_server_fail(requests: list[Any]) -> None:
    asyncio.run(_send(requests))


async def _send(requests: list[Any]) -> None:
    api = fresh_api()
    api.create(kinds.PODS, "default", pod("web"))
    api.create(kinds.CONFIG_MAPS, "default", {"metadata": {"name": "web"}})
    async with serving(api) as server:
        reader, writer = await asyncio.open_connection(server.host, server.port)
        for method, path, query, content_type, accept, body in requests:
            text = "&".join(f"{key}={_quoted(value)}" for key, value in query)
            target = _quoted(path) + (f"?{text}" if text else "")
            await _exchange(reader, writer, method, target, content_type, accept, body)
        writer.close()


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
    lines = [f"{method} {target} HTTP/1.1", "Host: x", f"Content-Length: {len(body or b'')}"]
    lines += [f"Content-Type: {content_type}"] if content_type else []
    lines += [f"Accept: {accept}"] if accept else []
    writer.write("\r\n".join([*lines, "", ""]).encode() + (body or b""))
    head = (await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 10)).decode().lower()
    status = int(head.split(" ", 2)[1])
    length = next(int(line.split(":")[1]) for line in head.split("\r\n") if line.startswith("content-length:"))
    answer = await reader.readexactly(length)
    assert status < 500 or b'"reason":"Timeout"' in answer, (method, target, content_type, body, answer)
    if status >= 400:
        told = msgspec.json.decode(answer)
        assert (told["kind"], told["code"]) == ("Status", status), answer
