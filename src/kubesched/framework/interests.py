"""The events that may help pods which a plugin rejected, as the queue looks them up."""

from __future__ import annotations

from collections.abc import Iterable

from kubesched.framework.events import Action, ClusterEvent, Interest, Kind
from kubesched.framework.plugin import (
    FilterPlugin,
    PermitPlugin,
    Plugin,
    PreEnqueuePlugin,
    PreFilterPlugin,
    ReservePlugin,
)

_NOT_ASKED_FOR = (Kind.ASSIGNED_POD, Kind.PENDING_POD, Kind.VOLUME_ATTACHMENT, Kind.RESOURCE_SLICE, Kind.ANY)

ANY_EVENT = tuple(Interest(ClusterEvent(kind, Action.ALL)) for kind in Kind if kind not in _NOT_ASKED_FOR)
"""What a plugin that does not say is taken to wait for: kind by kind, for watches are opened by what is asked for."""

_REJECTORS = (PreEnqueuePlugin, PreFilterPlugin, FilterPlugin, ReservePlugin, PermitPlugin)
"""Only plugins of these extension points can reject a pod, so only they can help it later."""

_TAINT_CHANGE = Interest(ClusterEvent(Kind.NODE, Action.UPDATE_NODE_TAINT))


def custom_resources(plugins: Iterable[Plugin]) -> frozenset[str]:
    """The resources that are known only to these plugins, by the events that they wait for."""
    waited_for = (interest.event.kind for plugin in plugins for interest in interests_of(plugin))
    return frozenset(str(kind) for kind in waited_for if not isinstance(kind, Kind))


def interests_of(plugin: Plugin) -> tuple[Interest, ...]:
    """What the plugin registered, and what follows from it.

    As in kube-scheduler, who waits for new nodes is woken whenever taints change as well: a node that was tainted when
    it came has not helped any pod yet.
    """
    if not isinstance(plugin, _REJECTORS):
        return ()
    registered = plugin.events_to_register()
    if registered is None:
        return ANY_EVENT
    of_nodes = [interest.event.action for interest in registered if interest.event.kind is Kind.NODE]
    sees_new = any(action & Action.ADD for action in of_nodes)
    sees_taints = any(action & Action.UPDATE_NODE_TAINT for action in of_nodes)
    return (*registered, _TAINT_CHANGE) if sees_new and not sees_taints else tuple(registered)
