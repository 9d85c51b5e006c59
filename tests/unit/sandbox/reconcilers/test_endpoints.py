"""EndpointSlices in virtual time: a service leads to the pods that its selector matches, and says which are ready."""

from __future__ import annotations

from tests.living_sandbox import LivingSandbox, deployment, template

from kubesched.api.kinds import DEPLOYMENTS, ENDPOINT_SLICES, PODS, SERVICES, Object


def serving(replicas: int = 3, **spec: object) -> LivingSandbox:
    cluster = LivingSandbox(3)
    made = template()
    made["spec"]["containers"] = [{"name": "app", "image": "a", "ports": [{"name": "http", "containerPort": 8080}]}]
    deployment(cluster, replicas=replicas, template=made)
    labels = made["metadata"]["labels"]
    ports = [{"name": "web", "port": 80, "targetPort": "http"}]
    cluster.create(SERVICES, {"metadata": {"name": "web"}, "spec": {"selector": labels, "ports": ports, **spec}})
    cluster.run(20)
    return cluster


def slices(cluster: LivingSandbox) -> list[Object]:
    return cluster.api.select(ENDPOINT_SLICES, "default", labels="kubernetes.io/service-name=web")


def endpoints(cluster: LivingSandbox) -> dict[str, Object]:
    return {each["targetRef"]["name"]: each for part in slices(cluster) for each in part["endpoints"]}


def test_every_running_pod_is_an_endpoint_with_its_address_node_and_zone() -> None:
    cluster = serving()
    found = endpoints(cluster)
    assert found.keys() == {pod["metadata"]["name"] for pod in cluster.running()}
    for pod in cluster.running():
        endpoint = found[pod["metadata"]["name"]]
        assert endpoint["addresses"] == [pod["status"]["podIP"]]
        assert endpoint["nodeName"] == pod["spec"]["nodeName"]
        assert endpoint["zone"].startswith("zone-")
        assert endpoint["conditions"] == {"ready": True, "serving": True, "terminating": False}
    (part,) = slices(cluster)
    assert part["ports"] == [{"name": "web", "port": 8080, "protocol": "TCP"}]
    assert part["metadata"]["ownerReferences"][0]["name"] == "web"


def test_endpoints_follow_the_scale_and_the_labels_of_pods() -> None:
    cluster = serving()
    cluster.change(DEPLOYMENTS, "web", {"spec": {"replicas": 5}})
    cluster.run(20)
    assert len(endpoints(cluster)) == 5
    lost = cluster.running()[0]["metadata"]["name"]
    cluster.change(PODS, lost, {"metadata": {"labels": {"app": "other"}}})
    cluster.run(20)
    assert lost not in endpoints(cluster)
    assert len(endpoints(cluster)) == 5


def test_a_slice_has_a_hundred_endpoints_at_most_and_empty_ones_go() -> None:
    cluster = serving(replicas=250)
    cluster.run(60)
    assert sorted(len(part["endpoints"]) for part in slices(cluster)) == [50, 100, 100]
    cluster.change(DEPLOYMENTS, "web", {"spec": {"replicas": 1}})
    cluster.run(120)
    assert [len(part["endpoints"]) for part in slices(cluster)] == [1]


def test_slices_go_with_their_service_and_a_service_without_a_selector_has_none() -> None:
    cluster = serving(selector=None)
    assert slices(cluster) == []
    cluster = serving()
    cluster.api.delete(SERVICES, "default", "web")
    cluster.run(20)
    assert slices(cluster) == []
