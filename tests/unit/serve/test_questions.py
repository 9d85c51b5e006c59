"""Questions over HTTP: what is asked, what is answered, and what is said about questions that are wrong."""

from __future__ import annotations

from itertools import count

from tests.unit.serve.asking import BIG, OBJECTS, POD, Service, cluster_of, run

from kubesched.framework.plugin import FilterPlugin
from kubesched.simulate.manifests import loads

STATEFUL_SET = """
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db, namespace: shop}
spec:
  selector: {matchLabels: {app: db}}
  template:
    metadata: {labels: {app: db}}
    spec: {containers: [{name: db, image: db, volumeMounts: [{name: data, mountPath: /data}]}]}
  volumeClaimTemplates:
    - metadata: {name: data}
      spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
"""


def test_pods_are_placed_one_after_another() -> None:
    async def test(service: Service) -> None:
        found = await service.post("fit", {"pods": [POD, POD, POD, POD, POD]})
        assert (found["apiVersion"], found["kind"]) == ("kubesched.dev/v1alpha1", "Fit")
        assert not found["fits"]
        assert sorted(each["node"] for each in found["placed"]) == ["a1", "a1", "b1", "b1"]
        [left] = found["unplaced"]
        assert left["message"].startswith("0/2 nodes are available: 2 Insufficient cpu.")

    run(test)


def test_questions_leave_nothing_behind() -> None:
    async def test(service: Service) -> None:
        first = await service.post("fit", {"pods": [POD, POD]})
        await service.post("capacity", {"pod": POD})
        await service.post("explain", {"pod": "shop/tall"})
        await service.post("fit", {"pods": [POD], "changes": [{"verb": "remove", "nodes": ["a1", "b1"]}]})
        again = await service.post("fit", {"pods": [POD, POD]})
        assert (again["placed"], again["nodes"]) == (first["placed"], 2)

    run(test)


def test_pods_that_run_are_placed_as_if_they_were_evicted() -> None:
    async def test(service: Service) -> None:
        lost = [{"verb": "remove", "selector": "topology.kubernetes.io/zone=a"}]
        found = await service.post("fit", {"pods": ["shop/web-1"], "changes": lost})
        assert found["nodes"] == 1
        assert found["placed"][0]["node"] == "b1"
        stays = await service.post("fit", {"pods": [BIG]})
        assert not stays["fits"]
        evicted = [{"verb": "delete", "kind": "Pod", "namespace": "shop", "name": "web-1"}]
        assert (await service.post("fit", {"pods": [BIG], "changes": evicted}))["placed"][0]["node"] == "a1"

    run(test)


def test_changes_are_supposed_for_one_question() -> None:
    async def test(service: Service) -> None:
        async def nodes(*changes: object) -> tuple[int, list[str]]:
            found = await service.post("fit", {"pods": [POD], "changes": list(changes)})
            return found["nodes"], [each["node"] for each in found["placed"]]

        assert await nodes({"verb": "cordon", "nodes": ["a1"]}) == (2, ["b1"])
        assert await nodes({"verb": "cordon", "selector": "pool=web"}) == (2, [])
        assert await nodes({"verb": "cordon", "selector": "pool=web"}, {"verb": "uncordon", "nodes": ["a1"]}) == (
            2,
            ["a1"],
        )
        assert (await nodes({"verb": "add", "like": "b1", "count": 3}, {"verb": "add", "like": "b1"}))[0] == 6
        node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "c1"}}
        node["status"] = {"allocatable": {"cpu": "64", "memory": "64Gi", "pods": "10"}}
        assert await nodes({"verb": "create", "object": node}, {"verb": "remove", "nodes": ["a1", "b1"]}) == (1, ["c1"])

    run(test)


def test_changes_of_a_remedy_can_be_asked_about_as_they_are() -> None:
    async def test(service: Service) -> None:
        explained = await service.post("explain", {"pod": "shop/tall"})
        assert explained["outcome"] == "unschedulable"
        found = explained["remedies"]["found"]
        assert found
        for remedy in found:
            answer = await service.post("fit", {"pods": ["shop/tall"], "changes": remedy["changes"]})
            assert answer["placed"][0]["node"] == remedy["node"]

    run(test)


def test_capacity_counts_how_many_more_fit() -> None:
    async def test(service: Service) -> None:
        found = await service.post("capacity", {"pod": POD})
        assert (found["kind"], found["fit"], found["byNode"]) == ("Capacity", 4, {"a1": 2, "b1": 2})
        assert "stoppedBy" not in await service.post("capacity", {"pod": POD, "most": 3})

    run(test)


def test_explanation_has_groups_of_nodes_and_each_node_if_it_is_asked_for() -> None:
    async def test(service: Service) -> None:
        short = await service.post("explain", {"pod": BIG, "remedies": False})
        assert short["verdicts"] == []
        assert "remedies" not in short
        assert sorted(name for group in short["nodeGroups"] for name in group["nodes"]) == ["a1", "b1"]
        long = await service.post("explain", {"pod": BIG, "nodes": True})
        assert [each["node"] for each in long["verdicts"]] == ["a1", "b1"]
        assert long["remedies"]["found"]

    run(test)


