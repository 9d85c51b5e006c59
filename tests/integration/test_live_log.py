"""The lines of a daemon's log that people search for, in the words of kube-scheduler."""

from __future__ import annotations

import re

from tests.integration.conftest import StartDaemon
from tests.integration.live_cluster import LiveCluster, wait_until

HEADER = re.compile(r"[IWEF]\d{4} \d\d:\d\d:\d\d\.\d{6} +\d+ \w+\.py:\d+\] ")
EXPECTED = """\
FLAG: --leader-elect-lease-duration="15s"
"Starting Kubernetes Scheduler" version="v1.36.4
Serving securely on 127.0.0.1:
"Attempting to acquire leader lease..." lock="kube-system/kube-scheduler"
"Successfully acquired lease" lock="kube-system/kube-scheduler"
"Add event for unscheduled pod" pod="default/early"
"Attempting to schedule pod" pod="default/early"
"Unable to schedule pod; no nodes are registered to the cluster; waiting" pod="default/early"
"Add event for node" node="node"
"Successfully bound pod to node" pod="default/early" node="node" evaluatedNodes=1 feasibleNodes=1
"Add event for scheduled pod" pod="default/early"
"Delete event for unscheduled pod" pod="default/early"
"Update event for scheduled pod" pod="default/early"
"Unable to schedule pod; no fit; waiting" pod="default/vital" err="0/1 nodes are available: 1 Insufficient cpu."
"Preemptor Pod preempted victim Pod" preemptor="default/vital" victim="default/early" node="node"
"Delete event for scheduled pod" pod="default/early"
"Requested to terminate, exiting"
""".splitlines()


def test_log_has_the_lines_that_people_search_for(cluster: LiveCluster, start_daemon: StartDaemon) -> None:
    daemon = start_daemon(cluster, "-v", "4")
    cluster.add_pod("early", cpu="2")
    daemon.wait_for_log("no nodes are registered")
    cluster.add_node("node", cpu="2")
    wait_until(lambda: cluster.node_of("early"), "the pod bound")
    cluster.add_pod("vital", cpu="2", priorityClassName="system-cluster-critical")
    wait_until(lambda: cluster.node_of("vital"), "the other in its place")
    assert daemon.stop() == 0
    lines = daemon.log.splitlines()
    assert all(HEADER.match(line) for line in lines)
    said = [HEADER.sub("", line) for line in lines]
    assert [words for words in EXPECTED if not any(line.startswith(words) for line in said)] == []
