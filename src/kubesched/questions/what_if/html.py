"""The answer to "what if?" as one page of HTML that needs nothing else."""

from __future__ import annotations

from collections.abc import Sequence

from kubesched.config import Duration
from kubesched.questions.what_if.answer import Moved, WhatIfAnswer
from kubesched.simulate.plots import bars, cards, legend, section, table, whole_page
from kubesched.simulate.report import title_of


def page(found: WhatIfAnswer) -> str:
    """The whole page."""
    sections = [
        _cards(found),
        _upgrade(found),
        _moves("Moves", found.moved),
        _moves("Finds a place", found.placed),
        _waiting(found),
        _groups(found),
        _evictions(found),
        _budgets(found),
        *_fullness(found),
        _workloads(found),
    ]
    remark = f"The cluster as it is and as it would be, simulated by kubesched, seed {found.seed}."
    return whole_page(f"What if: {'; '.join(found.changes)}", remark, sections)


def _cards(found: WhatIfAnswer) -> str:
    return cards(
        {
            "moved": str(len(found.moved)),
            "placed": str(len(found.placed)),
            "waiting": str(len(found.waiting)),
            "evicted by others": str(sum(len(each.victims) for each in found.evictions)),
            "budgets broken": str(len(found.broken_budgets)),
        }
    )


def _upgrade(found: WhatIfAnswer) -> str:
    if found.upgrade is None:
        return ""
    rows = (
        (each.node, each.by, _time(each.began), _time(each.ended - each.began), ", ".join(each.waited_for))
        for each in found.upgrade.replaced
    )
    shown = table(("Node", "Replaced by", "Cordoned", "Drained in", "Waited for"), rows)
    forced = ((_time(each.time), each.pod, each.node, ", ".join(each.budgets)) for each in found.upgrade.forced)
    if found.upgrade.forced:
        shown += table(("At", "Evicted against a budget", "On", "Budget"), forced)
    return section(f"Upgrade in {_time(found.upgrade.seconds)}", shown)


def _moves(title: str, moves: Sequence[Moved]) -> str:
    if not moves:
        return ""
    rows = ((each.pod, each.from_node or ("new" if each.is_new else "waiting"), each.to_node) for each in moves)
    return section(title, table(("Pod", "From", "To"), rows))


def _waiting(found: WhatIfAnswer) -> str:
    if not found.waiting:
        return ""
    rows = ((each.pod, each.from_node, reason) for reason, pods in found.reasons for each in pods)
    return section("Waits", table(("Pod", "Was on", "Why"), rows))


def _groups(found: WhatIfAnswer) -> str:
    rows = [
        (each.group, str(each.needed), str(each.before), str(each.after), "runs" if each.runs else each.reason)
        for each in found.groups
    ]
    return section("Pod groups", table(("Group", "Needs", "Run before", "Run after", ""), rows)) if rows else ""


def _evictions(found: WhatIfAnswer) -> str:
    rows = [(", ".join(each.victims), each.preemptor, str(each.priority), each.node) for each in found.evictions]
    return section("Evicted", table(("Pods", "By", "Priority", "On"), rows)) if rows else ""


def _budgets(found: WhatIfAnswer) -> str:
    rows = [
        (
            each.budget,
            str(each.wanted),
            str(each.before),
            str(each.after),
            str(each.leaving),
            "broken" if each.short else "slows a drain" if each.slows else "kept",
        )
        for each in found.budgets
    ]
    head = ("Budget", "Needs", "Up before", "Up after", "Leave", "")
    return section("Disruption budgets", table(head, rows)) if rows else ""


def _fullness(found: WhatIfAnswer) -> list[str]:
    """For each resource that is requested: the zones, before and after."""
    sections = []
    members = [*found.zones, found.total] if len(found.zones) > 1 else [found.total]
    for name, whole in found.total.resources.items():
        if not (name in ("cpu", "memory") or whole.before or whole.after):
            continue
        rows = []
        for each in members:
            share = each.resources.get(name)
            if share is not None:
                sides = (("a", share.before or 0.0), ("b", share.after or 0.0))
                rows.append((each.name, [(style, value, f"{value:.0%}") for style, value in sides]))
        spread = found.spread.get(name)
        between = ""
        if spread is not None:
            between = f"deviation between nodes: {spread.before or 0:.1%} before, {spread.after or 0:.1%} after"
        shown = bars(rows) + legend((("before", "a"), ("after", "b")), between)
        sections.append(section(f"{title_of(name)} requested", shown))
    return sections


def _workloads(found: WhatIfAnswer) -> str:
    rows = (
        (each.workload, ", ".join(f"{zone}: {count.before} to {count.after}" for zone, count in each.zones.items()))
        for each in found.workloads
    )
    return section("Pods per zone", table(("Workload", "Zones"), rows)) if found.workloads else ""


def _time(seconds: float) -> str:
    return str(Duration(round(seconds, 3)))
