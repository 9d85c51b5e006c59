"""Tests of placement: the scheduler places pods and manifests on a cluster, and a test says where they must land.

An expectation that does not hold raises an AssertionError, which names the pods that are elsewhere, and explains the
decision about one of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Unpack

from kubesched import config as configuration
from kubesched.api.meta import KubeObject
from kubesched.api.node import Node
from kubesched.api.pod import Pod
from kubesched.api.release import NEWEST
from kubesched.ask.edits import Edit, read_applied
from kubesched.ask.hypothetical import apply_hypothetical
from kubesched.ask.placement_tests.case import AtMost, Expectation, SpreadOver, read_cases
from kubesched.ask.placement_tests.checks import Check, ScheduledCluster, checks
from kubesched.ask.placement_tests.running import objects_in, run_case
from kubesched.ask.what_if.answer import outcome
from kubesched.library.builders import NodeBuilder, PodBuilder
from kubesched.library.cluster import built_node, built_pod
from kubesched.library.scheduler_options import SchedulerOptions, registry_of, settings_of

Paths = Iterable[str | Path]


class Placement:
    """A cluster on which all pods were scheduled, preemption included, until nothing changes any more."""

    def __init__(
        self,
        nodes: Iterable[Node | NodeBuilder] = (),
        pods: Iterable[Pod | PodBuilder] = (),
        *,
        files: Paths = (),
        manifests: Paths = (),
        objects: Iterable[KubeObject] = (),
        changes: Iterable[Edit] = (),
        **scheduler: Unpack[SchedulerOptions],
    ) -> None:
        """`files` are the cluster, one of them may be a snapshot; `manifests` are put on it."""
        seed = scheduler.get("seed", 0)
        cluster = (*objects_in([str(file) for file in files]), *objects, *map(built_node, nodes), *map(built_pod, pods))
        for file in manifests:
            cluster = apply_hypothetical(cluster, [read_applied(str(file), cluster)])
        settings, registry = settings_of(scheduler), registry_of(scheduler)
        result = outcome(apply_hypothetical(cluster, changes), settings, seed=seed, plugins=registry)
        self._cluster = ScheduledCluster(result, settings, seed, registry)
        self.nodes = {key: pod.spec.node_name for key, (pod, _) in result.pods.items()}
        """The node of each pod, by `namespace/name`; empty if it waits."""

    def pods(
        self, labels: Mapping[str, str] | None = None, *, name: str = "", namespace: str = "", **more: str
    ) -> PlacedPods:
        """The pods with these labels; `name` is a pattern such as `web-*`."""
        return PlacedPods(self._cluster, Expectation(pods={**(labels or {}), **more}, name=name, namespace=namespace))


class PlacedPods:
    """Some pods: each method asserts something about them."""

    def __init__(self, cluster: ScheduledCluster, selection: Expectation) -> None:
        self._cluster = cluster
        self._selection = selection

    def are_placed(self) -> None:
        self._expect(pending=False)

    def are_pending(self, reason: str = "") -> None:
        """A reason is part of the message of the pod's condition."""
        self._expect(pending=reason or True)

    def land_on(self, labels: Mapping[str, str] | None = None, **more: str) -> None:
        """On nodes with these labels; `zone`, `region` and `pool` are understood."""
        self._expect(land_on={**(labels or {}), **more})

    def never_on(self, labels: Mapping[str, str] | None = None, **more: str) -> None:
        self._expect(never_on={**(labels or {}), **more})

    def spread_over(self, topology_key: str, *, max_skew: int | None = None, min_domains: int | None = None) -> None:
        if max_skew is None and min_domains is None:
            max_skew = 1
        spread = SpreadOver(topology_key=topology_key, max_skew=max_skew, min_domains=min_domains)
        self._expect(spread_over=spread)

    def at_most(self, pods: int, *, per: str) -> None:
        self._expect(at_most=AtMost(pods=pods, per=per))

    def preempt_only(self, labels: Mapping[str, str] | None = None, **more: str) -> None:
        """Without labels: they evict no pod."""
        self._expect(preempts_only={**(labels or {}), **more})

    def fit(self, times: int) -> None:
        """So many of them fit, those that are placed included."""
        self._expect(fits=times)

    def survive_loss_of(self, topology_key: str) -> None:
        """If any one zone, or other domain, is lost, all find nodes in the others."""
        self._expect(survives_loss_of=topology_key)

    def _expect(self, **fields: Any) -> None:
        __tracebackhide__ = True
        pods = self._selection
        expectation = Expectation(pods=pods.pods, name=pods.name, namespace=pods.namespace, **fields)
        _assert(checks(self._cluster, expectation))


def check_placement_tests(*paths: str | Path) -> None:
    """Assert that all placement tests in these files and directories hold."""
    __tracebackhide__ = True
    cases = read_cases([str(path) for path in paths])
    default = configuration.default(configuration.Features.of({}, NEWEST))
    _assert(check for case in cases for check in run_case(case, default).checks)


def _assert(results: Iterable[Check]) -> None:
    __tracebackhide__ = True
    lines = [
        line
        for check in results
        if not check.holds
        for line in (f"expected: {check.expected}", *check.problems, *check.explanation)
    ]
    if lines:
        raise AssertionError("\n".join(lines))
