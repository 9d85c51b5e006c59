"""Defaults that depend on other fields: the plugins of a profile, their arguments, and zeros that mean "default"."""

from __future__ import annotations

from typing import TypeVar

import msgspec
import numpy as np

from kubesched.api.duration import Duration
from kubesched.api.meta import Record
from kubesched.config.args import (
    ARGS,
    CPU_AND_MEMORY,
    DynamicResourcesArgs,
    NodeResourcesBalancedAllocationArgs,
    NodeResourcesFitArgs,
    PluginArgs,
    PodTopologySpreadArgs,
    ResourceSpec,
    UtilizationShapePoint,
    VolumeBindingArgs,
)
from kubesched.config.configuration import (
    DEFAULT_SCHEDULER_NAME,
    PluginConfig,
    PluginEntry,
    Plugins,
    PluginSet,
    WrittenConfiguration,
    WrittenProfile,
    point_as_written,
)
from kubesched.config.features import DEFAULT_FEATURES, Features

R = TypeVar("R", bound=Record)

SEARCH_TIMEOUT = Duration(10)
BINDING_TIMEOUT = Duration(600)
LESS_USED_IS_BETTER = (
    UtilizationShapePoint(utilization=0, score=10),
    UtilizationShapePoint(utilization=100, score=0),
)

# In the order they run. DynamicResources comes before DefaultPreemption because giving back an idle claim is kinder
# than evicting a pod.
DEFAULT_PLUGINS: dict[str, int] = {
    "SchedulingGates": 0,
    "PrioritySort": 0,
    "NodeUnschedulable": 0,
    "NodeName": 0,
    "TaintToleration": 3,
    "NodeAffinity": 2,
    "NodePorts": 0,
    "NodeResourcesFit": 1,
    "VolumeRestrictions": 0,
    "NodeVolumeLimits": 0,
    "VolumeBinding": 0,
    "VolumeZone": 0,
    "PodTopologySpread": 2,
    "InterPodAffinity": 2,
    "DynamicResources": 2,
    "DefaultPreemption": 0,
    "NodeResourcesBalancedAllocation": 1,
    "ImageLocality": 1,
    "DefaultBinder": 0,
    "NodeDeclaredFeatures": 0,
}

_NODE_NAME_FIRST = ("SchedulingGates", "PrioritySort", "NodeName", "NodeUnschedulable")


def complete(written: WrittenConfiguration, features: Features) -> WrittenConfiguration:
    """The configuration with all defaults that the file leaves out."""
    contention, connection = written.enable_contention_profiling, written.client_connection
    return msgspec.structs.replace(
        written,
        leader_election=_complete_zeros(written.leader_election),
        client_connection=_complete_zeros(msgspec.structs.replace(connection, qps=as_float32(connection.qps))),
        enable_contention_profiling=written.enable_profiling if contention is None else contention,
        profiles=_complete_profiles(written.profiles, features),
    )


def _complete_zeros(written: R) -> R:
    """Zeros and empty texts mean the default; `false` means what it says."""
    values = {name: value for name, value in msgspec.structs.asdict(written).items() if value or value is False}
    return type(written)(**values)


def as_float32(number: float) -> float:
    """The number in 32 bits, which are all that Kubernetes keeps."""
    return float(str(np.float32(number)))


def _complete_profiles(written: tuple[WrittenProfile, ...], features: Features) -> tuple[WrittenProfile, ...]:
    profiles = written or (WrittenProfile(),)
    if len(profiles) == 1 and profiles[0].scheduler_name is None:
        profiles = (msgspec.structs.replace(profiles[0], scheduler_name=DEFAULT_SCHEDULER_NAME),)
    return tuple(_complete_profile(profile, features) for profile in profiles)


def _complete_profile(written: WrittenProfile, features: Features) -> WrittenProfile:
    plugins = merge_plugins(written.plugins, features)
    configured = [
        PluginConfig(name=entry.name, args=complete_args(entry.args, features)) if entry.name in ARGS else entry
        for entry in written.plugin_config
    ]
    unconfigured = plugins.enabled_names() & ARGS.keys() - {entry.name for entry in configured}
    configured += [PluginConfig(name=name, args=complete_args(ARGS[name](), features)) for name in sorted(unconfigured)]
    return msgspec.structs.replace(written, plugins=plugins, plugin_config=tuple(configured))


