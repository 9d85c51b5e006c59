"""Cases of lives of the queue: hundreds of steps in a small cluster whose nodes and pods come, change and go."""

from __future__ import annotations

from collections.abc import Callable

from tools.recorder.generators import clusters
from tools.recorder.generators.drawing import DISKS, NAMESPACES, TAINT_KEYS, Draw, Json


class History:
    """What exists at this point of a life, as far as the steps say; the scheduler may have evicted some of it."""

    keeps_nodes = False

    def __init__(self, draw: Draw, *, nodes: int, placed: int) -> None:
        self.draw = draw
        self.steps: list[Json] = []
        self.nodes = [f"n{i:03}" for i in range(nodes)]
        self.gone: list[str] = []
        self.pods: dict[str, Json] = {}
        self.former: list[str] = []
        self._made = 0
        self.objects = [*clusters.namespaces(), *(self._node(name) for name in self.nodes)]
        for _ in range(placed):
            pod = clusters.placed(draw, f"b{self._number():03}", draw.one(NAMESPACES), draw.one(self.nodes))
            self.pods[_key(pod)] = pod
            self.objects.append(pod)

    def _number(self) -> int:
        self._made += 1
        return self._made

    def _node(self, name: str) -> Json:
        node = clusters.node(self.draw, name)
        node["status"]["allocatable"].update(cpu=self.draw.one(("1", "2", "4")), memory="8Gi", pods="20")
        # How often an image is counted depends on when a node was looked at: docs/differences.md.
        node["status"].pop("images", None)
        return node

    # -- pods ---------------------------------------------------------------------------------------------------------

    def create_pod(self) -> None:
        """A new one, or one with the name of an earlier one."""
        number = self._number()
        name, namespace = f"p{number:03}", self.draw.one(NAMESPACES)
        if self.former and self.draw.chance(0.3):
            namespace, name = self.draw.one(self.former).split("/")
        pod = clusters.pod(self.draw, name, namespace, plain=0.5)
        pod["metadata"]["uid"] = f"{name}-{number}"
        self.pods[_key(pod)] = pod
        self.steps.append({"op": "create", "object": pod})
        self.furnish(pod)

    def furnish(self, pod: Json) -> None:
        """What a new pod uses besides; the last step creates it."""

    def delete_pod(self) -> None:
        name = self._pod()
        if name:
            del self.pods[name]
            self.former.append(name)
            self.steps.append({"op": "delete", "kind": "Pod", "name": name})

    def terminate_pod(self) -> None:
        name = self._pod()
        if name:
            self.steps.append({"op": "terminate", "name": name})

    def finish_pod(self) -> None:
        self._update_pod({"status": {"phase": self.draw.one(("Succeeded", "Failed"))}})

    def resize_pod(self) -> None:
        """In place: what is wanted, and sometimes what the node has granted so far."""
        name = self._pod()
        if not name:
            return
        draw = self.draw
        containers = [dict(each) for each in self.pods[name]["spec"]["containers"]]
        wanted = {"cpu": draw.cpu(), "memory": draw.memory()}
        containers[0]["resources"] = {"requests": wanted}
        patch: Json = {"spec": {"containers": containers}}
        if draw.chance(0.5):
            granted = draw.one((wanted, {"cpu": "1", "memory": "1Gi"}))
            status = {"name": containers[0]["name"], "image": "x", "imageID": "", "ready": True, "restartCount": 0}
            resources = {"allocatedResources": granted, "resources": {"requests": granted}}
            patch["status"] = {"containerStatuses": [{**status, **resources}]}
        self.pods[name]["spec"]["containers"] = containers
        self.steps.append({"op": "update", "kind": "Pod", "name": name, "patch": patch})

    def relabel_pod(self) -> None:
        self._update_pod({"metadata": {"labels": self.draw.labels() or {"app": None}}})

    def open_gates(self) -> None:
        gated = [name for name, pod in self.pods.items() if pod["spec"].get("schedulingGates")]
        if gated:
            self.pods[gated[0]]["spec"].pop("schedulingGates")
            patch = {"spec": {"schedulingGates": None}}
            self.steps.append({"op": "update", "kind": "Pod", "name": gated[0], "patch": patch})

    def tolerate(self) -> None:
        self._update_pod({"spec": {"tolerations": [{"key": self.draw.one(TAINT_KEYS), "operator": "Exists"}]}})

    def _update_pod(self, patch: Json) -> None:
        name = self._pod()
        if name:
            self.steps.append({"op": "update", "kind": "Pod", "name": name, "patch": patch})

    def _pod(self) -> str:
        return self.draw.one(list(self.pods)) if self.pods else ""

    # -- nodes --------------------------------------------------------------------------------------------------------

    def relabel_node(self) -> None:
        draw = self.draw
        labels = draw.one(({"disk": draw.one(DISKS)}, {"disk": None}, {"rack": f"r{draw.number(0, 9)}"}))
        self._update_node({"metadata": {"labels": labels}})

    def move_node(self) -> None:
        self._update_node({"metadata": {"labels": {"topology.kubernetes.io/zone": f"z{self.draw.number(0, 3)}"}}})

    def taint_node(self) -> None:
        taints = [clusters.taint(self.draw) for _ in range(self.draw.number(0, 2))]
        self._update_node({"spec": {"taints": taints or None}})

    def cordon_node(self) -> None:
        self._update_node({"spec": {"unschedulable": self.draw.one((True, None))}})

    def resize_node(self) -> None:
        cpu = self.draw.one(("0", "1", "2", "4", "8"))
        self._update_node({"status": {"allocatable": {"cpu": cpu}, "capacity": {"cpu": cpu}}})

    def drain_node(self) -> None:
        """Cordoned, emptied of the pods that were put there, and taken away."""
        if len(self.nodes) < 2 or self.keeps_nodes:
            return
        name = self.draw.one(self.nodes)
        self.nodes.remove(name)
        self.gone.append(name)
        cordon = {"spec": {"unschedulable": True}}
        self.steps.append({"op": "update", "kind": "Node", "name": name, "patch": cordon})
        there = [key for key, pod in self.pods.items() if pod["spec"].get("nodeName") == name]
        for key in there if self.draw.chance(0.8) else ():
            del self.pods[key]
            self.former.append(key)
            self.steps.append({"op": "delete", "kind": "Pod", "name": key})
        self.steps.append({"op": "delete", "kind": "Node", "name": name})

    def add_node(self) -> None:
        """A new one, or one that comes back."""
        name = self.gone.pop(0) if self.gone and self.draw.chance(0.7) else f"m{self._number():03}"
        self.nodes.append(name)
        self.steps.append({"op": "create", "object": self._node(name)})

    def _update_node(self, patch: Json) -> None:
        self.steps.append({"op": "update", "kind": "Node", "name": self.draw.one(self.nodes), "patch": patch})

    # -- the scheduler ------------------------------------------------------------------------------------------------

    def schedule(self) -> None:
        self.steps += [{"op": "schedule"}] * self.draw.number(1, 4)

    def schedule_meanwhile(self) -> None:
        """An attempt during which something else happens."""
        self.steps.append({"op": "schedule-begin", "at": self.draw.one(("pop", "decision"))})
        for _ in range(self.draw.number(1, 3)):
            self.draw.one(MEANWHILE)(self)
        self.steps.append({"op": "schedule-end"})

    def pass_time(self) -> None:
        self.steps.append({"op": "advance", "seconds": self.draw.one((0.2, 1, 1.5, 3, 11, 31, 330))})

    def fail_binding(self) -> None:
        name = self._pod()
        if name:
            self.steps.append({"op": "bind-fails", "pod": name, "code": self.draw.one((409, 404, 500)), "count": 1})

    def fail_eviction(self) -> None:
        name = self._pod()
        if name:
            self.steps.append({"op": "delete-fails", "pod": name, "code": 500, "count": 1})


