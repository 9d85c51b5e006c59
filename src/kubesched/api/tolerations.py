"""Taints and the tolerations that accept them."""

from __future__ import annotations

import re
from collections.abc import Iterable

from kubesched.api.node import Taint
from kubesched.api.pod import Toleration
from kubesched.api.selectors import parse_int64

KEEPS_AWAY = frozenset(("NoSchedule", "NoExecute"))
UNSCHEDULABLE_TAINT = Taint(key="node.kubernetes.io/unschedulable", effect="NoSchedule")

_PLAIN_INTEGER = re.compile(r"0|-?[1-9][0-9]*")


def tolerates(toleration: Toleration, taint: Taint, *, numeric: bool = False) -> bool:
    """Whether this toleration accepts the taint. `numeric` allows the operators Lt and Gt (feature-gated)."""
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    match toleration.operator:
        case "Exists":
            return True
        case "" | "Equal":
            return toleration.value == taint.value
        case "Lt" | "Gt":
            return numeric and _compares(toleration, taint)
        case _:  # of an API server newer than this
            return False


def _compares(toleration: Toleration, taint: Taint) -> bool:
    if not _PLAIN_INTEGER.fullmatch(toleration.value) or not _PLAIN_INTEGER.fullmatch(taint.value):
        return False
    bound, value = parse_int64(toleration.value), parse_int64(taint.value)
    if bound is None or value is None:
        return False
    return value < bound if toleration.operator == "Lt" else value > bound


def tolerates_any_way(tolerations: Iterable[Toleration], taint: Taint, *, numeric: bool = False) -> bool:
    """Whether one of the tolerations accepts the taint."""
    return any(tolerates(toleration, taint, numeric=numeric) for toleration in tolerations)


def has_untolerated(taints: Iterable[Taint], tolerations: tuple[Toleration, ...], *, numeric: bool = False) -> bool:
    """Whether a taint that keeps pods away is not tolerated."""
    return any(
        taint.effect in KEEPS_AWAY and not tolerates_any_way(tolerations, taint, numeric=numeric) for taint in taints
    )
