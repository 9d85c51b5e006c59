"""Nominated pods: each has a node on which room is being made for it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from kubesched.api.meta import ObjectMeta
from kubesched.api.pod import Pod
from kubesched.state.changes import ChangeLog


class Nominator:
    """Which pods are nominated to which node, in order of nomination."""

    def __init__(self) -> None:
        self._by_node: dict[str, dict[str, Pod]] = {}
        self._node_of: dict[str, str] = {}
        self.changes: ChangeLog[str] = ChangeLog()
        """Identities of pods whose nomination came or went."""

    def add(self, pod: Pod, node_name: str) -> None:
        """Nominate a pod; an earlier nomination of it is dropped."""
        self.remove(pod)
        identity = pod.identity
        self._by_node.setdefault(node_name, {})[identity] = pod
        self._node_of[identity] = node_name
        self.changes.record(identity)

    def remove(self, pod: Pod) -> None:
        if not self._node_of:
            return
        identity = pod.identity
        node_name = self._node_of.pop(identity, None)
        if node_name is not None:
            del self._by_node[node_name][identity]
            if not self._by_node[node_name]:
                del self._by_node[node_name]
            self.changes.record(identity)

    def arrange(self, node_name: str, identities: Iterable[str]) -> None:
        """Put the pods of a node in this order, which they had before some of them left and came back."""
        pods = self._by_node[node_name]
        self._by_node[node_name] = {identity: pods[identity] for identity in identities}

    def keep_only_name_of(self, pod: Pod) -> None:
        """The pod has left the queue. Its nomination stays, but it requests nothing and has no priority.

        As in kube-scheduler, which looks nominated pods up in its queue, and knows only the names of the others.
        """
        identity = pod.identity
        node_name = self._node_of.get(identity)
        if node_name is not None:
            meta = pod.metadata
            name = ObjectMeta(name=meta.name, namespace=meta.namespace, uid=meta.uid)
            self._by_node[node_name][identity] = Pod(metadata=name)
            self.changes.record(identity)

    def node_of(self, pod: Pod) -> str:
        """The node this pod is nominated to, or nothing."""
        return self._node_of.get(pod.identity, "") if self._node_of else ""

    def find(self, identity: str) -> tuple[Pod, str] | None:
        """The nominated pod of this identity and its node; None if there is none."""
        node_name = self._node_of.get(identity)
        return None if node_name is None else (self._by_node[node_name][identity], node_name)

    def on_node(self, node_name: str) -> list[Pod]:
        return list(self._by_node.get(node_name, {}).values())

    @property
    def nodes(self) -> Collection[str]:
        """The nodes that pods are nominated to."""
        return self._by_node.keys()

    def __iter__(self) -> Iterator[str]:
        """The identities of all nominated pods."""
        return iter(self._node_of)
