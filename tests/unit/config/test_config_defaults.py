from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kubesched import config
from kubesched.api.yaml import documents
from kubesched.config.args import DynamicResourcesArgs, NodeResourcesBalancedAllocationArgs, NodeResourcesFitArgs
from kubesched.config.configuration import PluginEntry, Plugins, PluginSet
from kubesched.config.defaults import DEFAULT_PLUGINS, differences_from_default, merge_plugins


def from_plain(**fields: Any) -> config.SchedulerConfiguration:
    header = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
    return config.from_plain({**header, **fields})


def multi_point(enabled: dict[str, int] | None = None, disabled: tuple[str, ...] = ()) -> Plugins:
    on = tuple(PluginEntry(name=name, weight=weight) for name, weight in (enabled or {}).items())
    return Plugins(multi_point=PluginSet(enabled=on, disabled=tuple(PluginEntry(name=name) for name in disabled)))


def merged(plugins: Plugins) -> list[tuple[str, int]]:
    return [(plugin.name, plugin.weight) for plugin in merge_plugins(plugins).multi_point.enabled]


def test_defaults_are_those_of_kube_scheduler() -> None:
    text = (Path(__file__).parent / "defaults.yaml").read_text()
    [expected] = documents(text)
    assert config.to_plain(config.default()) == expected.value


def test_default_plugins_come_first_and_in_their_order() -> None:
    assert merged(multi_point({"Mine": 7})) == [*DEFAULT_PLUGINS.items(), ("Mine", 7)]


def test_a_default_plugin_enabled_again_takes_its_weight_in_place() -> None:
    expected = [(name, 9 if name == "TaintToleration" else weight) for name, weight in DEFAULT_PLUGINS.items()]
    assert merged(multi_point({"TaintToleration": 9})) == expected


def test_a_default_plugin_enabled_again_without_weight_loses_its_own() -> None:
    assert ("TaintToleration", 0) in merged(multi_point({"TaintToleration": 0}))


def test_a_disabled_plugin_is_left_out() -> None:
    names = [name for name, _ in merged(multi_point(disabled=("NodePorts",)))]
    assert names == [name for name in DEFAULT_PLUGINS if name != "NodePorts"]


def test_a_plugin_disabled_and_enabled_moves_to_the_end() -> None:
    assert merged(multi_point({"NodeName": 0}, ("NodeName",)))[-1] == ("NodeName", 0)


def test_a_star_disables_all_defaults() -> None:
    assert merged(multi_point({"Mine": 1, "NodeName": 0}, ("*",))) == [("Mine", 1), ("NodeName", 0)]


def test_a_plugin_enabled_twice_stays_twice_and_the_last_one_takes_the_place() -> None:
    twice = (PluginEntry(name="ImageLocality", weight=4), PluginEntry(name="ImageLocality", weight=5))
    enabled = merged(Plugins(multi_point=PluginSet(enabled=twice)))
    assert enabled[list(DEFAULT_PLUGINS).index("ImageLocality")] == ("ImageLocality", 5)
    assert enabled[-1] == ("ImageLocality", 4)


def test_other_extension_points_have_no_defaults_and_disabled_plugins_no_weight() -> None:
    written = PluginSet(
        enabled=(PluginEntry(name="Mine", weight=3),), disabled=(PluginEntry(name="NodePorts", weight=8),)
    )
    expected = PluginSet(enabled=written.enabled, disabled=(PluginEntry(name="NodePorts"),))
    assert merge_plugins(Plugins(filter=written)).filter == expected


def test_a_single_profile_gets_the_default_name() -> None:
    assert [profile.scheduler_name for profile in from_plain(profiles=[{}]).profiles] == ["default-scheduler"]


