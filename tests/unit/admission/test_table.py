from __future__ import annotations

from importlib import resources

import msgspec

from kubesched.admission import SERVED
from kubesched.admission.schemas.table import definition, definition_of, field_type, object_type
from kubesched.api.kinds import Resource


def test_every_served_kind_is_in_the_table() -> None:
    assert [resource.kind for resource in SERVED if definition_of(resource) is None] == []


def test_every_type_that_is_referred_to_is_in_the_table() -> None:
    known = msgspec.json.decode(resources.files("kubesched.admission.schemas").joinpath("fields.json").read_bytes())
    names = set(known["types"])
    for name in names:
        for field in definition(name).fields.values():
            innermost = field.type
            while innermost.element is not None:
                innermost = innermost.element
            assert innermost.shape != "struct" or innermost.name in names


def test_containers_merge_by_name() -> None:
    containers = definition("io.k8s.api.core.v1.PodSpec").fields["containers"]
    assert containers.required
    assert containers.type.merges
    assert (containers.type.merge_key, containers.type.keys, containers.type.atomic) == ("name", ("name",), False)


def test_ports_are_told_apart_by_more_than_their_merge_key() -> None:
    ports = definition("io.k8s.api.core.v1.Container").fields["ports"].type
    assert (ports.merge_key, ports.keys) == ("containerPort", ("containerPort", "protocol"))
    assert definition(ports.item.name).fields["protocol"].default == "TCP"


def test_lists_sets_and_maps_carry_their_facts() -> None:
    pod_spec = definition("io.k8s.api.core.v1.PodSpec").fields
    assert pod_spec["tolerations"].type.atomic
    assert pod_spec["nodeSelector"].type.atomic
    assert pod_spec["volumes"].type.retains_keys
    finalizers = definition("io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta").fields["finalizers"].type
    assert finalizers.is_set
    assert finalizers.merges
    assert definition("io.k8s.api.apps.v1.DeploymentSpec").fields["selector"].type.atomic


def test_custom_resources_have_known_metadata_and_free_contents() -> None:
    widget = object_type(Resource("example.com", "v1", "widgets", "Widget"))
    assert field_type(widget, "spec").shape == "any"
    assert field_type(field_type(widget, "metadata"), "finalizers").is_set
