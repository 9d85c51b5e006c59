"""Summaries of answers for agents: a few sentences with the numbers that matter."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from kubesched.ask.output import counted, listed

Document = dict[str, Any]
_MOST = 5
_MOST_GROUPS = 8


def in_words(answer: Document) -> str:
    """The answer, and how old the view of the cluster is."""
    return "\n".join((*_WORDS[answer["kind"]](answer), *_age(answer.get("cluster"))))


def _age(cluster: Document | None) -> Iterator[str]:
    if cluster is None:
        return
    age = cluster["ageSeconds"]
    yield f"As of {f'{age:g} s ago' if age else 'now'}, {cluster['origin']}."
    yield from (f"Note: {line}." for line in cluster.get("unreadable", ()))


def _explanation(answer: Document) -> Iterator[str]:
    where = f" It runs on {answer['currentNode']}; this is as if it were pending." if answer.get("currentNode") else ""
    if answer.get("node"):
        yield f"{answer['pod']} goes to {answer['node']}.{where}"
        if answer["scores"]:
            best = ", ".join(f"{score['node']} {score['total']}" for score in answer["scores"][:_MOST])
            yield f"Best scores: {best}."
    else:
        yield f"{answer['pod']} fits nowhere: {answer['cause'] or answer['message']}.{where}"
        yield f"Condition: {answer['message']}" if answer.get("message") else "No node was looked at."
    for group in answer["nodeGroups"][:_MOST_GROUPS]:
        if group.get("refusal"):
            refusal = group["refusal"]
            nodes, reasons = group["nodes"], ", ".join(refusal["reasons"])
            yield f"- {counted(len(nodes), 'node')} ({listed(nodes, 3)}): {reasons} [{refusal['plugin']}]"
    preemption = (answer.get("preemption") or {}).get("chosen")
    if preemption:
        victims = listed([victim["pod"] for victim in preemption["victims"]])
        yield f"Preemption would make room on {preemption['node']} by evicting {victims}."
    remedies = answer.get("remedies")
    if remedies is not None:
        for remedy in remedies["found"][:_MOST]:
            yield f"Would help: {' and '.join(step['text'] for step in remedy['steps'])}."
        if not remedies["found"]:
            yield f"Nothing was found that helps; {remedies['tried']} changes were tried."


def _pending(answer: Document) -> Iterator[str]:
    waiting, placed = sum(len(group["pods"]) for group in answer["groups"]), len(answer["placed"])
    yield f"{counted(waiting + placed, 'pending pod')} on {counted(answer['nodes'], 'node')}:"
    yield f"{placed} would find a node now, {waiting} would not."
    for group in answer["groups"][:_MOST_GROUPS]:
        yield f"- {counted(len(group['pods']), 'pod')}: {group['why']} ({listed(group['pods'], 3)})"
        for pool in group["pools"][:2]:
            more = counted(pool["nodes"], "more node")
            yield f"  {more} of pool {pool['pool']} would place {pool['places']} of them."
        for remedy in (group.get("remedies") or {"found": ()})["found"][:2]:
            yield f"  For the first of them: {' and '.join(step['text'] for step in remedy['steps'])}."
    if answer["leftOut"]:
        yield f"{answer['leftOut']} more at the end of the queue were not looked at."


def _fit(answer: Document) -> Iterator[str]:
    placed, total = len(answer["placed"]), len(answer["placed"]) + len(answer["unplaced"])
    yield f"{placed} of {counted(total, 'pod')} find a node among {answer['nodes']}."
    for pod in answer["placed"][:_MOST]:
        yield f"- {pod['pod']} on {pod['node']}, of {pod['feasible']} that fit"
    for pod in answer["unplaced"][:_MOST]:
        yield f"- {pod['pod']} waits: {pod['message']}"


def _capacity(answer: Document) -> Iterator[str]:
    more = "" if answer.get("stoppedBy") else " or more"
    yield f"{answer['fit']}{more} more of {answer['pod']} fit on {counted(answer['nodes'], 'node')}."
    if answer.get("stoppedBy"):
        yield f"What stops the next one: {answer['stoppedBy']}"
    if answer["byZone"]:
        yield "By zone: " + ", ".join(f"{zone} {count}" for zone, count in answer["byZone"].items()) + "."


def _what_if(answer: Document) -> Iterator[str]:
    budgets = [budget["budget"] for budget in answer["budgets"] if budget["short"]]
    evicted = sum(len(eviction["victims"]) for eviction in answer["evictions"])
    broken = f"{counted(len(budgets), 'budget')} broken{f' ({listed(budgets)})' if budgets else ''}"
    yield f"With {'; '.join(answer['changes'])}:"
    moved, placed, waiting = (len(answer[key]) for key in ("moved", "placed", "waiting"))
    pods = f"{counted(moved, 'pod')} moved, {placed} placed, {waiting} waiting, {evicted} evicted by others"
    yield f"{pods}, {broken}."
    reasons: dict[str, list[str]] = {}
    for pod in answer["waiting"]:
        reasons.setdefault(pod["reason"], []).append(pod["pod"])
    for reason, names in list(reasons.items())[:_MOST]:
        yield f"- {counted(len(names), 'pod')} would wait ({listed(names, 3)}): {reason}"
    slow = [budget for budget in answer["budgets"] if budget["slows"] and not budget["short"]]
    for budget in slow[:_MOST]:
        yield f"- budget {budget['budget']}: {budget['leaving']} have to leave, a drain would wait"
    for name, share in answer["total"]["resources"].items():
        if name in ("cpu", "memory") and "before" in share and "after" in share:
            yield f"{name} requested: {share['before']:.0%} before, {share['after']:.0%} after."


def _releases(answer: Document) -> Iterator[str]:
    pending = counted(answer["pending"], "pending pod")
    yield f"From Kubernetes {answer['before']} to {answer['after']}: {pending}, {answer['placed']} placed."
    yield from (f"Refused by {line}." for line in answer["refused"])
    for group in answer["groups"][:_MOST_GROUPS]:
        pods = [pod for change in group["changes"] for pod in change["pods"]]
        kinds = listed(list(dict.fromkeys(change["kind"] for change in group["changes"])))
        causes = "; ".join(f"{cause['words']} ({cause['reference']})" for cause in group["causes"])
        yield f"- {counted(len(pods), 'pod')} ({listed(pods, 3)}), {kinds}: {causes or 'no single change'}"
    if answer["decided"] and not answer["groups"]:
        yield "No pod is treated otherwise."
    for key in ("fields", "gates"):
        if answer[key]:
            yield f"Changed {key}: {listed([change['setting'] for change in answer[key]], _MOST_GROUPS)}."


def _plan(answer: Document) -> Iterator[str]:
    reason = f": {answer['reason']}" if answer.get("reason") else ""
    yield f"{answer['goal'][:1].upper()}{answer['goal'][1:]}: {answer['outcome']}{reason}."
    fates: dict[str, int] = {}
    for node in answer["nodes"]:
        fates[node["fate"]] = fates.get(node["fate"], 0) + node["count"]
    names = [node["name"] for node in answer["nodes"] if node["fate"] == "freed"]
    done = [f"{counted(number, 'node')} {fate}" for fate, number in fates.items()]
    waves = max((move["wave"] for move in answer["moves"]), default=0)
    done += [f"{counted(len(answer['moves']), 'move')} in {counted(waves, 'wave')}"] if waves else []
    done += [f"{counted(len(answer['placements']), 'pending pod')} placed"] if answer["placements"] else []
    done += [f"{len(answer['waiting'])} left waiting"] if answer["waiting"] else []
    if done:
        yield f"{', '.join(done)}{f' (free then: {listed(names)})' if names else ''}."
    bound = answer.get("bound")
    if bound and answer["outcome"] == "found":
        yield f"It comes to {answer['value']:.6g} {bound['unit']}; no plan does better than {bound['value']:.6g}."
    if "costBefore" in answer and "costAfter" in answer:
        yield f"An hour costs {answer['costBefore']:.4g} before, {answer['costAfter']:.4g} after."
    for move in answer["moves"][:_MOST]:
        yield f"- wave {move['wave']}: {move['pod']} from {move['fromNode']} to {move['toNode']}"
    for placement in answer["placements"][:_MOST]:
        yield f"- {placement['pod']} on {placement['node']}"
    if (answer.get("check") or {}).get("needsNominations"):
        yield "Pods have to be nominated to their nodes: `kubesched plan ... -o sh` does."


def _overview(answer: Document) -> Iterator[str]:
    cordoned = f", {answer['unschedulableNodes']} cordoned" if answer["unschedulableNodes"] else ""
    pools = ", ".join(f"{name or 'no pool'} {count}" for name, count in list(answer["pools"].items())[:_MOST_GROUPS])
    pods = f"{counted(answer['pods'], 'pod')} on them, {answer['pending']} pending"
    yield f"{counted(answer['nodes'], 'node')}{cordoned} ({pools}), {pods}."
    shares = (f"{share['resource']} {share['requested']:.0%}" for share in answer["requested"])
    yield f"Requested: {', '.join(shares)}."


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
