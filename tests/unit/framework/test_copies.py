"""Room for copies of a pod, by arithmetic: where it tells, and where only placing them does."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from kubesched.framework.copies import CopyRoom
from kubesched.framework.copy_limits import PLENTY, CopyLimit
from kubesched.state.columns import Int32, Int64


def rows(*room: int) -> Int64:
    return np.array(room, dtype=np.int64)


def domains(*ids: int) -> Int32:
    return np.array(ids, dtype=np.int32)


def spread(ids: Int32, *pods: int, max_skew: int = 1, lacks_domains: bool = False) -> CopyLimit:
    """The last entry of both arrays is for rows without the label."""
    counted = np.array([True] * len(pods) + [False])
    return CopyLimit(ids, max_skew, np.array([*pods, 0], dtype=np.int64), counted, lacks_domains)


def test_without_limits_rows_are_added_up() -> None:
    assert CopyRoom(rows(3, 0, 4)).total() == 7


def test_copies_that_keep_apart_are_one_per_domain_and_any_number_outside() -> None:
    assert CopyRoom(rows(3, 2, 4, 5), (CopyLimit(domains(0, 0, 1, -1)),)).total() == 1 + 1 + 5


def test_the_domain_that_is_full_first_holds_the_others_back() -> None:
    room = CopyRoom(rows(1, 9, 9), (spread(domains(0, 1, 2), 0, 0, 0),))
    assert room.total() == 1 + 2 + 2
    assert CopyRoom(rows(0, 9, 9), (spread(domains(0, 1, 2), 3, 0, 1, max_skew=2),)).total() == 5 + 4


def test_too_few_domains_count_as_an_empty_one() -> None:
    assert CopyRoom(rows(9, 9), (spread(domains(0, 1), 1, 0, max_skew=2, lacks_domains=True),)).total() == 1 + 2


def test_what_depends_on_the_order_is_not_told() -> None:
    crossing = (CopyLimit(domains(0, 0, 1)), CopyLimit(domains(0, 1, 1)))
    assert CopyRoom(rows(1, 1, 1), crossing).total() is None
    two = (spread(domains(0, 0, 1), 0, 0), spread(domains(0, 1, 1), 0, 0))
    assert CopyRoom(rows(1, 1, 1), two).total() is None, "a host in two zones"


def test_hosts_of_a_zone_that_is_full_hold_back_hosts_elsewhere() -> None:
    """The larger zone may have 3 more than it has now, and so never fills all of its hosts a second time."""
    zones, hosts = spread(domains(0, 1, 1), 0, 0), spread(domains(0, 1, 2), 0, 0, 0)
    assert CopyRoom(rows(9, 9, 9), (zones, hosts)).total() == 2 + 3
    assert CopyRoom(rows(9, 9, 9), (hosts, zones)).total() == 2 + 3


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_two_spread_constraints_end_between_the_bounds_whatever_the_order(data: st.DataObject) -> None:
    few, skews, count = st.integers(0, 3), st.integers(1, 3), data.draw(st.integers(1, 4))
    per_row = st.lists(few, min_size=count, max_size=count)
    zone_of = [min(zone, 1) for zone in data.draw(per_row)]
    pods, room = data.draw(per_row), data.draw(per_row)
    in_zone = [sum(number for number, zone in zip(pods, zone_of, strict=True) if zone == i) for i in range(2)]
    lacks = data.draw(st.booleans())
    zones = spread(domains(*zone_of), *in_zone, max_skew=data.draw(skews), lacks_domains=lacks)
    hosts = spread(domains(*range(count)), *pods, max_skew=data.draw(skews))
    zones = zones._replace(counted=np.array([0 in zone_of, 1 in zone_of, False]))
    bounds = CopyRoom(rows(*room), (zones, hosts)).counts()
    ends = _ends(zones, hosts, tuple(pods), tuple(room), {})
    assert bounds is not None
    assert bounds[0] <= min(ends) <= max(ends) <= bounds[1]


def _ends(
    zones: CopyLimit,
    hosts: CopyLimit,
    pods: tuple[int, ...],
    room: tuple[int, ...],
    known: dict[tuple[int, ...], set[int]],
) -> set[int]:
    """How many copies there may be in the end: every order is tried."""
    if pods not in known:
        found: set[int] = set()
        in_zone = np.bincount(zones.ids, pods, 2)
        fewest = 0 if zones.lacks_domains else in_zone[[0 in zones.ids, 1 in zones.ids]].min()
        for i, left in enumerate(room):
            fits_zone = in_zone[zones.ids[i]] + 1 - fewest <= zones.max_skew
            if left and fits_zone and pods[i] + 1 - min(pods) <= hosts.max_skew:
                after = (*pods[:i], pods[i] + 1, *pods[i + 1 :])
                rest = (*room[:i], left - 1, *room[i + 1 :])
                found |= {count + 1 for count in _ends(zones, hosts, after, rest, known)}
        known[pods] = found or {0}
    return known[pods]


def test_room_without_end_is_not_told() -> None:
    assert CopyRoom(rows(1, PLENTY)).total() is None


def test_on_one_row_all_limits_count() -> None:
    room = CopyRoom(rows(9, 9, 9), (spread(domains(0, 0, 1), 2, 1, max_skew=3), spread(domains(0, 1, 2), 0, 0, 0)))
    assert room.on_row(0) == 1
    assert CopyRoom(rows(9, 9), (spread(domains(0, 0), 4),)).on_row(0) == 9, "a single domain is even with itself"
    assert CopyRoom(rows(9, 9), (CopyLimit(domains(0, -1)),)).on_row(1) == 9
