"""Reads edits as they are written: `3:like=node-7`, `deployment/web=10`, files of manifests and of names of nodes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from kubesched.api.kinds import Object
from kubesched.api.meta import KubeObject
from kubesched.api.node import Node
from kubesched.api.storage import StorageClass
from kubesched.api.workloads import Namespace, PriorityClass
from kubesched.ask.edits import (
    MOST_NEW_NODES,
    AddNodes,
    AddNodesFromTemplate,
    ApplyObjects,
    EditError,
    ScaleWorkload,
)
from kubesched.ask.targets import parsed
from kubesched.simulate.kinds import DEFAULT_NAMESPACE, Deployment, ReplicaSet, StatefulSet
from kubesched.simulate.manifests import Manifests, load, loads

SCALABLE = (Deployment, ReplicaSet, StatefulSet)
_LIKE, _FILE = "like", "file"


def read_nodes(text: str) -> tuple[str, ...]:
    """`NODE`, `KEY=VALUE`, or `@FILE` with one of them in each line and comments after a `#`. Raises EditError."""
    if not text.startswith("@"):
        return (text,)
    try:
        with open(text[1:], encoding="utf-8") as file:
            lines = [line.partition("#")[0].strip() for line in file]
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not UTF-8 text"
        raise EditError(f"{text[1:]}: {reason}") from None
    nodes = tuple(line for line in lines if line)
    if not nodes:
        raise EditError(f"{text[1:]}: expected a node or KEY=VALUE in each line, got nothing")
    return nodes


def read_added(text: str) -> AddNodes | AddNodesFromTemplate:
    """`3:like=node-7`, or `3:file=node.yaml` with one Node as a template. Raises EditError, ManifestError."""
    count, _, model = text.partition(":")
    how, _, value = model.partition("=")
    if not count.isdecimal() or not 0 < int(count) <= MOST_NEW_NODES or how not in (_LIKE, _FILE) or not value:
        expected = f"expected COUNT:like=NODE or COUNT:file=FILE with a count from 1 to {MOST_NEW_NODES:,}"
        raise EditError(f"--add {text}: {expected}")
    if how == _LIKE:
        return AddNodes(value, int(count))
    nodes = [obj for obj in load([value]).objects if isinstance(obj, Node)]
    if len(nodes) != 1:
        raise EditError(f"{value}: expected one Node as a template, got {len(nodes)}")
    return AddNodesFromTemplate(nodes[0], int(count))


def read_scale(text: str, namespace: str = DEFAULT_NAMESPACE) -> ScaleWorkload:
    """`deployment/web=10`, or with a namespace in front `shop/deployment/web=10`. Raises EditError."""
    target, _, replicas = text.rpartition("=")
    edit = scale_of(target, int(replicas), namespace) if replicas.isdecimal() else None
    if edit is None:
        kinds = "deployment, replicaset or statefulset"
        raise EditError(f"--scale {text}: expected [NAMESPACE/]TYPE/NAME=REPLICAS, with a {kinds}")
    return edit


def scale_of(target: str, replicas: int, namespace: str = DEFAULT_NAMESPACE) -> ScaleWorkload | None:
    """The same for `[namespace/]type/name` and a number; None for a target that cannot be scaled."""
    kind, key = parsed(target, namespace)
    scalable = next((each for each in SCALABLE if each is kind), None)
    if scalable is None:
        return None
    in_namespace, _, name = key.partition("/")
    return ScaleWorkload(scalable, name, replicas, in_namespace)


def read_applied(file: str, cluster: Iterable[KubeObject], custom: Iterable[str] = ()) -> ApplyObjects:
    """The objects of a file or a directory, admitted with the classes that the cluster has. Raises ManifestError."""
    known = tuple(cluster)
    found = load([file], workloads=True, custom=custom, given=_classes(known), replacing=True)
    return _applied(found, known, file)


def read_applied_objects(objects: Sequence[Object], source: str, cluster: Iterable[KubeObject]) -> ApplyObjects:
    """The same for objects at hand; `source` is what messages call them."""
    known = tuple(cluster)
    text = msgspec.json.encode({"apiVersion": "v1", "kind": "List", "items": objects})
    return _applied(loads(text, source, workloads=True, given=_classes(known)), known, source)


def _classes(cluster: Iterable[KubeObject]) -> list[KubeObject]:
    return [obj for obj in cluster if isinstance(obj, PriorityClass | StorageClass)]


def _applied(found: Manifests, cluster: Iterable[KubeObject], source: str) -> ApplyObjects:
    """Without the classes that were given, and without namespaces that are only implied and there already."""
    namespaces = {obj.name for obj in cluster if isinstance(obj, Namespace)}
    given, implied = found.objects[: len(found.sources)], found.objects[len(found.sources) :]
    new = [obj for obj, file in zip(given, found.sources) if file]
    return ApplyObjects((*new, *(obj for obj in implied if obj.name not in namespaces)), source)
