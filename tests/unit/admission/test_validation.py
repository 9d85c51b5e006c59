from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kubesched.admission import SERVED
from kubesched.admission.schemas import FieldMistake, decoding_error, field_mistakes, strict_decoding_error
from kubesched.admission.schemas.table import Type, definition, definition_of, is_acceptable, object_type
from kubesched.api.kinds import CONFIG_MAPS, CUSTOM_RESOURCE_DEFINITIONS, DEPLOYMENTS, PODS, SECRETS
from kubesched.api.kinds import Resource as Served

SCALARS: dict[str, st.SearchStrategy[Any]] = {
    "string": st.text(max_size=3),
    "bytes": st.sampled_from(["", "YQ==", "YWJj"]),
    "boolean": st.booleans(),
    "int32": st.integers(-(2**31), 2**31 - 1),
    "int64": st.integers(-(2**63), 2**63 - 1),
    "double": st.floats(allow_nan=False, allow_infinity=False),
    "quantity": st.sampled_from(["1", "100m", "1.5Gi", "2e3", 4, 0.5]),
    "intOrString": st.sampled_from(["25%", "http", 80]),
    "time": st.sampled_from(["2026-01-02T03:04:05Z", "2026-01-02T03:04:05+01:00"]),
    "microTime": st.sampled_from(["2026-01-02T03:04:05.123456Z"]),
}


def values(type_: Type, depth: int = 4) -> st.SearchStrategy[Any]:
    """Values of a type, shallow enough to be quick."""
    match type_.shape:
        case "scalar":
            return SCALARS[type_.name]
        case "list":
            return st.lists(values(type_.item, depth - 1), max_size=2 if depth > 0 else 0)
        case "map":
            return st.dictionaries(st.text("ab/", max_size=3), values(type_.item, depth - 1), max_size=2)
        case "struct":
            return structs(type_.name, depth)
    return st.none() | st.integers() | st.just({"any": ["thing"]})


@st.composite
def structs(draw: st.DrawFn, name: str, depth: int) -> Any:
    fields = definition(name).fields
    chosen = draw(st.lists(st.sampled_from(sorted(fields)), max_size=4, unique=True)) if depth > 0 and fields else []
    return {field: draw(st.none() | values(fields[field].type, depth - 1)) for field in chosen}


def pod(**spec: Any) -> Any:
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web"}, "spec": spec}


def first(resource: Served, obj: Any) -> FieldMistake:
    (problem,) = field_mistakes(resource, obj)
    return problem


def test_misspelled_field_is_named_with_its_full_path() -> None:
    container = {"name": "web", "image": "nginx", "imagee": "nginx"}
    template = {"spec": {"containers": [container]}}
    problem = first(DEPLOYMENTS, {"spec": {"template": template}})
    assert problem.path == "spec.template.spec.containers[0].imagee"
    assert problem.message == 'unknown field "spec.template.spec.containers[0].imagee"'
    assert problem.unknown


@pytest.mark.parametrize(
    ("resource", "obj", "message"),
    [
        (
            DEPLOYMENTS,
            {"spec": {"replicas": "3"}},
            "json: cannot unmarshal string into Go struct field DeploymentSpec.spec.replicas of type int32",
        ),
        (
            DEPLOYMENTS,
            {"spec": {"replicas": 1.5}},
            "json: cannot unmarshal number 1.5 into Go struct field DeploymentSpec.spec.replicas of type int32",
        ),
        (
            DEPLOYMENTS,
            {"spec": {"replicas": 2**31}},
            "json: cannot unmarshal number 2147483648 into Go struct field DeploymentSpec.spec.replicas of type int32",
        ),
        (
            PODS,
            pod(containers=[{"name": "web", "env": [{"name": "PORT", "value": 80}]}]),
            "json: cannot unmarshal number into Go struct field EnvVar.spec.containers.env.value of type string",
        ),
        (
            PODS,
            pod(containers={"name": "web"}),
            "json: cannot unmarshal object into Go struct field PodSpec.spec.containers of type []v1.Container",
        ),
        (
            PODS,
            pod(hostNetwork="yes"),
            "json: cannot unmarshal string into Go struct field PodSpec.spec.hostNetwork of type bool",
        ),
        (
            PODS,
            {"metadata": {"labels": {"tier": True}}},
            "json: cannot unmarshal bool into Go struct field ObjectMeta.metadata.labels of type string",
        ),
        (PODS, {"spec": [1]}, "json: cannot unmarshal array into Go struct field Pod.spec of type v1.PodSpec"),
        (SECRETS, {"data": {"key": "YWJj!"}}, "illegal base64 data at input byte 4"),
        (
            PODS,
            {"metadata": {"creationTimestamp": "yesterday"}},
            'parsing time "yesterday" as "2006-01-02T15:04:05Z07:00": cannot parse "yesterday"',
        ),
    ],
)
def test_value_of_a_wrong_type_is_told_in_the_words_of_the_decoder(resource: Served, obj: Any, message: str) -> None:
    problem = first(resource, obj)
    assert problem.message == message
    assert not problem.unknown


