from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kubesched.api.node import Node
from kubesched.api.pod import Pod
from kubesched.simulate.manifests import ManifestError, Manifests, load, loads

POD = "apiVersion: v1\nkind: Pod\nmetadata: {name: web, namespace: shop}\n"
NODE = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}}


def names(manifests: Manifests) -> list[str]:
    """What was written down; namespaces are added by themselves."""
    return [obj.key for obj in manifests.objects if isinstance(obj, Pod | Node)]


def lines(text: str | bytes) -> list[str]:
    with pytest.raises(ManifestError) as caught:
        loads(text, source="f.yaml")
    return caught.value.lines


# -- where objects come from ------------------------------------------------------------------------------------------


def test_documents_of_a_yaml_file_are_read_one_by_one_and_empty_ones_ignored() -> None:
    assert names(loads(f"---\n{POD}---\n---\n{POD.replace('web', 'api')}")) == ["shop/web", "shop/api"]


def test_a_json_list_is_read_item_by_item() -> None:
    items = [NODE, {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}}]
    assert names(loads(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))) == ["n1", "default/p"]


@pytest.mark.parametrize("dump", [json.dumps, str])
def test_items_of_a_typed_list_need_not_repeat_their_kind(dump: Any) -> None:
    text = dump({"apiVersion": "v1", "kind": "NodeList", "items": [{"metadata": {"name": "n1"}}]})
    assert names(loads(text)) == ["n1"]


def test_json_values_may_follow_one_another_as_several_kubectl_calls_print_them() -> None:
    more = {**NODE, "metadata": {"name": "n2"}}
    assert names(loads(f"{json.dumps(NODE)}\n{json.dumps(more)}\n")) == ["n1", "n2"]


def test_a_directory_is_searched_in_depth_and_in_order(tmp_path: Path) -> None:
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "x.yml").write_text(POD)
    (tmp_path / "a.json").write_text(json.dumps(NODE))
    (tmp_path / "README.md").write_text("not a manifest")
    assert names(load([str(tmp_path)])) == ["n1", "shop/web"]


def test_the_volume_of_a_config_map_has_its_files_once(tmp_path: Path) -> None:
    (tmp_path / "..2026_11_18").mkdir()
    (tmp_path / "..2026_11_18" / "x.yaml").write_text(POD)
    (tmp_path / "..data").symlink_to("..2026_11_18")
    (tmp_path / "x.yaml").symlink_to("..data/x.yaml")
    assert names(load([str(tmp_path)])) == ["shop/web"]


def test_a_file_that_is_named_twice_is_read_once(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(POD)
    assert names(load([str(tmp_path), str(tmp_path / "a.yaml")])) == ["shop/web"]


def test_kinds_that_scheduling_does_not_look_at_are_counted() -> None:
    text = (
        "{apiVersion: apps/v1, kind: Deployment, metadata: {name: a}}\n---\n"
        "{apiVersion: v1, kind: ConfigMap}\n---\n"
        "{apiVersion: apps/v1, kind: Deployment}\n---\n"
        "{apiVersion: serving.knative.dev/v1, kind: Service, metadata: {name: not-a-core-service}}\n"
    )
    loaded = loads(text)
    assert (loaded.objects, loaded.skipped) == ((), {"ConfigMap": 1, "Deployment": 2, "Service": 1})


# -- what is accepted -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dump", [json.dumps, str], ids=["json", "yaml"])
def test_nulls_and_numbers_as_quantities_are_accepted_as_the_api_server_accepts_them(dump: Any) -> None:
    container = {"name": "c", "resources": {"requests": {"cpu": 1, "memory": 1.5e9}}}
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p", "labels": {}},
        "spec": {"containers": [container]},
    }
    text = dump({"apiVersion": "v1", "kind": "List", "items": [pod]}).replace("{}", "null")
    found = loads(text).objects[0]
    assert isinstance(found, Pod)
    assert found.spec.containers[0].resources.requests == {"cpu": 1, "memory": 1_500_000_000}


def test_a_pod_with_a_generated_name_gets_one() -> None:
    text = "apiVersion: v1\nkind: Pod\nmetadata: {generateName: web-}\n"
    assert names(loads(f"{text}---\n{text}")) == ["default/web-00000", "default/web-00001"]


