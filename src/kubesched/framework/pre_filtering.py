"""What the pre-filters of a profile answer about a pod, and which plugins to ask about equivalent pods."""

from __future__ import annotations

from typing import NamedTuple

from kubesched.framework.bound_plugins import BoundFilter, BoundPreFilter
from kubesched.framework.diagnosis import Diagnosis
from kubesched.framework.equivalence import FilterGroup
from kubesched.framework.status import Code, Status, unresolvable


class FilterPlan(NamedTuple):
    """The plugins to ask about pods of an equivalence class: all but those that skip the whole class."""

    skipped: frozenset[str]
    pre_filters: tuple[BoundPreFilter, ...]
    filters: tuple[BoundFilter, ...]
    narrow: FilterGroup
    """The filters that look at one node at a time, which EquivalenceCache answers together."""
    narrow_names: frozenset[str]
    wide: tuple[BoundFilter, ...]
    """The other filters."""


class PreFilterOutcome:
    """The answers of all pre-filters, merged."""

    __slots__ = ("names", "narrowed_by", "plan", "rejected")

    def __init__(self, plan: FilterPlan | None) -> None:
        self.plan = plan
        self.rejected: Status | None = None
        self.names: frozenset[str] | None = None
        """The only nodes worth a look; None for all."""
        self.narrowed_by: set[str] = set()

    @property
    def is_rejected_for_good(self) -> bool:
        """Whether one plugin rejected the pod unresolvably: then it does not matter to which nodes others kept it."""
        rejected = self.rejected
        return rejected is not None and bool(rejected.plugin) and rejected.code is not Code.UNSCHEDULABLE

    def tell(self, diagnosis: Diagnosis) -> None:
        """Note in the diagnosis which plugins narrowed the nodes, and the status of nodes outside of `names`."""
        diagnosis.unschedulable_plugins |= self.narrowed_by
        if self.names is not None:
            names = " ".join(sorted(self.narrowed_by))
            diagnosis.outside = unresolvable(f"node(s) didn't satisfy plugin(s) [{names}]")
