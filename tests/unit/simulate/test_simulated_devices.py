from __future__ import annotations

from pathlib import Path

import pytest
from tests.device_builders import device, make_claim, make_class, make_counters, make_slice, with_claims

from kubesched import config
from kubesched.api.pod import Pod
from kubesched.ask.explain.explanation import Explanation, explain_pod
from kubesched.plugins.dynamic_resources.explaining import NodeDevices
from kubesched.simulate.cluster import ClusterModel
from kubesched.simulate.manifests import ManifestError, load, loads
from kubesched.simulate.placement import capacity, model_of, place
from kubesched.simulate.report import SimulationReport
from kubesched.simulate.simulation import Simulation
from kubesched.testing import make_node, make_pod

GPUS = str(Path(__file__).parents[3] / "examples" / "gpus")
NODE = "---\n{apiVersion: v1, kind: Node, metadata: {name: n1}, status: {capacity: {cpu: 8, memory: 8Gi, pods: 110}}}\n"
CLASS = "---\n{apiVersion: resource.k8s.io/v1, kind: DeviceClass, metadata: {name: gpu}, spec: {}}\n"
SLICE = """---
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: s}
spec:
  driver: gpu.example.com
  nodeName: n1
  pool: {name: n1, generation: 1, resourceSliceCount: 1}
  devices: [{name: a%s}]
"""
TEMPLATE = """---
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: one}
spec: {spec: {devices: {requests: [{name: r, exactly: {deviceClassName: gpu}}]}}}
"""
CLAIM = """---
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: shared}
spec: {devices: {requests: [{name: r, exactly: {deviceClassName: gpu}}]}}
"""


def pod(name: str, claim: str = "resourceClaimTemplateName: one", *, arrival: str = "0s", duration: str = "") -> str:
    notes = f"kubesched.io/arrival: {arrival}" + (f", kubesched.io/duration: {duration}" if duration else "")
    spec = f"{{resourceClaims: [{{name: gpu, {claim}}}], containers: [{{name: c}}]}}"
    meta = f"{{name: {name}, annotations: {{{notes}}}}}"
    return f"---\n{{apiVersion: v1, kind: Pod, metadata: {meta}, spec: {spec}}}\n"


def simulated(*manifests: str, device: str = "") -> SimulationReport:
    text = "".join((NODE, CLASS, SLICE % device, TEMPLATE, CLAIM, *manifests))
    return Simulation(loads(text, workloads=True).objects, config.default()).run()


def explained(name: str) -> Explanation:
    cluster = ClusterModel(load([GPUS]).objects, config.default())
    return explain_pod(cluster, cluster.pods[f"default/{name}"])


def devices_of(explanation: Explanation) -> tuple[NodeDevices, ...]:
    found: tuple[NodeDevices, ...] = explanation.details["devices"].data
    return found


def test_a_claim_is_made_from_a_template_and_released_when_the_pod_finishes() -> None:
    report = simulated(pod("first", duration="60s"), pod("second", arrival="1s"))
    assert {story.pod: story.placed for story in report.pods} == {"default/first": 0.0, "default/second": 60.0}


def test_pods_that_name_one_claim_share_its_device() -> None:
    claim = "resourceClaimName: shared"
    report = simulated(pod("first", claim), pod("second", claim), pod("third"))
    assert [story.pod for story in report.placed] == ["default/first", "default/second"]
    assert report.pending[0].message.startswith("0/1 nodes are available: 1 cannot allocate all claims.")


def test_a_pod_waits_for_a_template_that_is_not_there() -> None:
    report = simulated(pod("p", "resourceClaimTemplateName: missing"))
    assert report.pending[0].message == 'pod "default/p": ResourceClaim not created yet'


def test_devices_that_take_a_while_are_ready_at_once() -> None:
    report = simulated(pod("p"), device=", bindingConditions: [up], bindingFailureConditions: [broken]")
    assert [story.pod for story in report.placed] == ["default/p"]


def test_placing_gives_every_pod_of_the_example_its_devices() -> None:
    report = place(ClusterModel(load([GPUS]).objects, config.default()))
    assert {placed.pod: placed.node for placed in report.placed} == {
        "default/trainer": "node-b",
        "default/server": "node-b",
        "default/notebook": "node-a",
    }


