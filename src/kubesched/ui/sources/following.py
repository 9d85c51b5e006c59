"""A live cluster that watches keep current as a source: another scheduler decides there, and nothing is written."""

from __future__ import annotations

import time
from collections.abc import Callable

from kubesched.questions.sources.age import ClusterFeed, NotReadyError
from kubesched.simulate.cluster import ClusterModel
from kubesched.ui.model.observed import Observed
from kubesched.ui.model.seen_decisions import SeenDecisions


def observe_following(
    cluster: ClusterModel, followed: ClusterFeed, title: str, *, clock: Callable[[], float] = time.time
) -> Observed:
    """The cluster as the watches show it; the page says so when one of them is broken.

    From now on the decisions are noted that changes amount to. `clock` has seconds since 1970.
    """
    seen = SeenDecisions(clock, cluster.pods.values())
    cluster.observers.append(seen.handling)
    return Observed(
        kind="live",
        title=title,
        cluster=cluster,
        clock=clock,
        live=True,
        pods_without_node=seen.without_node,
        log=seen,
        saying=lambda: _trouble(followed),
    )


def _trouble(followed: ClusterFeed) -> str:
    try:
        behind = followed.age().behind
    except NotReadyError as error:
        return f"The cluster is still being read: {error}."
    if not behind:
        return ""
    return "Not up to date: " + ", ".join(f"{each.kind} ({each.why})" for each in behind)
