"""Cluster states and engines for tests, with just the plugins that the behaviour at hand needs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from kubesched import config as configuration
from kubesched.api.meta import KubeObject
from kubesched.config.features import DEFAULT_FEATURES, Features
from kubesched.framework.engine import Engine
from kubesched.framework.plugin import FilterPlugin, Plugin, PluginContext
from kubesched.framework.profile import Profile
from kubesched.framework.registry import Registry
from kubesched.plugins.registry import IN_TREE
from kubesched.state.cluster import ClusterState
from kubesched.testing import NodeBuilder, PodBuilder

Json = dict[str, Any]


def make_cluster(
    *objects: KubeObject | PodBuilder | NodeBuilder, features: Features = DEFAULT_FEATURES
) -> ClusterState:
    """A cluster that has seen these objects, in this order."""
    state = ClusterState(features)
    for obj in objects:
        state.apply(obj if isinstance(obj, KubeObject) else obj.build())
    return state


def make_engine(
    state: ClusterState,
    *,
    config: Json | None = None,
    plugins: Sequence[type[Plugin]] = (),
    draw: Callable[[int], int] = lambda among: 0,
    row_by_row: bool = False,
) -> Engine:
    """An engine under a configuration (see `profile_of`), the default one if there is none, with the state's features.

    `plugins` are known besides those in tree; `draw` chooses among equals, by default the first. With `row_by_row` all
    filters depend on all pods, so that rows with pods that might come or go are looked at one at a time.
    """
    features = state.features
    read = configuration.from_plain(config, features=features) if config else configuration.default(features)
    registry, context = Registry((*IN_TREE, *plugins)), PluginContext(features)
    profiles = [Profile(profile, registry, context) for profile in read.profiles]
    for plugin in (p for profile in profiles for p in profile.at("filter", FilterPlugin) if row_by_row):
        plugin.looks_at_totals, plugin.looks_at_pods = False, True
        vars(plugin)["depends_on_pod"] = lambda cycle, pod: True
        vars(plugin)["depends_on_pods"] = lambda cycle: True
    return Engine(state, profiles, draw, read.percentage_of_nodes_to_score)


def profile_of(*names: str, args: Mapping[str, Json] | None = None, **points: Json) -> Json:
    """A configuration with these plugins and no others, but for the two that no profile can do without.

    `points` says more about single extension points, as YAML would: `score={"disabled": [{"name": "*"}]}`.
    """
    enabled = [{"name": name} for name in ("PrioritySort", *names, "DefaultBinder")]
    multi_point = {"enabled": enabled, "disabled": [{"name": "*"}]}
    plugin_config = [{"name": name, "args": given} for name, given in (args or {}).items()]
    return {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [{"plugins": {"multiPoint": multi_point, **points}, "pluginConfig": plugin_config}],
    }
