from __future__ import annotations

import dataclasses

from tests.device_builders import allocated, device, make_claim, make_class, make_slice, request
from tests.unit.ui.observing import alive, still

from kubesched.api.change import Change
from kubesched.api.meta import ObjectMeta
from kubesched.api.pod import PersistentVolumeClaimSource, Volume
from kubesched.api.storage import (
    ClaimStatus,
    PersistentVolume,
    PersistentVolumeClaim,
    PersistentVolumeClaimSpec,
    PersistentVolumeSpec,
    StorageClass,
    VolumeResources,
)
from kubesched.api.well_known import BIND_COMPLETED, HOSTNAME, ZONE
from kubesched.ask.headroom import headroom
from kubesched.testing import make_node, make_pod
from kubesched.ui.model.headroom import HeadroomModel
from kubesched.ui.model.nodes import NodeModel


def test_node_says_what_is_left_and_who_is_there() -> None:
    views = still(
        make_node("a").capacity(cpu="4"),
        make_pod("small").requests(cpu="1").on("a"),
        make_pod("large").requests(cpu="2", memory="1Gi").on("a"),
    )
    view = views.nodes.view("a")
    assert view is not None
    cpu = next(each for each in view.resources if each.name == "cpu")
    assert (cpu.requested, cpu.allocatable, cpu.left, cpu.share) == ("3", "4", "1", 0.75)
    assert [pod.pod for pod in view.pods] == ["default/large", "default/small"]
    assert {fit.workload[2]: fit.more for fit in view.room} == {"large": 0, "small": 1}
    assert views.nodes.view("nowhere") is None


def test_pods_of_a_full_node_come_in_pages() -> None:
    pods = [make_pod(f"p-{i:03}").requests(cpu="1m").on("a") for i in range(105)]
    views = still(make_node("a"), *pods)
    first, second = views.nodes.view("a"), views.nodes.view("a", offset=100)
    assert first is not None
    assert second is not None
    assert (first.pod_count, len(first.pods), len(second.pods)) == (105, 100, 5)


def test_node_says_which_of_the_pods_that_wait_it_would_take() -> None:
    views = still(
        make_node("a").capacity(cpu="2"), make_pod("fits").requests(cpu="1"), make_pod("large").requests(cpu="3")
    )
    view = views.nodes.view("a")
    assert view is not None
    assert [(fit.example, fit.fits, fit.why_not) for fit in view.waiting] == [
        ("default/fits", True, ""),
        ("default/large", False, "Insufficient cpu"),
    ]


def test_headroom_counts_what_nodes_that_would_take_one_have_left() -> None:
    views = still(
        make_node("a").capacity(cpu="4"),
        make_node("b").capacity(cpu="4", pods=2),
        make_node("c").capacity(cpu="4").taint("dedicated"),
        *(make_pod(f"web-{i}").requests(cpu="1").owned_by("ReplicaSet", "web").on("a") for i in range(2)),
    )
    (room,) = views.headroom.rooms()
    assert (room.workload[1:], room.running, room.more, room.nodes) == (("ReplicaSet", "web"), 2, 2 + 2, 2)
    assert room.requests == {"cpu": "1"}


def test_pods_that_have_the_zone_of_their_node_as_a_label_are_one_workload() -> None:
    """As the API server labels them since v1.35: the six workloads with most pods are still those."""
    nodes = [make_node(zone).zone(zone).capacity(cpu="9") for zone in "abc"]
    labelled = [
        make_pod(f"{name}-{zone}").label({ZONE: zone}).requests(cpu="1").owned_by("ReplicaSet", name).on(zone)
        for zone in "abc"
        for name in ("web", "api")
    ]
    alone = [make_pod(f"once-{i}").owned_by("ReplicaSet", f"once-{i}").on("a") for i in range(6)]
    rooms = still(*nodes, *labelled, *alone).headroom.rooms()
    assert [(room.workload.name, room.running) for room in rooms][:3] == [("api", 3), ("web", 3), ("once-0", 1)]
    assert len(rooms) == 6


