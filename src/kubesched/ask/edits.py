"""Hypothetical edits of a cluster: one record for each, whether a command, a program or the page asks for it.

`changes_of` says which objects an edit changes, and how. `hypothetical.py` applies those changes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any, NamedTuple

import msgspec

from kubesched.api.errors import UserError
from kubesched.api.kinds import Object
from kubesched.api.meta import KubeObject
from kubesched.api.node import Node
from kubesched.api.storage import StorageClass
from kubesched.api.workloads import Namespace, PriorityClass
from kubesched.ask.targets import parse_target
from kubesched.config import SchedulerConfiguration
from kubesched.simulate.kinds import DEFAULT_NAMESPACE, Deployment, PodWorkload, ReplicaSet, StatefulSet
from kubesched.simulate.manifests import Manifests, load, loads
from kubesched.simulate.rolling_upgrade import UpgradePace

MOST_NEW_NODES = 10_000
"""How many nodes an edit, and all edits of one question, may add."""
MOST_NEW_PODS = 100_000
"""How many pods the workloads of one question may have."""
MOST_NODES_NAMED = 10_000
MOST_WEIGHT = 100
SCALABLE = (Deployment, ReplicaSet, StatefulSet)
_LIKE, _FILE = "like", "file"


class _Edit(msgspec.Struct, frozen=True, rename="camel", tag_field="verb", forbid_unknown_fields=True):
    """Told apart by `verb`. `str` is the edit in the words of the command line."""


class _NodesEdit(_Edit, frozen=True):
    """Nodes by name or `key=value`, or all that have a label."""

    nodes: tuple[str, ...] = ()
    selector: str = ""
    """`key=value`"""

    def __str__(self) -> str:
        return f"{self.__struct_config__.tag} {', '.join(self.nodes) or self.selector}"


class CordonNodes(_NodesEdit, frozen=True, tag="cordon"):
    """No new pods on these nodes; those there stay."""


class UncordonNodes(_NodesEdit, frozen=True, tag="uncordon"):
    """New pods may go to these nodes again."""


class FailNodes(_NodesEdit, frozen=True, tag="fail"):
    """These nodes are out of reach, as in an outage: they stay, tainted, and count as domains of topologies. Their pods
    are made anew elsewhere, those of StatefulSets are not."""

    def __str__(self) -> str:
        return f"lose {', '.join(self.nodes) or self.selector}"


class RemoveNodes(_NodesEdit, frozen=True, tag="remove"):
    """These nodes are deleted, with their daemons and devices; their other pods are pending."""

    def __str__(self) -> str:
        return f"delete {', '.join(self.nodes) or self.selector}"


class DrainNodes(_NodesEdit, frozen=True, tag="drain"):
    """These nodes are cordoned, and their pods are pending, disruption budgets or not."""


class UpgradeNodes(_NodesEdit, frozen=True, tag="upgrade"):
    """These nodes are replaced a few at a time while time passes. It comes after all other edits."""

    pace: UpgradePace = UpgradePace()

    def __str__(self) -> str:
        return f"{super().__str__()} with a surge of {self.pace.surge}"


class AddNodes(_Edit, frozen=True, tag="add"):
    """New nodes like one that is there, empty but for its daemons."""

    like: str
    count: Annotated[int, msgspec.Meta(ge=1, le=MOST_NEW_NODES)] = 1

    def __str__(self) -> str:
        return f"add {self.count} node{'' if self.count == 1 else 's'} like {self.like}"


class AddNodesFromTemplate(_Edit, frozen=True, tag="add-from-template"):
    """New nodes like one that need not be there."""

    template: Node
    count: int = 1

    def __str__(self) -> str:
        return f"add {self.count} node{'' if self.count == 1 else 's'} like the template {self.template.name}"


class _ObjectEdit(_Edit, frozen=True):
    """One object. Its kind is enough to find it; `apiVersion` is for readers alone."""

    kind: str
    name: str
    namespace: str = ""
    api_version: str = ""


class CreateObject(_Edit, frozen=True, tag="create"):
    """A new object, such as a node, a pod on a node, or a volume."""

    object: dict[str, Any]
    kind: str = ""
    name: str = ""
    namespace: str = ""
    api_version: str = ""


class DeleteObject(_ObjectEdit, frozen=True, tag="delete"):
    """An object goes, such as a pod that is evicted."""


class PatchObject(_ObjectEdit, frozen=True, tag="patch"):
    """An object changes by a JSON patch (RFC 6902) of the fields that scheduling looks at."""

    patch: tuple[dict[str, Any], ...] = ()


class ScaleWorkload(_Edit, frozen=True, tag="scale"):
    """A Deployment, ReplicaSet or StatefulSet gets another number of replicas."""

    workload: type[PodWorkload]
    name: str
    replicas: int
    namespace: str = DEFAULT_NAMESPACE

    def __str__(self) -> str:
        return f"scale {self.title} to {self.replicas}"

    @property
    def title(self) -> str:
        return f"{self.namespace}/{self.workload.__name__.lower()}/{self.name}"


class ApplyObjects(_Edit, frozen=True, tag="apply"):
    """Objects are added. One of the same kind and name is replaced, and what a workload had made is made anew."""

    objects: tuple[KubeObject, ...]
    source: str

    def __str__(self) -> str:
        return f"with {self.source}"


class RescheduleAll(_Edit, frozen=True, tag="reschedule-all"):
    """All pods but daemons are pending: the cluster as its scheduler would fill it."""

    def __str__(self) -> str:
        return "place all pods anew"


class UseConfiguration(_Edit, frozen=True, tag="use-configuration"):
    """The scheduler has another configuration."""

    configuration: SchedulerConfiguration

    def __str__(self) -> str:
        return "another configuration"


class SetWeight(_Edit, frozen=True, tag="set-weight"):
    """A score plugin has another weight, in every profile that has the plugin."""

    plugin: str
    weight: int

    def __str__(self) -> str:
        return f"weight of {self.plugin} {self.weight}"


TrialEdit = CordonNodes | UncordonNodes | FailNodes | RemoveNodes | AddNodes | CreateObject | DeleteObject | PatchObject
"""Edits that a question to `kubesched serve` brings along, as JSON. The changes of a remedy are among them."""
Edit = (
    TrialEdit
    | DrainNodes
    | UpgradeNodes
    | AddNodesFromTemplate
    | ScaleWorkload
    | ApplyObjects
    | RescheduleAll
    | UseConfiguration
    | SetWeight
)

OPTIONS: Mapping[type[_Edit], str] = {
    FailNodes: "--lose",
    RemoveNodes: "--gone",
    DrainNodes: "--drain",
    UpgradeNodes: "--upgrade",
    AddNodes: "--add",
    ScaleWorkload: "--scale",
    SetWeight: "weight of",
}
"""How messages to people call edits."""


class EditMistake(NamedTuple):
    """Why an edit is not possible."""

    edit: Edit
    field: str
    """Where in the edit: `nodes[2]`, `like`."""
    target: str
    """What the edit names there."""
    problem: str

    @property
    def problem_named(self) -> str:
        """The problem with the target in it, for readers who do not see `target`."""
        return self.problem.replace("no such node", f"no node {self.target!r}", 1)

    def __str__(self) -> str:
        return f"{OPTIONS.get(type(self.edit), type(self.edit).__name__)} {self.target}: {self.problem}"


class EditError(UserError):
    """Edits that cannot be read, or are not possible: what they name is not there."""

    def __init__(self, *lines: str, mistakes: Sequence[EditMistake] = ()) -> None:
        super().__init__(*lines, *map(str, mistakes))
        self.mistakes = mistakes


# -- edits as they are written ----------------------------------------------------------------------------------------


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
    kind, key = parse_target(target, namespace)
    scalable = next((workload for workload in SCALABLE if workload is kind), None)
    if scalable is None:
        return None
    in_namespace, _, name = key.partition("/")
    return ScaleWorkload(scalable, name, replicas, in_namespace)


def read_applied(file: str, cluster: Iterable[KubeObject], custom: Iterable[str] = ()) -> ApplyObjects:
    """The objects of a file or a directory, admitted with the classes that the cluster has. Raises ManifestError."""
    objects = tuple(cluster)
    manifests = load([file], workloads=True, custom=custom, given=_classes(objects), replacing=True)
    return _apply_edit(manifests, objects, file)


def read_applied_objects(objects: Sequence[Object], source: str, cluster: Iterable[KubeObject]) -> ApplyObjects:
    """The same for objects at hand; `source` is what messages call them."""
    known_objects = tuple(cluster)
    text = msgspec.json.encode({"apiVersion": "v1", "kind": "List", "items": objects})
    return _apply_edit(loads(text, source, workloads=True, given=_classes(known_objects)), known_objects, source)


def _classes(cluster: Iterable[KubeObject]) -> list[KubeObject]:
    return [obj for obj in cluster if isinstance(obj, PriorityClass | StorageClass)]


def _apply_edit(manifests: Manifests, cluster: Iterable[KubeObject], source: str) -> ApplyObjects:
    """Without the classes that were given, and without namespaces that are only implied and there already."""
    namespaces = {obj.name for obj in cluster if isinstance(obj, Namespace)}
    written, implied = manifests.objects[: len(manifests.sources)], manifests.objects[len(manifests.sources) :]
    new = [obj for obj, file in zip(written, manifests.sources) if file]
    return ApplyObjects((*new, *(obj for obj in implied if obj.name not in namespaces)), source)
