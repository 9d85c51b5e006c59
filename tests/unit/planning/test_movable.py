"""What must not move is left alone, each for its reason."""

from __future__ import annotations

import pytest

from kubesched import config
from kubesched.api.meta import KubeObject, LabelSelector, ObjectMeta
from kubesched.api.pod import LocalSource, Volume
from kubesched.api.selectors import compile_selector
from kubesched.api.workloads import BudgetSpec, PodDisruptionBudget
from kubesched.planning.movable import Movable, MovingRules
from kubesched.simulate.cluster import ClusterModel
from kubesched.testing import PodBuilder, make_node, make_pod

OWNED = make_pod("p").label(app="p").owned_by("ReplicaSet", "p").on("n")
LOCAL = OWNED.spec(volumes=(Volume(name="tmp", empty_dir=LocalSource()),))
EXEMPT = MovingRules(exempt=(compile_selector(LabelSelector(match_labels={"app": "p"})),))


def movable(pod: PodBuilder, *others: KubeObject, rules: MovingRules | None = None) -> Movable:
    return Movable(ClusterModel([make_node("n").build(), pod.build(), *others], config.default()), rules)


def test_pod_with_an_owner_moves() -> None:
    assert [pod.name for pod in movable(OWNED).pods["n"]] == ["p"]


@pytest.mark.parametrize(
    ("pod", "why"),
    [
        (OWNED.annotate({"karpenter.sh/do-not-disrupt": "true"}), "karpenter.sh/do-not-disrupt"),
        (OWNED.annotate({"cluster-autoscaler.kubernetes.io/safe-to-evict": "false"}), "safe-to-evict"),
        (OWNED.annotate({"descheduler.alpha.kubernetes.io/prefer-no-eviction": "true"}), "prefer-no-eviction"),
        (make_pod("bare").on("n"), "no controller"),
        (LOCAL, "local data"),
        (OWNED.priority(2_000_000_000), "priority 2000000000"),
        (OWNED.spec(scheduler_name="mine"), "another scheduler"),
    ],
)
def test_pod_stays_and_keeps_its_node(pod: PodBuilder, why: str) -> None:
    found = movable(pod)
    assert not found.pods["n"]
    [(_, reason)] = found.staying["n"]
    assert why in reason
    assert why in found.keeps(make_node("n").build())


def test_local_data_moves_if_it_may_be_lost() -> None:
    assert movable(LOCAL, rules=MovingRules(delete_local_data=True)).pods["n"]
    assert movable(LOCAL.annotate({"cluster-autoscaler.kubernetes.io/safe-to-evict": "true"})).pods["n"]


def test_directory_in_memory_is_no_local_data() -> None:
    assert movable(OWNED.spec(volumes=(Volume(name="shm", empty_dir=LocalSource(medium="Memory")),))).pods["n"]


def test_exempt_pod_stays() -> None:
    assert movable(OWNED, rules=EXEMPT).staying["n"][0][1] == "exempt"


def test_daemon_neither_moves_nor_keeps_its_node() -> None:
    found = movable(make_pod("d").owned_by("DaemonSet", "d").on("n"))
    assert not found.pods["n"]
    assert not found.staying["n"]


def test_pod_of_a_budget_that_allows_none_stays() -> None:
    spec = BudgetSpec(selector=LabelSelector(match_labels={"app": "p"}), max_unavailable=0)
    budget = PodDisruptionBudget(metadata=ObjectMeta(name="b", namespace="default"), spec=spec)
    assert movable(OWNED, budget).staying["n"][0][1] == "disruption budget default/b allows none"


def test_node_that_must_stay_is_kept() -> None:
    marked = make_node("n").build()
    marked.metadata.annotations["cluster-autoscaler.kubernetes.io/scale-down-disabled"] = "true"
    assert "scale-down-disabled" in movable(OWNED).keeps(marked)
