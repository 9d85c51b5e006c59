from __future__ import annotations

from tests.builders import make_cluster, make_engine
from tests.reading import rejections

from kubesched.testing import make_node, make_pod

NODES = (make_node("cordoned").cordoned(), make_node("open"))


def test_a_cordoned_node_takes_no_pods() -> None:
    decision = make_engine(make_cluster(*NODES)).decide(make_pod("p").build(), explain=True)
    assert rejections(decision) == {"cordoned": "node(s) were unschedulable"}


def test_a_pod_that_tolerates_the_taint_of_that_name_may_go_there() -> None:
    pod = make_pod("p").toleration("node.kubernetes.io/unschedulable", operator="Exists").build()
    assert make_engine(make_cluster(*NODES)).decide(pod, explain=True).feasible == 2
