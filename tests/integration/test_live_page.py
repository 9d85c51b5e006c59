"""The page of a daemon, and that of `kubesched ui` on a live cluster: who may see it, and that it is current."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest
from tests.integration.conftest import StartCluster, StartDaemon
from tests.integration.daemon_process import Daemon
from tests.integration.live_cluster import LiveCluster, wait_until

SECRET = "the-token-of-the-cluster"


@pytest.fixture
def guarded(start_cluster: StartCluster) -> LiveCluster:
    return start_cluster(tls=True, token=SECRET)


def _daemon(cluster: LiveCluster, start_daemon: StartDaemon, *flags: str) -> Daemon:
    """A daemon with a page, which is read with the token of a service account."""
    file, token = str(cluster.kubeconfig()), cluster.token_of_service_account()
    reviews = ("--authentication-kubeconfig", file, "--authorization-kubeconfig", file)
    return start_daemon(cluster, *reviews, *flags, token=token, with_page=True)


def _got(daemon: Daemon, path: str) -> Any:
    return json.loads(daemon.get(path).text)


def test_page_is_for_those_whom_the_cluster_allows(guarded: LiveCluster, start_daemon: StartDaemon) -> None:
    daemon = _daemon(guarded, start_daemon)
    daemon.wait_scheduling()
    assert daemon.get("/ui/", token="").status == 200  # the same for everybody: it shows where to sign in
    for path in ("/ui/api/about", "/ui/api/map", "/ui/api/stream", "/ui/nowhere"):
        assert daemon.get(path, token="").status == 403, path
        assert daemon.get(path, token="made-up").status == 401, path
    assert daemon.get("/ui/api/about").status == 200
    cookie = {"Cookie": f"__Host-kubesched-ui-{daemon.ui_port}={SECRET}"}
    assert daemon.get("/ui/api/about", token="", headers=cookie).status == 200
    assert daemon.get("/ui/api/about", headers={"Host": "evil.example"}).status == 403
    assert daemon.get("/ui/api/about", headers={"Origin": "https://evil.example"}).status == 403
    assert daemon.get("/ui/api/map", method="DELETE").status == 405


def test_page_shows_cache_queue_and_decisions_and_takes_no_question_that_takes_long(
    guarded: LiveCluster, start_daemon: StartDaemon
) -> None:
    guarded.add_nodes(2)
    daemon = _daemon(guarded, start_daemon)
    daemon.wait_scheduling()
    about = _got(daemon, "/ui/api/about")
    assert (about["source"], about["nodes"]["nodes"], about["schedules"]) == ("daemon", 2, True)
    guarded.add_pods(3)
    guarded.add_pod("large", cpu="100")
    decided = {"bound": 3, "unschedulable": 1}
    wait_until(lambda: _got(daemon, "/ui/api/queue")["outcomes"] == decided, "four decisions seen")
    (group,) = _got(daemon, "/ui/api/pending")["groups"]
    assert (group["title"], group["pods"]) == ("Insufficient cpu", 1)
    assert daemon.get("/ui/api/help/pending").status == 404
    assert daemon.stop() == 0


def test_page_of_a_shadow_has_the_differences_with_both_sides(guarded: LiveCluster, start_daemon: StartDaemon) -> None:
    guarded.add_node("only", labels={"disk": "ssd"})
    guarded.add_node("other")
    guarded.add_pod("objected", nodeSelector={"disk": "ssd"})
    guarded.add_pod("agreed", nodeSelector={"disk": "ssd"})
    daemon = _daemon(guarded, start_daemon, "--shadow")
    daemon.wait_for_log("Watching, and binding nothing")
    guarded.bind("agreed", "only")
    guarded.bind("objected", "other")
    wait_until(lambda: _got(daemon, "/ui/api/shadow")["pods"] == 2, "two judgements")
    view = _got(daemon, "/ui/api/shadow")
    assert view["agreeing"] == 1
    (cause,) = view["causes"]
    assert cause["title"].startswith("NodeAffinity: ")
    (difference,) = _got(daemon, f"/ui/api/shadow?cause={cause['id']}")["differences"]
    theirs, ours = difference["comparison"]["theirNode"], difference["comparison"]["ourNode"]
    assert (theirs["node"], ours["node"]) == ("other", "only")
    assert theirs["rejection"] == cause["title"]


# -- kubesched ui ---------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def _ui(cluster: LiveCluster) -> Iterator[str]:
    """The page of `kubesched ui`; its address, up to the token."""
    command = [sys.executable, "-m", "kubesched", "ui", "--no-browser", "--kubeconfig", str(cluster.kubeconfig())]
    environ = {**os.environ, "PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environ
    ) as process:
        try:
            assert process.stdout is not None
            yield process.stdout.readline().strip()
        finally:
            process.send_signal(signal.SIGINT)
            assert process.wait(60) == 0


def _asked(address: str, path: str) -> Any:
    root, _, token = address.partition("/?token=")
    request = urllib.request.Request(f"{root}{path}", headers={"Authorization": f"Bearer {token}"})
    with urllib.request.urlopen(request, timeout=60) as answer:
        return json.loads(answer.read())


def test_live_cluster_is_followed_and_nothing_is_written(cluster: LiveCluster) -> None:
    cluster.add_nodes(2)
    cluster.add_pod("there")
    before = cluster.call(lambda: cluster.api.store.revision)
    with _ui(cluster) as address:
        about = _asked(address, "/api/about")
        assert (about["source"], about["live"], about["schedules"], about["pods"]) == ("live", True, False, 1)
        cluster.add_pod("new", cpu="100")
        cluster.bind("there", "node-0")
        there = "/api/pods/default/there"
        wait_until(lambda: _asked(address, there)["node"] == "node-0", "the binding")
        (entry,) = _asked(address, there)["history"]
        assert (entry["outcome"], entry["node"]) == ("bound", "node-0")
        (group,) = _asked(address, "/api/pending")["groups"]
        assert (group["title"], group["examples"]) == ("Insufficient cpu", ["default/new"])
        assert cluster.call(lambda: cluster.api.store.revision) == before + 2
