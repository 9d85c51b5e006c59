"""What-if over HTTP: the questions of the command, on the objects of the moment, one at a time."""

from __future__ import annotations

import asyncio
import json
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from tests.json_schema import mistakes
from tests.sandbox_server import serving
from tests.unit.ask.clusters import shop
from tests.unit.serve.asking import OBJECTS, POD, Json, Service, cluster_of, run, served
from tests.unit.serve.test_following import followed_at, until

from kubesched.api.change import Change
from kubesched.api.kinds import DEPLOYMENTS, NODES
from kubesched.ask.service import BusyError, QueryService
from kubesched.ask.sources.following import ClusterAge, Files, NotReadyError
from kubesched.ask.what_if.what_if import WhatIfQuestion
from kubesched.cli.main import main as command
from kubesched.serve.questions import described
from kubesched.simulate.kinds import Deployment
from kubesched.simulate.manifests import loads

SHOP = Path(__file__).parents[3] / "examples" / "shop"


def deployment(replicas: int, name: str = "api") -> Json:
    labels = {"app": name}
    spec = {"replicas": replicas, "selector": {"matchLabels": labels}}
    [container] = POD["spec"]["containers"]
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{**container, "image": "api"}]}}
    metadata = {"name": name, "namespace": "shop"}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": {**spec, "template": template}}


def test_answer_is_that_of_the_command() -> None:
    manifests = loads("\n---\n".join(file.read_text() for file in sorted(SHOP.glob("*.yaml"))), workloads=True)
    printed = CliRunner().invoke(command, ["what-if", "-f", str(SHOP), "--drain", "web-c1", "-o", "json"])
    expected = json.loads(printed.output)

    async def test(service: Service) -> None:
        found = await service.post("what-if", {"drain": ["web-c1"]})
        assert found.pop("cluster")["source"] == "files"
        assert mistakes({**found, "cluster": None}, _without_cluster()) == []
        assert found == {**expected, "skipped": {}}

    run(test, cluster=cluster_of(*manifests.objects))


def _without_cluster() -> Json:
    schema: Json = described()["components"]["schemas"]["WhatIf"]
    return {**schema, "properties": {**schema["properties"], "cluster": {}}}


def test_every_change_of_the_command_can_be_asked_about() -> None:
    async def test(service: Service) -> None:
        async def ask(**changes: Any) -> Json:
            return await service.post("what-if", changes)

        lost = await ask(lose=["zone=a"])
        assert [(each["pod"], each["toNode"]) for each in lost["moved"]] == [("shop/web-1", "b1")]
        drained = await ask(drain=["a1", "b1"])
        assert [each["pod"] for each in drained["waiting"]] == ["shop/web-1"]
        big = {"metadata": {"name": "big"}, "status": {"allocatable": {"cpu": "16", "memory": "1Gi", "pods": "9"}}}
        added = await ask(add=[{"like": big}, {"like": "a1", "count": 2}])
        assert added["total"]["nodes"] == {"before": 2, "after": 5}
        assert [(each["pod"], each["toNode"]) for each in added["placed"]] == [("shop/tall", "big-new-1")]
        new = await ask(**{"with": [deployment(3)], "scale": [{"workload": "shop/deployment/api", "replicas": 2}]})
        assert len(new["placed"]) == 2
        assert new["changes"] == ["with Deployment shop/api", "scale shop/deployment/api to 2"]
        anew = await ask(drain=["b1"], anew=True)
        assert not anew["waiting"]
        assert (await service.post("fit", {"pods": [POD]}))["nodes"] == 2

    run(test)


class Watched:
    """A cluster that may change."""

    def age(self) -> ClusterAge:
        return ClusterAge("test", "watch", 0.0)


def test_workloads_are_scaled_with_the_template_that_they_have() -> None:
    cluster = cluster_of(*OBJECTS, *loads(json.dumps(deployment(1)), workloads=True).objects)

    async def test(service: Service) -> None:
        scale = {"scale": [{"workload": "shop/deployment/api", "replicas": 3}]}
        assert len((await service.post("what-if", scale))["placed"]) == 2
        [api] = [obj for obj in cluster.objects() if type(obj).__name__ == "Deployment"]
        cluster.handle(Change(api, None))
        [said] = await service.errors("what-if", scale, 422)
        assert said == "scale[0].workload: there is no Deployment shop/api"

    run(test, cluster=cluster, followed=Watched())