def test_workload_stands_for_its_next_pod() -> None:
    cluster = cluster_of(*OBJECTS, *loads(STATEFUL_SET, workloads=True).objects)
    known = cluster.objects()

    async def test(service: Service) -> None:
        found = await service.post("fit", {"pods": ["shop/statefulset/db"]})
        assert [each["pod"] for each in found["placed"] + found["unplaced"]] == ["shop/db-0"]
        explained = await service.post("explain", {"pod": "shop/sts/db", "remedies": False})
        assert explained["pod"] == "shop/db-0"
        assert await service.errors("explain", {"pod": "shop/deployment/db"}, 422) == [
            "pod: there is no Deployment shop/db"
        ]
        assert cluster.objects() == known  # its claim is gone with the question

    run(test, cluster=cluster)


def test_mistakes_are_told_with_the_paths_of_fields() -> None:
    async def test(service: Service) -> None:
        odd = {"spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "1x"}}}], "nodSelector": {}}}
        lines = await service.errors("fit", {"pods": [POD, odd, "shop/web-2", "shop/tall", "shop/tall"]}, 422)
        assert lines[0].startswith("pods[1].spec.containers[0].resources.requests.cpu: '1x' is not a quantity")
        assert lines[1] == 'pods[1]: unknown field "spec.nodSelector", did you mean "nodeSelector"?'
        assert "pods[2]: there is no pod shop/web-2; did you mean shop/web-1?" in lines
        assert lines[-1] == "pods[4]: the pod shop/tall is named twice"
        changes = [{"verb": "cordon", "nodes": ["a1", "a11", "zz"]}]
        assert await service.errors("fit", {"pods": [POD], "changes": changes}, 422) == [
            "changes[0].nodes[1]: there is no node 'a11'; did you mean a1?",
            "changes[0].nodes[2]: there is no node 'zz'",
        ]
        other = {"spec": {**POD["spec"], "schedulerName": "other"}}
        assert await service.errors("explain", {"pod": other}, 422) == [
            "pod.spec.schedulerName: 'other'; there are profiles for default-scheduler"
        ]
        for change, said in (
            ({"verb": "remove"}, "changes[0]: expected either nodes or a selector"),
            ({"verb": "cordon", "selector": "pool"}, "changes[0].selector: expected key=value"),
            (
                {"verb": "cordon", "selector": "pool=db"},
                "changes[0].selector: no node has the label pool with the value 'db'; there are web",
            ),
            ({"verb": "add", "like": "zz"}, "changes[0].like: there is no node 'zz'"),
            ({"verb": "delete", "kind": "Pod", "name": "x"}, "changes[0].name: there is no Pod default/x"),
            (
                {"verb": "delete", "kind": "Secret", "name": "x"},
                "changes[0].kind: scheduling does not look at objects ",
            ),
            (
                {"verb": "patch", "kind": "Node", "name": "a1", "patch": [{"op": "remove", "path": "/spec/x"}]},
                "changes[0].patch: error in remove for path: '/spec/x'",
            ),
            ({"verb": "create", "object": {"kind": "Node"}}, "changes[0].object.apiVersion: required field is missing"),
        ):
            [line] = await service.errors("fit", {"pods": [POD], "changes": [change]}, 422)
            assert line.startswith(said)

    run(test)


def test_questions_of_the_wrong_shape_are_refused() -> None:
    async def test(service: Service) -> None:
        assert (await service.errors("fit", b"{", 400))[0].startswith("body: ")
        assert (await service.errors("fit", b"[]", 400))[0].startswith("body: Expected `object`")
        assert await service.errors("fit", {"pods": [POD], "chnges": []}, 400) == [
            "body: Object contains unknown field `chnges`"
        ]
        assert await service.errors("capacity", {"pod": POD, "most": "x"}, 400) == ["most: Expected `int`, got `str`"]
        assert await service.errors("fit", {"pods": [POD], "changes": [{"verb": "burn"}]}, 400) == [
            "changes[0].verb: Invalid value 'burn'"
        ]
        assert await service.errors("fit", {"pods": []}, 400) == ["pods: Expected `array` of length >= 1"]

    run(test)


def test_question_that_takes_too_long_is_given_up_and_leaves_nothing_behind() -> None:
    cluster = cluster_of(*OBJECTS)
    ticks = count()

    async def test(service: Service) -> None:
        said = await service.errors("capacity", {"pod": POD, "most": 100}, 504)
        assert said == ["took longer than 10 s"]
        assert cluster.state.nodes.pod_count.sum() == 1

    run(test, cluster=cluster, clock=lambda: 4.0 * next(ticks))


def test_remedies_are_looked_for_until_time_is_up() -> None:
    ticks = count()

    async def test(service: Service) -> None:
        explained = await service.post("explain", {"pod": "shop/tall"})
        assert explained["remedies"]["exhaustive"] is False

    run(test, clock=lambda: 9.0 * next(ticks))


def test_plugin_that_breaks_is_blamed() -> None:
    cluster = cluster_of(*OBJECTS)
    [fit] = [p for p in cluster.profiles["default-scheduler"].at("filter", FilterPlugin) if p.name == "NodeName"]

    def broken(*_: object) -> None:
        raise RuntimeError("broken")

    fit.filter = broken  # type: ignore[method-assign, assignment]

    async def test(service: Service) -> None:
        pinned = {"spec": {**POD["spec"]}}
        [said] = await service.errors("explain", {"pod": pinned}, 500)
        assert "NodeName" in said

    run(test, cluster=cluster)
