"""The mistakes in a complete configuration, all at once.

Unknown plugins, and plugins enabled twice, are found when the framework is built.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import msgspec

from kubesched.api.requests import is_extended
from kubesched.api.schema import Mistake
from kubesched.api.selectors import label_key_fault
from kubesched.config.args import VolumeBindingArgs
from kubesched.config.args_validation import validate_args
from kubesched.config.configuration import (
    ExtenderConfig,
    LeaderElection,
    PluginConfig,
    Plugins,
    WrittenConfiguration,
    WrittenProfile,
    point_as_written,
)
from kubesched.config.features import Features
from kubesched.config.mistakes import duplicate, invalid, out_of_range, required

# Limits per cloud, which NodeVolumeLimits has taken over.
REMOVED_PLUGINS = frozenset({"AzureDiskLimits", "CinderLimits", "EBSLimits", "GCEPDLimits"})

# Extension points where upstream does not look for removed plugins.
_UNCHECKED_POINTS = ("multi_point", "placement_generate", "placement_score")


def validate(config: WrittenConfiguration, features: Features) -> Iterator[Mistake]:
    """All mistakes in a configuration whose defaults have been filled in."""
    if config.client_connection.burst < 0:
        yield invalid("clientConnection.burst", config.client_connection.burst, "must not be negative")
    yield from _leader_election(config.leader_election)
    if config.parallelism <= 0:
        yield invalid("parallelism", config.parallelism, "must be greater than zero")
    yield from _profiles(config.profiles, features)
    yield from out_of_range("percentageOfNodesToScore", config.percentage_of_nodes_to_score, 0, 100)
    initial, longest = config.pod_initial_backoff_seconds, config.pod_max_backoff_seconds
    if initial <= 0:
        yield invalid("podInitialBackoffSeconds", initial, "must be greater than zero")
    if longest < initial:
        yield invalid("podMaxBackoffSeconds", longest, "must not be less than podInitialBackoffSeconds")
    yield from validate_extenders("extenders", config.extenders)


def _leader_election(election: LeaderElection) -> Iterator[Mistake]:
    if not election.leader_elect:
        return
    lease, deadline, retry = election.lease_duration, election.renew_deadline, election.retry_period
    for name, duration in (("leaseDuration", lease), ("renewDeadline", deadline), ("retryPeriod", retry)):
        if duration <= 0:
            yield invalid(f"leaderElection.{name}", str(duration), "must be greater than zero")
    if lease <= deadline:
        yield invalid("leaderElection.leaseDuration", str(lease), f"must be greater than renewDeadline ({deadline})")
    texts = {
        "resourceLock": election.resource_lock,
        "resourceNamespace": election.resource_namespace,
        "resourceName": election.resource_name,
    }
    yield from (required(f"leaderElection.{name}", "must not be empty") for name, text in texts.items() if not text)
    if election.resource_lock != "leases":
        yield invalid("leaderElection.resourceLock", election.resource_lock, 'must be "leases"')


def _profiles(profiles: tuple[WrittenProfile, ...], features: Features) -> Iterator[Mistake]:
    seen: set[str] = set()
    for i, profile in enumerate(profiles):
        path, name = f"profiles[{i}]", profile.scheduler_name or ""
        if not name:
            yield required(f"{path}.schedulerName", "each of several profiles needs a name of its own")
        if profile.percentage_of_nodes_to_score is not None:
            yield from out_of_range(f"{path}.percentageOfNodesToScore", profile.percentage_of_nodes_to_score, 0, 100)
        yield from _removed_plugins(f"{path}.plugins", profile.plugins)
        yield from _plugin_config(f"{path}.pluginConfig", profile.plugin_config, features)
        if name in seen:
            yield duplicate(f"{path}.schedulerName", name)
        seen.add(name)
    yield from _one_queue_sort(profiles)


def _removed_plugins(path: str, plugins: Plugins) -> Iterator[Mistake]:
    for point, plugin_set in plugins.sets():
        for i, plugin in enumerate(plugin_set.enabled):
            if plugin.name in REMOVED_PLUGINS and point not in _UNCHECKED_POINTS:
                yield _removal(f"{path}.{point_as_written(point)}.enabled[{i}]", plugin.name)


def _removal(path: str, name: str) -> Mistake:
    return invalid(path, name, "has been removed; NodeVolumeLimits does its job")


def _plugin_config(path: str, entries: tuple[PluginConfig, ...], features: Features) -> Iterator[Mistake]:
    seen: set[str] = set()
    for i, entry in enumerate(entries):
        here = f"{path}[{i}]"
        if entry.name in seen:
            yield duplicate(here, entry.name)
        seen.add(entry.name)
        if entry.name in REMOVED_PLUGINS:
            yield _removal(here, entry.name)
        else:
            yield from validate_args(f"{here}.args", entry.name, entry.args, features)


def _one_queue_sort(profiles: tuple[WrittenProfile, ...]) -> Iterator[Mistake]:
    """All profiles share one queue, so they must sort it by the same plugin with the same arguments."""
    first = profiles[0].plugins.queue_sort
    if len(first.enabled) > 1:
        field = "profiles[0].plugins.queueSort.Enabled"
        yield invalid(field, len(first.enabled), "only one plugin can sort the queue")
    sorter = first.enabled[0].name if first.enabled else ""
    configured = [entry.args for entry in profiles[0].plugin_config if sorter and entry.name == sorter]
    args = configured[-1] if configured else None
    for i, profile in enumerate(profiles[1:], start=1):
        other = profile.plugins.queue_sort
        if other != first:
            names = [plugin.name for plugin in other.enabled]
            yield invalid(f"profiles[{i}].plugins.queueSort", names, "must be the same in all profiles")
        for entry in profile.plugin_config:
            if entry.name == sorter and _comparable(entry.args) != _comparable(args):
                detail = "arguments of the plugin that sorts the queue must be the same in all profiles"
                yield invalid(f"profiles[{i}].pluginConfig.args", sorter, detail)


def _comparable(args: Any) -> Any:
    """Arguments that compare as in Kubernetes: a missing list equals an empty one, and `true` is not 1."""
    if isinstance(args, VolumeBindingArgs):
        return msgspec.structs.replace(args, shape=args.shape or ())
    return args if isinstance(args, msgspec.Struct) else json.dumps(args, sort_keys=True)


def validate_extenders(path: str, extenders: tuple[ExtenderConfig, ...]) -> Iterator[Mistake]:
    """All mistakes in the extenders: weights, names of resources, more than one that binds."""
    managed: set[str] = set()
    for i, extender in enumerate(extenders):
        here = f"{path}[{i}]"
        if extender.prioritize_verb and extender.weight <= 0:
            yield invalid(f"{here}.weight", extender.weight, "must be positive for an extender that scores")
        for j, resource in enumerate(extender.managed_resources):
            field = f"{here}.managedResources[{j}].name"
            if fault := _extended_resource_fault(resource.name):
                yield invalid(field, resource.name, fault)
            if resource.name in managed:
                yield invalid(field, resource.name, "is already managed by an extender")
            managed.add(resource.name)
    binders = sum(1 for extender in extenders if extender.bind_verb)
    if binders > 1:
        yield invalid(path, f"{binders} extenders with bindVerb", "only one extender can bind")


def _extended_resource_fault(name: str) -> str:
    """Why this is no extended resource: those have a domain, and not one of Kubernetes' own."""
    if fault := label_key_fault(name):
        return fault
    return "" if is_extended(name) else "is not an extended resource"
