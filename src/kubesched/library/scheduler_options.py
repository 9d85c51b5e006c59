"""Which scheduler a cluster of the library has: plugins, their arguments, a configuration, a release, gates, a seed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, TypedDict

from kubesched import config as configuration
from kubesched.api.errors import UserError
from kubesched.api.release import NEWEST, RELEASES, release_of
from kubesched.ask.sources.reading import FoundConfiguration
from kubesched.config import Features, SchedulerConfiguration
from kubesched.framework.plugin import Plugin
from kubesched.framework.registry import Registry
from kubesched.plugins.registry import IN_TREE, all_plugins


class SchedulerOptions(TypedDict, total=False):
    """The scheduler that decides; the default one if nothing is given."""

    plugins: Iterable[type[Plugin]]
    """Plugins of your own, enabled besides the default ones."""
    args: Mapping[str, Any] | None
    """The args of plugins by their names."""
    config: str | Path
    """A KubeSchedulerConfiguration: its text, or the path of its file. It then says alone what is enabled."""
    feature_gates: str
    """`GenericWorkload=true,...`, as for kube-scheduler."""
    release: str
    """The release of Kubernetes to decide as: `1.36`. If not given, that of the cluster, else the newest."""
    seed: int
    """Draws among equally good nodes."""


def registry_of(options: SchedulerOptions) -> Registry:
    """The in-tree plugins, those that are installed, and those that are given."""
    added = tuple(options.get("plugins", ()))
    return Registry((*IN_TREE, *added)) if added else all_plugins()


def settings_of(
    options: SchedulerOptions, configured: FoundConfiguration | None = None, version: str = ""
) -> SchedulerConfiguration:
    """The configuration that is given, else that of the scheduler in charge as far as it was found, else the default
    with these plugins and their args; `version` is that of the cluster. Raises UserError."""
    features, config = _features(options, version), options.get("config", "")
    if isinstance(config, Path):
        try:
            return configuration.load(config.read_text(encoding="utf-8"), source=str(config), features=features)
        except OSError as error:
            raise UserError(f"{config}: {error.strerror}") from None
    if config:
        return configuration.load(config, features=features)
    added, args = tuple(options.get("plugins", ())), options.get("args") or {}
    if configured is not None and configured.text and not added and not args:
        return configuration.load(configured.text, source=configured.origin, features=features)
    return configuration.from_plain(_enabling(added, args), features=features)


def _features(options: SchedulerOptions, version: str) -> Features:
    gates, named = options.get("feature_gates", ""), options.get("release", "")
    if named and named not in RELEASES:
        raise UserError(f"release: not one of {', '.join(RELEASES)}: {named}")
    release = RELEASES.get(named) or release_of(version) or NEWEST
    if not gates:
        return Features.of({}, release)
    from kubesched.daemon.feature_gates import FeatureGates
    from kubesched.daemon.flag_values import MULTIMAP

    return Features.of(FeatureGates.parse(MULTIMAP.parse(gates), release), release)


def _enabling(plugins: Iterable[type[Plugin]], args: Mapping[str, Any]) -> dict[str, Any]:
    enabled = [{"name": plugin.name} for plugin in plugins]
    profile = {
        "plugins": {"multiPoint": {"enabled": enabled}},
        "pluginConfig": [{"name": name, "args": arguments} for name, arguments in args.items()],
    }
    return {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [profile],
    }
