"""Views of nodes give resources by name: a column for plugins of columns, a number for those of one node at a time."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest

from kubesched.framework.nodes import FewNodes, Nodes, WhatIf
from kubesched.state.cluster import ClusterState
from kubesched.testing import make_node, make_pod

GPU = "example.com/gpu"


@pytest.fixture
def state() -> ClusterState:
    state = ClusterState()
    state.apply(make_node("small").capacity({GPU: 2}, cpu="4", memory="8Gi").build())
    state.apply(make_node("large").capacity(cpu="8", memory="16Gi").build())
    state.apply(make_pod("p").requests(cpu="1500m").on("large").build())
    return state


def test_columns_and_single_nodes_say_the_same_of_a_resource(state: ClusterState) -> None:
    nodes = Nodes(state)
    for resource in ("cpu", "memory", GPU, "example.com/unheard-of"):
        views = [nodes.view(i) for i in range(len(nodes))]
        assert nodes.allocatable(resource).tolist() == [view.allocatable(resource) for view in views]
        assert nodes.requested(resource).tolist() == [view.requested(resource) for view in views]
    assert nodes.allocatable("cpu").tolist() == [4000, 8000]
    assert nodes.requested("cpu").tolist() == [0, 1500]
    assert nodes.allocatable(GPU).tolist() == [2, 0]


def test_asking_about_an_unknown_resource_changes_nothing(state: ClusterState) -> None:
    before = dict(state.nodes.resources)
    assert Nodes(state).allocatable("example.com/unheard-of").tolist() == [0, 0]
    assert state.nodes.resources == before


def test_view_of_some_rows_and_of_what_might_be(state: ClusterState) -> None:
    row = state.nodes.row_of["large"]
    assert Nodes(state, np.array([row])).requested("cpu").tolist() == [1500]
    world = WhatIf(state, np.array([row]))
    world.remove(0, world.pods(0)[0])
    assert world.requested("cpu").tolist() == [0]
    assert world.view(0).requested("cpu") == 0


def test_few_nodes_whose_views_were_looked_at_need_no_garbage_collector(state: ClusterState) -> None:
    """There are some for every pod."""
    nodes = FewNodes(state, [0])
    assert nodes.view(0).totals is nodes.view(0).totals
    known = weakref.ref(nodes)
    gc.disable()
    try:
        del nodes
        assert known() is None
    finally:
        gc.enable()