def test_live_cluster_is_asked_about_as_it_is_now() -> None:
    api = shop()

    async def main() -> None:
        cluster = cluster_of()
        async with serving(api) as server, followed_at(server.url, cluster) as followed:
            await followed.wait_synced()
            async with served(cluster, followed) as service:
                first = await service.post("what-if", {"gone": ["node-0"]})
                assert first["total"]["nodes"] == {"before": 4, "after": 3}
                assert (first["cluster"]["source"], first["cluster"]["ageSeconds"]) == ("watch", 0.0)
                api.delete(NODES, "", "node-3")
                await until(lambda: cluster.state.nodes.live_count == 3)
                again = await service.post("what-if", {"gone": ["node-0"]})
                assert again["total"]["nodes"] == {"before": 3, "after": 2}
                api.create(DEPLOYMENTS, "default", {**deployment(0), "metadata": {"name": "cart"}})
                await until(lambda: (Deployment, "default/cart") in cluster.workloads)
                scale = {"scale": [{"workload": "deployment/cart", "replicas": 2}]}
                assert len((await service.post("what-if", scale))["placed"]) == 2

    asyncio.run(main())


def test_mistakes_are_told_with_the_paths_of_fields() -> None:
    async def test(service: Service) -> None:
        wrong = {
            "scale": [{"workload": "shop/pod/web-1", "replicas": 1}, {"workload": "deployment/api", "replicas": 1}],
            "add": [{"like": "zz"}],
            "lose": ["a1", "a11"],
            "drain": ["pool=db"],
        }
        assert await service.errors("what-if", wrong, 422) == [
            "scale[0].workload: expected [namespace/]type/name of a deployment, replicaset or statefulset",
            "scale[1].workload: there is no Deployment default/api",
            "add[0].like: there is no such node",
            "lose[1]: there is no such node; did you mean a1?",
            "drain[0]: no node has the label pool with the value 'db'; there are web",
        ]
        node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "x"}, "spec": {"taint": []}}
        found = await service.errors(
            "what-if", {"with": [deployment(1), node], "add": [{"like": {"kind": "Pod"}}]}, 422
        )
        assert found[0] == 'with[1]: unknown field "spec.taint", did you mean "taints"?'
        assert found[1].startswith("add[0].like")
        assert await service.errors("what-if", {}, 422) == [
            "body: nothing is changed: give with, scale, add, lose, gone or drain"
        ]
        huge = {"with": [deployment(10**9)], "add": [{"like": "a1", "count": 9999}] * 2}
        assert await service.errors("what-if", huge, 422) == [
            "add: expected at most 10,000 new nodes in all, got 19,998",
            "body: expected workloads of at most 100,000 pods in all, got 1,000,000,000",
        ]
        assert await service.errors("what-if", {"add": [{"like": "a1", "count": 0}]}, 400) == [
            "add[0].count: Expected `int` >= 1"
        ]

    run(test)


def test_what_takes_too_long_is_given_up() -> None:
    ticks = count()

    async def test(service: Service) -> None:
        assert await service.errors("what-if", {"drain": ["a1"]}, 504) == ["took longer than 60 s"]

    run(test, clock=lambda: 50.0 * next(ticks))


def test_questions_are_answered_one_at_a_time_and_only_so_many_wait() -> None:
    class Counted(Files):
        """Sees how many have had their turn."""

        turns = 0

        def age(self) -> ClusterAge:
            self.turns += 1
            return super().age()

    async def main() -> None:
        followed = Counted("test.yaml")
        service = QueryService(cluster_of(*OBJECTS), followed, most_waiting=2)
        question = WhatIfQuestion(drain=("a1",))
        first, second = (asyncio.create_task(service.what_if(question)) for _ in range(2))
        await asyncio.sleep(0)
        assert followed.turns == 1
        with pytest.raises(BusyError, match="2 questions are under way"):
            await service.what_if(question)
        assert (await first)[0].difference == (await second)[0].difference
        assert (await service.what_if(question))[0].difference.moved
        service.close()

    asyncio.run(main())


def test_answer_that_is_being_looked_for_is_given_up_at_the_end() -> None:
    async def main() -> None:
        calls = count()

        def clock() -> float:
            """The end comes while the thread is at work."""
            if next(calls) == 1:
                service.close()
            return 0.0

        service = QueryService(cluster_of(*OBJECTS), Files("test.yaml"), slow_timeout=60.0, clock=clock)
        for _ in range(2):
            with pytest.raises(NotReadyError, match="about to end"):
                await service.what_if(WhatIfQuestion(drain=("a1",)))

    asyncio.run(main())