def test_quantity_that_is_none_is_a_decoding_error() -> None:
    obj = pod(containers=[{"name": "web", "resources": {"requests": {"cpu": "lots"}}}])
    problem = first(PODS, obj)
    assert problem.path == "spec.containers[0].resources.requests.cpu"
    assert problem.message.startswith("quantities must match the regular expression")


def test_folded_base64_is_legal() -> None:
    assert field_mistakes(SECRETS, {"data": {"key": "YW\nJj\n"}}) == []


def test_null_stands_for_a_field_that_is_not_there() -> None:
    assert (
        field_mistakes(PODS, {"metadata": {"creationTimestamp": None}, "spec": {"containers": None}, "status": None})
        == []
    )


def test_custom_resources_have_nothing_to_violate_but_their_metadata() -> None:
    widgets = Served("example.com", "v1", "widgets", "Widget")
    assert field_mistakes(widgets, {"metadata": {"name": "w"}, "spec": {"what": ["ever"]}}) == []
    assert first(widgets, {"metadata": {"labels": {"a": 1}}}).message == (
        "json: cannot unmarshal number into Go struct field ObjectMeta.metadata.labels of type string"
    )
    assert first(widgets, {"metadata": {"nam": "w"}}).message == 'unknown field "metadata.nam"'
    assert not first(widgets, {"metadata": ["w"]}).unknown


def test_schema_inside_of_a_custom_resource_definition_may_nest_itself() -> None:
    schema = {"type": "object", "properties": {"spec": {"type": "object", "properties": {"size": {"type": "integer"}}}}}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    crd = {"metadata": {"name": "widgets.example.com"}, "spec": {"versions": [version]}}
    assert field_mistakes(CUSTOM_RESOURCE_DEFINITIONS, crd) == []
    schema["properties"]["spec"]["properties"]["size"]["typo"] = "x"  # type: ignore[index]
    path = "spec.versions[0].schema.openAPIV3Schema.properties.spec.properties.size.typo"
    assert first(CUSTOM_RESOURCE_DEFINITIONS, crd).path == path


def test_errors_for_clients_are_worded_like_kubernetes() -> None:
    found = field_mistakes(DEPLOYMENTS, {"spec": {"replicas": "3", "foo": 1}, "bar": 2})
    strict = strict_decoding_error([mistake.message for mistake in found if mistake.unknown])
    decoding = decoding_error(DEPLOYMENTS, found)
    assert strict.message == 'strict decoding error: unknown field "spec.foo", unknown field "bar"'
    assert decoding is not None
    assert decoding.message == (
        'Deployment in version "v1" cannot be handled as a Deployment: '
        "json: cannot unmarshal string into Go struct field DeploymentSpec.spec.replicas of type int32"
    )


def test_no_problems_make_no_errors() -> None:
    assert decoding_error(CONFIG_MAPS, [FieldMistake("x", 'unknown field "x"', "", nearest="")]) is None


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_objects_made_from_the_table_have_no_problems(data: st.DataObject) -> None:
    resource = data.draw(st.sampled_from(SERVED))
    obj = data.draw(values(object_type(resource)))
    assert field_mistakes(resource, obj) == []


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_what_is_accepted_quickly_stays_accepted_until_a_field_is_misspelled(data: st.DataObject) -> None:
    resource = data.draw(st.sampled_from([resource for resource in SERVED if resource != CUSTOM_RESOURCE_DEFINITIONS]))
    obj = data.draw(values(object_type(resource)))
    spoiled = copy.deepcopy(obj)
    spoiled["metadata"] = {"labelz": {}}
    root = definition_of(resource)
    assert root is not None
    assert not is_acceptable(root, spoiled)
    assert [problem.path for problem in field_mistakes(resource, spoiled)] == ["metadata.labelz"]
