from __future__ import annotations

import textwrap
from typing import Any

import pytest

from kubesched import config
from kubesched.api.affinity import NodeAffinity, NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from kubesched.config.args import NodeAffinityArgs

HEADER = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"


def load(body: str) -> config.SchedulerConfiguration:
    return config.load(HEADER + textwrap.dedent(body))


def mistakes_in(text: str) -> list[str]:
    with pytest.raises(config.UnreadableConfigError) as caught:
        config.load(text)
    return [str(mistake) for mistake in caught.value.mistakes]


def mistakes_in_body(body: str) -> list[str]:
    return mistakes_in(HEADER + textwrap.dedent(body))


def test_every_mistake_is_reported_at_once() -> None:
    body = """
        parallelism: many
        percentageOfNodesToScore: 12.5
        paralelism: 3
        leaderElection:
          leaseDuration: soon
        profiles:
        - plugins: {filter: {enabled: {name: X}}}
          pluginConfig:
          - name: InterPodAffinity
            args: {hardPodAffinityWeigth: 5, hardPodAffinityWeight: high}
    """
    assert mistakes_in_body(body) == [
        'paralelism: unknown field; did you mean "parallelism"?',
        'parallelism: expected an integer, got "many"',
        'leaderElection.leaseDuration: expected a duration such as "10s" or "1m30s", got "soon"',
        "percentageOfNodesToScore: expected an integer, got 12.5",
        "profiles[0].plugins.filter.enabled: expected a list, got a mapping",
        'profiles[0].pluginConfig[0].args.hardPodAffinityWeigth: unknown field; did you mean "hardPodAffinityWeight"?',
        'profiles[0].pluginConfig[0].args.hardPodAffinityWeight: expected an integer, got "high"',
    ]


def test_errors_begin_with_the_source() -> None:
    with pytest.raises(config.ConfigError) as caught:
        config.load(HEADER + "parallelism: x\n", source="sched.yaml")
    assert str(caught.value) == 'sched.yaml: parallelism: expected an integer, got "x"'


def test_syntax_errors_name_the_line() -> None:
    assert mistakes_in(HEADER + "parallelism: 1\nparallelism: 2\n") == [
        'line 4, column 1: key "parallelism" is given twice'
    ]


@pytest.mark.parametrize("text", ["", "---\n", "just words", "[]"])
def test_what_is_no_mapping_is_no_configuration(text: str) -> None:
    [mistake] = mistakes_in(text)
    assert mistake.startswith("expected a KubeSchedulerConfiguration")


def test_file_of_another_kind_is_told_so_whatever_its_yaml_is_like() -> None:
    text = "kind: ConfigMap  # not ours\ndata: &all {a: '1'}\nmore:\n  <<: *all\n  a: '2'\n"
    assert mistakes_in(text) == ['kind: expected "KubeSchedulerConfiguration", got "ConfigMap"']


def test_kind_and_version_are_required() -> None:
    assert mistakes_in("parallelism: 1") == [
        'apiVersion: required, expected "kubescheduler.config.k8s.io/v1"',
        'kind: required, expected "KubeSchedulerConfiguration"',
    ]


def test_removed_versions_are_called_removed() -> None:
    [mistake] = mistakes_in(HEADER.replace("/v1", "/v1beta3"))
    assert mistake.endswith("Kubernetes has removed that version")


def test_json_does_not_take_a_float_for_an_integer_but_yaml_does() -> None:
    text = '{"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration", "parallelism": 4.0}'
    assert mistakes_in(text) == ["parallelism: expected an integer, got 4.0"]
    assert load("parallelism: 4.0").parallelism == 4


def test_only_the_first_document_is_read() -> None:
    assert load("parallelism: 3\n---\nnonsense: [\n").parallelism == 3


def test_a_field_that_a_merge_brings_along_cannot_be_overridden() -> None:
    assert load("<<: {parallelism: 4}\n").parallelism == 4
    [mistake] = mistakes_in_body("<<: {parallelism: 4}\nparallelism: 8\n")
    assert 'key "parallelism" is given twice' in mistake


