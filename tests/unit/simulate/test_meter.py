"""How full nodes are is told of every resource that they offer, whatever happens to the nodes meanwhile."""

from __future__ import annotations

import pytest

from kubesched import config
from kubesched.api.device_claims import (
    AllocatedDevice,
    AllocationResult,
    DeviceAllocation,
    ResourceClaim,
    ResourceClaimStatus,
)
from kubesched.api.devices import Device, ResourcePool, ResourceSlice, ResourceSliceSpec
from kubesched.api.meta import KubeObject, ObjectMeta
from kubesched.simulate.meter import UtilisationMeter
from kubesched.simulate.report import SimulationReport, figures_of
from kubesched.simulate.simulation import Simulation
from kubesched.state.cluster import ClusterState
from kubesched.testing import make_node, make_pod

GPU = "nvidia.com/gpu"
DRIVER = "gpu.example.com"


def simulated(*objects: KubeObject) -> SimulationReport:
    return Simulation(objects, config.default()).run()


def test_extended_resources_are_told_where_nodes_offer_them() -> None:
    report = simulated(
        make_node("plain").zone("a").build(),
        make_node("gpus").zone("b").capacity({GPU: 4}).build(),
        make_pod("p").requests({GPU: 3}).build(),
    )
    assert report.total.resources[GPU].end == 0.75
    plain, gpus = sorted(report.by_node, key=lambda node: node.name != "plain")
    assert GPU not in plain.resources
    assert gpus.resources[GPU].end == 0.75
    assert [zone.resources.get(GPU) is not None for zone in report.by_zone] == [False, True]
    assert report.timeline[-1].resources[GPU] == 0.75
    assert figures_of(report).mean[GPU] == 0.75


def test_spread_of_a_resource_is_between_the_nodes_that_offer_it() -> None:
    nodes = [make_node(f"plain-{i}").build() for i in range(5)]
    gpus = [make_node(f"gpu-{i}").capacity({GPU: 4}).build() for i in range(2)]
    pod = make_pod("p").requests({GPU: 4}).on("gpu-0").build()
    assert figures_of(simulated(*nodes, *gpus, pod)).spread[GPU] == 0.5


def test_tables_leave_out_storage_that_nobody_asks_for_and_keep_what_only_some_nodes_have() -> None:
    node = make_node("n").capacity({GPU: 1, "ephemeral-storage": "10Gi", "hugepages-2Mi": "1Gi"})
    assert simulated(node.build()).total.notable == ["cpu", "memory", GPU]
    pod = make_pod("p").requests({"ephemeral-storage": "1Gi"}).build()
    assert simulated(node.build(), pod).total.notable == ["cpu", "memory", "ephemeral-storage", GPU]


def devices(node: str, count: int) -> ResourceSlice:
    spec = ResourceSliceSpec(
        driver=DRIVER,
        pool=ResourcePool(name=node),
        node_name=node,
        devices=tuple(Device(name=f"gpu-{i}") for i in range(count)),
    )
    return ResourceSlice(metadata=ObjectMeta(name=f"{node}-slice"), spec=spec)


def claim(name: str, *allocated: tuple[str, str]) -> ResourceClaim:
    results = tuple(AllocatedDevice(driver=DRIVER, pool=pool, device=device) for pool, device in allocated)
    allocation = AllocationResult(devices=DeviceAllocation(results=results))
    return ResourceClaim(
        metadata=ObjectMeta(name=name, namespace="default"), status=ResourceClaimStatus(allocation=allocation)
    )


def test_devices_of_a_driver_are_counted() -> None:
    held = claim("c", ("n1", "gpu-0"), ("n1", "gpu-1"), ("n2", "gpu-0"))
    nodes = make_node("n1").zone("a"), make_node("n2").zone("a"), make_node("n3").zone("b")
    report = simulated(*(node.build() for node in nodes), devices("n1", 2), devices("n2", 4), held)
    assert report.total.resources[DRIVER].end == 0.5
    assert {node.name: node.resources[DRIVER].end for node in report.by_node if DRIVER in node.resources} == {
        "n1": 1.0,
        "n2": 0.25,
    }


def read(meter: UtilisationMeter, now: float) -> None:
    meter.read(now, running=0, pending=0, placed=0)


def test_nodes_that_come_and_go_count_while_they_are_there() -> None:
    state = ClusterState(config.default().features)
    state.apply(make_node("old").capacity(cpu="4").build())
    state.apply(make_pod("p").requests(cpu="4").on("old").build())
    meter = UtilisationMeter(state)
    read(meter, 0)
    meter.passes(10)
    state.apply(make_node("new").capacity(cpu="4").build())
    read(meter, 10)
    meter.passes(10)
    assert [node.name for node in meter.by_node(20)] == ["new", "old"]
    assert meter.total(20).cpu.end == 0.5
    assert meter.total(20).cpu.mean == pytest.approx(8 / 12, abs=1e-4)
    assert meter.by_node(20)[1].cpu.mean == 1.0
