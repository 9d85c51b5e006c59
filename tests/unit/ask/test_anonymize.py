"""What an anonymized cluster tells, and what it does not."""

from __future__ import annotations

import json

import msgspec
import pytest
from tests.device_builders import device, make_claim, make_class, make_slice, request

from kubesched import config
from kubesched.api.device_claims import DeviceConstraint
from kubesched.api.kinds import KINDS
from kubesched.api.meta import KubeObject, ObjectMeta
from kubesched.api.pod import EphemeralSource, Volume
from kubesched.api.release import NEWEST
from kubesched.api.storage import CSIDriver, PersistentVolumeClaim
from kubesched.ask.sources.anonymize import Anonymizer, UnknownFieldError, anonymize_cluster, rules_of
from kubesched.ask.sources.pseudonyms import Pseudonyms
from kubesched.ask.sources.reading import CONSEQUENCES, ClusterReading, FoundConfiguration
from kubesched.config.args import ARGS
from kubesched.simulate.kinds import WORKLOADS, StatefulSet, kinds_read
from kubesched.testing import make_node, make_pod

replace = msgspec.structs.replace


def reading(*objects: KubeObject, configuration: str = "") -> ClusterReading:
    by_kind: dict[str, list[KubeObject]] = {}
    for obj in objects:
        by_kind.setdefault(type(obj).__name__, []).append(obj)
    found = FoundConfiguration(configuration, "somewhere")
    return ClusterReading("", {kind: tuple(records) for kind, records in by_kind.items()}, configuration=found)


def text_of(found: ClusterReading) -> str:
    return msgspec.json.encode([list(found.records()), found.configuration.text]).decode()


RECORDS = [*(kind.record for kind in KINDS.values()), *WORKLOADS.values(), *ARGS.values()]


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: f"{record.__module__.split('.')[1]}.{record.__name__}")
def test_of_every_field_it_is_said_whether_it_may_be_shown(record: type[msgspec.Struct]) -> None:
    todo, seen = [record], set()
    while todo:
        each = todo.pop()
        rules = rules_of(each)
        inside = {name for name, rule in rules if rule is None}
        for field in msgspec.structs.fields(each):
            if field.name in inside:
                todo += [found for found in _records_in(field.type) if found not in seen]
        seen.add(each)


def _records_in(hint: object) -> list[type[msgspec.Struct]]:
    found = [hint] if isinstance(hint, type) and issubclass(hint, msgspec.Struct) else []
    for argument in getattr(hint, "__args__", ()):
        found += _records_in(argument)
    return found


def test_field_that_nobody_has_thought_of_is_an_error() -> None:
    class Novel(msgspec.Struct):
        confession: str = ""

    with pytest.raises(UnknownFieldError, match=r"Novel\.confession"):
        rules_of(Novel)


def test_names_labels_images_and_annotations_are_gone_and_what_decisions_need_is_there() -> None:
    pod = make_pod("secret-pod").label(team="secret-team").build()
    pod = replace(
        pod,
        metadata=replace(pod.metadata, namespace="secret-space", annotations={"secret-note": "secret-text"}),
        spec=replace(
            pod.spec,
            containers=(replace(pod.spec.containers[0], name="secret-box", image="secret.example.com/app:1"),),
            node_selector={"secret-key": "secret-value", "kubernetes.io/arch": "arm64"},
        ),
    )
    node = make_node("secret-node").build()
    node = replace(node, metadata=replace(node.metadata, labels={"topology.kubernetes.io/zone": "eu-1"}))
    shown = text_of(anonymize_cluster(reading(pod, node)))
    assert "secret" not in shown
    assert '"kubernetes.io/arch":"arm64"' in shown
    assert "eu-1" in shown


def test_numbers_that_are_compared_stay_and_others_do_not() -> None:
    pseudonyms = Pseudonyms()
    pseudonyms.compared("disks")
    for _ in range(2):
        found = pseudonyms.labels({"disks": "12", "customer": "4711"})
        pseudonyms.settle()
    assert next(iter(found.values())) == "12"
    assert "4711" not in found.values()


def test_words_sort_as_what_they_stand_for() -> None:
    pseudonyms, names = Pseudonyms(), ["b", "a-2", "a-10", "c.d", "a"]
    for name in names:
        pseudonyms.name(name)
    pseudonyms.settle()
    assert sorted(names, key=pseudonyms.name) == sorted(names)
    assert [pseudonyms.original(pseudonyms.name(name)) for name in names] == names


def test_names_that_are_made_of_others_stay_so() -> None:
    pod = make_pod("web-0").build()
    pod = replace(pod, spec=replace(pod.spec, volumes=(Volume(name="scratch", ephemeral=EphemeralSource()),)))
    claim = PersistentVolumeClaim(metadata=ObjectMeta(name="web-0-scratch", namespace="default"))
    found = anonymize_cluster(reading(pod, claim, StatefulSet(metadata=ObjectMeta(name="web", namespace="default"))))
    [pod_name], [claim_name], [set_name] = ([obj.name for obj in objects] for objects in found.objects.values())
    [volume] = found.objects["Pod"][0].spec.volumes  # type: ignore[attr-defined]
    assert pod_name == f"{set_name}-0"
    assert claim_name == f"{pod_name}-{volume.name}"


def test_drivers_keep_their_names() -> None:
    found = anonymize_cluster(reading(CSIDriver(metadata=ObjectMeta(name="ebs.csi.aws.com"))))
    assert found.objects["CSIDriver"][0].name == "ebs.csi.aws.com"


def test_configuration_says_nothing_about_the_cluster_and_decides_the_same() -> None:
    term = {"matchExpressions": [{"key": "secret-key", "operator": "In", "values": ["secret-value"]}]}
    affinity = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
    settings = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "clientConnection": {"kubeconfig": "/etc/secret.conf"},
        "extenders": [{"urlPrefix": "http://secret.example.com", "filterVerb": "filter"}],
        "profiles": [{"pluginConfig": [{"name": "NodeAffinity", "args": {"addedAffinity": affinity}}]}],
    }
    text = json.dumps(settings)
    anonymizer = Anonymizer()
    found = anonymize_cluster(reading(configuration=text), anonymizer).configuration
    assert "secret" not in found.text
    [profile] = config.load(found.text, features=config.Features.of({}, NEWEST)).profiles
    [term_now] = profile.plugin_config[
        "NodeAffinity"
    ].added_affinity.required_during_scheduling_ignored_during_execution.node_selector_terms
    assert anonymizer.original(term_now.match_expressions[0].key) == "secret-key"


def test_every_kind_that_is_read_has_a_consequence_or_is_essential() -> None:
    assert set(kinds_read(workloads=True)) - {"Node", "Pod"} == set(CONSEQUENCES)


def test_attributes_of_devices_that_nothing_selects_by_are_numbered() -> None:
    """Drivers put the name of the node into serial numbers."""
    gpu = device("gpu-0", uuid="gpu-secret-node-0", model="a100", rack="r7")
    objects = [
        make_slice("secret-node", gpu),
        make_class("gpu", 'device.attributes["gpu.example.com"].model == "a100"'),
        make_claim("c", request(), constraints=(DeviceConstraint(match_attribute="gpu.example.com/rack"),)),
    ]
    text = text_of(anonymize_cluster(reading(*objects)))
    assert "secret" not in text
    assert '"a100"' in text
    assert '"r7"' in text
