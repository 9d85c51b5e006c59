"""The stories of the sandbox, played to their end in virtual time: what they say is what happens."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Callable

import pytest
from tests import virtual_time
from tests.sandbox_server import fresh_api

from kubesched import config
from kubesched.api.kinds import NODES, POD_GROUPS, PODS
from kubesched_sandbox.api import Api
from kubesched_sandbox.chronicle import Chronicle
from kubesched_sandbox.nodes import HollowNodes, node_manifests
from kubesched_sandbox.reconcilers import Runner, standard_reconcilers
from kubesched_sandbox.scenarios import SCENARIOS, ScenarioCluster, play
from kubesched_sandbox.scheduling import SandboxScheduler
from kubesched_sandbox.view import so_far


class Ending:
    """A story that is over."""

    def __init__(self, api: Api, chronicle: Chronicle, said: list[str]) -> None:
        self.api, self.chronicle, self.said = api, chronicle, said

    def phases(self, namespace: str) -> Counter[str]:
        return Counter(pod["status"]["phase"] for pod in self.api.select(PODS, namespace))

    def outcomes(self, pod: str) -> list[str]:
        return [entry.outcome for entry in self.chronicle.entries if entry.pod.startswith(pod)]

    def zones(self, app: str) -> Counter[str]:
        nodes = {node["metadata"]["name"]: node["metadata"]["labels"] for node in self.api.select(NODES)}
        pods = self.api.select(PODS, labels=f"app={app}")
        return Counter(nodes[pod["spec"]["nodeName"]]["topology.kubernetes.io/zone"] for pod in pods)


def told(name: str, during: Callable[[float, Api], None] | None = None) -> Ending:
    """Play the story; `during` looks at it every second."""

    async def telling() -> Ending:
        story, said = SCENARIOS[name], list[str]()
        api = fresh_api(clock=virtual_time.now)
        nodes = HollowNodes(api, random.Random(1), lease_period=1.0)
        controllers = Runner(api, (*standard_reconcilers(api, node_grace=5.0), nodes))
        chronicle = Chronicle(virtual_time.now)
        api.subscribe((PODS,), chronicle.observe, replay=False)
        settings = config.default(config.Features.of(dict.fromkeys(story.gates, True)))
        inside = SandboxScheduler(api, settings, draw=random.Random(1).randrange, listeners=[chronicle])
        scheduling = asyncio.create_task(inside.run())
        controllers.start()
        nodes.add(node_manifests(story.nodes))
        playing = asyncio.create_task(play(story, ScenarioCluster(api, nodes), said.append))
        while not playing.done():
            await asyncio.wait((playing,), timeout=1)
            if during is not None:
                during(virtual_time.now(), api)
        playing.result()
        await inside.stop()
        await scheduling
        await controllers.stop()
        return Ending(api, chronicle, said)

    return virtual_time.run(telling())


@pytest.mark.parametrize("name", SCENARIOS)
def test_every_step_is_told_in_order(name: str) -> None:
    story = SCENARIOS[name]
    assert told(name).said == [step.says for step in story.steps]
    assert [step.at for step in story.steps] == sorted(step.at for step in story.steps)


def test_shop_is_spread_over_zones_and_search_finds_its_disk() -> None:
    ending = told("shop")
    assert ending.phases("shop") == {"Running": 3 + 24 + 1}
    zones = ending.zones("web")
    assert max(zones.values()) - min(zones.values()) <= 1
    assert ending.outcomes("shop/search") == ["unschedulable", "bound"]


def test_urgent_pods_take_the_place_of_two_patient_ones_each_and_the_giant_of_nobody() -> None:
    ending = told("batch")
    assert ending.phases("web") == {"Running": 4}
    assert ending.chronicle.victims == 8
    assert set(ending.outcomes("batch/giant")) == {"unschedulable"}


def test_of_two_training_jobs_one_runs_as_a_whole_and_then_the_other() -> None:
    seen: dict[int, tuple[int, int]] = {}

    def placed(now: float, api: Api) -> None:
        pods = [pod for pod in api.select(PODS, "training") if pod["spec"].get("nodeName")]
        names = [pod["metadata"]["name"] for pod in pods if pod["status"]["phase"] in ("Pending", "Running")]
        seen[round(now)] = sum(n.startswith("first") for n in names), sum(n.startswith("second") for n in names)

    ending = told("training", placed)
    assert {second for _, second in seen.values()} == {0, 8}
    assert seen[10] == (8, 0)
    assert seen[40] == (0, 8)
    groups = {g["metadata"]["name"]: g["status"]["conditions"][0]["status"] for g in ending.api.select(POD_GROUPS)}
    assert groups == {"first": "True", "second": "True"}


def test_pods_of_a_lost_node_are_placed_elsewhere() -> None:
    seen: dict[int, int] = {}

    def on_lost_node(now: float, api: Api) -> None:
        pods = api.select(PODS, "app", fields="spec.nodeName=node-b1")
        seen[round(now)] = len([pod for pod in pods if not pod["metadata"].get("deletionTimestamp")])

    ending = told("failure", on_lost_node)
    assert seen[3] == 2
    assert seen[19] == 0
    assert ending.phases("app") == {"Running": 12}
    assert ending.chronicle.evictions == {"by taint": 2}


@pytest.mark.parametrize("name", SCENARIOS)
def test_the_numbers_at_the_end_are_those_of_the_lines(name: str) -> None:
    chronicle = told(name).chronicle
    lines = Counter(entry.outcome for entry in chronicle.entries)
    summary = so_far(chronicle).plain
    assert f"{lines['bound']} bound" in summary
    assert f"{lines['evicted']} evicted" in summary
    repeated = chronicle.outcomes["unschedulable"] - lines["unschedulable"]
    assert repeated >= 0
    assert (f"({repeated} that only repeat" in summary) == (repeated > 0)
    victims = sum(entry.text.count("/") for entry in chronicle.entries if entry.outcome == "preempts")
    assert f"{victims} preempted" in summary