def test_an_explanation_says_what_was_chosen_and_what_rules_out_the_others() -> None:
    first = devices_of(explained("server"))[0]
    assert first.node == "node-b"
    large = first.requests[0]
    assert (large.claim, large.request, large.wants) == ("server-gpu", "gpu/large", "1 of class gpu")
    assert [(device.device.rpartition("/")[2], device.is_chosen, device.reason) for device in large.devices] == [
        ("gpu-0", True, ""),
        ("gpu-1", False, "not needed"),
        ("gpu-2", False, "not needed"),
        ("gpu-3", False, "taint example.com/repair:NoSchedule is not tolerated"),
    ]
    on_a = devices_of(explained("server"))[1]
    assert on_a.requests[0].devices[0].reason == (
        "claim default/server-gpu: selector #0 is false: "
        'device.capacity["gpu.example.com"].memory.compareTo(quantity("80Gi")) >= 0'
    )


def test_an_explanation_names_the_constraint_that_does_not_hold() -> None:
    pair = next(one for one in devices_of(explained("trainer")) if one.node == "node-a").requests[0]
    assert [device.is_chosen for device in pair.devices] == [True, True, False, False]
    assert pair.devices[2].reason == (
        "constraint #0 (matchAttribute gpu.example.com/numa) would not hold beside gpu-0, gpu-1"
    )


def test_an_explanation_names_the_claim_that_holds_a_device() -> None:
    held = (
        "---\n{apiVersion: resource.k8s.io/v1, kind: ResourceClaim, metadata: {name: held}, status: {allocation: "
        "{devices: {results: [{request: r, driver: gpu.example.com, pool: n1, device: a}]}}}}\n"
    )
    text = "".join((NODE, CLASS, SLICE % "", TEMPLATE, held, pod("p")))
    cluster = ClusterModel(loads(text).objects, config.default())
    found = explain_pod(cluster, cluster.pods["default/p"])
    assert devices_of(found)[0].requests[0].devices[0].reason == "in use by default/held"


def test_an_explanation_names_the_gate_that_keeps_a_device_from_everybody() -> None:
    counters = make_counters("n1", slots=4)
    devices = device("slow", conditions=("up",)), device("half", draws={"slots": 1})
    objects = make_node("n1").build(), make_class(), make_slice("n1", *devices, of=2), counters, make_claim("c")
    asking = with_claims(make_pod("p"), "c").build()
    off = config.Features(device_binding_conditions=False, device_partitions=False)
    cluster = ClusterModel([*objects, asking], config.default(off))
    found = explain_pod(cluster, cluster.pods["default/p"])
    assert [verdict.reason for verdict in devices_of(found)[0].requests[0].devices] == [
        "has binding conditions, but the feature gate DRADeviceBindingConditions is off",
        "draws from counters, but the feature gate DRAPartitionableDevices is off",
    ]


@pytest.mark.parametrize(
    ("manifest", "complaint"),
    [
        (SLICE % ", capacity: {memory: {value: much}}", "spec.devices[0].capacity.memory.value"),
        (
            SLICE.replace("nodeName: n1", "allNodes: false") % "",
            "exactly one of `nodeName`, `nodeSelector`, `allNodes`",
        ),
        (SLICE % ", attributes: {x: {int: 1, string: a}}", "exactly one value must be specified"),
        (CLAIM.replace("{deviceClassName: gpu}", "null"), "exactly one of `exactly` or `firstAvailable` is required"),
    ],
)
def test_mistakes_in_slices_and_claims_are_named(manifest: str, complaint: str) -> None:
    with pytest.raises(ManifestError) as caught:
        loads(manifest)
    assert complaint in str(caught.value)


def test_every_copy_of_a_pod_needs_claims_of_its_own() -> None:
    cluster = ClusterModel(load([GPUS]).objects, config.default())
    found = capacity(cluster, model_with_pair(cluster), most=10)
    assert found.by_node == {"node-a": 2, "node-b": 1}
    assert "cannot allocate all claims" in found.stopped_by


def model_with_pair(cluster: ClusterModel) -> Pod:
    model = model_of(cluster.pods["default/trainer"])
    assert model is not None
    return model


def test_copies_of_a_pod_that_waits_have_claims_of_their_own() -> None:
    text = "".join((NODE, CLASS, SLICE % "", TEMPLATE, pod("waits")))
    cluster = ClusterModel(loads(text, workloads=True).objects, config.default())
    waiting = cluster.pods["default/waits"]
    assert waiting.status.resource_claim_statuses
    counted = capacity(cluster, waiting, most=10)
    assert counted.fit == 1
    assert "cannot allocate all claims" in counted.stopped_by
