"""Filters that answer for columns and for one node say the same both ways."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.builders import make_cluster
from tests.unit.framework.test_answers_property import ASKERS

from kubesched.api.pod import Pod
from kubesched.config.args import NodeAffinityArgs
from kubesched.framework.cycle import Cycle
from kubesched.framework.nodes import Nodes
from kubesched.framework.plugin import FilterPlugin
from kubesched.plugins.node_affinity import NodeAffinityPlugin
from kubesched.plugins.node_name import NodeName
from kubesched.plugins.node_unschedulable import NodeUnschedulable
from kubesched.plugins.taint_toleration import TaintToleration
from kubesched.testing import ZONE, make_node, make_pod, node_term

NODES = (
    make_node("n0").label(disk="ssd").label({ZONE: "z1"}),
    make_node("n1").label({ZONE: "z2"}).taint("dedicated", "a"),
    make_node("n2").label(disk="ssd").cordoned(),
    make_node("n3").taint("dedicated", "b", "PreferNoSchedule").taint("broken", effect="NoExecute"),
    make_node("n4").label(disk="").label({ZONE: "z1"}).taint("dedicated", "a").cordoned(),
)
PODS: tuple[Pod, ...] = (
    *ASKERS,
    make_pod("p").node_selector(disk="").build(),
    make_pod("p").node_selector(disk="ssd").requires_node(node_term(ZONE, "Exists")).build(),
    make_pod("p").requires_node(node_term(ZONE, "In")).build(),  # malformed
    make_pod("p").requires_node(node_term("metadata.name", "In", "n4"), node_term("disk", "DoesNotExist")).build(),
    make_pod("p").requires_node(node_term("metadata.name", "In", "n1", "n2")).build(),
    make_pod("p").on("elsewhere").build(),
)
ADDED = NodeAffinityArgs(
    added_affinity=make_pod("x").requires_node(node_term("disk", "Exists")).build().spec.affinity.node_affinity  # type: ignore[union-attr]
)


@pytest.mark.parametrize(
    ("kind", "args"),
    [
        (NodeAffinityPlugin, None),
        (NodeAffinityPlugin, ADDED),
        (NodeName, None),
        (NodeUnschedulable, None),
        (TaintToleration, None),
    ],
)
def test_a_node_by_itself_is_judged_as_in_a_column(kind: type[FilterPlugin], args: Any) -> None:
    state, plugin = make_cluster(*NODES), kind(args)
    rejected = 0
    for pod in PODS:
        cycle, nodes = Cycle(pod, state), Nodes(state)
        ids = plugin.filter(cycle, nodes)
        for i in range(len(nodes)):
            alone = plugin.filter_node(cycle, nodes.view(i))
            assert alone == plugin.rejections.statuses[int(ids[i])], f"{pod.spec} on {nodes.node(i).name}"
        rejected += int(np.count_nonzero(ids))
    assert 0 < rejected < len(PODS) * len(NODES)
