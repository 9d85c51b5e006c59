"""A plan as text: the steps, the bound, and how it was checked."""

from __future__ import annotations

from collections import Counter

from rich.console import Console
from rich.text import Text

from kubesched.ask.output import counted, listed
from kubesched.cli.grid import STRONG, Grid
from kubesched.cli.printing import BAD, FAINT, GOOD, note, paragraph, print_rows
from kubesched.planning.plan import Plan, PlanOutcome
from kubesched.simulate.report import moment

MOST_ROWS = 40
_STYLES = {PlanOutcome.FOUND: GOOD, PlanOutcome.IMPOSSIBLE: BAD, PlanOutcome.PARTIAL: BAD, PlanOutcome.UNCHANGED: ""}


def print_plan(out: Console, plan: Plan) -> None:
    """All of it, but for moves beyond the first ones."""
    paragraph(out, plan.goal[:1].upper() + plan.goal[1:], STRONG)
    paragraph(out, _summary(plan), _STYLES[plan.outcome])
    _bound(out, plan)
    _nodes(out, plan)
    _moves(out, plan)
    _placements(out, plan)
    _check(out, plan)


def _summary(plan: Plan) -> str:
    if plan.outcome is PlanOutcome.IMPOSSIBLE:
        return f"Impossible: {plan.reason}."
    fates = Counter[str]()
    for node in plan.nodes:
        fates[node.fate.value] += node.count
    parts = [f"{counted(number, 'node')} {fate}" for fate, number in fates.items()]
    if plan.moves:
        parts.append(f"{counted(len(plan.moves), 'move')} in {counted(plan.waves, 'wave')}")
    if plan.placements:
        parts.append(f"{counted(len(plan.placements), 'pending pod')} placed")
    if plan.waiting:
        parts.append(f"{len(plan.waiting)} left waiting")
    if plan.cost_before is not None and plan.cost_after is not None and plan.cost_before != plan.cost_after:
        share = f" ({plan.cost_after / plan.cost_before - 1:+.1%})" if plan.cost_before else ""
        parts.append(f"{plan.cost_before:.4g} an hour before, {plan.cost_after:.4g} after{share}")
    text = ", ".join(parts) or "Nothing to do"
    return f"{text[:1].upper()}{text[1:]}.{f' {plan.reason[:1].upper()}{plan.reason[1:]}.' if plan.reason else ''}"


def _bound(out: Console, plan: Plan) -> None:
    bound = plan.bound
    if bound is None:
        return
    gap = plan.gap
    if plan.outcome is PlanOutcome.FOUND and gap is not None:
        how_far = "which is the best possible" if gap < 1e-6 else f"{gap:.1%} from the bound"
        unit = "move" if bound.unit == "moves" and plan.value == 1 else bound.unit
        paragraph(out, f"{plan.value:.6g} {unit}, {how_far}: no plan does better than {bound.value:.6g}.")
    else:
        paragraph(out, f"Bound: {bound.value:.6g} {bound.unit}.")
    note(out, f"Proven by a {bound.proof}. It leaves out of account: {'; '.join(bound.relaxes)}.")
    if bound.scarce:
        note(out, f"What is scarce: {', '.join(f'{price.what} {price.share:.0%}' for price in bound.scarce)}.")


def _nodes(out: Console, plan: Plan) -> None:
    if not plan.nodes:
        return
    rows = Grid(("Node", "Fate", "Type", "Count", "Price"), right=(3, 4))
    for node in plan.nodes[:MOST_ROWS]:
        price = "" if node.price is None else f"{node.price:.4g}"
        rows.add(node.name, node.fate.value, node.type, str(node.count), price)
    print_rows(out, rows, len(plan.nodes) - MOST_ROWS, "-o json")


def _moves(out: Console, plan: Plan) -> None:
    if not plan.moves:
        return
    rows = Grid(("Wave", "Moves", "From", "To"), right=(0,))
    for move in plan.moves[:MOST_ROWS]:
        rows.add(str(move.wave), move.pod, move.from_node, Text(move.to_node, style=GOOD))
    print_rows(out, rows, len(plan.moves) - MOST_ROWS, "-o json")


def _placements(out: Console, plan: Plan) -> None:
    if plan.placements:
        rows = Grid(("Placed", "On"))
        for placement in plan.placements[:MOST_ROWS]:
            rows.add(placement.pod, Text(placement.node, style=GOOD))
        print_rows(out, rows, len(plan.placements) - MOST_ROWS, "-o json")
    if plan.waiting:
        out.print()
        paragraph(out, f"Left waiting: {listed(plan.waiting, 10)}", BAD)


def _check(out: Console, plan: Plan) -> None:
    check = plan.check
    if check is None:
        return
    out.print()
    paragraph(out, f"Checked: {'; '.join(check.how)}.")
    if check.seconds:
        paragraph(out, f"It takes {moment(check.seconds)} in virtual time.")
    if check.needs_nominations:
        why = f"without nominations {counted(check.stuck, 'pod')} would find no node" if check.stuck else ""
        why = why or "left to itself, the scheduler may choose other nodes"
        paragraph(out, f"Each pod has to be nominated to its node, as -o sh does: {why}.", BAD)
    elif check.astray:
        text = f"Without nominations {counted(check.astray, 'pod')} would go to other nodes, and all would run."
        paragraph(out, text, FAINT)
    if plan.observed_at:
        note(out, f"The cluster was read at {plan.observed_at}. If it changes, make a new plan.")
