"""Which events wake the pods that a plugin rejected: for each plugin the cases that tell its hint from a guess."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest
from msgspec.structs import replace
from tests.builders import make_cluster
from tests.unit.plugins.volume_builders import claim, csi_node, make, pod, storage_class, volume

from kubesched.api.affinity import TopologySpreadConstraint
from kubesched.api.meta import KubeObject, LabelSelector
from kubesched.api.pod import ContainerStatus, ResourceRequirements
from kubesched.config.args import PodTopologySpreadArgs
from kubesched.config.features import Features
from kubesched.framework.events import Action, ClusterEvent, Hint, Interest, Kind
from kubesched.framework.plugin import FilterPlugin, Plugin, PluginContext, ScorePlugin
from kubesched.framework.profile import interests_of
from kubesched.plugins.default_preemption import DefaultPreemption
from kubesched.plugins.dynamic_resources import DynamicResources
from kubesched.plugins.inter_pod_affinity import InterPodAffinity
from kubesched.plugins.node_affinity import NodeAffinityPlugin
from kubesched.plugins.node_declared_features import NodeDeclaredFeatures
from kubesched.plugins.node_name import NodeName
from kubesched.plugins.node_ports import NodePorts
from kubesched.plugins.node_resources import NodeResourcesFit
from kubesched.plugins.node_unschedulable import NodeUnschedulable
from kubesched.plugins.node_volume_limits import NodeVolumeLimits
from kubesched.plugins.pod_topology_spread import PodTopologySpread
from kubesched.plugins.scheduling_gates import SchedulingGates
from kubesched.plugins.taint_toleration import TaintToleration
from kubesched.plugins.volume_binding import VolumeBinding
from kubesched.plugins.volume_restrictions import VolumeRestrictions
from kubesched.plugins.volume_zone import VolumeZone
from kubesched.testing import HOSTNAME, ZONE, make_node, make_pod, node_term, pod_term

ADD, UPDATE, DELETE = Action.ADD, Action.UPDATE, Action.DELETE
LABEL, TAINT, ALLOCATABLE = Action.UPDATE_NODE_LABEL, Action.UPDATE_NODE_TAINT, Action.UPDATE_NODE_ALLOCATABLE
POD_LABEL, TOLERATION, SCALE_DOWN = Action.UPDATE_POD_LABEL, Action.UPDATE_POD_TOLERATION, Action.UPDATE_POD_SCALE_DOWN
PLACED, PENDING = Kind.ASSIGNED_POD, Kind.PENDING_POD

NODE, ZONED = make_node("n"), make_node("n").zone("a")
WAITING = make_pod("waiting")
PLAIN, OTHER = WAITING.build(), make_pod("other")
MALFORMED = WAITING.requires_node(node_term("cores", "Gt", "-5"))
PORT_80 = WAITING.host_port(80)
BIG = WAITING.requests(cpu="2")
HELD = ContainerStatus(name="main", resources=ResourceRequirements(requests={"cpu": "8"}))
WAS_BIGGER = BIG.status(container_statuses=(HELD,))
NEAR_DB, FAR_FROM_DB = WAITING.pod_affinity(ZONE, app="db"), WAITING.pod_anti_affinity(ZONE, app="db")
SPREAD = WAITING.label(app="web").spread(ZONE, app="web")
WEB, DB = OTHER.label(app="web").on("n"), OTHER.label(app="db").on("n")
WITH_CLAIM = pod("waiting", claims=("data",))
WITH_SCRATCH = pod("waiting", {"name": "scratch", "ephemeral": {}})
WITH_DISK = pod("waiting", {"gcePersistentDisk": {"pdName": "d"}})
WITH_BLOB = pod("waiting", {"azureDisk": {"diskName": "d", "diskURI": "https://d", "kind": "Shared"}})
WITH_DRIVER = pod("waiting", {"csi": {"driver": "csi.example.com"}})
HONORING = SPREAD.spec(
    topology_spread_constraints=(
        TopologySpreadConstraint(
            topology_key=ZONE,
            max_skew=1,
            when_unsatisfiable="DoNotSchedule",
            label_selector=LabelSelector(match_labels={"app": "web"}),
            node_taints_policy="Honor",
        ),
    )
)


class Event(NamedTuple):
    """Something that happened: `old` is missing of what is new, `new` of what is gone."""

    kind: Kind
    action: Action
    old: Any = None
    new: Any = None


def hint(plugin: Plugin, waiting: Any, event: Event) -> Hint | None:
    """What the plugin makes of it; None if it did not register the event."""
    happened = ClusterEvent(event.kind, event.action)
    heard = [interest for interest in interests_of(plugin) if interest.event.covers(happened)]
    if not heard:
        return None
    assert len(heard) == 1
    if heard[0].hint is None:
        return Hint.QUEUE
    return heard[0].hint(built(waiting), built(event.old), built(event.new), make_cluster())


def built(obj: Any) -> Any:
    return obj.build() if hasattr(obj, "build") else obj


def attachment(attacher: str) -> KubeObject:
    made: KubeObject = make("VolumeAttachment", "a", spec={"attacher": attacher, "nodeName": "n"})
    return made


def capacity(**fields: str) -> KubeObject:
    made: KubeObject = make("CSIStorageCapacity", "c", namespace="default", storageClassName="fast", **fields)
    return made


def driver(*, reports: bool) -> KubeObject:
    made: KubeObject = make("CSIDriver", "csi.example.com", spec={"storageCapacity": reports})
    return made


def device_class(name: str, resource: str | None = None) -> KubeObject:
    made: KubeObject = make("DeviceClass", name, spec={"extendedResourceName": resource})
    return made


def elsewhere(obj: KubeObject) -> KubeObject:
    return replace(obj, metadata=replace(obj.metadata, namespace="elsewhere"))


HELPS: list[tuple[type[Plugin], Any, Event]] = [
    (SchedulingGates, PLAIN, Event(PENDING, Action.UPDATE_POD_SCHEDULING_GATES_ELIMINATED, WAITING.gate("g"), WAITING)),
    (NodeUnschedulable, PLAIN, Event(Kind.NODE, ADD, None, NODE)),
    (NodeUnschedulable, PLAIN, Event(Kind.NODE, TAINT, NODE.cordoned(), NODE)),
    (NodeUnschedulable, PLAIN, Event(PENDING, TOLERATION, WAITING, WAITING.toleration(operator="Exists"))),
    (NodeName, PLAIN, Event(Kind.NODE, ADD, None, NODE)),
    (NodeName, PLAIN, Event(Kind.NODE, TAINT, NODE, NODE.taint("a"))),
    (TaintToleration, PLAIN, Event(Kind.NODE, ADD, None, NODE.taint("a", effect="PreferNoSchedule"))),
    (TaintToleration, PLAIN, Event(Kind.NODE, TAINT, NODE.taint("a"), NODE)),
    (TaintToleration, PLAIN, Event(PENDING, TOLERATION, WAITING, WAITING.toleration("a"))),
    (NodeAffinityPlugin, WAITING.node_selector(disk="ssd"), Event(Kind.NODE, LABEL, NODE, NODE.label(disk="ssd"))),
    (
        NodeAffinityPlugin,
        WAITING.requires_node(node_term("a", "Exists"), node_term("metadata.name", "In", "n")),
        Event(Kind.NODE, ADD, None, NODE),
    ),
    (NodeAffinityPlugin, MALFORMED, Event(Kind.NODE, ADD, None, NODE)),
    (NodeAffinityPlugin, MALFORMED, Event(Kind.NODE, LABEL, NODE, NODE.label(disk="ssd"))),
    (NodePorts, PORT_80, Event(PLACED, DELETE, OTHER.host_port(80, ip="10.0.0.1").on("n"))),
    (NodePorts, PORT_80, Event(PLACED, DELETE, OTHER.host_port(80).nominated("n"))),
    (NodePorts, PORT_80, Event(Kind.NODE, ADD, None, NODE)),
    (NodeResourcesFit, BIG, Event(PLACED, DELETE, OTHER.on("n"))),
    (NodeResourcesFit, BIG, Event(PENDING, SCALE_DOWN, BIG, BIG.requests(cpu="1"))),
    (NodeResourcesFit, BIG, Event(PLACED, SCALE_DOWN, OTHER.requests(cpu="2").on("n"), OTHER.requests(cpu=1).on("n"))),
    (NodeResourcesFit, BIG, Event(Kind.NODE, ADD, None, NODE)),
    (NodeResourcesFit, WAS_BIGGER, Event(Kind.NODE, ADD, None, NODE)),
    (NodeResourcesFit, BIG, Event(Kind.NODE, ALLOCATABLE, NODE, NODE.capacity(cpu="5"))),
    (NodeResourcesFit, BIG, Event(Kind.NODE, ALLOCATABLE, NODE, NODE.capacity(pods=111))),
    (
        NodeResourcesFit,
        WAITING.requests({"deviceclass.resource.kubernetes.io/gpu": 1}),
        Event(Kind.DEVICE_CLASS, ADD, None, device_class("gpu")),
    ),
    (
        NodeResourcesFit,
        WAITING.requests({"example.com/gpu": 1}),
        Event(Kind.DEVICE_CLASS, UPDATE, device_class("gpu"), device_class("gpu", "example.com/gpu")),
    ),
    (VolumeRestrictions, WITH_CLAIM, Event(PLACED, DELETE, pod("other", claims=("data",), on="n"))),
    (
        VolumeRestrictions,
        WITH_DISK,
        Event(PLACED, DELETE, pod("other", {"gcePersistentDisk": {"pdName": "d"}}, on="n")),
    ),
    (VolumeRestrictions, WITH_CLAIM, Event(Kind.PERSISTENT_VOLUME_CLAIM, ADD, None, claim("data"))),
    (NodeVolumeLimits, WITH_CLAIM, Event(PLACED, DELETE, pod("other", claims=("any",), on="n"))),
    (NodeVolumeLimits, WITH_SCRATCH, Event(Kind.PERSISTENT_VOLUME_CLAIM, ADD, None, claim("waiting-scratch"))),
    (NodeVolumeLimits, WITH_CLAIM, Event(Kind.VOLUME_ATTACHMENT, DELETE, attachment("any.example.com"))),
    (NodeVolumeLimits, WITH_DISK, Event(Kind.VOLUME_ATTACHMENT, DELETE, attachment("pd.csi.storage.gke.io"))),
    (NodeVolumeLimits, WITH_BLOB, Event(Kind.VOLUME_ATTACHMENT, DELETE, attachment("any.example.com"))),
    (NodeVolumeLimits, WITH_CLAIM, Event(Kind.CSI_NODE, ADD, None, csi_node("n"))),
    (NodeVolumeLimits, WITH_CLAIM, Event(Kind.CSI_NODE, UPDATE, csi_node("n", {"a": 1}), csi_node("n", {"a": 2}))),
    (VolumeBinding, WITH_CLAIM, Event(Kind.STORAGE_CLASS, ADD, None, storage_class("any"))),
    (
        VolumeBinding,
        WITH_CLAIM,
        Event(
            Kind.STORAGE_CLASS,
            UPDATE,
            storage_class("fast", allowedTopologies=[{"matchLabelExpressions": [{"key": ZONE, "values": ["a"]}]}]),
            storage_class("fast"),
        ),
    ),
    (VolumeBinding, WITH_SCRATCH, Event(Kind.PERSISTENT_VOLUME_CLAIM, ADD, None, claim("waiting-scratch"))),
    (VolumeBinding, WITH_CLAIM, Event(Kind.PERSISTENT_VOLUME_CLAIM, UPDATE, claim("data"), claim("data", volume="v"))),
    (VolumeBinding, WITH_CLAIM, Event(Kind.PERSISTENT_VOLUME, UPDATE, volume("v"), volume("v"))),
    (VolumeBinding, WITH_CLAIM, Event(Kind.CSI_NODE, UPDATE, csi_node("n"), csi_node("n", migrated="a"))),
    (VolumeBinding, WITH_DRIVER, Event(Kind.CSI_DRIVER, UPDATE, driver(reports=True), driver(reports=False))),
    (VolumeBinding, WITH_CLAIM, Event(Kind.CSI_STORAGE_CAPACITY, UPDATE, capacity(), capacity(capacity="1Gi"))),
    (VolumeZone, WITH_CLAIM, Event(Kind.STORAGE_CLASS, ADD, None, storage_class("any", waits=True))),
    (VolumeZone, WITH_CLAIM, Event(Kind.PERSISTENT_VOLUME_CLAIM, UPDATE, claim("data"), claim("data", volume="v"))),
    (VolumeZone, WITH_CLAIM, Event(Kind.PERSISTENT_VOLUME, ADD, None, volume("any"))),
    (VolumeZone, WITH_CLAIM, Event(Kind.PERSISTENT_VOLUME, UPDATE, volume("v", labels={ZONE: "a"}), volume("v"))),
    (PodTopologySpread, SPREAD, Event(PLACED, ADD, None, WEB)),
    (PodTopologySpread, SPREAD, Event(PLACED, DELETE, WEB)),
    (PodTopologySpread, SPREAD, Event(PLACED, POD_LABEL, WEB, WEB.label(app="db"))),
    (PodTopologySpread, SPREAD, Event(PENDING, POD_LABEL, SPREAD, SPREAD.label(app="db"))),
    (PodTopologySpread, HONORING, Event(PENDING, TOLERATION, HONORING, HONORING.toleration("a"))),
    (PodTopologySpread, SPREAD, Event(Kind.NODE, ADD, None, ZONED)),
    (PodTopologySpread, SPREAD, Event(Kind.NODE, DELETE, ZONED)),
    (PodTopologySpread, SPREAD, Event(Kind.NODE, LABEL, ZONED, NODE)),
    (PodTopologySpread, SPREAD, Event(Kind.NODE, LABEL, ZONED, NODE.zone("b"))),
    (PodTopologySpread, SPREAD, Event(Kind.NODE, TAINT, ZONED, ZONED.taint("a"))),
    (InterPodAffinity, NEAR_DB, Event(PLACED, ADD, None, DB)),
    (InterPodAffinity, NEAR_DB, Event(PLACED, POD_LABEL, WEB, DB)),
    (InterPodAffinity, FAR_FROM_DB, Event(PLACED, DELETE, DB)),
    (InterPodAffinity, FAR_FROM_DB, Event(PLACED, POD_LABEL, DB, WEB)),
    (InterPodAffinity, WAITING.label(app="db"), Event(PLACED, DELETE, OTHER.pod_anti_affinity(ZONE, app="db").on("n"))),
    (InterPodAffinity, PLAIN, Event(PENDING, POD_LABEL, WAITING, WAITING.label(app="db"))),
    (InterPodAffinity, NEAR_DB, Event(Kind.NODE, ADD, None, ZONED)),
    (InterPodAffinity, NEAR_DB, Event(Kind.NODE, LABEL, NODE, ZONED)),
    (InterPodAffinity, FAR_FROM_DB, Event(Kind.NODE, ADD, None, NODE)),
    (InterPodAffinity, FAR_FROM_DB, Event(Kind.NODE, LABEL, ZONED, NODE)),
    (NodeDeclaredFeatures, PLAIN, Event(Kind.NODE, Action.UPDATE_NODE_DECLARED_FEATURE, NODE, NODE.declares("f"))),
    (
        NodeDeclaredFeatures,
        PLAIN,
        Event(PENDING, UPDATE, WAITING, WAITING.spec(host_network=True, host_users=False)),
    ),
    (DynamicResources, PLAIN, Event(Kind.RESOURCE_SLICE, ADD, None, None)),
    (DynamicResources, PLAIN, Event(PENDING, Action.UPDATE_POD_GENERATED_RESOURCE_CLAIM, WAITING, WAITING)),
]

DOES_NOT_HELP: list[tuple[type[Plugin], Any, Event]] = [
    (NodeUnschedulable, PLAIN, Event(Kind.NODE, ADD, None, NODE.cordoned())),
    (NodeUnschedulable, PLAIN, Event(Kind.NODE, TAINT, NODE, NODE.taint("a"))),
    (NodeUnschedulable, PLAIN, Event(PENDING, TOLERATION, WAITING, WAITING.toleration("a"))),
    (NodeUnschedulable, PLAIN, Event(PLACED, TOLERATION, OTHER, OTHER.toleration(operator="Exists"))),
    (TaintToleration, PLAIN, Event(Kind.NODE, ADD, None, NODE.taint("a"))),
    (TaintToleration, PLAIN, Event(Kind.NODE, TAINT, NODE, NODE.taint("a", effect="PreferNoSchedule"))),
    (TaintToleration, PLAIN, Event(PLACED, TOLERATION, OTHER, OTHER.toleration("a"))),
    (NodeAffinityPlugin, WAITING.node_selector(disk="ssd"), Event(Kind.NODE, ADD, None, NODE)),
    (
        NodeAffinityPlugin,
        WAITING.node_selector(disk="ssd"),
        Event(Kind.NODE, LABEL, NODE.label(disk="ssd"), ZONED.label(disk="ssd")),
    ),
    (NodeAffinityPlugin, MALFORMED.node_selector(disk="ssd"), Event(Kind.NODE, ADD, None, NODE)),
    (NodePorts, PORT_80, Event(PLACED, DELETE, OTHER.host_port(81).on("n"))),
    (NodePorts, PORT_80, Event(PLACED, DELETE, OTHER.host_port(80, protocol="UDP").on("n"))),
    (NodePorts, PORT_80, Event(PLACED, DELETE, OTHER.host_port(80))),
    (NodeResourcesFit, BIG, Event(PLACED, DELETE, OTHER)),
    (NodeResourcesFit, BIG, Event(PLACED, SCALE_DOWN, OTHER.requests(memory=2).on("n"), OTHER.on("n"))),
    (NodeResourcesFit, BIG, Event(Kind.NODE, ADD, None, NODE.capacity(cpu="1"))),
    (NodeResourcesFit, BIG, Event(Kind.NODE, ADD, None, NODE.capacity(pods=0))),
    (NodeResourcesFit, BIG, Event(Kind.NODE, ALLOCATABLE, NODE, NODE.capacity(memory="16Gi"))),
    (NodeResourcesFit, BIG, Event(Kind.DEVICE_CLASS, ADD, None, device_class("gpu", "example.com/gpu"))),
    (
        NodeResourcesFit,
        WAITING.requests({"example.com/gpu": 1}),
        Event(
            Kind.DEVICE_CLASS, UPDATE, device_class("gpu", "example.com/gpu"), device_class("gpu", "example.com/gpu")
        ),
    ),
    (VolumeRestrictions, WITH_CLAIM, Event(PLACED, DELETE, pod("other", claims=("more",), on="n"))),
    (VolumeRestrictions, WITH_CLAIM, Event(PLACED, DELETE, elsewhere(pod("other", claims=("data",), on="n")))),
    (VolumeRestrictions, WITH_SCRATCH, Event(Kind.PERSISTENT_VOLUME_CLAIM, ADD, None, claim("waiting-scratch"))),
    (NodeVolumeLimits, WITH_CLAIM, Event(PLACED, DELETE, OTHER.on("n"))),
    (NodeVolumeLimits, WITH_CLAIM, Event(PLACED, DELETE, pod("other", claims=("any",)))),
    (NodeVolumeLimits, WITH_CLAIM, Event(Kind.PERSISTENT_VOLUME_CLAIM, ADD, None, claim("more"))),
    (NodeVolumeLimits, WITH_DISK, Event(Kind.VOLUME_ATTACHMENT, DELETE, attachment("any.example.com"))),
    (NodeVolumeLimits, WITH_CLAIM, Event(Kind.CSI_NODE, UPDATE, csi_node("n", {"a": 2}), csi_node("n", {"a": 1}))),
    (VolumeBinding, WITH_CLAIM, Event(Kind.STORAGE_CLASS, UPDATE, storage_class("fast"), storage_class("fast"))),
    (VolumeBinding, WITH_CLAIM, Event(Kind.PERSISTENT_VOLUME_CLAIM, ADD, None, elsewhere(claim("data")))),
    (VolumeBinding, WITH_CLAIM, Event(Kind.CSI_NODE, UPDATE, csi_node("n"), csi_node("n", {"a": 1}))),
    (VolumeBinding, WITH_CLAIM, Event(Kind.CSI_DRIVER, UPDATE, driver(reports=True), driver(reports=False))),
    (
        VolumeBinding,
        WITH_CLAIM,
        Event(
            Kind.CSI_STORAGE_CAPACITY,
            UPDATE,
            capacity(capacity="1Gi", maximumVolumeSize="1Gi"),
            capacity(capacity="9Gi", maximumVolumeSize="1Gi"),
        ),
    ),
    (VolumeZone, WITH_CLAIM, Event(Kind.STORAGE_CLASS, ADD, None, storage_class("any", waits=False))),
    (VolumeZone, WITH_SCRATCH, Event(Kind.PERSISTENT_VOLUME_CLAIM, ADD, None, claim("waiting-scratch"))),
    (VolumeZone, WITH_CLAIM, Event(Kind.PERSISTENT_VOLUME, UPDATE, volume("v"), volume("v", labels={"a": "b"}))),
    (PodTopologySpread, SPREAD, Event(PLACED, ADD, None, DB)),
    (PodTopologySpread, SPREAD, Event(PLACED, ADD, None, elsewhere(WEB.build()))),
    (PodTopologySpread, SPREAD, Event(PLACED, DELETE, OTHER.label(app="web"))),
    (PodTopologySpread, SPREAD, Event(PLACED, POD_LABEL, WEB, WEB.label(tier="1"))),
    (PodTopologySpread, SPREAD, Event(PENDING, TOLERATION, SPREAD, SPREAD.toleration("a"))),
    (PodTopologySpread, SPREAD, Event(Kind.NODE, ADD, None, NODE)),
    (PodTopologySpread, SPREAD, Event(Kind.NODE, LABEL, ZONED, ZONED.label(a="b"))),
    (PodTopologySpread, SPREAD, Event(Kind.NODE, TAINT, NODE, NODE.taint("a"))),
    (InterPodAffinity, NEAR_DB, Event(PLACED, ADD, None, WEB)),
    (InterPodAffinity, NEAR_DB, Event(PLACED, DELETE, DB)),
    (InterPodAffinity, NEAR_DB.pod_affinity(HOSTNAME, app="web"), Event(PLACED, ADD, None, DB)),
    (InterPodAffinity, FAR_FROM_DB, Event(PLACED, ADD, None, DB)),
    (InterPodAffinity, FAR_FROM_DB, Event(PLACED, DELETE, OTHER.label(app="db"))),
    (
        InterPodAffinity,
        WAITING.pod_affinity_term(pod_term(ZONE, {}, namespace_selector=LabelSelector(match_labels={"a": "b"}))),
        Event(PLACED, ADD, None, DB),
    ),
    (InterPodAffinity, NEAR_DB, Event(Kind.NODE, ADD, None, NODE)),
    (InterPodAffinity, NEAR_DB, Event(Kind.NODE, LABEL, ZONED, NODE)),
    (InterPodAffinity, FAR_FROM_DB, Event(Kind.NODE, LABEL, NODE, ZONED)),
    (DefaultPreemption, PLAIN, Event(PLACED, DELETE, OTHER.on("n"))),
    (NodeDeclaredFeatures, PLAIN, Event(PENDING, UPDATE, WAITING, WAITING.label(a="b"))),
    (NodeDeclaredFeatures, PLAIN, Event(PLACED, UPDATE, OTHER, OTHER.spec(host_network=True, host_users=False))),
    (DynamicResources, PLAIN, Event(Kind.RESOURCE_CLAIM, ADD, None, elsewhere(claim("c")))),
]

IS_NOT_HEARD: list[tuple[type[Plugin], Event]] = [
    (SchedulingGates, Event(Kind.NODE, ADD, None, NODE)),
    (NodeAffinityPlugin, Event(PENDING, UPDATE, WAITING, WAITING)),
    (NodeResourcesFit, Event(Kind.NODE, LABEL, NODE, ZONED)),
    (NodeResourcesFit, Event(Kind.NODE, DELETE, NODE)),
    (NodeVolumeLimits, Event(Kind.NODE, TAINT, NODE, NODE)),
    (VolumeZone, Event(Kind.STORAGE_CLASS, UPDATE, storage_class("a"), storage_class("a"))),
    (InterPodAffinity, Event(PENDING, TOLERATION, WAITING, WAITING)),
]


HEAR_OF_TAINTS: list[type[Plugin]] = [
    NodeName,
    NodeAffinityPlugin,
    NodePorts,
    NodeResourcesFit,
    VolumeRestrictions,
    VolumeBinding,
    VolumeZone,
    InterPodAffinity,
    DynamicResources,
    NodeDeclaredFeatures,
]


def words(case: Any) -> str:
    return (
        case.__name__
        if isinstance(case, type)
        else case.kind.value + case.action.word
        if isinstance(case, Event)
        else ""
    )


@pytest.mark.parametrize(("plugin", "waiting", "event"), HELPS, ids=words)
def test_event_that_may_help_wakes_the_pod(plugin: type[Plugin], waiting: Any, event: Event) -> None:
    assert hint(plugin(), waiting, event) is Hint.QUEUE


@pytest.mark.parametrize(("plugin", "waiting", "event"), DOES_NOT_HELP, ids=words)
def test_event_that_cannot_help_lets_the_pod_sleep(plugin: type[Plugin], waiting: Any, event: Event) -> None:
    assert hint(plugin(), waiting, event) is Hint.SKIP


@pytest.mark.parametrize(("plugin", "event"), IS_NOT_HEARD, ids=words)
def test_event_that_was_not_registered_is_not_heard(plugin: type[Plugin], event: Event) -> None:
    assert hint(plugin(), PLAIN, event) is None


@pytest.mark.parametrize("plugin", HEAR_OF_TAINTS)
def test_who_waits_for_nodes_hears_of_every_taint_change(plugin: type[Plugin]) -> None:
    assert interests_of(plugin())[-1] == Interest(ClusterEvent(Kind.NODE, TAINT))


def test_taint_change_is_not_added_where_it_was_registered() -> None:
    plugin = TaintToleration()
    assert [one.event for one in interests_of(plugin)] == [one.event for one in plugin.events_to_register()]


def test_plugin_that_names_no_events_hears_of_all_but_asks_about_none() -> None:
    interests = interests_of(FilterPlugin())
    assert {interest.event.action for interest in interests} == {Action.ALL}
    assert {interest.hint for interest in interests} == {None}
    assert Kind.ANY not in {interest.event.kind for interest in interests}


def test_plugin_that_rejects_nobody_waits_for_nothing() -> None:
    assert interests_of(ScorePlugin()) == ()


def test_new_node_helps_a_pod_whose_extended_resource_devices_may_serve() -> None:
    wants_gpu = WAITING.requests({"example.com/gpu": 1}).build()
    served = make_cluster(device_class("c", "example.com/gpu"))
    of_nodes = NodeResourcesFit().events_to_register()[1]
    assert of_nodes.hint is not None
    assert of_nodes.hint(wants_gpu, None, NODE.build(), served) is Hint.QUEUE
    assert of_nodes.hint(wants_gpu, NODE.build(), NODE.build(), served) is Hint.QUEUE
    assert of_nodes.hint(wants_gpu, None, NODE.build(), make_cluster()) is Hint.SKIP


def test_plugin_that_is_switched_off_waits_for_nothing() -> None:
    assert interests_of(NodeDeclaredFeatures(context=PluginContext(Features(declared_features=False)))) == ()


def test_default_constraints_of_the_profile_count_in_hints() -> None:
    default = TopologySpreadConstraint(topology_key=ZONE, max_skew=1, when_unsatisfiable="DoNotSchedule")
    args = PodTopologySpreadArgs(defaulting_type="List", default_constraints=(default,))
    waiting, service = (
        WAITING.label(app="web"),
        make("Service", "s", namespace="default", spec={"selector": {"app": "web"}}),
    )
    added = PodTopologySpread(args).events_to_register()[0]
    assert added.hint is not None
    assert added.hint(waiting.build(), None, WEB.build(), make_cluster(service)) is Hint.QUEUE
    assert added.hint(waiting.build(), None, WEB.build(), make_cluster()) is Hint.SKIP
