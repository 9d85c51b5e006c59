"""Which pods are one kind and which nodes one class, and what a bound on them may leave out."""

from __future__ import annotations

from msgspec.structs import replace
from tests.builders import profile_of

from kubesched import config as configuration
from kubesched.api.well_known import HOSTNAME
from kubesched.planning.kinds import ANY_NUMBER, KindReader, free_of, problem_of
from kubesched.simulate.cluster import ClusterModel
from kubesched.testing import NodeBuilder, PodBuilder, make_node, make_pod


def model(*objects: NodeBuilder | PodBuilder, config: dict[str, object] | None = None) -> ClusterModel:
    read = configuration.from_plain(config) if config else configuration.default()
    return ClusterModel([obj.build() for obj in objects], read)


def nodes(count: int, **labels: str) -> list[NodeBuilder]:
    names = [f"{'-'.join(labels.values())}{i}" for i in range(count)]
    return [make_node(name).capacity(cpu=4, memory="8Gi", pods=10).label(labels) for name in names]


def test_pods_that_differ_only_in_labels_are_one_kind() -> None:
    cluster = model(*nodes(2), *(make_pod(f"p{i}").requests(cpu=1).label(job=f"{i}") for i in range(3)))
    assert [len(kind.pods) for kind in problem_of(cluster, cluster.pending()).kinds] == [3]


def test_pods_of_other_requests_other_nodes_or_set_apart_are_other_kinds() -> None:
    cluster = model(
        *nodes(1, disk="ssd"),
        *nodes(1, disk="hdd"),
        make_pod("a").requests(cpu=1),
        make_pod("b").requests(cpu=2),
        make_pod("c").requests(cpu=1).node_selector(disk="ssd"),
        make_pod("d").requests(cpu=1).priority(5),
    )
    assert len(problem_of(cluster, cluster.pending()).kinds) == 3
    assert len(problem_of(cluster, cluster.pending(), apart=lambda pod: pod.priority).kinds) == 4


def test_nodes_are_a_class_by_room_left_and_by_who_may_go_there() -> None:
    cluster = model(
        *nodes(3, disk="ssd"),
        *nodes(2, disk="hdd"),
        make_pod("runs").requests(cpu=1).on("ssd0"),
        make_pod("a").requests(cpu=1).node_selector(disk="ssd"),
    )
    problem = problem_of(cluster, cluster.pending())
    assert sorted(zip(problem.nodes.tolist(), problem.free[:, 0].tolist(), problem.most[0].tolist())) == [
        (1, 3000, 3),
        (2, 4000, 0),
        (2, 4000, 4),
    ]


def test_load_of_pods_that_leave_is_not_counted() -> None:
    runs = make_pod("runs").requests(cpu=3).on("0").build()
    cluster = ClusterModel([make_node("0").capacity(pods=10).build(), runs], configuration.default())
    assert free_of(cluster, ("cpu", "pods"), [runs]).tolist() == [[4000, 10]]


def test_nodes_that_are_cordoned_or_tainted_are_none_for_the_kind() -> None:
    cluster = model(
        make_node("open").capacity(cpu=4),
        make_node("cordoned").capacity(cpu=4).cordoned(),
        make_node("tainted").capacity(cpu=4).taint("gpu"),
        make_pod("a").requests(cpu=1),
    )
    fits = KindReader(cluster).possible_rows(cluster.pending()[0])
    assert [cluster.state.nodes.names[row] for row in fits.nonzero()[0]] == ["open"]


def test_anti_affinity_to_itself_and_host_ports_leave_one_per_node() -> None:
    hosts = [make_node(f"n{i}") for i in range(2)]
    apart = make_pod("a").requests(cpu=1).label(app="db").pod_anti_affinity(HOSTNAME, app="db")
    others = make_pod("b").requests(cpu=1).label(app="web").pod_anti_affinity(HOSTNAME, app="db")
    port = make_pod("c").requests(cpu=1).host_port(80)
    cluster = model(*hosts, apart, others, port)
    most = {kind.pods[0].name: kind.most_per_node for kind in problem_of(cluster, cluster.pending()).kinds}
    assert most == {"a": 1, "b": ANY_NUMBER, "c": 1}


def test_pods_that_exclude_their_like_for_other_reasons_are_other_kinds() -> None:
    ports = [make_pod(f"port{i}").requests(cpu=1).host_port(80 + i) for i in range(2)]
    teams = [make_pod(app).requests(cpu=1).label(app=app).pod_anti_affinity(HOSTNAME, app=app) for app in ("a", "b")]
    cluster = model(make_node("n"), *ports, *teams)
    assert len(problem_of(cluster, cluster.pending()).kinds) == 4, "one of each goes on one node"


def test_anti_affinity_says_nothing_about_nodes_without_the_label() -> None:
    apart = make_pod("a").requests(cpu=1).label(app="db").pod_anti_affinity(HOSTNAME, app="db")
    node = make_node("bare").build()
    bare = NodeBuilder(replace(node, metadata=replace(node.metadata, labels={})))
    cluster = model(make_node("named"), bare, apart)
    assert problem_of(cluster, cluster.pending()).kinds[0].most_per_node == ANY_NUMBER


def test_what_the_configuration_does_not_look_at_is_no_limit() -> None:
    pods = [make_pod("a").requests(cpu=1)]
    without_fit = model(*nodes(1), *pods, config=profile_of("NodeName"))
    assert problem_of(without_fit, without_fit.pending()).resources == ("pods",)
    args = {"NodeResourcesFit": {"ignoredResources": ["example.com/gpu"]}}
    ignoring = model(
        *nodes(1),
        make_pod("a").requests({"cpu": 1, "example.com/gpu": 4}),
        config=profile_of("NodeResourcesFit", args=args),
    )
    assert problem_of(ignoring, ignoring.pending()).resources == ("cpu", "pods")
