"""What an upgrade changes: a small cluster for each kind of difference, and one where nothing changes."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
from tests.device_builders import DRIVER, device, make_claim, make_class, make_slice, request, with_claims
from tests.unit.plugins.volume_builders import claim, storage_class, volume

from kubesched import config
from kubesched.api.device_claims import DeviceConstraint
from kubesched.api.meta import KubeObject, LabelSelector, LabelSelectorRequirement, ObjectMeta
from kubesched.api.pod import ContainerStatus, DiskSource, PodResourceClaim, ResourceRequirements, Volume
from kubesched.api.release import V1_36, V1_37
from kubesched.api.well_known import HOSTNAME
from kubesched.api.workloads import BudgetSpec, BudgetStatus, Namespace, PodDisruptionBudget
from kubesched.ask.releases.comparison import ChangeKind, PodChange, ReleaseComparison, compare_releases
from kubesched.ask.releases.fates import MOST_NODES
from kubesched.ask.releases.settings import field_changes
from kubesched.ask.releases.toggles import causes_between
from kubesched.config import Features
from kubesched.library.builders import NodeBuilder, PodBuilder, make_node, make_pod, pod_term

OLD, NEW = Features.of({}, V1_36), Features.of({}, V1_37)
MB = 1024 * 1024


def compared(*things: KubeObject | PodBuilder | NodeBuilder, text: str = "") -> ReleaseComparison:
    objects = [thing.build() if isinstance(thing, PodBuilder | NodeBuilder) else thing for thing in things]
    return compare_releases(
        objects, lambda features: config.load(text, features=features) if text else config.default(features), OLD, NEW
    )


def causes(found: ReleaseComparison) -> list[tuple[list[str], bool]]:
    return [([cause.name for cause in group.causes], group.only_together) for group in found.groups]


def only_change(found: ReleaseComparison) -> PodChange:
    [group] = found.groups
    [change] = group.changes
    return change


def node(name: str, cpu: str = "4") -> NodeBuilder:
    return make_node(name).capacity(cpu=cpu, memory="8Gi", pods="110")


# -- one cluster per kind of difference -------------------------------------------------------------------------------


def keeping_away() -> PodBuilder:
    """Keeps away from databases, but for those of team a."""
    others = LabelSelector(match_expressions=(LabelSelectorRequirement(key="team", operator="NotIn", values=("a",)),))
    return make_pod("shy").pod_anti_affinity_term(pod_term(HOSTNAME, {"app": "db"}, namespace_selector=others))


def database() -> Iterable[KubeObject]:
    yield Namespace(metadata=ObjectMeta(name="team-a", labels={"team": "a"}))
    yield Namespace(metadata=ObjectMeta(name="default"))
    yield make_pod("db", namespace="team-a").label(app="db").requests(cpu="1").on("n1").build()


def test_a_pending_pod_fits_once_its_namespace_selector_means_what_it_says() -> None:
    found = compared(node("n1"), *database(), keeping_away())
    change = only_change(found)
    assert causes(found) == [(["selected_namespaces_only"], False)]
    assert (change.kind, change.pods, change.is_placed) == (ChangeKind.FITS, ("default/shy",), False)
    assert "anti-affinity" in change.before.message
    assert change.after.nodes == ("n1",)
    assert found.groups[0].causes[0].reference.endswith("/kubernetes/pull/138198")


def test_a_claim_with_distinct_devices_no_longer_fits_where_two_are_alike() -> None:
    constraint = DeviceConstraint(distinct_attribute=f"{DRIVER}/model")
    devices = [device(f"d{i}", model=model) for i, model in enumerate("xyx")]
    found = compared(
        node("n1"),
        make_class(),
        make_slice("n1", *devices),
        make_claim("three", request("r", 3), constraints=(constraint,)),
        with_claims(make_pod("trainer"), "three"),
    )
    assert causes(found) == [(["distinct_from_all"], False)]
    assert only_change(found).kind is ChangeKind.NO_LONGER_FITS


def resized(name: str) -> PodBuilder:
    """One container grows from 1 to 2 CPUs while the other shrinks."""

    def status(container: str, cpu: str) -> ContainerStatus:
        return ContainerStatus(name=container, resources=ResourceRequirements(requests={"cpu": cpu}))

    statuses = (status("grows", "1"), status("shrinks", "2"))
    return make_pod(name).container("grows", cpu="2").container("shrinks", cpu="1").status(container_statuses=statuses)


def test_a_pod_fits_beside_one_that_is_being_resized() -> None:
    found = compared(node("n1"), resized("old").on("n1"), make_pod("new").requests(cpu="1"))
    assert causes(found) == [(["resize_by_pod"], False)]
    assert only_change(found).after.nodes == ("n1",)


def with_image_volume(name: str) -> PodBuilder:
    return make_pod(name).image("app:1").spec(volumes=(Volume(name="data", image=DiskSource(reference="data:1")),))


def test_a_pod_with_an_image_volume_lands_elsewhere_once_it_counts() -> None:
    nodes = node("a").image("app:1", size=2400 * MB), node("b").image("data:1", size=2000 * MB)
    found = compared(*nodes, with_image_volume("p"))
    change = only_change(found)
    assert causes(found) == [(["image_volumes_counted"], False)]
    assert (change.kind, change.before.nodes, change.after.nodes) == (ChangeKind.OTHER_NODE, ("b", "a"), ("a",))


def test_of_many_equally_good_nodes_some_are_named_first_those_that_differ() -> None:
    alike = [node(f"a{i:02}").image("app:1", size=2000 * MB) for i in range(12)]
    change = only_change(compared(*alike, node("b").image("data:1", size=20000 * MB), with_image_volume("p")))
    assert (change.before.ties, change.after.ties) == (13, 12)
    assert len(change.before.nodes) == MOST_NODES
    assert change.before.nodes[0] == "b"
    assert change.before.words == "b or a00 or a01 or 10 more"


def local_storage(most_on: str, least_on: str) -> Iterable[KubeObject]:
    yield storage_class("local", provisioner="kubernetes.io/no-provisioner")
    yield claim("data", storageClassName="local")
    for name, size, on in (("large", "100Gi", most_on), ("small", "10Gi", least_on)):
        yield volume(name, size=size, on={HOSTNAME: [on]}, storageClassName="local")


CLAIM = msgspec.convert({"name": "v", "persistentVolumeClaim": {"claimName": "data"}}, Volume)


def test_a_pod_with_local_storage_lands_where_most_is_left_by_a_gate_that_is_now_on() -> None:
    found = compared(node("a"), node("b"), *local_storage("b", "a"), make_pod("p").spec(volumes=(CLAIM,)))
    assert causes(found) == [(["StorageCapacityScoring"], False)]
    assert (only_change(found).before.nodes, only_change(found).after.nodes) == (("a", "b"), ("b",))


def test_two_changes_that_each_make_a_difference_are_named_side_by_side() -> None:
    pod = with_image_volume("p")
    pod = pod.spec(volumes=(*pod.pod.spec.volumes, CLAIM))
    nodes = node("a").image("app:1", size=2400 * MB), node("b").image("data:1", size=2000 * MB)
    found = compared(*nodes, *local_storage("b", "a"), pod)
    assert causes(found) == [(["image_volumes_counted", "StorageCapacityScoring"], False)]


def test_other_words_are_told_of_pods_that_wait() -> None:
    found = compared(
        node("n1"), make_pod("low").requests(cpu="4").on("n1"), make_pod("high").priority(9).requests(cpu="4")
    )
    change = only_change(found)
    assert causes(found) == [(["preemption_said"], False)]
    assert change.kind is ChangeKind.OTHER_MESSAGE
    assert change.after.message.startswith(change.before.message)
    assert change.before.victims == change.after.victims == ("default/low",)


def test_other_words_are_not_told_of_pods_that_have_a_node() -> None:
    found = compared(
        node("n1").cordoned(),
        node("n2"),
        make_pod("low").requests(cpu="4").on("n2"),
        make_pod("high").priority(9).requests(cpu="4").on("n1"),
    )
    assert (found.placed, found.decided, found.groups) == (2, 2, ())


def budget(name: str, *, allowed: int) -> PodDisruptionBudget:
    return PodDisruptionBudget(
        metadata=ObjectMeta(name=name, namespace="default"),
        spec=BudgetSpec(selector=LabelSelector(match_labels={name: "yes"})),
        status=BudgetStatus(disruptions_allowed=allowed),
    )


def test_other_victims_are_chosen_where_budgets_overlap() -> None:
    found = compared(
        node("n1"),
        node("n2"),
        budget("a", allowed=0),
        budget("b", allowed=1),
        make_pod("p1").label(a="yes", b="yes").priority(1).requests(cpu="2").on("n1"),
        make_pod("p2").label(b="yes").priority(1).requests(cpu="2").on("n1"),
        make_pod("p3").label(a="yes").priority(5).requests(cpu="4").on("n2"),
        make_pod("high").priority(9).requests(cpu="4"),
    )
    change = only_change(found)
    assert causes(found) == [(["first_exhausted_budget"], False)]
    assert change.kind is ChangeKind.OTHER_VICTIMS
    assert change.before.words.endswith(" Evicts default/p3 on n2.")
    assert change.after.words.endswith(" Evicts default/p1, default/p2 on n1.")


def test_what_only_two_changes_together_do_is_said_to_be_so() -> None:
    found = compared(node("n1", cpu="5"), *database(), resized("old").on("n1"), keeping_away().requests(cpu="1"))
    assert causes(found) == [(["selected_namespaces_only", "resize_by_pod"], True)]
    assert found.groups[0].title.startswith("Only several changes together: ")


def test_a_cluster_where_nothing_changes_says_so() -> None:
    pods = make_pod("runs").requests(cpu="1").on("n1"), make_pod("fits").requests(cpu="1"), make_pod("held").gate("x")
    found = compared(node("n1"), *pods)
    assert (found.pending, found.placed, found.groups) == (2, 1, ())
    assert found.summary == "2 pending pods, 1 placed: no pod is treated otherwise."


# -- placed pods ------------------------------------------------------------------------------------------------------


def test_placed_pods_are_decided_as_if_they_had_no_node() -> None:
    nodes = node("a").image("app:1", size=2400 * MB), node("b").image("data:1", size=2000 * MB)
    found = compared(*nodes, with_image_volume("p").on("b"))
    change = only_change(found)
    assert (change.is_placed, change.pods, found.pending, found.placed) == (True, ("default/p",), 0, 1)
    assert (change.before.nodes, change.after.nodes) == (("b", "a"), ("a",))


def test_equal_pods_on_one_node_are_decided_upon_once_unless_claims_were_made_for_each() -> None:
    nodes, pods = (node("n1"), node("n2")), [make_pod(f"p{i}").on("n1") for i in (1, 2)]
    found = compared(*nodes, *pods, make_pod("p3").on("n2"), make_pod("p4"), make_pod("p5"))
    assert (found.pending, found.placed, found.decided) == (2, 3, 3)
    made = PodResourceClaim(name="gpu", resource_claim_template_name="gpu")
    assert compared(*nodes, *(pod.spec(resource_claims=(made,)) for pod in pods)).decided == 2


def test_placed_daemons_finished_pods_and_those_of_other_schedulers_are_left_out() -> None:
    found = compared(
        node("n1"),
        make_pod("daemon").owned_by("DaemonSet", "d").on("n1"),
        make_pod("done").on("n1").status(phase="Succeeded"),
        make_pod("other").spec(scheduler_name="other"),
        make_pod("leaving").terminating(),
        make_pod("next-daemon").owned_by("DaemonSet", "d"),
    )
    assert (found.pending, found.placed) == (1, 0), "a daemon that waits is as any pod"


# -- settings ---------------------------------------------------------------------------------------------------------

HEAD = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"


def test_fields_whose_value_differs_once_defaults_are_filled_in_are_told() -> None:
    fields = {each.setting.partition("].")[2]: (each.before, each.after) for each in compared(node("n1")).fields}
    assert fields["plugins.multiPoint.enabled, order"] == ("NodeUnschedulable, NodeName", "NodeName, NodeUnschedulable")
    assert fields["plugins.podGroupPostFilter"] == ("", "{}")
    assert fields["pluginConfig[VolumeBinding].args.shape"][0] == ""


def test_a_configuration_that_one_release_refuses_is_told_and_no_pod_is_decided() -> None:
    text = f"{HEAD}profiles: [{{plugins: {{podGroupPostFilter: {{}}}}}}]"
    found = compared(node("n1"), make_pod("p"), text=text)
    assert found.refused == ("1.36: <config>: profiles[0].plugins.podGroupPostFilter: unknown field",)
    assert (found.decided, found.fields) == (0, ())


def test_gates_are_told_if_they_come_go_or_change_their_default() -> None:
    gates = {each.setting: (each.before, each.after) for each in compared(node("n1")).gates}
    assert gates["StorageCapacityScoring"] == ("off (alpha)", "on (beta)")
    assert gates["GangScheduling"] == ("off (alpha)", "")
    assert gates["DRAPrioritizedList"] == ("on (GA)", "on, locked (GA)")
    assert "SchedulerAsyncPreemption" not in gates


def test_every_change_between_releases_can_be_made_by_itself_and_all_of_them_are_the_newer_release() -> None:
    features, causes = OLD, causes_between(OLD, NEW)
    for cause in causes:
        assert causes_between(OLD, cause.made(OLD, NEW)) == (cause,)
        features = cause.made(features, NEW)
    assert causes_between(features, NEW) == ()
    assert {"node_name_first", "StorageCapacityScoring"} <= {cause.name for cause in causes}


def test_entries_with_names_are_compared_by_name_and_others_as_a_whole() -> None:
    before = {"list": [{"name": "a", "weight": 1}, {"name": "b"}], "plain": [1], "same": {"x": 1}}
    after = {"list": [{"name": "b"}, {"name": "a", "weight": 2}], "plain": [2], "same": {"x": 1}}
    assert [(each.setting, each.before, each.after) for each in field_changes(before, after)] == [
        ("list[a].weight", "1", "2"),
        ("list, order", "a, b", "b, a"),
        ("plain", "[1]", "[2]"),
    ]