MEANWHILE: tuple[Callable[[History], None], ...] = (
    History.create_pod,
    History.delete_pod,
    History.terminate_pod,
    History.finish_pod,
    History.resize_pod,
    History.relabel_pod,
    History.relabel_node,
    History.taint_node,
    History.cordon_node,
    History.resize_node,
    History.add_node,
    History.drain_node,
    History.pass_time,
)
OFTEN = (History.schedule,) * 10 + (History.create_pod,) * 6 + (History.pass_time,) * 3
SELDOM = (
    *MEANWHILE,
    History.schedule_meanwhile,
    History.schedule_meanwhile,
    History.open_gates,
    History.tolerate,
    History.move_node,
    History.fail_binding,
    History.fail_eviction,
)


def history(draw: Draw) -> Json:
    """A cluster of a few nodes, through a few hundred steps."""
    return _life(draw, nodes=draw.number(2, 8), placed=draw.number(0, 12), steps=draw.number(60, 250))


def moments(draw: Draw) -> Json:
    """Short lives, of which many can be told."""
    return _life(draw, nodes=draw.number(1, 5), placed=draw.number(0, 8), steps=draw.number(10, 40))


FAMILIES: dict[str, Callable[[Draw], Json]] = {"history": history, "moments": moments}


def _life(draw: Draw, *, nodes: int, placed: int, steps: int) -> Json:
    told = History(draw, nodes=nodes, placed=placed)
    while len(told.steps) < steps:
        draw.one(OFTEN if draw.chance(0.6) else SELDOM)(told)
    return case_of(told)


def case_of(told: History) -> Json:
    draw = told.draw
    case: Json = {"objects": told.objects, "steps": told.steps}
    if draw.chance(0.4):
        case["graceful"] = True
    if draw.chance(0.3):
        case["evictionDelivery"] = "immediate"
    return case


def _key(pod: Json) -> str:
    return f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"
