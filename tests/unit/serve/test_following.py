"""A service about a live cluster: it follows what happens there, says when it cannot, and never writes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest
from tests.front_server import fronted_in_loop
from tests.sandbox_server import serving
from tests.unit.ask.clusters import CONTAINER, shop
from tests.unit.scheduler.group_world import ALL_GATES
from tests.unit.serve.asking import Service, cluster_of, served

from kubesched.api.kinds import NODES, POD_GROUPS, PODS
from kubesched.api.pod_groups import PodGroup
from kubesched.ask.service import QueryService
from kubesched.ask.sources.following import Following, NotReadyError, following
from kubesched.ask.sources.live import LiveClusterError
from kubesched.kube.connection import ConnectionSettings
from kubesched.simulate.cluster import ClusterModel
from kubesched_sandbox.api import Api
from kubesched_sandbox.nodes import node_manifests

BUDGETS = "/apis/policy/v1/poddisruptionbudgets"
VIP = {"spec": {"containers": [CONTAINER], "priorityClassName": "vip"}}


@asynccontextmanager
async def followed_at(url: str, cluster: ClusterModel | None = None) -> AsyncIterator[Following]:
    cluster = cluster or cluster_of()
    async with following(cluster, ConnectionSettings(server=url), {}, origin="test") as followed:
        yield followed


async def until(happened: Callable[[], bool]) -> None:
    """The watch brings it, whenever it does."""
    while not happened():
        await asyncio.sleep(0.01)


def test_answers_follow_the_cluster() -> None:
    api = shop()

    async def main() -> None:
        cluster = cluster_of()
        async with serving(api) as server, followed_at(server.url, cluster) as followed:
            await followed.wait_synced()
            async with served(cluster, followed) as service:
                found = await service.post("fit", {"pods": [VIP, "default/web-2"]})
                assert (found["fits"], found["nodes"]) == (True, 4)
                assert found["placed"][0]["priority"] == 1000
                assert found["cluster"] == {
                    "origin": "test",
                    "source": "watch",
                    "ageSeconds": 0.0,
                    "behind": [],
                    "unreadable": [],
                }
                await _change_and_ask_again(api, cluster, service)

    asyncio.run(main())


async def _change_and_ask_again(api: Api, cluster: ClusterModel, service: Service) -> None:
    for i in range(4):
        api.delete(NODES, "", f"node-{i}")
    [more] = [node for node in node_manifests(6) if node["metadata"]["name"] == "node-5"]
    api.create(NODES, "", more)
    api.delete(PODS, "default", "web-2")
    await until(lambda: cluster.state.nodes.live_count == 1 and "default/web-2" not in cluster.pods)
    found = await service.post("fit", {"pods": [VIP]})
    assert found["placed"][0]["node"] == "node-5"
    [said] = await service.errors("fit", {"pods": ["default/web-2"]}, 422)
    assert said.startswith("pods[0]: there is no pod default/web-2")


def test_groups_and_their_pods_are_followed() -> None:
    api = shop()

    async def main() -> None:
        cluster = cluster_of(features=ALL_GATES)
        async with serving(api) as server, followed_at(server.url, cluster) as followed:
            await followed.wait_synced()
            policy = {"schedulingPolicy": {"gang": {"minCount": 3}}}
            api.create(POD_GROUPS, "default", {"metadata": {"name": "g"}, "spec": policy})
            member = {"containers": [CONTAINER], "schedulingGroup": {"podGroupName": "g"}}
            for i in range(2):
                api.create(PODS, "default", {"metadata": {"name": f"g-{i}"}, "spec": member})
            await until(lambda: len(cluster.state.groups.pending("default/g")) == 2)
            async with served(cluster, followed) as service:
                await until(lambda: bool(cluster.state.objects.all(PodGroup)))
                found = await service.post("explain", {"pod": "podgroup/g"})
                assert found["podGroup"]["outcome"] == "gated"
                api.create(PODS, "default", {"metadata": {"name": "g-2"}, "spec": member})
                await until(lambda: len(cluster.state.groups.pending("default/g")) == 3)
                found = await service.post("explain", {"pod": "podgroup/g"})
                assert (found["podGroup"]["outcome"], found["podGroup"]["waiting"]) == ("scheduled", 3)
                api.delete(PODS, "default", "g-2", grace=0)
                await until(lambda: len(cluster.state.groups.pending("default/g")) == 2)

    asyncio.run(main())


def test_nothing_but_lists_and_watches_is_asked_of_the_cluster() -> None:
    async def main() -> None:
        async with fronted_in_loop(shop()) as front:
            cluster = cluster_of()
            async with followed_at(front.url, cluster) as followed, served(cluster, followed) as service:
                await followed.wait_synced()
                for question, about in (("fit", "pods"), ("explain", "pod"), ("capacity", "pod")):
                    await service.post(question, {about: ["default/tall"] if about == "pods" else "default/tall"})
            assert {method for method, _ in front.asked} == {"GET"}
            assert any("watch=true" in path for _, path in front.asked)

    asyncio.run(main())


def test_broken_watch_is_told_and_mended() -> None:
    api = shop()

    async def main() -> None:
        cluster = cluster_of()
        async with serving(api) as server:
            port = int(server.url.rpartition(":")[2])
            watches = followed_at(server.url, cluster)
            followed = await watches.__aenter__()
            await followed.wait_synced()
        await until(lambda: len(followed.age().behind) > 5)
        age = followed.age()
        assert age.age_seconds > 0
        assert {each.kind for each in age.behind} >= {"Node", "Pod"}
        told = QueryService(cluster, followed).age()
        assert told is not None
        assert told.behind  # an old view is better than none, and it is told
        async with serving(api, port=port):
            await until(lambda: not followed.age().behind)
            assert followed.age().age_seconds == 0
            await watches.__aexit__(None, None, None)

    asyncio.run(main())


def test_what_may_not_be_read_is_told_with_what_follows_from_it() -> None:
    async def main() -> None:
        async with fronted_in_loop(shop()) as front:
            front.denied.add(BUDGETS)
            front.unknown.add("/apis/resource.k8s.io/v1/resourceslices")
            async with followed_at(front.url) as followed:
                await followed.wait_synced()
                assert followed.age().unreadable == (
                    "PodDisruptionBudgets cannot be read: preemption may be reported that a budget forbids",
                )

    asyncio.run(main())


@pytest.mark.parametrize("path", ["/api/v1/nodes", "/api/v1/pods"])
def test_without_nodes_or_pods_there_is_no_service(path: str) -> None:
    async def main() -> None:
        async with fronted_in_loop(shop()) as front:
            front.denied.add(path)
            async with followed_at(front.url):
                pass

    with pytest.raises(LiveClusterError, match=r"there is no answer.*\n.*deploy/manifests/read-only.yaml"):
        asyncio.run(main())


def test_unreachable_server_is_named() -> None:
    async def main() -> None:
        async with followed_at("http://127.0.0.1:1"):
            pass

    with pytest.raises(LiveClusterError, match=r"test: .*refused"):
        asyncio.run(main())


def test_not_ready_before_everything_was_seen() -> None:
    async def main() -> None:
        async with serving(shop()) as server, followed_at(server.url) as followed:
            with pytest.raises(NotReadyError, match="waiting for Node: listing"):
                followed.age()
            await followed.wait_synced()
            assert not followed.age().behind

    asyncio.run(main())