def test_arguments_are_added_for_enabled_plugins_only_after_the_written_ones() -> None:
    everything_off = {"multiPoint": {"disabled": [{"name": "*"}], "enabled": [{"name": "DefaultPreemption"}]}}
    configured = [{"name": "VolumeBinding", "args": {"bindTimeoutSeconds": 5}}]
    [profile] = from_plain(profiles=[{"plugins": everything_off, "pluginConfig": configured}]).profiles
    assert list(profile.plugin_config) == ["VolumeBinding", "DefaultPreemption"]


def test_zeros_in_leader_election_and_client_connection_mean_default() -> None:
    loaded = from_plain(
        leaderElection={"leaseDuration": "0s", "resourceLock": "", "resourceName": ""},
        clientConnection={"qps": 0, "burst": 0, "contentType": ""},
    )
    assert loaded.leader_election == config.default().leader_election
    assert loaded.client_connection == config.default().client_connection


def test_queries_per_second_have_the_precision_of_32_bits() -> None:
    assert from_plain(clientConnection={"qps": 16777217}).client_connection.qps == 16777216
    assert from_plain(clientConnection={"qps": 0.1}).client_connection.qps == 0.1


@pytest.mark.parametrize(
    ("profiling", "contention", "expected"),
    [(None, None, True), (False, None, False), (False, True, True), (True, False, False)],
)
def test_contention_is_profiled_when_profiling_is_on_unless_said_otherwise(
    profiling: bool | None, contention: bool | None, expected: bool
) -> None:
    loaded = from_plain(enableProfiling=profiling, enableContentionProfiling=contention)
    assert loaded.enable_contention_profiling is expected


def test_resources_without_weight_weigh_one() -> None:
    resources = [{"name": "gpu", "weight": 0}, {"name": "cpu"}]
    arguments = [
        {"name": "NodeResourcesFit", "args": {"scoringStrategy": {"resources": resources}}},
        {"name": "NodeResourcesBalancedAllocation", "args": {"resources": resources}},
    ]
    [profile] = from_plain(profiles=[{"pluginConfig": arguments}]).profiles
    fit, balanced = profile.plugin_config["NodeResourcesFit"], profile.plugin_config["NodeResourcesBalancedAllocation"]
    assert isinstance(fit, NodeResourcesFitArgs)
    assert isinstance(balanced, NodeResourcesBalancedAllocationArgs)
    assert fit.scoring_strategy.resources == balanced.resources
    assert [resource.weight for resource in balanced.resources] == [1, 1]


def test_differences_from_the_default_are_told_in_words() -> None:
    plugins = merge_plugins(
        Plugins(
            multi_point=multi_point({"Mine": 1, "NodeAffinity": 5}, ("NodePorts",)).multi_point,
            pre_score=PluginSet(enabled=(PluginEntry(name="Other"),), disabled=(PluginEntry(name="*"),)),
        )
    )
    assert differences_from_default(plugins) == [
        "without NodePorts",
        "NodeAffinity weight 5 (default 2)",
        "with Mine",
        "Other at preScore",
        "no * at preScore",
    ]
    assert differences_from_default(merge_plugins(Plugins())) == []


def test_what_needs_a_feature_that_is_off_has_no_default() -> None:
    off = config.Features(declared_features=False, device_search_timeout=False, device_binding_conditions=False)
    [profile] = config.default(off).profiles
    assert "NodeDeclaredFeatures" not in profile.plugins.enabled_names()
    assert profile.plugin_config["DynamicResources"] == DynamicResourcesArgs()


def test_storage_is_scored_by_a_falling_line_unless_told_otherwise() -> None:
    [profile] = config.default(config.Features(storage_capacity_scoring=True)).profiles
    assert [(point.utilization, point.score) for point in profile.plugin_config["VolumeBinding"].shape] == [
        (0, 10),
        (100, 0),
    ]


def test_features_go_with_the_configuration_but_are_in_no_file() -> None:
    off = config.Features(async_preemption=False)
    assert config.default(off).features == off
    assert config.to_plain(config.default(off)) == config.to_plain(config.default())
