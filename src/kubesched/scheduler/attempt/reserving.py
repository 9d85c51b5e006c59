"""Assuming a pod on a node, with all that plugins set aside for it there; and giving that back."""

from __future__ import annotations

import logging
from collections.abc import Mapping

from kubesched.framework.decision import Decision
from kubesched.framework.plugin import ReservePlugin
from kubesched.framework.profile import Profile
from kubesched.framework.status import Status, error
from kubesched.state.cluster import ClusterState

log = logging.getLogger(__name__)


class Reserving:
    """The Reserve plugins of all profiles. Only the cache changes."""

    def __init__(self, state: ClusterState, profiles: Mapping[str, Profile]) -> None:
        self._state = state
        self._reserve_plugins = {name: profile.at("reserve", ReservePlugin) for name, profile in profiles.items()}

    def assume_and_reserve(self, decision: Decision) -> Status | None:
        """None if the pod is assumed and everything is set aside for it; else nothing is."""
        pod, cycle = decision.pod, decision.cycle
        if self._state.placed(pod) is not None:  # another scheduler was faster
            return error(f"pod {pod.uid}({pod.key}) is in the cache, so can't be assumed")
        self._state.assume(pod, decision.node, cycle.facts)
        rejected: Status | None = None
        for plugin in self._reserve_plugins[decision.profile]:
            status = cycle.ask(plugin.name, "Reserve", plugin.reserve, cycle, pod, decision.node)
            if status is not None:
                text = f'running Reserve plugin "{plugin.name}": {status.message}'
                rejected = status.by(plugin.name) if status.is_rejection else error(text)
                break
        cycle.lap("Reserve", rejected)
        if rejected is not None:
            self.forget(decision)
        return rejected

    def forget(self, decision: Decision) -> None:
        """Give everything back and forget the assumption."""
        self.unreserve(decision)
        self._state.forget(decision.pod)

    def unreserve(self, decision: Decision) -> None:
        """Call Unreserve of all Reserve plugins in reverse order, also of those that reserved nothing."""
        for plugin in reversed(self._reserve_plugins[decision.profile]):
            try:
                plugin.unreserve(decision.cycle, decision.pod, decision.node)
            except Exception:  # the others must still give back theirs, and the pod its place
                log.exception("plugin %s broke giving back what it reserved for pod %s", plugin.name, decision.pod.key)
        decision.cycle.lap("Unreserve")