# -- what is refused --------------------------------------------------------------------------------------------------


def in_pod(spec: str) -> str:
    return f"{POD}spec: {spec}\n"


def in_affinity(expression: str) -> str:
    term = f"{{topologyKey: zone, labelSelector: {{matchExpressions: [{expression}]}}}}"
    return in_pod(f"{{affinity: {{podAffinity: {{requiredDuringSchedulingIgnoredDuringExecution: [{term}]}}}}}}")


ON_POD = "f.yaml: document 1 (Pod shop/web): "
TERM = "spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution[0]"


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (
            in_pod("{containers: [{resources: {requests: {cpu: 100x}}}]}"),
            "spec.containers[0].resources.requests.cpu: '100x' is not a quantity such as 100m, 0.5, 2Gi or 1e3",
        ),
        (
            in_pod("{containers: [{resources: {requests: {cpu: -1}}}]}"),
            'spec.containers[0].resources.requests[cpu]: Invalid value: "-1": must be greater than or equal to 0',
        ),
        (
            in_pod("{containers: [{resources: {requests: {a-b/c: 1}, limits: {a-b/c: 1}}}], nodeSelector: {a: -}}"),
            'spec.nodeSelector: Invalid value: "-": a valid label must be an empty string or consist of alphanumeric '
            "characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or "
            "'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')",
        ),
        (
            in_pod("{containers: [{resources: {requests: {cpu: 2}, limits: {cpu: 1}}}]}"),
            'spec.containers[0].resources.requests: Invalid value: "2": must be less than or equal to cpu limit of 1',
        ),
        (
            in_pod("{overhead: {nvidia.com/gpu: 0.5}}"),
            "spec.overhead[nvidia.com/gpu]: Invalid value: 0.5: must be an integer",
        ),
        (
            in_affinity("{key: app, operator: In}"),
            f"{TERM}.labelSelector.matchExpressions[0].values: Required value: "
            "must be specified when `operator` is 'In' or 'NotIn'",
        ),
        (
            in_affinity("{key: app, operator: Exists, values: [a]}"),
            f"{TERM}.labelSelector.matchExpressions[0].values: Forbidden: "
            "may not be specified when `operator` is 'Exists' or 'DoesNotExist'",
        ),
        (
            in_affinity("{key: app, operator: Like, values: [a]}"),
            f'{TERM}.labelSelector.matchExpressions[0].operator: Invalid value: "Like": not a valid selector operator',
        ),
        (
            in_pod("{affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {}}}}"),
            "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms: "
            "Required value: must have at least one node selector term",
        ),
        (
            in_pod("{tolerations: [{key: a, effect: Sometimes}]}"),
            "spec.tolerations[0].effect: "
            'Unsupported value: "Sometimes": supported values: "NoSchedule", "PreferNoSchedule", "NoExecute"',
        ),
        (
            in_pod("{tolerations: [{operator: Equal}]}"),
            'spec.tolerations[0].operator: Invalid value: "Equal": operator must be Exists when `key` is empty, '
            'which means "match all values and all keys"',
        ),
        (
            in_pod("{topologySpreadConstraints: [{maxSkew: 0, topologyKey: z, whenUnsatisfiable: DoNotSchedule}]}"),
            "spec.topologySpreadConstraints[0].maxSkew: Invalid value: 0: must be greater than zero",
        ),
        (
            in_pod("{topologySpreadConstraints: [{maxSkew: 1, topologyKey: z}]}"),
            "spec.topologySpreadConstraints[0].whenUnsatisfiable: "
            'Unsupported value: "": supported values: "DoNotSchedule", "ScheduleAnyway"',
        ),
        (
            in_pod("{priority: 9999999999}"),
            "spec.priority: expected an integer from -2147483648 to 2147483647, got 9999999999",
        ),
        (in_pod("{priorityClassName: gold}"), "spec.priorityClassName: no PriorityClass with name gold was found"),
        (
            f"{POD}status: {{startTime: yesterday}}",
            "status.startTime: 'yesterday' is not a time such as 2026-01-31T12:00:00Z",
        ),
        (f"{POD}spec: []", "spec: expected a mapping, got a list"),
    ],
)
def test_a_mistake_in_a_pod_is_named_with_its_place(text: str, line: str) -> None:
    assert lines(text) == [ON_POD + line]


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (
            "{apiVersion: v1, kind: Node}",
            "document 1 (Node): metadata.name: Required value: name or generateName is required",
        ),
        (
            "{apiVersion: v1, kind: Node, metadata: {name: n1}, spec: {taints: [{key: a, effect: Bad}]}}",
            "document 1 (Node n1): spec.taints[0].effect: "
            'Unsupported value: "Bad": supported values: "NoSchedule", "PreferNoSchedule", "NoExecute"',
        ),
        (
            "{apiVersion: v2, kind: Pod, metadata: {name: p}}",
            "document 1 (Pod p): apiVersion: 'v2' has no kind Pod; Kubernetes serves it as 'v1'",
        ),
        (
            "{apiVersion: v1, kind: pod, metadata: {name: p}}",
            'document 1: unknown kind "pod" in v1, did you mean "Pod"?',
        ),
        ("{kind: Pod}", "document 1 (Pod): apiVersion: required field is missing"),
        ("{a: b}", "document 1 (object): kind: required field is missing"),
        ("- a\n- b", "document 1: expected a Kubernetes object, got a list"),
        ("hello", 'document 1: expected a Kubernetes object, got "hello"'),
        ("a: b\n c: d", "line 2, column 3: mapping values are not allowed in this context"),
        ("a: 1\na: 2", 'line 2, column 1: key "a" is given twice'),
    ],
)
def test_what_is_no_object_of_kubernetes_is_named_with_its_place(text: str, line: str) -> None:
    assert lines(text) == [f"f.yaml: {line}"]


