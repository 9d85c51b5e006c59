"""The objects around pods that scheduling looks at: namespaces, services, owners, disruption budgets."""

from __future__ import annotations

from kubesched.api.meta import KubeObject, LabelSelector, Record


class Namespace(KubeObject, frozen=True):
    """A namespace; its labels are what namespaceSelector reads."""


class ServiceSpec(Record, frozen=True):
    """Which pods a service is made of."""

    selector: dict[str, str] = {}


class Service(KubeObject, frozen=True):
    """A service."""

    spec: ServiceSpec = ServiceSpec()


class ReplicationController(KubeObject, frozen=True):
    """The oldest owner of pods; its selector is a plain map."""

    spec: ServiceSpec = ServiceSpec()


class OwnerSpec(Record, frozen=True):
    """Which pods are owned, or guarded by a budget."""

    selector: LabelSelector | None = None


class ReplicaSet(KubeObject, frozen=True):
    """An owner of pods."""

    spec: OwnerSpec = OwnerSpec()


class StatefulSet(KubeObject, frozen=True):
    """An owner of pods with names that stay."""

    spec: OwnerSpec = OwnerSpec()


class BudgetSpec(OwnerSpec, frozen=True):
    """How many of the guarded pods must be there: a number, or a percentage of all that are wanted."""

    min_available: int | str | None = None
    max_unavailable: int | str | None = None


class BudgetStatus(Record, frozen=True):
    """How many more may go."""

    disruptions_allowed: int = 0
    disrupted_pods: dict[str, str] = {}


class PodDisruptionBudget(KubeObject, frozen=True):
    """How many pods of a kind may be disrupted at once."""

    spec: BudgetSpec = BudgetSpec()
    status: BudgetStatus = BudgetStatus()


class PriorityClass(KubeObject, frozen=True):
    """A named priority."""

    value: int = 0
    global_default: bool = False
    preemption_policy: str | None = None
