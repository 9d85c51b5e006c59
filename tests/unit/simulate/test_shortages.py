"""Insufficient by how much?"""

from __future__ import annotations

from kubesched import config
from kubesched.api.meta import KubeObject
from kubesched.ask.explain.explanation import explain_pod
from kubesched.plugins.node_resources.fit import Shortage
from kubesched.simulate.cluster import ClusterModel
from kubesched.testing import make_node, make_pod

SMALL = make_node("small").capacity(cpu="4", memory="8Gi", pods=10).build()
LARGE = make_node("large").capacity(cpu="8", memory="32Gi", pods=10).build()
TAINTED = make_node("tainted").capacity(cpu="12", memory="32Gi", pods=10).taint("dedicated", "batch").build()
RUNNING = make_pod("running").requests(cpu="500m", memory="1Gi").on("large").build()


def missing(*objects: KubeObject) -> tuple[Shortage, ...]:
    cluster = ClusterModel(objects, config.default())
    explained = explain_pod(cluster, cluster.pods["default/p"])
    found: tuple[Shortage, ...] = explained.details["shortages"].data
    return found


def test_the_most_that_is_left_is_told_beside_what_is_asked_for() -> None:
    pod = make_pod("p").requests(cpu="16", memory="20Gi").build()
    assert missing(SMALL, LARGE, RUNNING, pod) == (
        Shortage("cpu", asked="16", most_left="7500m", node="large", nodes=2),
        Shortage("memory", asked="20Gi", most_left="8Gi", node="small", nodes=1),
    )


def test_resources_that_nodes_do_not_have_at_all_count_as_none_left() -> None:
    pod = make_pod("p").requests({"example.com/gpu": "2"}).build()
    assert missing(SMALL, pod) == (Shortage("example.com/gpu", asked="2", most_left="0", node="small", nodes=1),)


def test_nodes_that_would_be_refused_anyhow_do_not_count() -> None:
    pod = make_pod("p").requests(cpu="16").build()
    assert [short.nodes for short in missing(LARGE, TAINTED, pod)] == [1]
    assert missing(TAINTED, pod) == ()


def test_nothing_is_missing_for_a_pod_that_fits_somewhere() -> None:
    assert missing(SMALL, LARGE, make_pod("p").requests(cpu="6").build()) == ()
