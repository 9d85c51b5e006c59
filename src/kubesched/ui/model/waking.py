"""Events that wake pods, in words: a pod is deleted, the taints of a node change."""

from __future__ import annotations

from collections.abc import Iterable

from kubesched.framework.events import Action, ClusterEvent

_CHANGES = {
    Action.UPDATE_NODE_ALLOCATABLE: "what it offers",
    Action.UPDATE_NODE_LABEL: "labels",
    Action.UPDATE_NODE_TAINT: "taints",
    Action.UPDATE_NODE_CONDITION: "conditions",
    Action.UPDATE_NODE_ANNOTATION: "annotations",
    Action.UPDATE_NODE_DECLARED_FEATURE: "features",
    Action.UPDATE_POD_LABEL: "labels",
    Action.UPDATE_POD_SCALE_DOWN: "requests, downward",
    Action.UPDATE_POD_TOLERATION: "tolerations",
    Action.UPDATE_POD_SCHEDULING_GATES_ELIMINATED: "gates",
    Action.UPDATE_POD_GENERATED_RESOURCE_CLAIM: "claims",
}


def in_words(events: Iterable[ClusterEvent]) -> tuple[str, ...]:
    """One phrase for each kind of object: `Node added, changed (labels, taints)`."""
    by_kind: dict[str, Action] = {}
    for event in events:
        if event.is_wildcard:
            return ("anything that happens",)
        by_kind[str(event.kind)] = by_kind.get(str(event.kind), Action(0)) | event.action
    return tuple(f"{_noun(kind)} {_verbs(action)}" for kind, action in by_kind.items())


def _noun(kind: str) -> str:
    name = kind.rpartition("/")[2]
    return {"AssignedPod": "Pod", "UnschedulablePod": "Pod"}.get(name, name)


def _verbs(action: Action) -> str:
    verbs = [word for flag, word in ((Action.ADD, "added"), (Action.DELETE, "deleted")) if action & flag]
    if action & Action.UPDATE == Action.UPDATE:
        verbs.append("changed")
    elif action & Action.UPDATE:
        verbs.append(f"changed ({', '.join(word for flag, word in _CHANGES.items() if action & flag)})")
    return ", ".join(verbs)
