"""Manifests, a snapshot or one reading of a live cluster as a source: it stands still, and pods wait as they are."""

from __future__ import annotations

from kubesched.simulate.cluster import SimulatedCluster
from kubesched.ui.model.observed import Observed


def observe_manifests(cluster: SimulatedCluster, title: str) -> Observed:
    """The cluster that manifests describe. Nothing is scheduled: the page says what would become of pods that wait."""
    return Observed(
        kind="manifests",
        title=title,
        state=cluster.state,
        pods=cluster.pods,
        engine=cluster.engine,
        profiles=cluster.profiles,
        clock=lambda: 0.0,
    )
