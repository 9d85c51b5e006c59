"""Questions to extenders and their answers as JSON, by the types of k8s.io/kube-scheduler/extender/v1.

Field names of answers may be in any case, as Go reads them: extenders in other languages rely on that.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import msgspec

from kubesched.api.meta import KubeObject
from kubesched.api.node import Node
from kubesched.api.pod import Pod
from kubesched.framework.extender import Filtered, NodeVictims, SparedVictims
from kubesched.kube.originals import Originals

T = TypeVar("T")
_Object = TypeVar("_Object", bound=KubeObject)

# -- questions --------------------------------------------------------------------------------------------------------


class ExtenderRequests:
    """Questions to one extender, which gets only the names of nodes if it has a cache of them.

    Objects that `originals` has are sent whole, others with the fields that kubesched reads.
    """

    def __init__(self, *, names_only: bool, originals: Originals | None) -> None:
        self._names_only = names_only
        self._original_of: Callable[[KubeObject], msgspec.Raw | None] = (
            originals.of if originals is not None else lambda obj: None
        )

    def about_nodes(self, pod: Pod, nodes: Sequence[Node]) -> bytes:
        if self._names_only:
            args = {"Pod": self._pod(pod), "Nodes": None, "NodeNames": [node.name for node in nodes]}
        else:
            items = [self._original_of(node) or _with_kind(node, "Node") for node in nodes]
            node_list = {"apiVersion": "v1", "kind": "NodeList", "metadata": {}, "items": items}
            args = {"Pod": self._pod(pod), "Nodes": node_list, "NodeNames": None}
        return msgspec.json.encode(args)

    def about_victims(self, pod: Pod, victims: Mapping[str, NodeVictims]) -> bytes:
        wire_victim = _uid_of if self._names_only else self._pod
        by_node = {
            name: {"Pods": [wire_victim(pod) for pod in node.pods], "NumPDBViolations": node.violations}
            for name, node in victims.items()
        }
        args = {
            "Pod": self._pod(pod),
            "NodeNameToVictims": None if self._names_only else by_node,
            "NodeNameToMetaVictims": by_node if self._names_only else None,
        }
        return msgspec.json.encode(args)

    def _pod(self, pod: Pod) -> object:
        original = self._original_of(pod)
        if original is not None:
            return original
        wire: dict[str, Any] = msgspec.to_builtins(_with_kind(pod, "Pod"))
        # Records leave out fields with their default value, but on the wire this one has no default.
        wire.setdefault("spec", {})["schedulerName"] = pod.spec.scheduler_name
        return wire


def binding_question(pod: Pod, node_name: str) -> bytes:
    args = {"PodName": pod.name, "PodNamespace": pod.namespace, "PodUID": pod.uid, "Node": node_name}
    return msgspec.json.encode(args)


def _with_kind(obj: _Object, kind: str) -> _Object:
    return msgspec.structs.replace(obj, api_version="v1", kind=kind)


def _uid_of(pod: Pod) -> dict[str, str]:
    return {"UID": pod.uid}


# -- answers, which raise msgspec.MsgspecError if they make no sense --------------------------------------------------


class _Meta(msgspec.Struct):
    name: str


class _Item(msgspec.Struct):
    metadata: _Meta


class _HostPriority(msgspec.Struct):
    host: str = ""
    score: int = 0


class _MetaPod(msgspec.Struct):
    uid: str = ""


class _MetaVictims(msgspec.Struct):
    pods: list[_MetaPod] | None = None
    numpdbviolations: int = 0


_raw_fields = msgspec.json.Decoder(dict[str, msgspec.Raw] | None)


def filter_answer(body: bytes, *, by_name: bool) -> tuple[Filtered, str]:
    """The nodes that pass, and the extender's error, if there is one. Nodes come whole or by name.

    Whole nodes may come by the thousand: only their names are decoded.
    """
    fields = _fields(body)
    nodes = _fields(fields["nodes"]) if "nodes" in fields else {}
    items = _value(nodes, "items", list[_Item]) or ()
    names = _value(fields, "nodenames", list[str])
    if not by_name or names is None:
        names = [item.metadata.name for item in items]
    failed = _value(fields, "failednodes", dict[str, str]) or {}
    unresolvable = _value(fields, "failedandunresolvablenodes", dict[str, str]) or {}
    return Filtered(frozenset(names), failed, unresolvable), _value(fields, "error", str) or ""


def priorities_answer(body: bytes) -> dict[str, int]:
    scores: dict[str, int] = {}
    for host in msgspec.convert(_with_lower_keys(msgspec.json.decode(body)), list[_HostPriority] | None) or ():
        scores[host.host] = scores.get(host.host, 0) + host.score
    return scores


def victims_answer(body: bytes) -> dict[str, SparedVictims]:
    by_node = _value(_fields(body), "nodenametometavictims", dict[str, Any]) or {}
    return {name: _spared_victims(plain) for name, plain in by_node.items()}


def binding_answer(body: bytes) -> str:
    """The extender's error; empty if it bound the pod."""
    return _value(_fields(body), "error", str) or ""


def _spared_victims(plain: Any) -> SparedVictims:
    victims = msgspec.convert(_with_lower_keys(plain), _MetaVictims | None) or _MetaVictims()
    return SparedVictims(tuple(pod.uid for pod in victims.pods or ()), victims.numpdbviolations)


def _fields(raw: bytes | msgspec.Raw) -> dict[str, msgspec.Raw]:
    """The fields of an object, not decoded yet. Null is an object without any."""
    return {name.lower(): value for name, value in (_raw_fields.decode(raw) or {}).items()}


def _value(fields: Mapping[str, msgspec.Raw], name: str, type_: type[T]) -> T | None:
    raw = fields.get(name)
    if raw is None:
        return None
    try:
        return msgspec.json.decode(raw, type=type_ | None)
    except msgspec.ValidationError as error:
        raise msgspec.ValidationError(f"{name}: {error}") from None


def _with_lower_keys(value: Any) -> Any:
    if isinstance(value, list):
        return [_with_lower_keys(item) for item in value]
    if isinstance(value, dict):
        return {key.lower(): _with_lower_keys(inner) for key, inner in value.items()}
    return value