def test_broken_json_is_named_with_line_and_column() -> None:
    assert lines('{"a": 1,\n "b": ]') == ["f.yaml: line 2, column 7: not JSON: Expecting value"]


def test_bytes_that_are_no_text_are_refused() -> None:
    assert lines(b"\xff\xfe") == ["f.yaml: not UTF-8 text"]


def test_an_object_that_is_there_twice_is_refused_with_both_places() -> None:
    assert lines(f"{POD}---\n{POD}") == [
        "f.yaml: document 2 (Pod shop/web): the same object is in f.yaml: document 1 already"
    ]


def test_an_item_of_a_json_list_is_named_by_its_index() -> None:
    bad = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"priority": "high"}}
    assert lines(json.dumps({"apiVersion": "v1", "kind": "List", "items": [NODE, bad]})) == [
        'f.yaml: document 1, items[1] (Pod default/p): spec.priority: expected an integer, got "high"'
    ]


def test_all_mistakes_of_all_files_are_found_at_once(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(f"{POD}spec: {{priority: high, nodeName: 5}}")
    (tmp_path / "b.yaml").write_text("kind: [")
    empty = tmp_path / "empty"
    empty.mkdir()
    with pytest.raises(ManifestError) as caught:
        load([str(tmp_path / "a.yaml"), str(tmp_path / "b.yaml"), str(tmp_path / "c.yaml"), str(empty)])
    found = [line.replace(f"{tmp_path}/", "") for line in caught.value.lines]
    assert found == [
        "empty: no manifests in this directory (looked for .yaml, .yml, .json)",
        'a.yaml: document 1 (Pod shop/web): spec.priority: expected an integer, got "high"',
        "a.yaml: document 1 (Pod shop/web): spec.nodeName: expected a string, got 5",
        "b.yaml: line 2, column 1: while parsing a flow node, did not find expected node content",
        "c.yaml: No such file or directory",
    ]


def test_a_wrong_word_does_not_hide_the_other_mistakes_of_an_object() -> None:
    spec = "{containers: [{resources: {requests: {cpu: 1x}}}], preemptionPolicy: Sometimes}"
    number, word, refusal = lines(in_pod(spec))
    assert "spec.containers[0].resources.requests.cpu: '1x' is not a quantity" in number
    assert 'spec.preemptionPolicy: Unsupported value: "Sometimes"' in word
    assert "spec.preemptionPolicy: the string value of PreemptionPolicy (Sometimes) must not be provided" in refusal
