"""NodeResourcesBalancedAllocation: a node is better the more evenly the pod would leave its resources in use."""

from __future__ import annotations

from collections.abc import Hashable
from functools import reduce

import numpy as np

from kubesched.config.args import NodeResourcesBalancedAllocationArgs
from kubesched.framework.cycle import Cycle
from kubesched.framework.nodes import Nodes, NodeView
from kubesched.framework.plugin import PluginContext, PreScorePlugin, ScorePlugin
from kubesched.framework.reads import PodFields, Reads, Scope
from kubesched.framework.status import MAX_NODE_SCORE, SKIP, Status
from kubesched.plugins.node_resources.allocation import Allocation
from kubesched.plugins.shared.arithmetic import MAX_INT64
from kubesched.state.columns import Float, Int64

_HALF = MAX_NODE_SCORE // 2


class NodeResourcesBalancedAllocation(PreScorePlugin, ScorePlugin):
    """Scores by how much more even the use of resources would become; 75 if nothing changes."""

    name = "NodeResourcesBalancedAllocation"
    pre_score_reads = Reads(PodFields.SPEC | PodFields.RESIZE, Scope.NOTHING)
    score_reads = Reads(PodFields.SPEC | PodFields.RESIZE, Scope.NODE_TOTALS)

    def __init__(
        self, args: NodeResourcesBalancedAllocationArgs | None = None, context: PluginContext | None = None
    ) -> None:
        super().__init__(args, context)
        args = args or NodeResourcesBalancedAllocationArgs()
        self._allocation = Allocation(args.resources, _requests, defaults=False)

    def pre_score(self, cycle: Cycle, nodes: Nodes) -> Status | None:
        # Pods that ask for nothing would all be drawn to the same node.
        return SKIP if self._allocation.request_of(cycle).is_nothing else None

    def sign(self, cycle: Cycle) -> Hashable:
        return self._allocation.request_of(cycle).amounts_asked

    def score(self, cycle: Cycle, nodes: Nodes) -> Int64 | int:
        request = self._allocation.request_of(cycle)
        if request.is_nothing:
            return 0
        used, offered = self._allocation.use(nodes, request)
        scores = _evenness(used + request.amounts, offered)
        scores -= _evenness(used, offered)
        scores += _HALF
        scores >>= 1
        scores += _HALF
        return scores

    def score_node(self, cycle: Cycle, node: NodeView) -> int:
        totals = node.totals
        request = self._allocation.request_of(cycle)
        by_devices = request.extended and self._allocation.may_use_devices(cycle, request)
        if len(request.resources) == 2 and not by_devices:
            used, offered = self._allocation.used_at(totals), totals.allocatable
            (first, _, more_first), (second, _, more_second) = request.resources
            offer_first, offer_second = offered[first], offered[second]
            with_first, with_second = used[first] + more_first, used[second] + more_second
            if offer_first and offer_second and with_first <= MAX_INT64 and with_second <= MAX_INT64:
                with_pod = _evenness_of_two(with_first / offer_first, with_second / offer_second)
                without = _evenness_of_two(used[first] / offer_first, used[second] / offer_second)
                return _HALF + (_HALF + with_pod - without) // 2
        scores = self.score(cycle, node.alone)
        return scores if isinstance(scores, int) else int(scores[0])


def _requests(cycle: Cycle) -> dict[str, int]:
    return {name: amount for name, amount, _ in cycle.facts.amounts}


def _evenness_of_two(first: float, second: float) -> int:
    """`_evenness` of the fractions of two resources, without arrays."""
    if first > 1.0:
        first = 1.0
    if second > 1.0:
        second = 1.0
    return int((1 - abs((first - second) / 2)) * MAX_NODE_SCORE)


def _evenness(used: Int64, offered: Int64) -> Int64:
    """100 less the standard deviation of the fractions in use, of the resources that the node offers."""
    if len(offered) == 2 and offered.all():
        # The usual case, twice for each new kind of pod: in few columns, each of them used again.
        fractions = np.minimum(used, offered) / offered
        deviation = fractions[0]
        deviation -= fractions[1]
        deviation *= 0.5
        np.abs(deviation, out=deviation)
    else:
        counts = offered != 0
        fractions = np.where(counts, np.minimum(used / np.where(counts, offered, 1), 1.0), 0.0)
        deviation = _deviation(fractions, counts)
    np.subtract(1.0, deviation, out=deviation)
    deviation *= MAX_NODE_SCORE
    return np.asarray(deviation, dtype=np.int64)


def _deviation(
    fractions: np.ndarray[tuple[int, int], np.dtype[np.float64]],
    counts: np.ndarray[tuple[int, int], np.dtype[np.bool_]],
) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """As kube-scheduler works it out: half the difference of two, the usual formula for more, 0 for one."""
    number = counts.sum(axis=0)
    mean = _running_sum(fractions) / np.maximum(number, 1)
    squares = np.where(counts, (fractions - mean) ** 2, 0.0)
    deviation = np.sqrt(_running_sum(squares) / np.maximum(number, 1))
    # With two resources the short formula is not the same to the last bit.
    order = np.argsort(~counts, axis=0, kind="stable")[:2]
    pair = np.take_along_axis(fractions, order, axis=0)
    half = np.abs((pair[0] - pair[-1]) / 2)
    return np.where(number == 2, half, np.where(number > 2, deviation, 0.0))


def _running_sum(columns: Float) -> Float:
    """The sum column by column: NumPy's own adds in another order, which shows in the last digit."""
    return reduce(np.add, columns, np.zeros(columns.shape[1]))
