"""Exchanges in a linear program of moves: pods leave nodes that stay in use, so that others take their room.

Nodes that lose such a pod take all that comes to them by exchange. Those for which as many must leave so that a pod of
some size comes are one group, which keeps large pods from coming in parts.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from kubesched.api.requests import is_extended
from kubesched.planning.packing import Packing
from kubesched.planning.solver import INF, Program
from kubesched.state.columns import Float, Int64

_MOST_SIZES = 8
"""How many sizes of pods are told apart by one resource."""
_MOST_GROUPS = 60


def add_exchanges(program: Program, packing: Packing, flow: range) -> None:
    """Columns for pods that leave and for pods that come instead; `flow` has the row of each kind."""
    sizes = list(_sizes(packing))
    rates = np.array([_rates(packing, r, size) for r, size in sizes]).reshape(len(sizes), 2, len(packing.live))
    keys = np.ceil(rates * 12).reshape(-1, len(packing.live)).T
    rows = np.flatnonzero(packing.live & (packing.moves > 0))
    _, group_of = np.unique(keys[rows], axis=0, return_inverse=True)
    group_of = group_of.ravel() if group_of.max(initial=0) < _MOST_GROUPS else group_of.ravel() * 0
    for group in range(int(group_of.max(initial=-1)) + 1):
        of = rows[group_of == group]
        _add_group(program, packing, flow, of, sizes, rates[:, :, of].max(axis=2))


def _sizes(packing: Packing) -> Iterator[tuple[int, int]]:
    """Resources with sizes of pods: of whole things all sizes, else the least of which no two fit on one node."""
    for r, name in enumerate(packing.resources[:-1]):
        sizes = np.unique(packing.requests[packing.requests[:, r] > 0, r])
        if not is_extended(name):
            sizes = sizes[2 * sizes > packing.room[packing.live, r].max(initial=0)][:1]
        yield from ((r, int(size)) for size in sizes[-_MOST_SIZES:])


def _rates(packing: Packing, r: int, size: int) -> tuple[Float, Float]:
    """By row, how many pods of at least the size can come for each smaller one that leaves, and for each other."""
    small, large = np.zeros(len(packing.live)), np.zeros(len(packing.live))
    amounts = packing.requests[:, r]
    order = np.argsort(-amounts, kind="stable")
    least, most = order[amounts[order] < size], order[amounts[order] >= size]
    for row in np.flatnonzero(packing.live & (packing.room[:, r] >= size)).tolist():
        few, many = (
            np.append(0, np.cumsum(np.repeat(amounts[kinds], packing.counts[kinds, row]))) for kinds in (least, most)
        )
        coming = (packing.free[row, r] + many[:, None] + few[None, :]) // size
        leaving = np.arange(len(few))
        small[row] = (coming[0, 1:] / leaving[1:]).max(initial=0.0)
        others = (coming[1:] - small[row] * leaving) / np.arange(1, len(many))[:, None]
        large[row] = others.max(initial=0.0)
    return small, large


def _add_group(
    program: Program, packing: Packing, flow: range, rows: Int64, sizes: Sequence[tuple[int, int]], rates: Float
) -> None:
    """The exchanges on these rows, by kind; `rates` by size, for smaller pods and for others."""
    requests, counts = packing.requests, packing.counts[:, rows].sum(axis=1)
    most = packing.taking()[:, rows].max(axis=1, initial=0)
    leaving, coming = np.flatnonzero(counts), np.flatnonzero(most)
    if not len(coming):
        return
    by_size = np.array([requests[:, r] for r, _ in sizes]).reshape(len(sizes), len(requests))
    is_large = by_size >= np.array([size for _, size in sizes]).reshape(-1, 1)
    free = packing.free[rows].max(axis=0)
    used = np.concatenate([requests.T, is_large, np.eye(len(requests))[coming]])
    offered = np.concatenate(
        [
            (requests + free).T,
            np.where(is_large, rates[:, 1:], rates[:, :1]),
            np.repeat(most[coming, None], len(requests), axis=1),
        ]
    )
    limits = program.add_rows(np.full(len(used), -INF), np.zeros(len(used)))
    for kinds, amounts, sign in ((leaving, -offered, -1.0), (coming, used.astype(np.float64), 1.0)):
        row, which = np.nonzero(amounts[:, kinds])
        entries = (
            np.concatenate([np.arange(len(kinds)), which]),
            np.concatenate([kinds + flow.start, row + limits.start]),
            np.concatenate([np.full(len(kinds), sign), amounts[:, kinds][row, which]]),
        )
        is_move = sign < 0
        program.add_columns(np.full(len(kinds), float(is_move)), 0.0, counts[kinds] if is_move else INF, entries)
