"""Answers in protobuf, for clients that accept nothing else."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.unit.sandbox.http.asking import CONFIG_MAPS, PODS, Answer, Asking, config, pod, with_server

from kubesched.api.kinds import Object
from kubesched_sandbox.http.protobuf import MAGIC, decode_object, fields, message, text
from kubesched_sandbox.http.protobuf_writing import encode_object

PROTOBUF = "application/vnd.kubernetes.protobuf"
ONLY = {"Accept": PROTOBUF}
PROJECTS = Path(__file__).parents[3] / "sandbox/projects"


def decoded(answer: Answer) -> Object:
    assert answer.headers["Content-Type"] == PROTOBUF, answer.raw
    obj = decode_object(answer.raw)
    assert obj is not None
    return obj


def enveloped(data: bytes) -> tuple[str, dict[int, list[Any]]]:
    """The kind in an envelope, and the fields of what it holds."""
    envelope = dict(fields(data.removeprefix(MAGIC)))
    kind = text(dict(fields(message(envelope[1])))[2])
    parts: dict[int, list[Any]] = {}
    for number, value in fields(message(envelope[2])):
        parts.setdefault(number, []).append(value)
    return kind, parts


@pytest.mark.parametrize("path", sorted(PROJECTS.glob("*.yaml")), ids=lambda path: path.stem)
def test_objects_are_read_as_they_were_written(path: Path) -> None:
    class Loader(yaml.SafeLoader):
        """Leaves times as texts, as JSON has them."""

    Loader.yaml_implicit_resolvers = {
        key: [entry for entry in entries if entry[0] != "tag:yaml.org,2002:timestamp"]
        for key, entries in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }
    for obj in yaml.load_all(path.read_text(), Loader):
        data = encode_object(obj) if obj else None
        if data is not None:
            again = decode_object(data)
            assert again is not None
            assert encode_object(again) == data or without_defaults(again) == without_defaults(obj)


def without_defaults(value: Any) -> Any:
    """What protobuf cannot tell from nothing is left out."""
    if isinstance(value, dict):
        kept = {key: without_defaults(each) for key, each in value.items()}
        return {key: each for key, each in kept.items() if each not in ("", 0, None, [], {})}
    if isinstance(value, list):
        return [without_defaults(each) for each in value]
    return value


def test_an_object_comes_in_protobuf_with_all_that_json_says() -> None:
    async def test(ask: Asking) -> None:
        whole = pod("web", labels={"app": "web"})
        whole["spec"]["containers"][0] |= {
            "resources": {"requests": {"cpu": "100m"}},
            "livenessProbe": {"httpGet": {"path": "/", "port": "http"}},
            "readinessProbe": {"tcpSocket": {"port": 80}},
        }
        made = await ask("POST", PODS, whole, headers=ONLY)
        assert made.status == 201
        shown = (await ask("GET", f"{PODS}/web")).json
        assert without_defaults(decoded(made)) == without_defaults(shown)
        assert decoded(await ask("GET", f"{PODS}/web", headers=ONLY)) == decoded(made)

    with_server(test)


def test_a_list_and_an_error_come_in_protobuf() -> None:
    async def test(ask: Asking) -> None:
        for name in ("a", "b"):
            await ask("POST", CONFIG_MAPS, config(name))
        kind, parts = enveloped((await ask("GET", CONFIG_MAPS, headers=ONLY)).raw)
        assert kind == "ConfigMapList"
        names = [text(dict(fields(message(dict(fields(item))[1])))[1]) for item in parts[2]]
        assert names == ["a", "b"]
        missing = await ask("GET", f"{CONFIG_MAPS}/c", headers=ONLY)
        kind, parts = enveloped(missing.raw)
        assert (missing.status, kind, text(parts[4][0])) == (404, "Status", "NotFound")

    with_server(test)


def test_a_watch_sends_events_in_frames() -> None:
    async def test(ask: Asking) -> None:
        await ask("POST", CONFIG_MAPS, config("a"))
        async with ask.session.get(f"{CONFIG_MAPS}?watch=1", headers=ONLY) as response:
            assert response.headers["Content-Type"] == f"{PROTOBUF};stream=watch"
            await ask("DELETE", f"{CONFIG_MAPS}/a")
            seen = []
            for _ in range(2):
                (length,) = struct.unpack(">I", await response.content.readexactly(4))
                event = dict(fields(await response.content.readexactly(length)))
                obj = decode_object(message(dict(fields(message(event[2])))[1]))
                assert obj is not None
                seen.append((text(event[1]), obj["metadata"]["name"]))
        assert seen == [("ADDED", "a"), ("DELETED", "a")]

    with_server(test)


def test_metadata_alone_comes_in_protobuf_of_any_kind() -> None:
    async def test(ask: Asking) -> None:
        headers = {"Accept": f"{PROTOBUF};as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"}
        await ask("POST", CONFIG_MAPS, config("a"))
        kind, parts = enveloped((await ask("GET", CONFIG_MAPS, headers=headers)).raw)
        assert (kind, len(parts[2])) == ("PartialObjectMetadataList", 1)

    with_server(test)


@pytest.mark.parametrize("form", ["", ";as=Table;g=meta.k8s.io;v=v1"])
def test_what_has_no_form_in_protobuf_is_refused_before_anything_is_done(form: str) -> None:
    async def test(ask: Asking) -> None:
        path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions" if not form else CONFIG_MAPS
        refused = await ask("POST", path, config("a"), headers={"Accept": PROTOBUF + form})
        assert (refused.status, refused.reason) == (406, "NotAcceptable")
        assert (await ask("GET", path)).names == []

    with_server(test)


def test_json_is_the_answer_where_a_client_accepts_both() -> None:
    async def test(ask: Asking) -> None:
        answer = await ask("GET", CONFIG_MAPS, headers={"Accept": f"{PROTOBUF},application/json"})
        assert answer.json["kind"] == "ConfigMapList"

    with_server(test)
