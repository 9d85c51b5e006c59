"""A compiler whose closures count costs, and the estimate that says whether an expression needs counting."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from kubesched.cel.closures import Closure, Frame
from kubesched.cel.compiler import METER_SLOT, Compiler, NodeCode
from kubesched.cel.costs import ACCESS_COST, PAID_BEFORE
from kubesched.cel.device import MODEST
from kubesched.cel.functions import Function, Overload
from kubesched.cel.syntax import (
    Bind,
    Call,
    Fold,
    FoldKind,
    Ident,
    Index,
    ListNode,
    Literal,
    MapNode,
    Select,
    SyntaxNode,
    children,
)
from kubesched.cel.values import Value, size_of


class MeteringCompiler(Compiler):
    """Every step pays into the frame's meter. Slower, so only for expressions that could become expensive."""

    def access(self, run: Closure, steps: int = 1) -> Closure:
        return _paying(run, steps * ACCESS_COST)

    def construct(self, run: Closure, cost: int) -> Closure:
        return _paying(run, cost)

    def apply(self, function: Function, fitting: Sequence[Overload], sure: bool, args: Sequence[NodeCode]) -> NodeCode:
        runs = [arg.run for arg in args]

        def run(frame: Frame) -> Value:
            values = [run(frame) for run in runs]
            overload = fitting[0] if sure or len(fitting) == 1 else function.choose(values)
            if not sure and not overload.accepts_values(values):
                raise function.no_overload(values)
            price = overload.price
            if price in PAID_BEFORE:
                frame[METER_SLOT].spend(price(values, None))
                return overload.run(*values)
            result = overload.run(*values)
            frame[METER_SLOT].spend(price(values, result))
            return result

        return NodeCode(run)

    def pay_fold(self) -> Callable[[Frame, int], None]:
        return lambda frame, cost: frame[METER_SLOT].spend(cost)


def _paying(run: Closure, cost: int) -> Closure:
    def paid(frame: Frame) -> Value:
        frame[METER_SLOT].spend(cost)
        return run(frame)

    return paid


_UNBOUNDED = float("inf")
_WHOLE_DEVICE = float(8 * MODEST * MODEST)
_GROWING = frozenset({"format", "range"})
_EVERY_PAIR = frozenset(
    {"matches", "find", "findAll", "contains", "equivalent", "intersects", "sort", "distinct", "@sortByAssociatedKeys"}
)


_BRIEF = 500_000
"""An evaluation that can cost no more than this by our estimate, which is far too high, takes some ten milliseconds."""


def may_become_expensive(tree: SyntaxNode) -> bool:
    """Whether an evaluation for a device within the API's limits could come near the cost limit, or take long."""
    return worst_case_cost(tree) > _BRIEF


def worst_case_cost(tree: SyntaxNode) -> float:
    """More than any evaluation for such a device can cost."""
    return _worst_case(tree, {})[0]


def _worst_case(node: SyntaxNode, weights: dict[str, float]) -> tuple[float, float]:
    """More than the node can cost, and more than its value can weigh: everything in it, characters and all."""
    match node:
        case Literal():
            return 0, size_of(node.value) + 1
        case Select(operand=Index(operand=Select(operand=Ident(name="device")), key=Literal())):
            return 4, 4 * MODEST
        case Ident():
            return 1, weights.get(node.name, _WHOLE_DEVICE if node.name == "device" else 0)
        case Bind() if node.name != "device":
            cost, weight = _worst_case(node.value, weights)
            body_cost, body_weight = _worst_case(node.body, weights | {node.name: weight})
            return cost + body_cost, body_weight
        case Bind():
            return _UNBOUNDED, _UNBOUNDED
        case Fold():
            return _worst_fold(node, weights)
    costs, sizes = zip(*(_worst_case(child, weights) for child in children(node)), (0.0, 0.0))
    match node:
        case Select(operand=Ident(name="device")):
            is_map = node.field in ("attributes", "capacity")
            return 2, _WHOLE_DEVICE if is_map else 4 * MODEST
        case Call():
            return sum(costs) + _worst_call(node.function, sizes), _worst_result(node.function, sizes)
        case ListNode() | MapNode():
            return sum(costs) + 30, sum(sizes) + len(sizes)
        case _:
            return sum(costs) + 4, sum(sizes)


def _worst_call(function: str, sizes: Sequence[float]) -> float:
    if function in _GROWING:
        return _UNBOUNDED
    if function in _EVERY_PAIR:
        return 20 + 2.1 * (sum(sizes) + 1) ** 2
    return 20 + 2 * sum(sizes)


def _worst_result(function: str, sizes: Sequence[float]) -> float:
    if function in _GROWING:
        return _UNBOUNDED
    if function in ("replace", "join"):
        product = 1.0
        for size in sizes:
            product *= size + 1
        return product
    return sum(sizes) + MODEST


def _worst_fold(node: Fold, weights: dict[str, float]) -> tuple[float, float]:
    if "device" in node.variables:
        return _UNBOUNDED, _UNBOUNDED
    cost, weight = _worst_case(node.range, weights)
    steps = weight
    if _reads_device_map(node.range):
        steps = float(MODEST)
        weight = 4.0 * MODEST if len(node.variables) == 1 else weight
    inner = weights | dict.fromkeys(node.variables, weight)
    step = 40.0
    result = 1.0
    for part in (node.predicate, node.transform):
        if part is not None:
            part_cost, part_weight = _worst_case(part, inner)
            step += part_cost
            result = part_weight
    return cost + 40 + steps * step, steps * (weight + 1 if node.kind is FoldKind.FILTER else result + 1)


def _reads_device_map(node: SyntaxNode) -> bool:
    """Whether the node is a map of the device, such as `device.attributes["domain"]`: its keys are short and few."""
    if isinstance(node, Index) and not node.optional:
        node = node.operand
    return isinstance(node, Select) and isinstance(node.operand, Ident) and node.operand.name == "device"
