"""Fixtures for tests of plugins and of placement, which pytest finds by itself: the names of `kubesched.testing`.

Nothing of kubesched is imported before a test asks for a fixture, so that other tests do not pay for it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from kubesched.testing import Cluster, NodeBuilder, Placement, PodBuilder


@pytest.fixture
def make_cluster() -> type[Cluster]:
    """`make_cluster(nodes=[...], plugins=[MyPlugin]).schedule(pod)`."""
    from kubesched.testing import Cluster

    return Cluster


@pytest.fixture
def make_pod() -> Callable[..., PodBuilder]:
    """`make_pod("p").requests(cpu="1")`."""
    from kubesched import testing

    return testing.make_pod


@pytest.fixture
def make_node() -> Callable[..., NodeBuilder]:
    """`make_node("n1").capacity(cpu="4").label(tier="fast")`."""
    from kubesched import testing

    return testing.make_node


@pytest.fixture
def make_placement() -> type[Placement]:
    """`make_placement(files=["cluster.json.gz"], manifests=["web.yaml"]).pods(app="web").land_on(pool="web")`."""
    from kubesched.testing import Placement

    return Placement


@pytest.fixture
def check_placement_tests() -> Callable[..., None]:
    """`check_placement_tests("tests/placement")`: all cases there hold."""
    from kubesched import testing

    return testing.check_placement_tests
