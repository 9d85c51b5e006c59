"""ImageLocality: nodes that already have the images score higher, large and widespread images count most."""

from __future__ import annotations

from collections.abc import Hashable

import numpy as np

from kubesched.api.pod import Pod
from kubesched.framework.cycle import Cycle
from kubesched.framework.nodes import Nodes
from kubesched.framework.plugin import ScorePlugin
from kubesched.framework.reads import PodFields, Reads, Scope
from kubesched.framework.status import MAX_NODE_SCORE
from kubesched.state.columns import Int64

_MIB = 1024 * 1024
_MIN_THRESHOLD = 23 * _MIB
_MAX_CONTAINER_THRESHOLD = 1000 * _MIB


class ImageLocality(ScorePlugin):
    """Scores by the size of the images that need not be pulled."""

    name = "ImageLocality"
    score_reads = Reads(PodFields.SPEC, Scope.NODE_OBJECT)

    def sign(self, cycle: Cycle) -> Hashable:
        # How widespread an image is depends on all nodes, so any change of images or of their number asks anew.
        table = cycle.state.nodes
        return _images(cycle), table.images.version, table.live_count

    def score(self, cycle: Cycle, nodes: Nodes) -> Int64 | int:
        images, containers, volumes = _images(cycle)
        table = cycle.state.nodes
        present = np.zeros(table.size, dtype=np.int64)
        has_image = False
        for name in images:
            image = table.images.get(name)
            if image is not None:
                spread = len(image.rows) / table.live_count
                present[list(image.rows)] += int(float(image.size) * spread)
                has_image = True
        if not has_image:
            return 0
        counted = containers + volumes * self.context.features.release.image_volumes_counted
        ceiling = _MAX_CONTAINER_THRESHOLD * counted
        present = np.clip(nodes.take(present), _MIN_THRESHOLD, ceiling)
        return MAX_NODE_SCORE * (present - _MIN_THRESHOLD) // (ceiling - _MIN_THRESHOLD)


def _images(cycle: Cycle) -> tuple[tuple[str, ...], int, int]:
    """The images of a pod as nodes name them, and how many are of containers and of volumes: the upper bound."""
    return cycle.shared_facts.derived(_images_of, cycle.pod)


def _images_of(pod: Pod) -> tuple[tuple[str, ...], int, int]:
    containers = [*pod.spec.init_containers, *pod.spec.containers]
    volumes = [v.image.reference for v in pod.spec.volumes if v.image is not None]
    names = tuple(_with_tag(name) for name in [c.image for c in containers] + volumes)
    return names, len(containers), len(volumes)


def _with_tag(image: str) -> str:
    """`nginx` means `nginx:latest`. A colon after the last slash starts a tag (or belongs to a digest)."""
    return image if image.rfind(":") > image.rfind("/") else f"{image}:latest"