def test_null_counts_as_absent() -> None:
    loaded = load(
        """
        parallelism: null
        leaderElection: null
        profiles:
        - schedulerName: null
          plugins: {score: null}
          pluginConfig:
          - {name: VolumeBinding, args: null}
          - {name: DynamicResources, args: {filterTimeout: null}}
        """
    )
    assert set(loaded.profiles[0].plugin_config) == set(config.default().profiles[0].plugin_config)
    assert config.from_plain(config.to_plain(loaded)) == loaded
    assert loaded.parallelism == 16


def test_null_is_no_duration_where_one_is_needed() -> None:
    assert mistakes_in_body("leaderElection: {leaseDuration: null}") == [
        'leaderElection.leaseDuration: expected a duration such as "10s" or "1m30s", got null'
    ]


@pytest.mark.parametrize(
    ("args", "field"),
    [
        ("{kind: NodeAffinityArgs}", "kind"),
        ("{kind: Wrong}", "kind"),
        ("{apiVersion: v1}", "apiVersion"),
    ],
)
def test_arguments_that_say_what_they_are_must_be_that(args: str, field: str) -> None:
    body = f"profiles: [{{pluginConfig: [{{name: NodeResourcesFit, args: {args}}}]}}]"
    [mistake] = mistakes_in_body(body)
    assert mistake.startswith(f"profiles[0].pluginConfig[0].args.{field}: expected ")


def test_arguments_of_plugins_we_do_not_know_stay_plain() -> None:
    loaded = load("profiles: [{pluginConfig: [{name: Mine, args: {depth: [1, {a: null}]}}, {name: Other}]}]")
    arguments = loaded.profiles[0].plugin_config
    assert arguments["Mine"] == {"depth": [1, {"a": None}]}
    assert arguments["Other"] is None


def test_arguments_of_plugins_we_know_are_records() -> None:
    loaded = load(
        """
        profiles:
        - pluginConfig:
          - name: NodeAffinity
            args:
              addedAffinity:
                requiredDuringSchedulingIgnoredDuringExecution:
                  nodeSelectorTerms:
                  - matchExpressions: [{key: zone, operator: In, values: [a]}]
        """
    )
    requirement = NodeSelectorRequirement(key="zone", operator="In", values=("a",))
    selector = NodeSelector(node_selector_terms=(NodeSelectorTerm(match_expressions=(requirement,)),))
    affinity = NodeAffinity(required_during_scheduling_ignored_during_execution=selector)
    assert loaded.profiles[0].plugin_config["NodeAffinity"] == NodeAffinityArgs(added_affinity=affinity)


@pytest.mark.parametrize("value", [2**31, -(2**31) - 1])
def test_integers_of_32_bits_are_kept_to_that(value: int) -> None:
    [mistake] = mistakes_in_body(f"parallelism: {value}")
    assert mistake.startswith("parallelism: expected an integer from")


@pytest.mark.parametrize(
    ("plugin", "field", "args"),
    [
        (
            "PodTopologySpread",
            "defaultConstraints[0].maxSkew",
            "{defaultConstraints: [{maxSkew: 2147483648, topologyKey: zone, whenUnsatisfiable: DoNotSchedule}]}",
        ),
        ("PodTopologySpread", "defaultConstraints[0].minDomains", "{defaultConstraints: [{minDomains: 2147483648}]}"),
        (
            "NodeAffinity",
            "addedAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].weight",
            "{addedAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: 2147483648}]}}",
        ),
    ],
)
def test_integers_of_32_bits_within_arguments_are_kept_to_that(plugin: str, field: str, args: str) -> None:
    [mistake] = mistakes_in_body(f"profiles: [{{pluginConfig: [{{name: {plugin}, args: {args}}}]}}]")
    assert mistake.startswith(f"profiles[0].pluginConfig[0].args.{field}: expected an integer from")


@pytest.mark.parametrize(
    "value",
    [
        {"profiles": 5},
        {"profiles": [5]},
        {"profiles": [{"pluginConfig": 5}]},
        {"profiles": [{"pluginConfig": [5]}]},
        {"profiles": [{"pluginConfig": [{"name": []}]}]},
        {"profiles": [{"pluginConfig": [{"name": "VolumeBinding", "args": "x"}]}]},
    ],
)
def test_wrong_shapes_are_mistakes_wherever_they_are(value: dict[str, Any]) -> None:
    with pytest.raises(config.UnreadableConfigError):
        config.from_plain(
            {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration", **value}
        )
