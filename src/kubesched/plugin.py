"""The front door for authors of plugins: all names that a plugin needs.

These names stay as docs/writing-a-plugin.md and their docstrings have them, or CHANGELOG.md says so. Nothing else need.
"""

from kubesched.api.change import Change
from kubesched.api.custom import custom_kind
from kubesched.api.node import Node
from kubesched.api.pod import Pod
from kubesched.framework.advice import (
    AdvicePlugin,
    MissingResource,
    NodeShortfall,
    ObjectEdit,
    RemedyKind,
    RemedyProposal,
    propose_for_nearest,
    propose_label,
    propose_spec,
)
from kubesched.framework.budget import Expense
from kubesched.framework.client import ClientError, ClusterClient
from kubesched.framework.cycle import PODS_TO_ACTIVATE, Cycle
from kubesched.framework.diagnosis import Diagnosis, FilterOutcome
from kubesched.framework.events import Action, ClusterEvent, Hint, Interest, Kind, Lookup
from kubesched.framework.nodes import Nodes, NodeView, WhatIf
from kubesched.framework.plugin import (
    BindPlugin,
    Details,
    ExplainPlugin,
    FilterPlugin,
    PermitPlugin,
    PluginContext,
    PostBindPlugin,
    PostFilterPlugin,
    PostFilterResult,
    PreBindPlugin,
    Preemption,
    PreEnqueuePlugin,
    PreFilterPlugin,
    PreScorePlugin,
    QueueSortPlugin,
    ReservePlugin,
    ScorePlugin,
    Section,
    WhatIfRunner,
)
from kubesched.framework.reads import PodFields, Reads, Scope
from kubesched.framework.status import MAX_NODE_SCORE, SKIP, Code, Status, error, unresolvable, unschedulable
from kubesched.state.cluster import ClusterState
from kubesched.state.columns import Bool, Float, Int32, Int64
from kubesched.state.facts import StateKey
from kubesched.state.pods import PlacedPod

__all__ = [
    "MAX_NODE_SCORE",
    "PODS_TO_ACTIVATE",
    "SKIP",
    "Action",
    "AdvicePlugin",
    "BindPlugin",
    "Bool",
    "Change",
    "ClientError",
    "ClusterClient",
    "ClusterEvent",
    "ClusterState",
    "Code",
    "Cycle",
    "Details",
    "Diagnosis",
    "Expense",
    "ExplainPlugin",
    "FilterOutcome",
    "FilterPlugin",
    "Float",
    "Hint",
    "Int32",
    "Int64",
    "Interest",
    "Kind",
    "Lookup",
    "MissingResource",
    "Node",
    "NodeShortfall",
    "NodeView",
    "Nodes",
    "ObjectEdit",
    "PermitPlugin",
    "PlacedPod",
    "PluginContext",
    "Pod",
    "PodFields",
    "PostBindPlugin",
    "PostFilterPlugin",
    "PostFilterResult",
    "PreBindPlugin",
    "PreEnqueuePlugin",
    "PreFilterPlugin",
    "PreScorePlugin",
    "Preemption",
    "QueueSortPlugin",
    "Reads",
    "RemedyKind",
    "RemedyProposal",
    "ReservePlugin",
    "Scope",
    "ScorePlugin",
    "Section",
    "StateKey",
    "Status",
    "WhatIf",
    "WhatIfRunner",
    "custom_kind",
    "error",
    "propose_for_nearest",
    "propose_label",
    "propose_spec",
    "unresolvable",
    "unschedulable",
]
