"""What an answer of a plugin depends on: fields of the pod (`PodFields`) and a part of the cluster (`Scope`).

A plugin declares `Reads` for each extension point. All keys of caches follow from that: of one plugin's answers, of the
answers of several plugins together, and of decisions about pods that found no node.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from enum import Enum, IntFlag
from functools import reduce
from hashlib import blake2b
from operator import or_
from typing import NamedTuple

import msgspec

from kubesched.api.pod import Pod
from kubesched.state.facts import PodFacts, resize_in, without_claim_names

_encode = msgspec.json.Encoder().encode


class PodFields(IntFlag):
    """Parts of a pod."""

    NONE = 0
    SPEC = 1
    """The spec, but for the two parts of it that follow."""
    NODE_NAMES = 2
    """Nodes that required node affinity selects by name: all in which the specs of a DaemonSet's pods differ."""
    CLAIM_NAMES = 4
    """The claims that are its volumes: all in which the specs of a StatefulSet's pods differ. Claims of ephemeral
    volumes are named after the pod, and belong to it by its uid."""
    LABELS = 8
    NAMESPACE = 16
    OWNER = 32
    """Its controller."""
    RESIZE = 64
    """What the status says about resources, while the pod is resized in place."""
    RESOURCE_CLAIMS = 128
    """The resource claims of a pod that has any or may get one for an extended resource:
    `status.resourceClaimStatuses` and `status.extendedResourceClaimStatus`, and the name and uid by which a claim
    belongs to the pod."""
    ANNOTATIONS = 256
    STATUS = 512
    """The whole status."""
    NAME = 1024
    """Name and uid."""
    ALL = 2047


EQUIVALENT = (
    PodFields.SPEC
    | PodFields.NODE_NAMES
    | PodFields.CLAIM_NAMES
    | PodFields.LABELS
    | PodFields.NAMESPACE
    | PodFields.OWNER
    | PodFields.RESIZE
)
"""What pods with the same `PodFacts` have in common, as those of one ReplicaSet."""

_SPEC_ONLY = PodFields.SPEC | PodFields.NODE_NAMES | PodFields.RESIZE


class Scope(Enum):
    """What of the cluster an answer about a node depends on."""

    NOTHING = "nothing"
    """The pod alone."""
    CLAIMS = "claims"
    """Objects that the pod's volumes, resource claims and extended resources lead to: nothing, if it has none."""
    NODE_OBJECT = "node object"
    """Only the node object: labels, taints, images. Not asked again when pods come and go there."""
    NODE_TOTALS = "node totals"
    """The node object and sums over the pods on it: what they request, how many they are."""
    NODE = "node"
    """The node object and the pods on that node."""
    OBJECTS = "objects"
    """Node objects and objects of other kinds, but no pods. Asked each time, unless the plugin signs (`sign`)."""
    CLUSTER = "cluster"
    """Anything. Asked each time, unless the plugin signs."""


NARROW = (Scope.NODE_OBJECT, Scope.NODE_TOTALS, Scope.NODE)
"""Scopes of answers about a node that change only when that node changes."""


class Reads(NamedTuple):
    """What the answer of an extension point depends on."""

    pod: PodFields
    cluster: Scope

    @property
    def is_narrow(self) -> bool:
        """Whether equivalent pods get the same answer about a node until something changes there."""
        return self.cluster in NARROW and is_shared(self.pod)


UNDECLARED = Reads(PodFields.ALL, Scope.CLUSTER)
"""Of a plugin that declares nothing: it is asked each time."""


def is_shared(fields: PodFields) -> bool:
    """Whether pods with the same facts are the same in these fields."""
    return not fields & ~EQUIVALENT


def union_of(fields: Iterable[PodFields]) -> PodFields:
    return reduce(or_, fields, PodFields.NONE)


class Signature:
    """Signs pods by some of their fields: pods that are equal in these have equal signatures."""

    __slots__ = ("_fields", "_reads_claims", "_reads_node_names", "of")

    def __init__(self, fields: PodFields) -> None:
        self._fields = int(fields)  # operators of int are many times faster than those of IntFlag
        self._reads_node_names = bool(fields & PodFields.NODE_NAMES)
        self._reads_claims = bool(fields & (PodFields.CLAIM_NAMES | PodFields.RESOURCE_CLAIMS))
        self.of: Callable[[Pod, PodFacts], Hashable] = self._by_facts
        """The signature of a pod with its facts: those facts or a digest, which equivalent pods share; else a tuple."""
        if not fields:
            self.of = _same_for_all
        elif fields & (PodFields.ANNOTATIONS | PodFields.STATUS | PodFields.NAME):
            self.of = self._by_own_parts
        elif not fields & EQUIVALENT & ~_SPEC_ONLY and not self._reads_claims:
            self.of = self._by_digest

    def _by_digest(self, pod: Pod, facts: PodFacts) -> Hashable:
        return (facts if self._reads_node_names else facts.without_node_names).derived(_digest_of_spec, pod)

    def _by_facts(self, pod: Pod, facts: PodFacts) -> Hashable:
        if self._reads_claims and facts.has_own_claims:
            return self._by_own_parts(pod, facts)
        return facts if self._reads_node_names else facts.without_node_names

    def _by_own_parts(self, pod: Pod, facts: PodFacts) -> Hashable:
        fields, own = self._fields, list[Hashable]()
        has_claims = fields & PodFields.RESOURCE_CLAIMS and (pod.spec.resource_claims or facts.extended)
        has_ephemeral = fields & PodFields.CLAIM_NAMES and any(volume.ephemeral for volume in pod.spec.volumes)
        if fields & PodFields.NAME or has_claims or has_ephemeral:
            own += [pod.name, pod.uid]
        if has_claims:
            own.append(_encode((pod.status.resource_claim_statuses, pod.status.extended_resource_claim_status)))
        if fields & PodFields.ANNOTATIONS:
            own.append(frozenset(pod.metadata.annotations.items()))
        if fields & PodFields.STATUS:
            own.append(_encode(pod.status))
        shared = facts if self._reads_node_names else facts.without_node_names
        return (shared, *own) if own else shared


class SkipRule:
    """Whether a SKIP for a pod holds for its class: for all pods that share its facts without node names."""

    __slots__ = ("_goes_by_claims", "_is_of_class", "_reads_node_names")

    def __init__(self, reads: Reads) -> None:
        self._goes_by_claims = reads.cluster is Scope.CLAIMS
        self._is_of_class = reads.cluster in (Scope.NOTHING, Scope.CLAIMS) and is_shared(
            reads.pod & ~PodFields.RESOURCE_CLAIMS
        )
        self._reads_node_names = bool(reads.pod & PodFields.NODE_NAMES)

    def holds_for_class(self, pod: Pod, facts: PodFacts) -> bool:
        if not self._is_of_class or (self._goes_by_claims and (pod.spec.volumes or facts.has_own_claims)):
            return False
        return not self._reads_node_names or facts.without_node_names is facts


def _same_for_all(pod: Pod, facts: PodFacts) -> Hashable:
    return ()


def _digest_of_spec(pod: Pod) -> bytes:
    """Equal for pods of the same spec, and short: keys of caches outlive large specs, which should leave memory."""
    return blake2b(_encode((without_claim_names(pod.spec), resize_in(pod.status))), digest_size=32).digest()
