from __future__ import annotations

from tests.device_builders import allocated, device, make_claim, make_class, make_slice, request
from tests.unit.ui.observing import alive, still

from kubesched.testing import make_node, make_pod


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
    assert {fit.workload: fit.more for fit in view.room} == {"default/large": 0, "default/small": 1}
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
    assert (room.workload, room.running, room.more, room.nodes) == ("default/web", 2, 2 + 2, 2)
    assert room.requests == {"cpu": "1"}


def test_headroom_of_pods_with_devices_is_one_per_node_at_least() -> None:
    class_of_gpus = make_class("gpu", resource="example.com/gpu")
    slices = [make_slice(name, device("gpu-0"), device("gpu-1")) for name in ("a", "b")]
    pod = make_pod("p").requests({"example.com/gpu": 1}).on("a")
    views = still(make_node("a"), make_node("b"), class_of_gpus, *slices, pod)
    (room,) = views.headroom.rooms()
    assert (room.more, room.at_least, room.nodes) == (2, True, 2)


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
    assert [name for name, _ in slices.rows[0]] == ["default/p"]


def test_search_finds_names_that_begin_with_the_text_first() -> None:
    _, views = alive(make_node("web-1"), make_node("db"), make_pod("new-web"), make_pod("web-2").on("db"))
    found = views.pods.search("WEB")
    assert found.nodes == ("web-1",)
    assert found.pods == (("default/web-2", "db"), ("default/new-web", ""))
    assert views.pods.search("  ").pods == ()
