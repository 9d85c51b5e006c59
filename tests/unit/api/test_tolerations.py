from __future__ import annotations

import pytest

from kubesched.api.node import Taint
from kubesched.api.pod import Toleration
from kubesched.api.tolerations import has_untolerated, tolerates, tolerates_any_way

DEDICATED = Taint(key="dedicated", value="gpu", effect="NoSchedule")


@pytest.mark.parametrize(
    "toleration",
    [
        Toleration(key="dedicated", value="gpu"),
        Toleration(key="dedicated", operator="Equal", value="gpu", effect="NoSchedule"),
        Toleration(key="dedicated", operator="Exists"),
        Toleration(operator="Exists"),
        Toleration(operator="Exists", effect="NoSchedule"),
        # Without a key the value alone decides, as upstream compares it.
        Toleration(value="gpu"),
    ],
)
def test_these_accept_the_taint(toleration: Toleration) -> None:
    assert tolerates(toleration, DEDICATED)


@pytest.mark.parametrize(
    "toleration",
    [
        Toleration(key="dedicated", value="cpu"),
        Toleration(key="dedicated"),
        Toleration(key="other", operator="Exists"),
        Toleration(key="dedicated", operator="Exists", effect="NoExecute"),
        Toleration(),
    ],
)
def test_these_do_not(toleration: Toleration) -> None:
    assert not tolerates(toleration, DEDICATED)


@pytest.mark.parametrize(
    ("operator", "bound", "value", "accepted"),
    [
        ("Lt", "10", "9", True),
        ("Lt", "10", "10", False),
        ("Gt", "10", "11", True),
        ("Gt", "10", "10", False),
        ("Gt", "-5", "-4", True),
        ("Gt", "0", "07", False),
        ("Gt", "0", "+7", False),
        ("Gt", "0", "7.5", False),
        ("Gt", "none", "7", False),
        ("Lt", str(2**63), "7", False),
        ("Near", "6", "7", False),
    ],
)
def test_numbers_are_compared_where_the_gate_is_open(operator: str, bound: str, value: str, accepted: bool) -> None:
    toleration = Toleration(key="sla", operator=operator, value=bound)  # type: ignore[arg-type]
    taint = Taint(key="sla", value=value, effect="NoSchedule")
    assert tolerates(toleration, taint, numeric=True) == accepted
    assert not tolerates(toleration, taint)


def test_one_of_several_tolerations_is_enough() -> None:
    tolerations = (Toleration(key="other", operator="Exists"), Toleration(key="dedicated", operator="Exists"))
    assert tolerates_any_way(tolerations, DEDICATED)
    assert not tolerates_any_way((), DEDICATED)


def test_only_taints_that_keep_pods_away_need_to_be_tolerated() -> None:
    soft = Taint(key="dedicated", value="gpu", effect="PreferNoSchedule")
    evicting = Taint(key="broken", effect="NoExecute")
    assert not has_untolerated([soft], ())
    assert has_untolerated([soft, evicting], ())
    assert not has_untolerated([soft, evicting], (Toleration(key="broken", operator="Exists"),))
