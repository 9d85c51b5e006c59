"""Hypothetical edits of a cluster: one record for each, whether a command, a program or the page asks for it.

`changes_of` says which objects an edit changes, and how. `hypothetical.py` applies those changes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, NamedTuple

import msgspec

from kubesched.api.errors import UserError
from kubesched.api.meta import KubeObject
from kubesched.api.node import Node
from kubesched.config import SchedulerConfiguration
from kubesched.simulate.kinds import DEFAULT_NAMESPACE, PodWorkload
from kubesched.simulate.rolling_upgrade import UpgradePace

MOST_NEW_NODES = 10_000
"""How many nodes an edit, and all edits of one question, may add."""
MOST_NEW_PODS = 100_000
"""How many pods the workloads of one question may have."""
MOST_NODES_NAMED = 10_000
MOST_WEIGHT = 100


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


class RemoveNodes(_NodesEdit, frozen=True, tag="remove"):
    """These nodes are lost, with their daemons and devices; their other pods are pending."""

    def __str__(self) -> str:
        return f"lose {', '.join(self.nodes) or self.selector}"


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
    """One object. Its kind is enough to find it: `apiVersion` is there for whoever reads it."""

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


TrialEdit = CordonNodes | UncordonNodes | RemoveNodes | AddNodes | CreateObject | DeleteObject | PatchObject
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
    RemoveNodes: "--lose",
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
        """The same for whoever does not see the target."""
        return self.problem.replace("no such node", f"no node {self.target!r}", 1)

    def __str__(self) -> str:
        return f"{OPTIONS.get(type(self.edit), type(self.edit).__name__)} {self.target}: {self.problem}"


class EditError(UserError):
    """Edits that cannot be read, or are not possible: what they name is not there."""

    def __init__(self, *lines: str, mistakes: Sequence[EditMistake] = ()) -> None:
        super().__init__(*lines, *map(str, mistakes))
        self.mistakes = mistakes
