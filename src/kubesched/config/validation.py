"""Whether a complete configuration makes sense: every mistake at once.

What only building the framework can tell (unknown plugins, a plugin enabled twice) is left to it.
"""

from __future__ import annotations

import json
from typing import Any

import msgspec

from kubesched.api.schema import Mistake
from kubesched.api.selectors import label_key_fault
from kubesched.config.args import VolumeBindingArgs
from kubesched.config.args_validation import validate_args
from kubesched.config.configuration import (
    ClientConnection,
    Extender,
    LeaderElection,
    PluginConfig,
    Plugins,
    WrittenConfiguration,
    WrittenProfile,
)
from kubesched.config.features import Features
from kubesched.config.mistakes import duplicate, invalid, required

# Limits per cloud, which NodeVolumeLimits has taken over.
REMOVED_PLUGINS = frozenset({"AzureDiskLimits", "CinderLimits", "EBSLimits", "GCEPDLimits"})

_NATIVE_DOMAIN = "kubernetes.io/"
_QUOTA_PREFIX = "requests."

# Extension points where upstream looks for removed plugins, by the names they have in a file.
_CHECKED_POINTS = {
    "preEnqueue": "pre_enqueue",
    "queueSort": "queue_sort",
    "preFilter": "pre_filter",
    "filter": "filter",
    "postFilter": "post_filter",
    "preScore": "pre_score",
    "score": "score",
    "reserve": "reserve",
    "permit": "permit",
    "preBind": "pre_bind",
    "bind": "bind",
    "postBind": "post_bind",
}


def validate(config: WrittenConfiguration, features: Features) -> list[Mistake]:
    """All mistakes in a configuration whose defaults have been filled in."""
    mistakes = _client_connection(config.client_connection)
    mistakes += _leader_election(config.leader_election)
    if config.parallelism <= 0:
        mistakes.append(invalid("parallelism", config.parallelism, "must be greater than zero"))
    mistakes += _profiles(config.profiles, features)
    mistakes += _percentage("percentageOfNodesToScore", config.percentage_of_nodes_to_score)
    initial, longest = config.pod_initial_backoff_seconds, config.pod_max_backoff_seconds
    if initial <= 0:
        mistakes.append(invalid("podInitialBackoffSeconds", initial, "must be greater than zero"))
    if longest < initial:
        mistakes.append(invalid("podMaxBackoffSeconds", longest, "must not be less than podInitialBackoffSeconds"))
    return mistakes + validate_extenders("extenders", config.extenders)


def _client_connection(connection: ClientConnection) -> list[Mistake]:
    if connection.burst >= 0:
        return []
    return [invalid("clientConnection.burst", connection.burst, "must not be negative")]


def _leader_election(election: LeaderElection) -> list[Mistake]:
    if not election.leader_elect:
        return []
    lease, deadline, retry = election.lease_duration, election.renew_deadline, election.retry_period
    named = {"leaseDuration": lease, "renewDeadline": deadline, "retryPeriod": retry}
    mistakes = [
        invalid(f"leaderElection.{name}", str(duration), "must be greater than zero")
        for name, duration in named.items()
        if duration <= 0
    ]
    if lease <= deadline:
        detail = f"must be greater than renewDeadline ({deadline})"
        mistakes.append(invalid("leaderElection.leaseDuration", str(lease), detail))
    texts = {
        "resourceLock": election.resource_lock,
        "resourceNamespace": election.resource_namespace,
        "resourceName": election.resource_name,
    }
    mistakes += [required(f"leaderElection.{name}", "must not be empty") for name, text in texts.items() if not text]
    if election.resource_lock != "leases":
        mistakes.append(invalid("leaderElection.resourceLock", election.resource_lock, 'must be "leases"'))
    return mistakes


def _percentage(path: str, percentage: int | None) -> list[Mistake]:
    if percentage is None or 0 <= percentage <= 100:
        return []
    return [invalid(path, percentage, "must be from 0 to 100")]


def _profiles(profiles: tuple[WrittenProfile, ...], features: Features) -> list[Mistake]:
    mistakes: list[Mistake] = []
    seen: set[str] = set()
    for i, profile in enumerate(profiles):
        path, name = f"profiles[{i}]", profile.scheduler_name or ""
        if not name:
            mistakes.append(required(f"{path}.schedulerName", "each of several profiles needs a name of its own"))
        mistakes += _percentage(f"{path}.percentageOfNodesToScore", profile.percentage_of_nodes_to_score)
        mistakes += _removed_plugins(f"{path}.plugins", profile.plugins)
        mistakes += _plugin_config(f"{path}.pluginConfig", profile.plugin_config, features)
        if name in seen:
            mistakes.append(duplicate(f"{path}.schedulerName", name))
        seen.add(name)
    return mistakes + _one_queue_sort(profiles)


