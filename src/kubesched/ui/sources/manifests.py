"""Manifests, a snapshot or one reading of a live cluster as a source: it stands still, and pods wait as they are."""

from __future__ import annotations

from kubesched.simulate.cluster import ClusterModel
from kubesched.ui.model.observed import Observed


def observe_manifests(cluster: ClusterModel, title: str) -> Observed:
    """The cluster that manifests describe. Nothing is scheduled: the page says what would become of pods that wait."""
    return Observed(
        kind="manifests",
        title=title,
        cluster=cluster,
        clock=lambda: 0.0,
    )
