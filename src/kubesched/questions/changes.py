"""Changes that a question supposes: nodes cordoned, lost or added, and objects created, patched or deleted.

Each is applied to a trial. The changes of a remedy (`ObjectChange`) are among what is understood, as they are.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import count
from typing import Annotated, Any

import msgspec
from msgspec.structs import replace

from kubesched.api.api_error import ApiError
from kubesched.api.change import Change
from kubesched.api.json_patch import json_patch
from kubesched.api.kinds import KINDS
from kubesched.api.meta import KubeObject
from kubesched.api.node import Node
from kubesched.api.pod import Pod
from kubesched.api.schema import convert
from kubesched.questions.given import AskedError, Given
from kubesched.questions.pools import one_more
from kubesched.questions.trial import Trial
from kubesched.state.nodes import NodeTable

MOST_NEW_NODES = 1000


class _Change(msgspec.Struct, frozen=True, rename="camel", tag_field="verb", forbid_unknown_fields=True):
    """Told apart by `verb`."""


class _OfNodes(_Change, frozen=True):
    """Nodes by name, or all that have a label."""

    nodes: tuple[str, ...] = ()
    selector: str = ""
    """`key=value`"""


class CordonNodes(_OfNodes, frozen=True, tag="cordon"):
    """No new pods on these nodes; those there stay."""


class UncordonNodes(_OfNodes, frozen=True, tag="uncordon"):
    """New pods may go to these nodes again."""


class RemoveNodes(_OfNodes, frozen=True, tag="remove"):
    """These nodes are lost."""


class AddNodes(_Change, frozen=True, tag="add"):
    """New nodes like one that is there, empty but for its daemons."""

    like: str
    count: Annotated[int, msgspec.Meta(ge=1, le=MOST_NEW_NODES)] = 1


class _OfObject(_Change, frozen=True):
    """One object. Its kind says enough: `apiVersion` is there for who reads it."""

    kind: str
    name: str
    namespace: str = ""
    api_version: str = ""


class CreateObject(_Change, frozen=True, tag="create"):
    """A new object, such as a node, a pod on a node, or a volume."""

    object: dict[str, Any]
    kind: str = ""
    name: str = ""
    namespace: str = ""
    api_version: str = ""


class DeleteObject(_OfObject, frozen=True, tag="delete"):
    """An object goes, such as a pod that is evicted."""


class PatchObject(_OfObject, frozen=True, tag="patch"):
    """An object changes by a JSON patch (RFC 6902) of the fields that scheduling looks at."""

    patch: tuple[dict[str, Any], ...] = ()


AskedChange = CordonNodes | UncordonNodes | RemoveNodes | AddNodes | CreateObject | DeleteObject | PatchObject


def suppose(changes: Iterable[AskedChange], trial: Trial, given: Given) -> None:
    """Make these changes, one after another, on the cluster of a trial. Raises AskedError."""
    for i, change in enumerate(changes):
        for made in _made(change, f"changes[{i}]", trial, given):
            trial.change(made)


def _made(change: AskedChange, path: str, trial: Trial, given: Given) -> Iterator[Change[KubeObject]]:
    state = trial.cluster.state
    match change:
        case CordonNodes() | UncordonNodes():
            is_cordoned = isinstance(change, CordonNodes)
            for node in _nodes(change, path, state.nodes):
                if node.spec.unschedulable != is_cordoned:
                    yield Change(node, replace(node, spec=replace(node.spec, unschedulable=is_cordoned)))
        case RemoveNodes():
            for node in _nodes(change, path, state.nodes):
                yield Change(node, None)
        case AddNodes():
            model = _node(change.like, f"{path}.like", state.nodes)
            first = next(n for n in count(1) if f"{model.name}-new-{n}" not in state.nodes.row_of)
            for number in range(first, first + change.count):
                for obj in one_more(state, model, number):
                    yield Change(_found(trial, type(obj), obj.name, obj.namespace), obj)
        case CreateObject():
            obj = given.object(change.object, f"{path}.object")
            if _found(trial, type(obj), obj.name, obj.namespace) is not None:
                raise AskedError(f"{path}.object: there is a {obj.kind} {obj.key} already")
            yield Change(None, obj)
        case DeleteObject():
            yield Change(_known(change, path, trial), None)
        case PatchObject():
            known = _known(change, path, trial)
            yield Change(known, _patched(known, change, path))


def _patched(obj: KubeObject, change: PatchObject, path: str) -> KubeObject:
    try:
        content = json_patch(msgspec.json.decode(msgspec.json.encode(obj)), list(change.patch))
    except ApiError as error:
        causes = [cause["message"] for cause in error.details.get("causes", ())]
        raise AskedError(*(f"{path}.patch: {why}" for why in causes or [error.message])) from None
    record, mistakes = convert(content, type(obj))
    if record is None:
        raise AskedError(*(f"{path}.patch: {mistake}" for mistake in mistakes))
    if (record.name, record.namespace, record.metadata.uid) != (obj.name, obj.namespace, obj.metadata.uid):
        raise AskedError(f"{path}.patch: name, namespace and uid must stay")
    return record


def _known(change: DeleteObject | PatchObject, path: str, trial: Trial) -> KubeObject:
    if change.kind not in KINDS:
        raise AskedError(f"{path}.kind: scheduling does not look at objects of {change.kind!r}")
    kind = KINDS[change.kind]
    namespace = (change.namespace or "default") if kind.resource.namespaced else ""
    if kind.record is Node:
        return _node(change.name, f"{path}.name", trial.cluster.state.nodes)
    found = _found(trial, kind.record, change.name, namespace)
    if found is None:
        key = f"{namespace}/{change.name}" if namespace else change.name
        raise AskedError(f"{path}.name: there is no {change.kind} {key}")
    return found


def _found(trial: Trial, kind: type[KubeObject], name: str, namespace: str) -> KubeObject | None:
    cluster = trial.cluster
    if kind is Pod:
        return cluster.pods.get(f"{namespace}/{name}")
    if kind is Node:
        row = cluster.state.nodes.row_of.get(name)
        return None if row is None else cluster.state.nodes.nodes[row]
    return cluster.state.objects.get(kind, name, namespace)


# -- nodes ------------------------------------------------------------------------------------------------------------


def _nodes(change: _OfNodes, path: str, table: NodeTable) -> Sequence[Node]:
    if bool(change.nodes) == bool(change.selector):
        raise AskedError(f"{path}: expected either nodes or a selector")
    if change.nodes:
        names = dict.fromkeys(change.nodes)
        return _all_or_mistakes(lambda i, name: _node(name, f"{path}.nodes[{i}]", table), names)
    key, equals, value = change.selector.partition("=")
    if not equals:
        raise AskedError(f"{path}.selector: expected key=value")
    found = [node for node in table.nodes if node is not None and node.metadata.labels.get(key) == value]
    if not found:
        raise AskedError(f"{path}.selector: no node has the label {change.selector}")
    return found


def _all_or_mistakes(find: Callable[[int, str], Node], names: Iterable[str]) -> list[Node]:
    found: list[Node] = []
    lines: list[str] = []
    for i, name in enumerate(names):
        try:
            found.append(find(i, name))
        except AskedError as error:
            lines += error.lines
    if lines:
        raise AskedError(*lines)
    return found


def _node(name: str, path: str, table: NodeTable) -> Node:
    row = table.row_of.get(name)
    node = table.nodes[row] if row is not None else None
    if node is None:
        near = difflib.get_close_matches(name, table.row_of, n=1)
        raise AskedError(f"{path}: there is no node {name!r}{f'; did you mean {near[0]}?' if near else ''}")
    return node