def test_pods_without_an_owner_that_are_alike_count_together() -> None:
    alike = [make_pod(f"p{i}").requests(cpu="1").on("a") for i in range(2)]
    rooms = still(make_node("a").capacity(cpu="4"), *alike, make_pod("q").requests(cpu="2").on("a")).headroom.rooms()
    assert [(room.example, room.running, room.more) for room in rooms] == [("default/p0", 2, 0), ("default/q", 1, 0)]


def test_headroom_of_a_pod_that_keeps_its_copies_off_the_node_is_one_per_node() -> None:
    nodes = [make_node(f"n{i}").capacity(cpu="4") for i in range(6)]
    cache = make_pod("cache-0").label(app="cache").requests(cpu="100m").pod_anti_affinity(HOSTNAME, app="cache")
    views = still(*nodes, cache.owned_by("ReplicaSet", "cache").on("n0"))
    (room,) = views.headroom.rooms()
    assert (room.workload.name, room.more, room.at_least, room.nodes) == ("cache", 5, False, 5)


def test_headroom_of_a_spread_pod_ends_where_the_cordoned_zone_stays_behind() -> None:
    zones = {"a": "a1", "b": "b1", "c": "c1"}
    nodes = [make_node(name).zone(zone).capacity(cpu="40") for zone, name in zones.items()]
    pods = [
        make_pod(f"f-{name}")
        .label(app="f")
        .requests(cpu="1")
        .spread(ZONE, app="f")
        .owned_by("ReplicaSet", "f")
        .on(name)
        for name in zones.values()
    ]
    views = still(nodes[0].cordoned(), *nodes[1:], *pods)
    (room,) = views.headroom.rooms()
    assert (room.more, room.at_least, room.nodes) == (2, False, 2)
    page = views.nodes.view("b1")
    assert page is not None
    assert [(more.workload.name, more.more, more.at_least) for more in page.room] == [("f", 1, False)]


def test_headroom_of_pods_with_devices_is_what_the_allocator_finds() -> None:
    class_of_gpus = make_class("gpu", resource="example.com/gpu")
    slices = [make_slice(name, device("gpu-0"), device("gpu-1")) for name in ("a", "b")]
    pod = make_pod("p").requests({"example.com/gpu": 1}).on("a")
    views = still(make_node("a"), make_node("b"), class_of_gpus, *slices, pod)
    model = HeadroomModel(views.observed, lambda: 0.0)
    (room,) = model.rooms()
    assert (room.more, room.at_least, room.nodes) == (4, False, 2)
    page = NodeModel(views.observed, views.pending, model).view("a")
    assert page is not None
    assert [(more.workload.name, more.more) for more in page.room] == [("p", 2)]


def test_headroom_of_a_stateful_set_is_with_volumes_of_their_own() -> None:
    """The volume of db-0 is in zone a; that of the next pod may be anywhere."""
    nodes = [make_node(name).zone(name[0]).capacity(cpu="2") for name in ("a1", "b1")]
    wait = StorageClass(
        metadata=ObjectMeta(name="fast"), provisioner="csi.example.com", volume_binding_mode="WaitForFirstConsumer"
    )
    claim = PersistentVolumeClaim(
        metadata=ObjectMeta(name="data-db-0", namespace="default", annotations={BIND_COMPLETED: "yes"}),
        spec=PersistentVolumeClaimSpec(
            access_modes=("ReadWriteOncePod",), storage_class_name="fast", volume_name="pv", resources=VolumeResources()
        ),
        status=ClaimStatus(phase="Bound"),
    )
    volume = PersistentVolume(metadata=ObjectMeta(name="pv"), spec=PersistentVolumeSpec(storage_class_name="fast"))
    data = Volume(name="data", persistent_volume_claim=PersistentVolumeClaimSource(claim_name="data-db-0"))
    pod = make_pod("db-0").requests(cpu="1").owned_by("StatefulSet", "db").spec(volumes=(data,)).on("a1")
    views = still(*nodes, wait, claim, volume, pod)
    (room,) = HeadroomModel(views.observed, lambda: 0.0).rooms()
    assert (room.more, room.at_least, room.nodes) == (3, False, 2)
    assert [each.name for each in views.observed.cluster.all(PersistentVolumeClaim)] == ["data-db-0"]