def _removed_plugins(path: str, plugins: Plugins) -> list[Mistake]:
    return [
        _removed(f"{path}.{point}.enabled[{i}]", plugin.name)
        for point, field in _CHECKED_POINTS.items()
        for i, plugin in enumerate(getattr(plugins, field).enabled)
        if plugin.name in REMOVED_PLUGINS
    ]


def _removed(path: str, name: str) -> Mistake:
    return invalid(path, name, "has been removed; NodeVolumeLimits does its job")


def _plugin_config(path: str, entries: tuple[PluginConfig, ...], features: Features) -> list[Mistake]:
    mistakes: list[Mistake] = []
    seen: set[str] = set()
    for i, entry in enumerate(entries):
        here = f"{path}[{i}]"
        if entry.name in seen:
            mistakes.append(duplicate(here, entry.name))
        seen.add(entry.name)
        if entry.name in REMOVED_PLUGINS:
            mistakes.append(_removed(here, entry.name))
        else:
            mistakes += validate_args(f"{here}.args", entry.name, entry.args, features)
    return mistakes


def _one_queue_sort(profiles: tuple[WrittenProfile, ...]) -> list[Mistake]:
    """All profiles share one queue, so they must sort it alike."""
    first = profiles[0].plugins.queue_sort
    mistakes = []
    if len(first.enabled) > 1:
        detail = "only one plugin can sort the queue"
        mistakes.append(invalid("profiles[0].plugins.queueSort.Enabled", len(first.enabled), detail))
    sorter = first.enabled[0].name if first.enabled else ""
    configured = [entry.args for entry in profiles[0].plugin_config if sorter and entry.name == sorter]
    args = configured[-1] if configured else None
    for i, profile in enumerate(profiles[1:], start=1):
        other = profile.plugins.queue_sort
        if other != first:
            names = [plugin.name for plugin in other.enabled]
            mistakes.append(invalid(f"profiles[{i}].plugins.queueSort", names, "must be the same in all profiles"))
        for entry in profile.plugin_config:
            if entry.name == sorter and _comparable(entry.args) != _comparable(args):
                detail = "arguments of the plugin that sorts the queue must be the same in all profiles"
                mistakes.append(invalid(f"profiles[{i}].pluginConfig.args", sorter, detail))
    return mistakes


def _comparable(args: Any) -> Any:
    """Arguments such that equal ones are equal to Kubernetes: no list is an empty list, and `true` is not 1."""
    if isinstance(args, VolumeBindingArgs):
        return msgspec.structs.replace(args, shape=args.shape or ())
    return args if isinstance(args, msgspec.Struct) else json.dumps(args, sort_keys=True)


def validate_extenders(path: str, extenders: tuple[Extender, ...]) -> list[Mistake]:
    """All mistakes in the extenders: weights, names of resources, more than one that binds."""
    mistakes: list[Mistake] = []
    managed: set[str] = set()
    for i, extender in enumerate(extenders):
        here = f"{path}[{i}]"
        if extender.prioritize_verb and extender.weight <= 0:
            mistakes.append(invalid(f"{here}.weight", extender.weight, "must be positive for an extender that scores"))
        for j, resource in enumerate(extender.managed_resources):
            field = f"{here}.managedResources[{j}].name"
            if fault := _extended_resource_fault(resource.name):
                mistakes.append(invalid(field, resource.name, fault))
            if resource.name in managed:
                mistakes.append(invalid(field, resource.name, "is already managed by an extender"))
            managed.add(resource.name)
    binders = sum(1 for extender in extenders if extender.bind_verb)
    if binders > 1:
        mistakes.append(invalid(path, f"{binders} extenders with bindVerb", "only one extender can bind"))
    return mistakes


def _extended_resource_fault(name: str) -> str:
    """Why this is no extended resource: those have a domain, and not one of Kubernetes' own."""
    if fault := label_key_fault(name):
        return fault
    is_native = "/" not in name or _NATIVE_DOMAIN in name
    if is_native or name.startswith(_QUOTA_PREFIX) or label_key_fault(_QUOTA_PREFIX + name):
        return "is not an extended resource"
    return ""
