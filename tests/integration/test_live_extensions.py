"""What others add to the daemon: plugins of installed packages, and extenders on the network."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from tests.builders import Json
from tests.integration.conftest import StartDaemon
from tests.integration.daemon_process import Daemon
from tests.integration.live_cluster import PATIENCE, LiveCluster, wait_until
from tests.unit.extenders.extender_server import ExtenderServer, filtering, passing

from kubesched.api.kinds import NODES, PODS
from kubesched_sandbox.api import PatchKind
from kubesched_sandbox.http import Rule

PAIRS = '''
"""Pods that carry the same label `pair` are bound together or not at all."""

from kubesched.framework.plugin import PermitPlugin
from kubesched.framework.status import Code, Status


class Pairs(PermitPlugin):
    name = "Pairs"

    def permit(self, cycle, pod, node_name):
        pair = pod.metadata.labels.get("pair")
        partners = [other for other in self.context.waiting if other.pod.metadata.labels.get("pair") == pair]
        if pair is None or partners:
            for partner in partners:
                partner.allow(self.name)
            return None, 0
        return Status(Code.WAIT, ("for the other of the pair",)), self.args["seconds"]
'''


FRAGILE = '''
"""Cannot deal with pods that have no labels."""

from kubesched.framework.plugin import FilterPlugin


class Fragile(FilterPlugin):
    name = "Fragile"

    def filter_node(self, cycle, node):
        return 1 / len(cycle.pod.metadata.labels) and None
'''


PONDEROUS = '''
"""Thinks about every pod until a file is there."""

import time
from pathlib import Path

from kubesched.framework.plugin import FilterPlugin


class Ponderous(FilterPlugin):
    name = "Ponderous"

    def filter_node(self, cycle, node):
        Path(self.args["thinking"]).touch()
        while not Path(self.args["over"]).exists():
            time.sleep(0.01)
'''


def _installed(directory: Path, plugin: str, source: str) -> dict[str, str]:
    """The environment of a process that finds a package with this plugin."""
    module, site = f"kubesched_{plugin.lower()}", directory / "site"
    about = site / f"{module}-1.0.dist-info"
    about.mkdir(parents=True)
    (site / f"{module}.py").write_text(source)
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {module}\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text(f"[kubesched.plugins]\n{plugin} = {module}:{plugin}\n")
    return {"PYTHONPATH": os.pathsep.join(filter(None, (str(site), os.environ.get("PYTHONPATH"))))}


@pytest.fixture
def installed_pairs(tmp_path: Path) -> dict[str, str]:
    return _installed(tmp_path, "Pairs", PAIRS)


@pytest.fixture
def extender() -> Iterator[ExtenderServer]:
    server = ExtenderServer()
    server.start()
    yield server
    server.stop()


def _pairs_within(seconds: float) -> dict[str, object]:
    profile = {
        "schedulerName": "default-scheduler",
        "plugins": {"permit": {"enabled": [{"name": "Pairs"}]}},
        "pluginConfig": [{"name": "Pairs", "args": {"seconds": seconds}}],
    }
    return {"profiles": [profile]}


def test_pod_waits_for_a_permit_and_is_bound_when_it_is_allowed(
    cluster: LiveCluster, start_daemon: StartDaemon, installed_pairs: dict[str, str]
) -> None:
    cluster.add_node("node")
    cluster.add_pod("one", metadata={"labels": {"pair": "x"}})
    cluster.add_pod("single")
    start_daemon(cluster, config=_pairs_within(600), environ=installed_pairs)
    wait_until(lambda: cluster.node_of("single"), "the pod without a pair bound")
    assert cluster.node_of("one") == ""
    cluster.add_pod("other", metadata={"labels": {"pair": "x"}})
    wait_until(lambda: cluster.all_bound, "both of the pair bound")
    assert set(cluster.bindings.values()) == {1}


def test_pod_that_is_not_allowed_in_time_gives_its_room_back(
    cluster: LiveCluster, start_daemon: StartDaemon, installed_pairs: dict[str, str]
) -> None:
    cluster.add_node("node", cpu="1")
    cluster.add_pod("lonely", cpu="800m", metadata={"labels": {"pair": "x"}})
    start_daemon(cluster, config=_pairs_within(0.5), environ=installed_pairs)
    condition = wait_until(lambda: cluster.condition("lonely"), "a condition")
    assert condition["reason"] == "Unschedulable"
    cluster.add_pod("single", cpu="800m")
    wait_until(lambda: cluster.node_of("single"), "the room taken by another")


def test_waiting_pod_that_is_deleted_gives_its_room_back(
    cluster: LiveCluster, start_daemon: StartDaemon, installed_pairs: dict[str, str]
) -> None:
    cluster.add_node("node", cpu="1")
    daemon = start_daemon(cluster, config=_pairs_within(600), environ=installed_pairs)
    daemon.wait_scheduling()
    cluster.add_pod("lonely", cpu="800m", metadata={"labels": {"pair": "x"}})
    cluster.add_pod("single", cpu="800m")
    wait_until(lambda: "Insufficient cpu" in cluster.condition("single").get("message", ""), "no room left")
    cluster.delete(PODS, "default", "lonely", grace=0)
    wait_until(lambda: cluster.node_of("single"), "the room taken by another")


def test_plugin_that_breaks_concerns_its_own_pods_only(
    cluster: LiveCluster, start_daemon: StartDaemon, tmp_path: Path
) -> None:
    cluster.add_node("node")
    cluster.add_pod("odd")
    cluster.add_pod("fine", metadata={"labels": {"app": "fine"}})
    profile = {"schedulerName": "default-scheduler", "plugins": {"filter": {"enabled": [{"name": "Fragile"}]}}}
    environ = _installed(tmp_path, "Fragile", FRAGILE)
    daemon = start_daemon(cluster, config={"profiles": [profile]}, environ=environ)
    daemon.may_show_tracebacks = True
    wait_until(lambda: cluster.node_of("fine"), "the pod bound that it can deal with")
    assert "division by zero" in wait_until(lambda: cluster.condition("odd"), "a condition")["message"]
    assert daemon.log_lines("ZeroDivisionError")
    assert daemon.stop() == 0


def _thinking(cluster: LiveCluster, start_daemon: StartDaemon, directory: Path) -> Daemon:
    """A daemon with a short lease and a pod on its mind, until the file `over` is in the directory."""
    cluster.add_node("node")
    cluster.add_pod("pod")
    thinking, over = directory / "thinking", directory / "over"
    profile = {
        "schedulerName": "default-scheduler",
        "plugins": {"filter": {"enabled": [{"name": "Ponderous"}]}},
        "pluginConfig": [{"name": "Ponderous", "args": {"thinking": str(thinking), "over": str(over)}}],
    }
    election = {"leaderElect": True, "leaseDuration": "4s", "renewDeadline": "3s", "retryPeriod": "300ms"}
    environ = _installed(directory, "Ponderous", PONDEROUS)
    daemon = start_daemon(cluster, config={"profiles": [profile], "leaderElection": election}, environ=environ)
    wait_until(thinking.exists, "the plugin at work")
    return daemon


def test_scheduler_that_is_stuck_when_it_loses_the_lease_is_left_behind(
    cluster: LiveCluster, start_daemon: StartDaemon, tmp_path: Path
) -> None:
    daemon = _thinking(cluster, start_daemon, tmp_path)
    cluster.misbehave(Rule("500-before", resource="leases"))
    assert daemon.wait_exit(within=60) == 1
    assert daemon.log_lines("Leaderelection lost")
    assert cluster.node_of("pod") == ""


def test_plugin_that_keeps_the_scheduler_busy_costs_neither_the_lease_nor_the_health_checks(
    cluster: LiveCluster, start_daemon: StartDaemon, tmp_path: Path
) -> None:
    daemon = _thinking(cluster, start_daemon, tmp_path)
    since, renewals = time.monotonic(), set[str]()
    while time.monotonic() < since + 5 or len(renewals) <= 3:  # longer than the lease would last
        assert time.monotonic() < since + PATIENCE
        renewals.add(cluster.lease()["renewTime"])
        assert daemon.get("/livez").status == 200
    assert cluster.node_of("pod") == ""
    (tmp_path / "over").touch()
    wait_until(lambda: cluster.node_of("pod"), "the pod bound")
    assert daemon.stop() == 0


def test_extender_narrows_the_choice(cluster: LiveCluster, start_daemon: StartDaemon, extender: ExtenderServer) -> None:
    cluster.add_nodes(4)
    extender.answers["filter"] = passing("node-2")
    cluster.add_pods(5)
    start_daemon(cluster, config={"extenders": [filtering(extender)]})
    wait_until(lambda: cluster.all_bound, "all pods bound")
    assert {pod["spec"]["nodeName"] for pod in cluster.pods()} == {"node-2"}
    assert extender.verbs.count("filter") == 5


def _sent(obj: Json) -> Json:
    """What of an object reaches an extender: everything but who wrote what."""
    return {**obj, "metadata": {name: value for name, value in obj["metadata"].items() if name != "managedFields"}}


def test_extender_sees_objects_as_the_api_server_has_them(
    cluster: LiveCluster, start_daemon: StartDaemon, extender: ExtenderServer
) -> None:
    extender.answers["filter"] = lambda question: {"Nodes": question["Nodes"]}
    container = {"name": "main", "image": "app", "env": [{"name": "GPU_SHARE", "value": "half"}]}
    condition = {"type": "Ready", "status": "True", "reason": "KubeletReady", "message": "all is well"}
    cluster.add_node("node")
    cluster.add_pod("early", containers=[container])
    label = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "early", "labels": {"app": "early"}}}
    apply = partial(cluster.api.patch, kind=PatchKind.APPLY, manager="kubectl")
    early = cluster.call(lambda: apply(PODS, "default", "early", label))
    assert early["metadata"]["managedFields"]
    daemon = start_daemon(cluster, config={"extenders": [filtering(extender, nodeCacheCapable=False)]})
    wait_until(lambda: cluster.node_of("early"), "the pod bound that was in a list")
    node = cluster.patch(NODES, "", "node", {"status": {"conditions": [condition]}}, subresource="status")
    late = cluster.add_pod("late", containers=[container])
    wait_until(lambda: cluster.node_of("late"), "the pod bound that came with a watch")
    assert [question["Pod"] for _, question in extender.asked] == [_sent(early), _sent(late)]
    assert extender.asked[1][1]["Nodes"]["items"] == [_sent(node)]
    assert extender.connections == 1
    assert daemon.stop() == 0


def test_victims_reach_an_extender_as_the_api_server_has_them(
    cluster: LiveCluster, start_daemon: StartDaemon, extender: ExtenderServer
) -> None:
    def agree(question: Json) -> Json:
        victims = question["NodeNameToVictims"]["node"]["Pods"]
        uids = [{"UID": victim["metadata"]["uid"]} for victim in victims]
        return {"NodeNameToMetaVictims": {"node": {"Pods": uids}}}

    extender.answers["preempt"] = agree
    cluster.add_node("node", cpu="1")
    cluster.add_pod("lesser", cpu="800m", metadata={"annotations": {"example.com/note": "spare me"}})
    start_daemon(cluster, config={"extenders": [{"urlPrefix": extender.url, "preemptVerb": "preempt"}]})
    wait_until(lambda: cluster.node_of("lesser"), "the pod bound")
    lesser = cluster.pod("lesser")
    cluster.add_pod("greater", cpu="800m", priorityClassName="system-node-critical")
    wait_until(lambda: cluster.has_pod("greater") and cluster.node_of("greater"), "the room taken by another")
    [victim] = extender.asked[0][1]["NodeNameToVictims"]["node"]["Pods"]
    assert victim["spec"] == lesser["spec"]
    assert victim["metadata"] == _sent(lesser)["metadata"]


def test_extender_that_binds_is_asked_to(
    cluster: LiveCluster, start_daemon: StartDaemon, extender: ExtenderServer
) -> None:
    cluster.add_node("node")

    def bind(asked: Json) -> Json:
        cluster.bind(asked["PodName"], asked["Node"])
        return {}

    extender.answers["bind"] = bind
    start_daemon(cluster, config={"extenders": [{"urlPrefix": extender.url, "bindVerb": "bind"}]})
    cluster.add_pods(3)
    wait_until(lambda: cluster.all_bound, "all pods bound")
    assert extender.verbs == ["bind"] * 3
    assert set(cluster.bindings.values()) == {1}


def test_extender_that_breaks_keeps_pods_in_backoff_until_it_works_again(
    cluster: LiveCluster, start_daemon: StartDaemon, extender: ExtenderServer
) -> None:
    cluster.add_node("node")
    extender.answers["filter"] = 500
    cluster.add_pod("pod")
    start_daemon(cluster, config={"extenders": [filtering(extender)]})
    condition = wait_until(lambda: cluster.condition("pod"), "a condition")
    assert condition["reason"] == "SchedulerError"
    extender.answers["filter"] = passing("node")
    wait_until(lambda: cluster.node_of("pod"), "the pod bound")
