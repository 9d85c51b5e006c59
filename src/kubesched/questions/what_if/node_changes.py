"""Changes to nodes: some are drained, lost, or added."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from kubesched.api.devices import ResourceSlice
from kubesched.api.meta import KubeObject
from kubesched.api.node import Node
from kubesched.api.pod import Pod
from kubesched.api.storage import CSINode
from kubesched.questions.what_if.change import ChangeError, Objects
from kubesched.simulate.draining import drained, nodes_meant, whats_wrong
from kubesched.simulate.new_nodes import belongs_to, new_node


def meant(objects: Iterable[KubeObject], texts: Iterable[str], option: str) -> set[str]:
    """The nodes that some names and labels mean. Raises ChangeError where one means none."""
    known, found, wrong = tuple(objects), set[str](), list[str]()
    for text in texts:
        nodes = nodes_meant(known, text)
        found |= nodes
        if not nodes:
            wrong.append(f"{option} {text}: {whats_wrong(known, text)}")
    if wrong:
        raise ChangeError(*wrong)
    return found


@dataclass(frozen=True)
class Drain:
    """Nodes, by name or `key=value`, are cordoned, and their pods have to find another place."""

    nodes: tuple[str, ...]

    def __str__(self) -> str:
        return f"drain {', '.join(self.nodes)}"

    def apply(self, objects: Objects) -> Objects:
        return drained(objects, meant(objects, self.nodes, "--drain"))


@dataclass(frozen=True)
class Lose:
    """Nodes, by name or `key=value`, are gone, with their daemons and devices; their other pods are made anew."""

    nodes: tuple[str, ...]

    def __str__(self) -> str:
        return f"lose {', '.join(self.nodes)}"

    def apply(self, objects: Objects) -> Objects:
        nodes = meant(objects, self.nodes, "--lose")
        return tuple(obj for obj in drained(objects, nodes) if not _goes_with(obj, nodes))


def _goes_with(obj: KubeObject, nodes: Collection[str]) -> bool:
    match obj:
        case Node() | CSINode():
            return obj.name in nodes
        case ResourceSlice() | Pod():
            return obj.spec.node_name in nodes
    return False


@dataclass(frozen=True)
class AddNodes:
    """So many new nodes, each like a model: a node that is there, by name, or a node that need not be."""

    count: int
    like: str | Node

    def __str__(self) -> str:
        model = f"like {self.like}" if isinstance(self.like, str) else f"like the template {self.like.name}"
        return f"add {self.count} node{'' if self.count == 1 else 's'} {model}"

    def apply(self, objects: Objects) -> Objects:
        taken = {obj.name for obj in objects if isinstance(obj, Node)}
        model, belongings = self._model(objects), list[KubeObject]()
        if isinstance(self.like, str):
            belongings = [obj for obj in objects if belongs_to(obj, model.name)]
        added: list[KubeObject] = []
        number = 0
        for _ in range(self.count):
            number += 1
            while (name := f"{model.name}-new-{number}") in taken:
                number += 1
            taken.add(name)
            added += new_node(model, name, belongings)
        return (*objects, *added)

    def _model(self, objects: Objects) -> Node:
        if isinstance(self.like, Node):
            return self.like
        name = min(meant(objects, [self.like], "--add"))
        return next(obj for obj in objects if isinstance(obj, Node) and obj.name == name)


@dataclass(frozen=True)
class Anew:
    """All pods but daemons are taken off their nodes and placed anew: the cluster as its scheduler would fill it."""

    def __str__(self) -> str:
        return "place all pods anew"

    def apply(self, objects: Objects) -> Objects:
        nodes = {obj.name: obj for obj in objects if isinstance(obj, Node)}
        return tuple(nodes[obj.name] if isinstance(obj, Node) else obj for obj in drained(objects, nodes))
