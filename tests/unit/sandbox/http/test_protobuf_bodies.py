from __future__ import annotations

import contextlib
import struct
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.sandbox.http.asking import PODS, Asking, with_server

from kubesched_sandbox.http.protobuf import ProtobufError, decode_object


def varint(value: int) -> bytes:
    value &= (1 << 64) - 1
    result = b""
    while value >= 0x80:
        result += bytes([value & 0x7F | 0x80])
        value >>= 7
    return result + bytes([value])


def field(number: int, value: int | str | bytes | float) -> bytes:
    """One field, written as its type asks."""
    if isinstance(value, float):
        return varint(number << 3 | 1) + struct.pack("<d", value)
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    data = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(data)) + data


def message(*fields: tuple[int, Any]) -> bytes:
    return b"".join(field(number, value) for number, value in fields)


def entry(key: str, value: str | bytes) -> bytes:
    return message((1, key), (2, value))


def enveloped(api_version: str, kind: str, raw: bytes) -> bytes:
    return b"k8s\x00" + message((1, message((1, api_version), (2, kind))), (2, raw), (3, ""), (4, ""))


METADATA = message((1, "web"), (2, ""), (7, 0), (8, b""), (11, entry("app", "web")))


def a_pod() -> bytes:
    quantity = message((1, "100m"))
    requests = message((2, entry("cpu", quantity)))
    probe_handler = message((2, message((1, "/"), (2, message((1, 1), (2, 0), (3, "http"))))))
    probe = message((1, probe_handler), (2, 5), (4, 0))
    container = message((1, "c"), (2, "nginx"), (8, requests), (10, probe))
    volume = message((1, "v"), (2, message((19, message((1, message((1, "settings"))), (4, 0))))))
    spec = message((1, volume), (2, container), (4, 0), (11, 0), (25, 0), (13, 0))
    return message((1, METADATA), (2, spec), (3, b""))


def test_a_pod_is_read_with_what_json_would_say() -> None:
    assert decode_object(enveloped("v1", "Pod", a_pod())) == {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "web", "labels": {"app": "web"}},
        "spec": {
            "volumes": [{"name": "v", "configMap": {"name": "settings", "optional": False}}],
            "containers": [
                {
                    "name": "c",
                    "image": "nginx",
                    "resources": {"requests": {"cpu": "100m"}},
                    "livenessProbe": {"httpGet": {"path": "/", "port": "http"}, "initialDelaySeconds": 5},
                }
            ],
            "terminationGracePeriodSeconds": 0,
            "priority": 0,
        },
        "status": {},
    }


def test_secrets_times_and_lists_in_maps_are_read() -> None:
    secret = message((1, METADATA), (2, entry("key", b"\x00\xff")), (3, "Opaque"))
    decoded = decode_object(enveloped("v1", "Secret", secret))
    assert decoded is not None
    assert decoded["data"] == {"key": "AP8="}
    lease_spec = message((1, "me"), (4, message((1, 1_700_000_000), (2, 5_000))))
    decoded = decode_object(enveloped("coordination.k8s.io/v1", "Lease", message((1, METADATA), (2, lease_spec))))
    assert decoded is not None
    assert decoded["spec"] == {"holderIdentity": "me", "renewTime": "2023-11-14T22:13:20.000005Z"}


def test_kinds_that_are_not_built_in_have_no_such_form() -> None:
    assert decode_object(enveloped("x.io/v1", "Widget", b"")) is None


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{}",
        b"k8s\x00\x0a",
        b"k8s\x00\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff",
        b"k8s\x00\x0b",
        enveloped("v1", "Pod", message((1, 5))),
        enveloped("v1", "Pod", message((1, message((1, b"\xff"))))),
    ],
)
def test_what_is_no_message_is_an_error(body: bytes) -> None:
    with pytest.raises(ProtobufError):
        decode_object(body)


@given(st.binary(max_size=60), st.sampled_from(["Pod", "Node", "Event", "Secret", "Binding"]))
def test_any_bytes_are_an_object_or_an_error(raw: bytes, kind: str) -> None:
    with contextlib.suppress(ProtobufError):
        decoded = decode_object(enveloped("v1", kind, raw))
        assert decoded is None or decoded["kind"] == kind


def test_the_server_takes_protobuf_and_answers_in_json() -> None:
    async def test(ask: Asking) -> None:
        headers = {
            "Content-Type": "application/vnd.kubernetes.protobuf",
            "Accept": "application/vnd.kubernetes.protobuf,application/json",
        }
        made = await ask("POST", PODS, enveloped("v1", "Pod", a_pod()), headers=headers)
        assert made.status == 201, made.raw
        assert made.json["spec"]["containers"][0]["image"] == "nginx"
        custom = await ask("POST", PODS, enveloped("x.io/v1", "Widget", b""), headers=headers)
        assert (custom.status, custom.reason) == (415, "UnsupportedMediaType")

    with_server(test)
