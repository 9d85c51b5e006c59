from __future__ import annotations

import contextlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.sandbox_server import refused

from kubesched.api.api_error import ApiError
from kubesched.api.kinds import CONFIG_MAPS, CORE_EVENTS, EVENTS, NODES, PODS, SECRETS, Resource
from kubesched_sandbox.api import selection


def thing(labels: dict[str, str] | None = None, name: str = "x", **fields: Any) -> dict[str, Any]:
    return {"metadata": {"name": name, "namespace": "ns", "labels": labels or {}}, **fields}


@pytest.mark.parametrize(
    ("text", "labels", "matches"),
    [
        ("", {}, True),
        ("a=b", {"a": "b"}, True),
        ("a==b", {"a": "c"}, False),
        ("a!=b", {"a": "c"}, True),
        ("a!=b", {}, True),
        ("a", {"a": ""}, True),
        ("!a", {"a": ""}, False),
        ("! a", {}, True),
        ("a in (b, c),d", {"a": "c", "d": ""}, True),
        ("a in (b,c)", {"a": "d"}, False),
        ("a notin (b)", {"a": "b"}, False),
        ("a notin (b)", {}, True),
        ("a in ()", {"a": ""}, True),
        ("a=", {"a": ""}, True),
        ("a=,b=c", {"a": "", "b": "c"}, True),
        ("n>3", {"n": "4"}, True),
        ("n<3", {"n": "4"}, False),
        ("n>3", {}, False),
        ("x.io/in=in", {"x.io/in": "in"}, True),
        ("a=b,c notin (d,e),f,!g", {"a": "b", "c": "z", "f": "1"}, True),
    ],
)
def test_label_selectors_match_as_they_say(text: str, labels: dict[str, str], matches: bool) -> None:
    assert selection(PODS, text).matches(thing(labels)) is matches


@pytest.mark.parametrize(
    "text", ["a=b=c", "a in b", "a in (b", ",", "a,", "=b", "a b", "a>x", "-bad-=x", "a=b c", "!", "a=$", "a in (b c)"]
)
def test_bad_label_selectors_are_bad_requests(text: str) -> None:
    with refused(400, "BadRequest"):
        selection(PODS, text)


@pytest.mark.parametrize(
    ("resource", "text", "fields", "matches"),
    [
        (PODS, "metadata.name=x", {}, True),
        (PODS, "metadata.namespace!=ns", {}, False),
        (PODS, "spec.nodeName=", {"spec": {}}, True),
        (PODS, "spec.nodeName=n,status.phase!=Failed", {"spec": {"nodeName": "n"}}, True),
        (PODS, "status.phase==Running", {"status": {"phase": "Pending"}}, False),
        (PODS, "spec.hostNetwork=false", {"spec": {}}, True),
        (NODES, "spec.unschedulable=true", {"spec": {"unschedulable": True}}, True),
        (NODES, "spec.unschedulable=false", {}, True),
        (SECRETS, "type=Opaque", {"type": "Opaque"}, True),
        (CORE_EVENTS, "involvedObject.name=p,reason=R", {"involvedObject": {"name": "p"}, "reason": "R"}, True),
        (EVENTS, "regarding.name=p", {"involvedObject": {"name": "p"}}, True),
        (SECRETS, r"type=a\,b\=c\\", {"type": "a,b=c\\"}, True),
    ],
)
def test_field_selectors_match_as_they_say(
    resource: Resource, text: str, fields: dict[str, Any], matches: bool
) -> None:
    assert selection(resource, None, text).matches(thing(**fields)) is matches


def test_unknown_fields_are_not_supported() -> None:
    with refused(400, "BadRequest") as refusal:
        selection(CONFIG_MAPS, None, "spec.nodeName=x")
    assert refusal.value.message == "field label not supported: spec.nodeName"


@pytest.mark.parametrize("text", ["metadata.name", r"type=\x", "type=a=b", "type=\\"])
def test_bad_field_selectors_are_bad_requests(text: str) -> None:
    with refused(400, "BadRequest"):
        selection(SECRETS, None, text)


@given(st.text(alphabet="ab=!,()<> in-./", max_size=20), st.text(alphabet="typemetadata.name=!\\,", max_size=20))
def test_any_text_is_a_selector_or_a_bad_request(labels: str, fields: str) -> None:
    with contextlib.suppress(ApiError):
        wanted = selection(SECRETS, labels, fields)
        assert wanted.matches(thing({"a": "b"})) in (True, False)
