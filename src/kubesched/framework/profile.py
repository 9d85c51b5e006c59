"""A profile: the plugins that run at each extension point, in order, made from its configuration.

`multiPoint` enables a plugin at all its extension points. The configuration of one extension point goes before that:
its own order and weights come first, and a plugin that it disables stays out.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from typing import Any, TypeVar

from kubesched.api.errors import UserError
from kubesched.config import PluginEntry, PluginSet, ProfileConfig
from kubesched.config.configuration import point_as_written
from kubesched.framework.errors import describe_with_place
from kubesched.framework.events import POD_KINDS, Action, ClusterEvent, Interest, Kind
from kubesched.framework.groups import GROUP_POINTS, PlacementScorePlugin
from kubesched.framework.plugin import (
    EXTENSION_POINTS,
    FilterPlugin,
    PermitPlugin,
    Plugin,
    PluginContext,
    PostFilterPlugin,
    PreEnqueuePlugin,
    PreFilterPlugin,
    ReservePlugin,
    ScorePlugin,
)
from kubesched.framework.reads import UNDECLARED, Signature, union_of
from kubesched.framework.status import MAX_NODE_SCORE

P = TypeVar("P", bound=Plugin)

_POINTS = EXTENSION_POINTS | GROUP_POINTS
_MAX_TOTAL_SCORE = 2**63 - 1


class ProfileError(UserError):
    """The configuration asks for something that the plugins cannot do."""


class Profile:
    """The plugins of one scheduler name, ready to be asked."""

    def __init__(self, config: ProfileConfig, registry: Mapping[str, type[Plugin]], context: PluginContext) -> None:
        self.name = config.scheduler_name
        self.percentage_of_nodes_to_score = config.percentage_of_nodes_to_score
        enabled = config.plugins.enabled_names()
        self.plugins = {
            name: self._make_plugin(plugin, config.plugin_config.get(name), context)
            for name, plugin in registry.items()
            if name in enabled
        }
        multi_point = config.plugins.multi_point.enabled
        self._points: dict[str, tuple[Plugin, ...]] = {
            point: self._expand(point, getattr(config.plugins, point), multi_point) for point in _POINTS
        }
        if len(self._points["queue_sort"]) != 1:
            count = len(self._points["queue_sort"])
            raise ProfileError(f"profile {self.name!r}: exactly one queue sort plugin is needed, but there are {count}")
        if not self._points["bind"]:
            raise ProfileError(f"profile {self.name!r}: at least one bind plugin is needed")
        if len(self._points["placement_generate"]) > 1:
            raise ProfileError(
                f'at most one placement generate plugin is allowed for profile with scheduler name "{self.name}"'
            )
        reads = [
            (plugin.name, getattr(plugin, f"{point}_reads"))
            for point in ("pre_filter", "filter", "post_filter")
            for plugin in self._points[point]
        ]
        self.undeclared = frozenset(name for name, plugin_reads in reads if plugin_reads == UNDECLARED)
        """Plugins that can reject a pod, and do not declare what they read: they may tell any two pods apart."""
        self.signature = Signature(
            union_of(plugin_reads.pod for _, plugin_reads in reads if plugin_reads != UNDECLARED)
        ).of
        """The signature of a pod and its facts: all plugins but those in `undeclared` reject pods with equal ones alike
        at the same moment. A tuple if it has parts that hardly another pod has."""
        post_filters = self.at("post_filter", PostFilterPlugin)
        self._makes_room_undeclared = any(plugin.post_filter_reads == UNDECLARED for plugin in post_filters)
        scored = (*config.plugins.placement_score.enabled, *multi_point)
        self._placement_weights = {entry.name: entry.weight or 1 for entry in reversed(scored)}
        self.weights = self._weights((*config.plugins.score.enabled, *multi_point))

    def at(self, point: str, kind: type[P]) -> tuple[P, ...]:
        """The plugins of an extension point, in the order in which they run."""
        assert _POINTS[point] is kind
        return self._points[point]  # type: ignore[return-value]

    def rejects_alike(self, rejectors: Set[str]) -> bool:
        """Whether these plugins, which rejected a pod on all nodes, reject all pods of the same signature."""
        return not self._makes_room_undeclared and self.undeclared.isdisjoint(rejectors)

    @property
    def scores(self) -> tuple[tuple[ScorePlugin, int], ...]:
        """The score plugins with their weights."""
        return tuple((plugin, self.weights[plugin.name]) for plugin in self.at("score", ScorePlugin))

    @property
    def placement_scores(self) -> tuple[tuple[PlacementScorePlugin, int], ...]:
        """The plugins that score placements of groups, with their weights."""
        plugins = self.at("placement_score", PlacementScorePlugin)
        return tuple((plugin, self._placement_weights[plugin.name]) for plugin in plugins)

    def _make_plugin(self, plugin: type[Plugin], args: Any, context: PluginContext) -> Plugin:
        try:
            return plugin(args, context)
        except ProfileError:
            raise
        except Exception as error:  # of a third party
            manner = "without args" if args is None else f"with the args {args}"
            raise ProfileError(
                f"profile {self.name!r}: plugin {plugin.name!r} cannot be made {manner}: {describe_with_place(error)}"
            ) from error

    def _expand(self, point: str, own: PluginSet, multi_point: tuple[PluginEntry, ...]) -> tuple[Plugin, ...]:
        explicit = self._explicit(point, own)
        if "*" in own.disabled_names:
            return tuple(explicit.values())
        overriding: set[str] = set()
        inherited: dict[str, Plugin] = {}
        for entry in multi_point:
            plugin = self._plugin("multi_point", entry.name)
            if not _takes_part(plugin, point) or entry.name in own.disabled_names:
                continue
            if entry.name in explicit:
                overriding.add(entry.name)
            elif entry.name in inherited:
                raise ProfileError(f"profile {self.name!r}: plugin {entry.name!r} is enabled twice in multiPoint")
            else:
                inherited[entry.name] = plugin
        first = [plugin for name, plugin in explicit.items() if name in overriding]
        last = [plugin for name, plugin in explicit.items() if name not in overriding]
        return (*first, *inherited.values(), *last)

    def _explicit(self, point: str, own: PluginSet) -> dict[str, Plugin]:
        plugins: dict[str, Plugin] = {}
        for entry in own.enabled:
            plugin = self._plugin(point, entry.name)
            subject, written = f"profile {self.name!r}: plugin {entry.name!r}", point_as_written(point)
            if not _takes_part(plugin, point):
                raise ProfileError(f"{subject} has no part in {written}")
            if entry.name in plugins:
                raise ProfileError(f"{subject} is enabled twice in {written}")
            plugins[entry.name] = plugin
        return plugins

    def _plugin(self, point: str, name: str) -> Plugin:
        if name not in self.plugins:
            raise ProfileError(
                f"profile {self.name!r}: there is no plugin named {name!r} (enabled for {point_as_written(point)}); "
                "is the package that offers it installed?"
            )
        return self.plugins[name]

    def _weights(self, entries: tuple[PluginEntry, ...]) -> dict[str, int]:
        weights: dict[str, int] = {}
        total = 0
        for entry in entries:
            if entry.name in weights or not isinstance(self.plugins[entry.name], ScorePlugin):
                continue
            weights[entry.name] = entry.weight or 1
            total += weights[entry.name] * MAX_NODE_SCORE
            if total > _MAX_TOTAL_SCORE:
                raise ProfileError(f"profile {self.name!r}: the weights of the score plugins are too large together")
        return weights


def _takes_part(plugin: Plugin, point: str) -> bool:
    return isinstance(plugin, _POINTS[point]) and point not in plugin.absent_from


_NOT_AWAITED = (*POD_KINDS, Kind.VOLUME_ATTACHMENT, Kind.RESOURCE_SLICE, Kind.NAMESPACE, Kind.ANY)

ANY_EVENT = tuple(Interest(ClusterEvent(kind, Action.ALL)) for kind in Kind if kind not in _NOT_AWAITED)
"""The events of a plugin that registers none: kind by kind, because informers open watches by these kinds."""

_REJECTORS = (PreEnqueuePlugin, PreFilterPlugin, FilterPlugin, ReservePlugin, PermitPlugin)
"""Only plugins of these extension points can reject a pod, so only they can help it later."""

_TAINT_CHANGE = Interest(ClusterEvent(Kind.NODE, Action.UPDATE_NODE_TAINT))


def custom_resources(plugins: Iterable[Plugin]) -> frozenset[str]:
    """The custom resources whose events these plugins wait for."""
    kinds = (interest.event.kind for plugin in plugins for interest in interests_of(plugin))
    return frozenset(str(kind) for kind in kinds if not isinstance(kind, Kind))


def interests_of(plugin: Plugin) -> tuple[Interest, ...]:
    """The events that the plugin registered, and those that follow from them.

    As in kube-scheduler v1.36, a plugin that waits for new nodes waits for changes of taints as well: a node that was
    tainted when it came has not helped any pod yet. Not so in releases with `taints_not_implied`.
    """
    if not isinstance(plugin, _REJECTORS):
        return ()
    registered = plugin.events_to_register()
    if registered is None:
        return ANY_EVENT
    if plugin.context.features.release.taints_not_implied:
        return tuple(registered)
    of_nodes = [interest.event.action for interest in registered if interest.event.kind is Kind.NODE]
    sees_new = any(action & Action.ADD for action in of_nodes)
    sees_taints = any(action & Action.UPDATE_NODE_TAINT for action in of_nodes)
    return (*registered, _TAINT_CHANGE) if sees_new and not sees_taints else tuple(registered)
