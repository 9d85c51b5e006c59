"""A live cluster that watches keep current as a source: another scheduler decides there, and nothing is written."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from kubesched.api.change import Change
from kubesched.api.meta import KubeObject
from kubesched.config import SchedulerConfiguration
from kubesched.serve.age import Followed, NotReadyError
from kubesched.serve.cluster import ServedCluster
from kubesched.ui.model.observed import Observed
from kubesched.ui.model.seen_decisions import SeenDecisions


class FollowedCluster(ServedCluster):
    """A cluster that notes the decisions which its changes amount to."""

    def __init__(
        self, configuration: SchedulerConfiguration, *, clock: Callable[[], float] = time.time, **options: Any
    ) -> None:
        """`clock` has seconds since 1970. The options are those of every simulated cluster."""
        self.seen = SeenDecisions(clock)
        self.clock = clock
        super().__init__((), configuration, **options)

    def handle(self, change: Change[KubeObject]) -> None:
        self.seen.handling(change)
        super().handle(change)


def observe_following(cluster: FollowedCluster, followed: Followed, title: str) -> Observed:
    """The cluster as the watches show it; the page says so when one of them is broken."""
    return Observed(
        kind="live",
        title=title,
        state=cluster.state,
        pods=cluster.pods,
        engine=cluster.engine,
        profiles=cluster.profiles,
        configuration=cluster.configuration,
        clock=cluster.clock,
        live=True,
        pods_without_node=cluster.seen.without_node,
        log=cluster.seen,
        saying=lambda: _trouble(followed),
    )


def _trouble(followed: Followed) -> str:
    try:
        behind = followed.age().behind
    except NotReadyError as error:
        return f"The cluster is still being read: {error}."
    if not behind:
        return ""
    return "Not up to date: " + ", ".join(f"{each.kind} ({each.why})" for each in behind)