def test_headroom_leaves_out_daemons_and_runs_of_cron_jobs() -> None:
    views = still(
        make_node("a"),
        make_pod("logs-x").owned_by("DaemonSet", "logs").on("a"),
        make_pod("etcd").annotate({"kubernetes.io/config.mirror": "1"}).on("a"),
        make_pod("backup-29384720-x").owned_by("Job", "backup-29384720").on("a"),
        make_pod("train-x").owned_by("Job", "train").on("a"),
    )
    assert [room.workload.name for room in views.headroom.rooms()] == ["train"]
    page = views.nodes.view("a")
    assert page is not None
    assert [more.workload.name for more in page.room] == ["train"]


def test_headroom_is_the_least_that_is_known_until_it_was_counted_to_the_end() -> None:
    now = [0.0]

    def clock() -> float:
        now[0] += 0.02
        return now[0]

    slices = [make_slice(name, *(device(f"gpu-{i}") for i in range(9))) for name in ("a", "b")]
    nodes, gpus = (make_node("a"), make_node("b")), make_class("gpu", resource="example.com/gpu")
    views = still(*nodes, gpus, *slices, make_pod("p").requests({"example.com/gpu": 1}).on("a"))
    slow = HeadroomModel(views.observed, clock)
    (room,) = slow.rooms()
    assert room.at_least
    assert 0 < room.more < 18
    version, pods = slow.unknown()
    copy = views.observed.cluster.copy(views.observed.cluster.given)
    slow.learn(version, {facts: headroom(copy, pod) for facts, pod in pods.items()})
    (room,) = slow.rooms()
    assert (room.more, room.at_least) == (18, False)
    counted = {facts: headroom(copy, pod) for facts, pod in pods.items()}
    views.observed.cluster.handle(Change(None, make_node("c").build()))
    assert slow.rooms()[0].at_least, "what was counted before a change is worth nothing"
    slow.learn(version, counted)
    assert slow.rooms()[0].at_least


def test_headroom_of_a_scheduler_at_work_places_no_copies_in_its_cache() -> None:
    slices = [make_slice("a", device("gpu-0"), device("gpu-1"))]
    pod = make_pod("p").requests({"example.com/gpu": 1}).on("a")
    views = still(make_node("a"), make_class("gpu", resource="example.com/gpu"), *slices, pod)
    before = views.observed.state.nodes.changes.position
    (room,) = HeadroomModel(dataclasses.replace(views.observed, experiments=False)).rooms()
    assert (room.more, room.at_least, room.nodes) == (1, True, 1)
    assert views.observed.state.nodes.changes.position == before


def test_devices_are_shown_with_the_claims_that_hold_them() -> None:
    held = allocated(make_claim("mine", request()), "a/gpu-0")
    views = still(make_node("a"), make_slice("a", device("gpu-0"), device("gpu-1")), held)
    view = views.nodes.view("a")
    assert view is not None
    assert [(device.name, device.claims) for device in view.devices] == [("gpu-0", ("default/mine",)), ("gpu-1", ())]


def test_slices_have_the_shares_of_each_pod() -> None:
    views = still(make_node("a").capacity(cpu="4"), make_pod("p").requests(cpu="1").on("a"))
    slices = views.nodes.slices([0, 7])
    assert list(slices.rows) == [0]
    assert [each[:3] for each in slices.rows[0]] == [("default/p", "default/p", "starting")]


def test_search_finds_pods_that_wait_and_then_names_that_begin_with_the_text_first() -> None:
    placed = [make_pod(name).on("db") for name in ("old-web", "web-2")]
    _, views = alive(make_node("web-1"), make_node("db"), make_pod("new-web"), *placed)
    found = views.pods.search("WEB")
    assert found.nodes == ("web-1",)
    assert found.pods == (
        ("default/new-web", "", "waiting"),
        ("default/web-2", "db", "starting"),
        ("default/old-web", "db", "starting"),
    )
    assert views.pods.search("  ").pods == ()
