"""The releases of Kubernetes whose scheduler this is, each as a value: what it does differently, by behaviour.

Feature gates are not here: their defaults come from the tables of `config.gates`. A behaviour is read in one place, by
an object that is made for a release; nothing compares versions.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, fields, replace
from typing import Any, NamedTuple


def _since(pull: int, words: str) -> Any:
    """A behaviour that v1.36 does not have, in words, and the pull request of kubernetes/kubernetes that brought it."""
    return field(default=False, metadata={"pull": pull, "words": words})


@dataclass(frozen=True, kw_only=True, slots=True)
class Release:
    """One release. Each behaviour is off unless the release has it."""

    name: str
    """The value of `--emulated-version` and `--release`: `1.36`."""
    version: str
    """The release that was recorded: `1.36.4`."""

    @property
    def compatible_versions(self) -> tuple[str, str, str]:
        """The version of the binary, the one that it emulates, and the oldest that it is compatible with."""
        major, minor = self.name.split(".")
        return self.version, self.name, f"{major}.{int(minor) - 1}"

    # -- decisions ----------------------------------------------------------------------------------------------------
    node_name_first: bool = _since(
        140000, "NodeName comes before NodeUnschedulable, and is named where both reject a node"
    )
    more_pre_filters: bool = _since(
        140000,
        "NodeName, NodeUnschedulable and TaintToleration have a PreFilter; a pod that names its node is kept to it",
    )
    image_volumes_counted: bool = _since(138951, "ImageLocality counts image volumes among the images of a pod")
    selected_namespaces_only: bool = _since(
        138198, "a namespaceSelector that accepts a namespace without labels no longer means all namespaces"
    )
    resize_by_pod: bool = _since(
        140047,
        "while a pod is resized, it takes the largest of three sums, not the sum of the largest of each container",
    )
    preemption_said: bool = _since(140180, "a pod that makes room says where, and how many pods have to leave")
    quiet_claims: bool = _since(
        140222, "DynamicResources no longer adds a reason where giving back devices does not help"
    )
    first_exhausted_budget: bool = _since(
        137981, "of budgets that guard the same pod, those after the first that is exhausted are not charged"
    )

    distinct_from_all: bool = _since(
        140600, "distinctAttribute compares with every device, not with the last of each request"
    )
    capacity_errors: bool = _since(140442, "a request for capacity that cannot be represented is an error")
    all_means_all: bool = _since(140769, "allocationMode All fails where a device of them has too little capacity left")
    every_share_counts: bool = _since(140437, "a share without capacity counts: its device draws from counters once")
    counters_by_node: bool = _since(138917, "slices with counters make a pool visible only to the nodes that they name")
    parameters_once: bool = _since(
        139731, "parameters of a claim are written once, and without requests if they are for all"
    )
    cel_errors_explained: bool = _since(
        136709, "errors of CEL name the device, and say what to do about keys that are missing"
    )
    list_attributes_seen: bool = _since(139395, "selectors see attributes that are lists")
    derived_attributes_refused: bool = _since(
        140029, "claims with derived attributes are refused, as their gate is off"
    )
    compatibility_groups_refused: bool = _since(
        139795, "pools with compatibility groups are incomplete, as their gate is off"
    )
    group_post_filter: bool = _since(
        139674, "profiles have podGroupPostFilter: what is asked when a group of pods finds no place"
    )

    # -- the queue ----------------------------------------------------------------------------------------------------
    bindings_retried: bool = _since(
        138855, "a binding is sent up to four times where the API server has an internal error"
    )
    taints_not_implied: bool = _since(
        138420, "a change of taints wakes only pods that a plugin rejected which waits for changes of taints"
    )
    pod_events_split: bool = _since(
        135905, "plugins wait for changes of the pod itself (TargetPod) or of placed pods (AssignedPod), each by itself"
    )
    deleted_claims_heard: bool = _since(
        140831, "a ResourceClaim that is deleted with its devices wakes pods that wait for some"
    )
    any_unwanted_company: bool = _since(
        139161, "a pod is woken when a neighbour leaves that one of its anti-affinity terms means, not only all of them"
    )
    nominated_when_added: bool = _since(
        139057, "a pod that is created with a nominated node counts there at once, even if it is gated"
    )

    # -- controllers ---------------------------------------------------------------------------------------------------
    job_scheduling: bool = _since(
        140188,
        "with WorkloadWithJob, any Job without an owner groups its pods: as a gang only if its spec.scheduling says so",
    )

    # -- figures ------------------------------------------------------------------------------------------------------
    claims_by_owner: bool = _since(
        140422, "claims that the scheduler creates are counted by their owner, in a series of another name"
    )


V1_36 = Release(name="1.36", version="1.36.4")
_BEHAVIOUR_FIELDS = tuple(field for field in fields(Release) if field.metadata)
V1_37 = replace(V1_36, name="1.37", version="1.37.0-rc.1", **{field.name: True for field in _BEHAVIOUR_FIELDS})
RELEASES = {release.name: release for release in (V1_36, V1_37)}
"""By name, the oldest first."""
NEWEST = V1_37
_MINOR = re.compile(r"v?(\d+\.\d+)\b")


def release_of(version: str) -> Release | None:
    """The release of a version such as `v1.36.4-gke.100`; None if it is none of these releases."""
    minor = _MINOR.match(version)
    return RELEASES.get(minor[1]) if minor else None


class Behaviour(NamedTuple):
    """Something that a release does differently from the one before, for people."""

    name: str
    words: str
    pull: int

    @property
    def reference(self) -> str:
        return f"https://github.com/kubernetes/kubernetes/pull/{self.pull}"


BEHAVIOURS = tuple(
    Behaviour(field.name, field.metadata["words"], field.metadata["pull"]) for field in _BEHAVIOUR_FIELDS
)
