"""Summaries of answers for agents: a few sentences with the numbers that matter."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from kubesched.ask.output import counted, listed

Document = dict[str, Any]
_MOST = 5
_MOST_GROUPS = 8


def in_words(document: Document) -> str:
    """The answer, and how old the view of the cluster is."""
    lines = [*_WORDS[document["kind"]](document), *_age(document.get("cluster"))]
    return "\n".join(lines)


def _age(cluster: Document | None) -> Iterator[str]:
    if cluster is None:
        return
    age = cluster["ageSeconds"]
    yield f"As of {f'{age:g} s ago' if age else 'now'}, {cluster['origin']}."
    yield from (f"Note: {line}." for line in cluster.get("unreadable", ()))


def _explanation(it: Document) -> Iterator[str]:
    where = f" It runs on {it['currentNode']}; this is as if it were pending." if it.get("currentNode") else ""
    if it.get("node"):
        yield f"{it['pod']} goes to {it['node']}.{where}"
        if it["scores"]:
            best = ", ".join(f"{each['node']} {each['total']}" for each in it["scores"][:_MOST])
            yield f"Best scores: {best}."
    else:
        yield f"{it['pod']} fits nowhere: {it['cause'] or it['message']}.{where}"
        yield f"Condition: {it['message']}" if it.get("message") else "No node was looked at."
    for group in it["nodeGroups"][:_MOST_GROUPS]:
        if group.get("refusal"):
            refusal = group["refusal"]
            nodes, reasons = group["nodes"], ", ".join(refusal["reasons"])
            yield f"- {counted(len(nodes), 'node')} ({listed(nodes, 3)}): {reasons} [{refusal['plugin']}]"
    preemption = (it.get("preemption") or {}).get("chosen")
    if preemption:
        victims = listed([each["pod"] for each in preemption["victims"]])
        yield f"Preemption would make room on {preemption['node']} by evicting {victims}."
    remedies = it.get("remedies")
    if remedies is not None:
        steps = [" and ".join(step["text"] for step in each["steps"]) for each in remedies["found"][:_MOST]]
        yield from (f"Would help: {text}." for text in steps)
        if not steps:
            yield f"Nothing was found that helps; {remedies['tried']} changes were tried."


def _pending(it: Document) -> Iterator[str]:
    waiting, placed = sum(len(group["pods"]) for group in it["groups"]), len(it["placed"])
    yield f"{counted(waiting + placed, 'pending pod')} on {counted(it['nodes'], 'node')}:"
    yield f"{placed} would find a node now, {waiting} would not."
    for group in it["groups"][:_MOST_GROUPS]:
        yield f"- {counted(len(group['pods']), 'pod')}: {group['why']} ({listed(group['pods'], 3)})"
        for pool in group["pools"][:2]:
            more = counted(pool["nodes"], "more node")
            yield f"  {more} of pool {pool['pool']} would place {pool['places']} of them."
        for remedy in (group.get("remedies") or {"found": ()})["found"][:2]:
            yield f"  For the first of them: {' and '.join(step['text'] for step in remedy['steps'])}."
    if it["leftOut"]:
        yield f"{it['leftOut']} more at the end of the queue were not looked at."


def _fit(it: Document) -> Iterator[str]:
    placed, total = len(it["placed"]), len(it["placed"]) + len(it["unplaced"])
    yield f"{placed} of {counted(total, 'pod')} find a node among {it['nodes']}."
    yield from (f"- {each['pod']} on {each['node']}, of {each['feasible']} that fit" for each in it["placed"][:_MOST])
    yield from (f"- {each['pod']} waits: {each['message']}" for each in it["unplaced"][:_MOST])


def _capacity(it: Document) -> Iterator[str]:
    more = "" if it.get("stoppedBy") else " or more"
    yield f"{it['fit']}{more} more of {it['pod']} fit on {counted(it['nodes'], 'node')}."
    if it.get("stoppedBy"):
        yield f"What stops the next one: {it['stoppedBy']}"
    if it["byZone"]:
        yield "By zone: " + ", ".join(f"{zone} {count}" for zone, count in it["byZone"].items()) + "."


def _what_if(it: Document) -> Iterator[str]:
    budgets = [each["budget"] for each in it["budgets"] if each["short"]]
    evicted = sum(len(each["victims"]) for each in it["evictions"])
    broken = f"{counted(len(budgets), 'budget')} broken{f' ({listed(budgets)})' if budgets else ''}"
    yield f"With {'; '.join(it['changes'])}:"
    moved = f"{counted(len(it['moved']), 'pod')} moved, {len(it['placed'])} placed, {len(it['waiting'])} waiting"
    yield f"{moved}, {evicted} evicted by others, {broken}."
    reasons: dict[str, list[str]] = {}
    for each in it["waiting"]:
        reasons.setdefault(each["reason"], []).append(each["pod"])
    for reason, pods in list(reasons.items())[:_MOST]:
        yield f"- {counted(len(pods), 'pod')} would wait ({listed(pods, 3)}): {reason}"
    slow = [each for each in it["budgets"] if each["slows"] and not each["short"]]
    yield from (
        f"- budget {each['budget']}: {each['leaving']} have to leave, a drain would wait" for each in slow[:_MOST]
    )
    for name, share in it["total"]["resources"].items():
        if name in ("cpu", "memory") and "before" in share and "after" in share:
            yield f"{name} requested: {share['before']:.0%} before, {share['after']:.0%} after."


def _releases(it: Document) -> Iterator[str]:
    pending = counted(it["pending"], "pending pod")
    yield f"From Kubernetes {it['before']} to {it['after']}: {pending}, {it['placed']} placed."
    yield from (f"Refused by {line}." for line in it["refused"])
    for group in it["groups"][:_MOST_GROUPS]:
        pods = [pod for change in group["changes"] for pod in change["pods"]]
        kinds = listed(list(dict.fromkeys(change["kind"] for change in group["changes"])))
        causes = "; ".join(f"{cause['words']} ({cause['reference']})" for cause in group["causes"])
        yield f"- {counted(len(pods), 'pod')} ({listed(pods, 3)}), {kinds}: {causes or 'no single change'}"
    if it["decided"] and not it["groups"]:
        yield "No pod is treated otherwise."
    for what in ("fields", "gates"):
        if it[what]:
            yield f"Changed {what}: {listed([each['setting'] for each in it[what]], _MOST_GROUPS)}."


def _plan(it: Document) -> Iterator[str]:
    reason = f": {it['reason']}" if it.get("reason") else ""
    yield f"{it['goal'][:1].upper()}{it['goal'][1:]}: {it['outcome']}{reason}."
    fates: dict[str, int] = {}
    for node in it["nodes"]:
        fates[node["fate"]] = fates.get(node["fate"], 0) + node["count"]
    names = [node["name"] for node in it["nodes"] if node["fate"] == "freed"]
    done = [f"{counted(number, 'node')} {fate}" for fate, number in fates.items()]
    waves = max((move["wave"] for move in it["moves"]), default=0)
    done += [f"{counted(len(it['moves']), 'move')} in {counted(waves, 'wave')}"] if waves else []
    done += [f"{counted(len(it['placements']), 'pending pod')} placed"] if it["placements"] else []
    done += [f"{len(it['waiting'])} left waiting"] if it["waiting"] else []
    if done:
        yield f"{', '.join(done)}{f' (free then: {listed(names)})' if names else ''}."
    bound = it.get("bound")
    if bound and it["outcome"] == "found":
        yield f"It comes to {it['value']:.6g} {bound['unit']}; no plan does better than {bound['value']:.6g}."
    if "costBefore" in it and "costAfter" in it:
        yield f"An hour costs {it['costBefore']:.4g} before, {it['costAfter']:.4g} after."
    for move in it["moves"][:_MOST]:
        yield f"- wave {move['wave']}: {move['pod']} from {move['fromNode']} to {move['toNode']}"
    for each in it["placements"][:_MOST]:
        yield f"- {each['pod']} on {each['node']}"
    if (it.get("check") or {}).get("needsNominations"):
        yield "Pods have to be nominated to their nodes: `kubesched plan ... -o sh` does."


def _overview(it: Document) -> Iterator[str]:
    cordoned = f", {it['unschedulableNodes']} cordoned" if it["unschedulableNodes"] else ""
    pools = ", ".join(f"{name or 'no pool'} {count}" for name, count in list(it["pools"].items())[:_MOST_GROUPS])
    pods = f"{counted(it['pods'], 'pod')} on them, {it['pending']} pending"
    yield f"{counted(it['nodes'], 'node')}{cordoned} ({pools}), {pods}."
    yield "Requested: " + ", ".join(f"{each['resource']} {each['requested']:.0%}" for each in it["requested"]) + "."


_WORDS: dict[str, Callable[[Document], Iterator[str]]] = {
    "Explanation": _explanation,
    "PendingPods": _pending,
    "Fit": _fit,
    "Capacity": _capacity,
    "WhatIf": _what_if,
    "ClusterOverview": _overview,
    "ReleaseComparison": _releases,
    "Plan": _plan,
}
"""By kind of document. They read the whole answer, before it is cut."""
