"""An upgrade of nodes in virtual time: as many at once as the surge, as fast as budgets allow, and to the end."""

from __future__ import annotations

from kubesched import config
from kubesched.api.meta import KubeObject, LabelSelector, ObjectMeta
from kubesched.api.node import Node
from kubesched.api.pod import Pod
from kubesched.api.workloads import BudgetSpec, BudgetStatus, PodDisruptionBudget
from kubesched.simulate.rolling_upgrade import BudgetTracker, RollingUpgrade, UpgradePace
from kubesched.simulate.simulation import Simulation
from kubesched.testing import PodBuilder, make_node, make_pod

NODES = [make_node(f"n{i}").capacity(cpu="4", pods=10).label(pool="old").build() for i in range(3)]


def web(number: int) -> PodBuilder:
    return make_pod(f"web-{number}").label(app="web").owned_by("ReplicaSet", "web").requests(cpu="1")


def budget(**spec: int | str) -> PodDisruptionBudget:
    selector = LabelSelector(match_labels={"app": "web"})
    return PodDisruptionBudget(
        metadata=ObjectMeta(name="web", namespace="default"), spec=BudgetSpec(selector=selector, **spec)
    )


class Upgraded:
    """A simulation with an upgrade of all nodes, run to the end."""

    def __init__(self, objects: list[KubeObject], pace: UpgradePace) -> None:
        self.operation = RollingUpgrade([obj.name for obj in objects if isinstance(obj, Node)], pace)
        simulation = Simulation(objects, config.default(), operation=self.operation)
        self.report = simulation.run()
        self.nodes = {node.name for node in simulation.objects(Node)}
        self.pods = {name: pod.spec.node_name for name, (pod, _) in simulation.pods_at_the_end().items()}


def upgraded(*objects: KubeObject, **pace: float) -> Upgraded:
    return Upgraded([*NODES, *objects], UpgradePace(**{"surge": 1, **pace}))  # type: ignore[arg-type]


def test_every_node_is_replaced_and_every_pod_is_on_a_new_one() -> None:
    it = upgraded(*(web(i).on(f"n{i % 3}").build() for i in range(6)))
    assert it.nodes == {"n0-new", "n1-new", "n2-new"}
    assert set(it.pods) == {f"default/web-{i}" for i in range(6)}
    assert set(it.pods.values()) <= it.nodes
    assert [each.node for each in it.operation.replaced] == ["n0", "n1", "n2"]
    assert not it.operation.forced


def test_a_node_takes_its_time_to_start_and_a_surge_does_several_at_once() -> None:
    one, three = upgraded(surge=1, node_startup=60), upgraded(surge=3, node_startup=60)
    assert [each.ended for each in one.operation.replaced] == [60, 120, 180]
    assert [each.ended for each in three.operation.replaced] == [60, 60, 60]


def test_without_a_surge_a_node_goes_before_the_next_one_comes() -> None:
    full = [web(i).requests(cpu="4").on(f"n{i}").build() for i in range(3)]
    it = upgraded(*full, surge=0, node_startup=60)
    assert [each.began for each in it.operation.replaced] == [0, 60, 120]
    assert set(it.pods.values()) == it.nodes
    waits = {story.pod: story.waited for story in it.report.pods}
    assert max(waits.values()) >= 60


def test_a_budget_lets_pods_go_one_after_another_as_others_come_up() -> None:
    pods = [web(i).on("n0").build() for i in range(3)]
    it = upgraded(*pods, budget(max_unavailable=1), pod_startup=10)
    first = it.operation.replaced[0]
    assert first.waited_for == ("default/web",)
    assert first.ended - first.began == 20
    assert not it.operation.forced


def test_pods_whose_budget_never_allows_it_are_evicted_at_last_and_told_of() -> None:
    it = upgraded(web(0).on("n0").build(), budget(min_available=1), drain_timeout=600, node_startup=60)
    forced = it.operation.forced[0]
    assert (forced.pod, forced.node, forced.time, forced.budgets) == ("default/web-0", "n0", 660, ("default/web",))
    assert it.nodes == {"n0-new", "n1-new", "n2-new"}


def test_daemons_go_with_their_node_and_come_with_the_new_one() -> None:
    daemon = make_pod("logs-n0").owned_by("DaemonSet", "logs").requests(cpu="1").on("n0").build()
    it = upgraded(daemon)
    assert "default/logs-n0" not in it.pods
    assert it.pods["default/logs-n0-n0-new"] == "n0-new"


def test_a_pod_that_finds_no_place_waits_and_the_upgrade_goes_on() -> None:
    stuck = make_pod("stuck").owned_by("ReplicaSet", "x").node_selector({"kubernetes.io/hostname": "n0"}).on("n0")
    it = upgraded(stuck.build())
    assert it.pods["default/stuck"] == ""
    assert len(it.operation.replaced) == 3


def test_a_budget_without_numbers_is_what_its_status_leaves() -> None:
    pods: list[Pod] = [web(i).on("n0").build() for i in range(3)]
    selector = LabelSelector(match_labels={"app": "web"})
    guard = PodDisruptionBudget(
        metadata=ObjectMeta(name="web", namespace="default"),
        spec=BudgetSpec(selector=selector),
        status=BudgetStatus(disruptions_allowed=2),
    )
    assert BudgetTracker([guard], pods).wanted == {"default/web": 1}


def test_percentages_are_of_all_pods_that_are_wanted_and_rounded_up() -> None:
    pods = [web(i).on("n0").build() for i in range(4)] + [web(4).build()]
    assert BudgetTracker([budget(min_available="50%")], pods).wanted == {"default/web": 3}
    assert BudgetTracker([budget(max_unavailable="50%")], pods).wanted == {"default/web": 2}
    assert BudgetTracker([budget(max_unavailable="50%")], pods).allowed("default/web") == 2