def default_plugins(features: Features) -> dict[str, int]:
    """The plugins of a profile that names none, with their weights, in the order in which they run."""
    order = dict.fromkeys(_NODE_NAME_FIRST, 0) if features.release.node_name_first else {}
    plugins = order | DEFAULT_PLUGINS
    if not features.declared_features:
        del plugins["NodeDeclaredFeatures"]
    if features.gang_scheduling:
        plugins["GangScheduling"] = 0
    if features.group_topology:
        plugins |= {"TopologyPlacementGenerator": 0, "PodGroupPodsCount": 1}
    return plugins


def merge_plugins(written: Plugins, features: Features = DEFAULT_FEATURES) -> Plugins:
    """A profile's plugins on top of the default ones, which are all enabled at `multi_point`."""
    defaults = {"multi_point": default_plugins(features)}
    return Plugins(**{point: _merge(defaults.get(point, {}), plugins) for point, plugins in written.sets()})


def _merge(defaults: dict[str, int], written: PluginSet) -> PluginSet:
    """Defaults first, in their own order, less the disabled ones; one that is enabled again takes the new weight there.

    A plugin enabled twice stays twice: building the framework will name it.
    """
    last_of = {plugin.name: i for i, plugin in enumerate(written.enabled)}
    disabled = written.disabled_names
    kept = {} if "*" in disabled else {name: defaults[name] for name in defaults if name not in disabled}
    enabled = [
        written.enabled[last_of[name]] if name in last_of else PluginEntry(name=name, weight=weight)
        for name, weight in kept.items()
    ]
    replacements = {last_of[name] for name in kept if name in last_of}
    enabled += [plugin for i, plugin in enumerate(written.enabled) if i not in replacements]
    return PluginSet(
        enabled=tuple(enabled),
        disabled=tuple(PluginEntry(name=plugin.name) for plugin in written.disabled),
    )


def complete_args(args: PluginArgs, features: Features) -> PluginArgs:
    """Arguments with their zeros filled in: empty lists of resources, weights of 0, an empty type of defaulting.

    Arguments that need a feature which is off have no default.
    """
    match args:
        case DynamicResourcesArgs(filter_timeout=search, binding_timeout=binding):
            if search is None and features.device_search_timeout:
                search = SEARCH_TIMEOUT
            if binding is None and features.device_binding_conditions:
                binding = BINDING_TIMEOUT
            return msgspec.structs.replace(args, filter_timeout=search, binding_timeout=binding)
        case VolumeBindingArgs(shape=None | ()) if features.storage_capacity_scoring:
            return msgspec.structs.replace(args, shape=LESS_USED_IS_BETTER)
        case NodeResourcesBalancedAllocationArgs():
            return msgspec.structs.replace(args, resources=_complete_resources(args.resources))
        case NodeResourcesFitArgs(scoring_strategy=strategy):
            resources = _complete_resources(strategy.resources)
            return msgspec.structs.replace(
                args, scoring_strategy=msgspec.structs.replace(strategy, resources=resources)
            )
        case PodTopologySpreadArgs(defaulting_type=""):
            return msgspec.structs.replace(args, defaulting_type="System")
        case _:
            return args


def _complete_resources(written: tuple[ResourceSpec, ...]) -> tuple[ResourceSpec, ...]:
    return tuple(ResourceSpec(name=r.name, weight=r.weight or 1) for r in written) or CPU_AND_MEMORY


def differences_from_default(plugins: Plugins, features: Features = DEFAULT_FEATURES) -> list[str]:
    """How merged plugins differ from the default ones, in words: what is missing, added, or weighs differently."""
    weights = {plugin.name: plugin.weight for plugin in plugins.multi_point.enabled}
    defaults = default_plugins(features)
    differences = [f"without {name}" for name in defaults if name not in weights]
    for name, weight in weights.items():
        if name not in defaults:
            differences.append(f"with {name}")
        elif weight != defaults[name]:
            differences.append(f"{name} weight {weight} (default {defaults[name]})")
    for point, plugin_set in plugins.sets():
        if point != "multi_point":
            differences += [f"{plugin.name} at {point_as_written(point)}" for plugin in plugin_set.enabled]
            differences += [f"no {plugin.name} at {point_as_written(point)}" for plugin in plugin_set.disabled]
    return differences
