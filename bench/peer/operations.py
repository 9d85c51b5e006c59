"""The operations of upstream's scheduler_perf files as records; a field that is not known here is a mistake."""

from __future__ import annotations

from typing import Any, TypeAlias

import msgspec

Labels: TypeAlias = dict[str, str]


class _Operation(
    msgspec.Struct, frozen=True, kw_only=True, rename="camel", tag_field="opcode", forbid_unknown_fields=True
):
    pass


class LabelStrategy(msgspec.Struct, frozen=True, rename="camel"):
    """A label whose values the nodes take in turn."""

    label_key: str
    label_values: tuple[str, ...] = ()


class AllocatableStrategy(msgspec.Struct, frozen=True, rename="camel"):
    """A CSINode for each node, with limits by driver."""

    node_allocatable: Labels = {}
    csi_node_allocatable: dict[str, dict[str, int]] = {}
    migrated_plugins: tuple[str, ...] = ()


class CreateNodes(_Operation, frozen=True, kw_only=True, tag="createNodes"):
    """Nodes from a template, or plain ones."""

    count: int
    node_template_path: str = ""
    node_allocatable_strategy: AllocatableStrategy | None = None
    label_node_prepare_strategy: LabelStrategy | None = None
    unique_node_label_strategy: LabelStrategy | None = None


class CreateNamespaces(_Operation, frozen=True, kw_only=True, tag="createNamespaces"):
    """Namespaces called prefix-0, prefix-1, ..."""

    prefix: str
    count: int
    namespace_template_path: str = ""


class CreatePods(_Operation, frozen=True, kw_only=True, tag="createPods"):
    """Pods, waited for unless it says otherwise; in a steady state, as many again and again for a while."""

    count: int
    namespace: str = ""
    pod_template_path: str = ""
    collect_metrics: bool = False
    skip_wait_to_completion: bool = False
    steady_state: bool = False
    duration: str = ""
    persistent_volume_template_path: str = ""
    persistent_volume_claim_template_path: str = ""
    pods_per_second: float = 0
    """Not upstream's: pods come at this rate instead of as fast as they can be made."""


class CreatePodSets(_Operation, frozen=True, kw_only=True, tag="createPodSets"):
    """The same pods in each of several namespaces."""

    count: int
    namespace_prefix: str
    create_pods_op: CreatePods


class CreateAny(_Operation, frozen=True, kw_only=True, tag="createAny"):
    """Any object, or so many."""

    template_path: str
    namespace: str = ""
    count: int = 1


class UpdateAny(_Operation, frozen=True, kw_only=True, tag="updateAny"):
    """Objects overwritten, then their status."""

    template_path: str
    namespace: str = ""
    count: int = 1
    update_per_second: int = 0
    subresources: tuple[str, ...] = ()


class DeletePods(_Operation, frozen=True, kw_only=True, tag="deletePods"):
    """Pods deleted, all at once or at a rate."""

    namespace: str
    label_selector: Labels = {}
    delete_pods_per_second: int = 0
    skip_wait_to_completion: bool = False


class Churn(_Operation, frozen=True, kw_only=True, tag="churn"):
    """Objects that come, or come and go, until the end."""

    mode: str
    template_paths: tuple[str, ...]
    number: int = 0
    interval_milliseconds: int = 500
    namespace: str = ""


class Barrier(_Operation, frozen=True, kw_only=True, tag="barrier"):
    """Wait for pods that were not waited for."""

    namespaces: tuple[str, ...] = ()
    label_selector: Labels = {}
    stage_requirement: str = "Scheduled"


class Sleep(_Operation, frozen=True, kw_only=True, tag="sleep"):
    """Wait."""

    duration: str


class StartCollectingMetrics(_Operation, frozen=True, kw_only=True, tag="startCollectingMetrics"):
    """From here on pods of these namespaces, with these labels, count."""

    namespaces: tuple[str, ...]
    name: str = ""
    label_selector: Labels = {}


class StopCollectingMetrics(_Operation, frozen=True, kw_only=True, tag="stopCollectingMetrics"):
    """Until here."""


class StartScheduler(_Operation, frozen=True, kw_only=True, tag="startScheduler"):
    """Not upstream's: the scheduler starts only here, and all it does from its birth counts, for these namespaces."""

    namespaces: tuple[str, ...]


class FreezeScheduler(_Operation, frozen=True, kw_only=True, tag="freezeScheduler"):
    """Not upstream's: the scheduler's process stands still, and the API server cuts watches that it does not read."""


class ThawScheduler(_Operation, frozen=True, kw_only=True, tag="thawScheduler"):
    """Not upstream's: it goes on."""


class ReplaceScheduler(_Operation, frozen=True, kw_only=True, tag="replaceScheduler"):
    """Not upstream's: another that stood by takes over from the one that leads, and what it does counts from then."""

    namespaces: tuple[str, ...]


class ForgetHistory(_Operation, frozen=True, kw_only=True, tag="forgetHistory"):
    """Not upstream's: the API server starts anew and knows only the present, so every watch begins with a list."""


class CreateResourceDriver(_Operation, frozen=True, kw_only=True, tag="createResourceDriver"):
    """A ResourceSlice for each node whose name matches."""

    driver_name: str
    nodes: str
    max_claims_per_node: int


class AllocResourceClaims(_Operation, frozen=True, kw_only=True, tag="allocResourceClaims"):
    """Every claim of a namespace gets devices without a scheduler."""

    namespace: str = ""


Operation: TypeAlias = (
    CreateNodes
    | CreateNamespaces
    | CreatePods
    | CreatePodSets
    | CreateAny
    | UpdateAny
    | DeletePods
    | Churn
    | Barrier
    | Sleep
    | StartCollectingMetrics
    | StopCollectingMetrics
    | StartScheduler
    | FreezeScheduler
    | ThawScheduler
    | ReplaceScheduler
    | ForgetHistory
    | CreateResourceDriver
    | AllocResourceClaims
)


def read_operations(template: list[dict[str, Any]], parameters: dict[str, Any]) -> tuple[Operation, ...]:
    """The operations of a workload: `countParam: $nodes` becomes `count` with the parameter's value."""
    return msgspec.convert([_filled_in(each, parameters) for each in template], type=tuple[Operation, ...])


def _filled_in(operation: dict[str, Any], parameters: dict[str, Any]) -> dict[str, Any]:
    filled: dict[str, Any] = {}
    for key, value in operation.items():
        if key.endswith("Param"):
            name = str(value).removeprefix("$")
            if name not in parameters:
                raise ValueError(f"{operation.get('opcode')}: the workload has no parameter {name!r}")
            filled[key.removesuffix("Param")] = parameters[name]
        elif isinstance(value, dict) and key == "createPodsOp":
            filled[key] = _filled_in(value, parameters)
        else:
            filled.setdefault(key, value)
    return filled
