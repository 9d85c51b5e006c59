"""An explanation as a page to read: the outcome, then groups of nodes, scores, preemption, and what would help."""

from __future__ import annotations

import re
from collections.abc import Sequence

from rich.console import Console
from rich.text import Text

from kubesched.ask.explain import ExplainedPod
from kubesched.ask.explain.explanation import NodeScore
from kubesched.ask.explain.pod_groups import GroupExplanation
from kubesched.ask.explain.words import (
    choice,
    group_reason,
    node_reason,
    nodes_that_help,
    nothing_helps,
    outcome_of_group,
    plugins_that_tell_apart,
    what_would_help,
    which,
)
from kubesched.ask.output import agreeing, counted, listed, share
from kubesched.ask.pending import PendingGroup, PendingPods
from kubesched.cli.grid import GAPS, STRONG, Grid, unbroken
from kubesched.cli.printing import BAD, FAINT, GOOD, heading, note, paragraph
from kubesched.framework.plugin import Section
from kubesched.simulate.placement import PreemptionProposal, ProposedEviction

MOST_SCORES = 15
MOST_EVICTIONS = 5
MOST_DETAILED_NODES = 3
MOST_REMEDIES = 5
CHOSEN = "<- chosen"
_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])")


class ExplanationPrinter:
    """Prints one answer; `nodes` shows every node by itself."""

    def __init__(self, out: Console, answer: ExplainedPod, *, nodes: bool) -> None:
        self._out = out
        self._answer = answer
        self._explanation, self._findings = answer
        self._all = nodes

    def print(self) -> None:
        if self._findings.pod_group is not None:
            print_pod_group(self._out, self._findings.pod_group)
            self._out.print()
            paragraph(self._out, "One of its pods, by itself:")
        self._outcome()
        if self._explanation.verdicts:
            self._verdicts()
        self._details()
        if self._explanation.scores:
            self._scores()
        if self._explanation.preemption is not None:
            self._preemption(self._explanation.preemption)
        self._remedies()

    # -- the outcome --------------------------------------------------------------------------------------------------

    def _outcome(self) -> None:
        explanation, out = self._explanation, self._out
        fitting = sum(verdict.fits for verdict in explanation.verdicts)
        nodes = f"  {share(fitting, len(explanation.verdicts), 'node', 'fit')}"
        out.print(Text.assemble((explanation.pod, STRONG), nodes), soft_wrap=True)
        if remark := explanation.remark:
            paragraph(out, f"{remark[0].upper()}{remark[1:]}; this is how it would be placed if it were pending.")
        if self._findings.contradiction:
            paragraph(out, self._findings.contradiction, BAD)
        if explanation.gate is not None:
            paragraph(out, f"Gated by {explanation.gate.plugin}: {explanation.gate.text}", BAD)
            paragraph(out, "Without the gate:")
        paragraph(out, choice(explanation), GOOD if explanation.node else BAD)
        if explanation.message:
            paragraph(out, explanation.message)
        pre_filters = explanation.pre_filters
        if pre_filters.nodes is not None:
            paragraph(out, f"{', '.join(pre_filters.narrowed_by)} left only {listed(pre_filters.nodes)} to look at.")

    # -- verdicts -----------------------------------------------------------------------------------------------------

    def _verdicts(self) -> None:
        self._out.print()
        refusal = self._explanation.pre_filters.refusal
        if refusal is not None:
            paragraph(self._out, f"No node was looked at: {refusal.plugin or 'the pre-filters'} refuse the pod itself.")
        elif self._all:
            self._every_node()
        else:
            self._groups()
            self._misses()

    def _every_node(self) -> None:
        rows = Grid(("Node", "Fits", "Plugin", "Reason"))
        for verdict in self._explanation.verdicts:
            if verdict.refusal is None:
                rows.add(verdict.node, "yes", "", "", style=GOOD)
            else:
                rows.add(verdict.node, "no", verdict.refusal.plugin, node_reason(verdict))
        rows.print(self._out)

    def _groups(self) -> None:
        rows = Grid(("Nodes", "Which", "Verdict"), right=(0,))
        for group in self._findings.node_groups:
            verdict, style = ("fit", GOOD) if group.refusal is None else (group_reason(group), "")
            rows.add(str(len(group.nodes)), which(group), verdict, style=style)
        rows.print(self._out)
        if any(len(group.nodes) > 1 for group in self._findings.node_groups):
            note(self._out, "--nodes shows every node.")

    def _misses(self) -> None:
        if not self._findings.nearest_misses:
            return
        self._out.print()
        self._out.print(heading("Nearest misses"))
        for miss in self._findings.nearest_misses:
            paragraph(self._out, f"{miss.node} {miss.text}", first="- ", rest="  ")

    # -- what plugins add ---------------------------------------------------------------------------------------------

    def _details(self) -> None:
        """Sections about the winner; if there is none, about all nodes, or the first few."""
        for details in self._explanation.details.values():
            about_nodes = [section for section in details.sections if section.node]
            if self._explanation.node:
                shown = [section for section in about_nodes if section.node == self._explanation.node]
            else:
                shown = about_nodes if self._all else about_nodes[:MOST_DETAILED_NODES]
            for section in details.sections:
                if not section.node or section in shown:
                    self._section(section)

    def _section(self, section: Section) -> None:
        self._out.print()
        if section.title:
            paragraph(self._out, section.title, STRONG)
        for text in section.notes:
            paragraph(self._out, text)
        if section.columns:
            rows = Grid(section.columns, right=[i for i, name in enumerate(section.columns) if name in section.right])
            for cells in section.rows:
                rows.add(*cells)
            rows.print(self._out)

    # -- scores -------------------------------------------------------------------------------------------------------

    def _scores(self) -> None:
        """A column per plugin that tells nodes apart; what is the same for all is one column, so that rows add up."""
        scores = self._explanation.scores
        shown = scores if self._all else _best_and_chosen(scores, self._explanation.node)
        telling = plugins_that_tell_apart(scores)
        level = [i for i in range(len(scores[0].parts)) if i not in telling]
        rows = self._wide_scores(shown, telling, level)
        if rows.narrowest(GAPS[0]) > self._out.width:
            rows = self._narrow_scores(shown, telling, level)
        self._out.print()
        rows.print(self._out)
        notes = self._score_notes(len(shown), level)
        if notes:
            note(self._out, notes)

    def _wide_scores(self, shown: Sequence[NodeScore], telling: Sequence[int], level: Sequence[int]) -> Grid:
        parts = self._explanation.scores[0].parts
        titles = [_title(parts[i].plugin, parts[i].weight) for i in telling]
        rows = Grid(("Score", *titles, "Equal\nfor all", "Total", ""), right=range(1, len(titles) + 3))
        for score in shown:
            cells = [str(score.parts[i].weighted) for i in telling]
            same = str(sum(score.parts[i].weighted for i in level))
            rows.add(score.node, *cells, same, str(score.total), self._mark(score), style=self._style(score))
        return rows

    def _narrow_scores(self, shown: Sequence[NodeScore], telling: Sequence[int], level: Sequence[int]) -> Grid:
        rows = Grid(("Node", "Score", "", "Made of"), right=(1,))
        for score in shown:
            made_of = [(score.parts[i].plugin, score.parts[i].weighted) for i in telling]
            made_of.append(("equal for all", sum(score.parts[i].weighted for i in level)))
            parts = ", ".join(unbroken(f"{name} {points}") for name, points in made_of if points)
            rows.add(score.node, str(score.total), self._mark(score), parts, style=self._style(score))
        return rows

    def _mark(self, score: NodeScore) -> str:
        if score.node == self._explanation.node:
            return unbroken(CHOSEN)
        return "equal" if score.node in self._explanation.ties else ""

    def _style(self, score: NodeScore) -> str:
        return f"{STRONG} {GOOD}" if score.node == self._explanation.node else ""

    def _score_notes(self, shown: int, level: list[int]) -> str:
        scores, notes = self._explanation.scores, []
        if shown < len(scores):
            notes.append(f"{shown} of {counted(len(scores), 'node')}; --nodes shows all.")
        if level:
            parts = [scores[0].parts[i] for i in level]
            notes.append(f"Equal for all: {', '.join(f'{part.plugin} {part.weighted}' for part in parts)}.")
        if self._explanation.skipped_scores:
            notes.append(f"Nothing to say: {', '.join(self._explanation.skipped_scores)}.")
        return " ".join(notes)

    # -- preemption ---------------------------------------------------------------------------------------------------

    def _preemption(self, preemption: PreemptionProposal) -> None:
        self._out.print()
        if preemption.chosen is None:
            self._out.print(heading("Preemption cannot help"))
            if not preemption.no_help:
                paragraph(self._out, preemption.message)
        else:
            victims = counted(len(preemption.chosen.victims), "pod")
            paragraph(self._out, f"Preemption would evict {victims} from {preemption.chosen.node}", STRONG)
            self._victims(preemption.chosen)
        if preemption.others:
            self._others(preemption.others)
        for group in preemption.no_help:
            where = f"{counted(len(group.nodes), 'node')} ({listed(group.nodes)})"
            paragraph(self._out, f"No help on {where}: {group.reason}")

    def _victims(self, eviction: ProposedEviction) -> None:
        rows = Grid(("Victim", "Priority", "Guarded by"), right=(1,))
        for victim in eviction.victims:
            rows.add(victim.pod, str(victim.priority), ", ".join(victim.budgets) or "no disruption budget")
        rows.print(self._out)
        if eviction.budget_violations:
            victims = counted(eviction.budget_violations, "victim")
            paragraph(self._out, f"{victims} may not be disrupted now: a budget would be broken.", BAD)

    def _others(self, others: tuple[ProposedEviction, ...]) -> None:
        self._out.print()
        rows = Grid(("Or from", "Budgets broken", "Victims"), right=(1,))
        for eviction in others if self._all else others[:MOST_EVICTIONS]:
            victims = listed([f"{victim.pod} ({victim.priority})" for victim in eviction.victims])
            rows.add(eviction.node, str(eviction.budget_violations), victims)
        rows.print(self._out)
        if not self._all and len(others) > MOST_EVICTIONS:
            note(self._out, f"... and {len(others) - MOST_EVICTIONS} more (--nodes shows them)")

    # -- remedies -----------------------------------------------------------------------------------------------------

    def _remedies(self) -> None:
        remedies = self._findings.remedies
        if remedies is None:
            return
        self._out.print()
        helping = what_would_help(self._answer)
        if not helping:
            paragraph(self._out, nothing_helps(remedies), BAD)
            return
        self._out.print(heading("What would help"))
        for text in helping:
            paragraph(self._out, text, first="- ", rest="  ")


def _best_and_chosen(scores: tuple[NodeScore, ...], chosen: str) -> tuple[NodeScore, ...]:
    """The first few; a node that the pod was nominated to may be chosen without being among the best."""
    return scores[:MOST_SCORES] + tuple(score for score in scores[MOST_SCORES:] if score.node == chosen)


def _title(plugin: str, weight: int) -> str:
    """The name of a plugin on several lines, as columns are narrow."""
    return "\n".join([*_CAMEL.split(plugin), f"x{weight}"])


# -- pod groups, and all pending pods ---------------------------------------------------------------------------------


def print_pod_group(out: Console, group: GroupExplanation) -> None:
    """The outcome, a line for each placement, and the nodes with which the group would be scheduled."""
    fits = max((placement.fits for placement in group.placements), default=0)
    running = f", {group.running} {agreeing(group.running, 'are')} running" if group.running else ""
    text = f"  {share(fits, group.waiting, 'waiting pod', 'fit')}{running}; it needs {group.needed}"
    out.print(Text.assemble((f"podgroup {group.group}", STRONG), text), soft_wrap=True)
    paragraph(out, outcome_of_group(group), GOOD if group.outcome == "scheduled" else BAD)
    if group.message:
        paragraph(out, group.message)
    if group.outcome == "scheduled":
        return
    out.print()
    titles = (group.topology_key or "Placement", "Nodes", "Fit", "Lacks", "Pod that does not", "Nearest miss")
    rows = Grid(titles, right=(1, 2))
    for placement in group.placements:
        lacks = ", ".join(f"{missing.amount} {missing.resource}" for missing in placement.lacking)
        sizes = (str(placement.nodes), str(placement.fits))
        rows.add(placement.name or "all nodes", *sizes, lacks, placement.first_without, placement.why)
    if group.placements:
        rows.print(out)
    if group.not_shown:
        note(out, f"... and {counted(group.not_shown, 'more placement')}")
    if group.pools:
        out.print()
        out.print(heading("What would help the whole group"))
        for help_ in group.pools:
            paragraph(out, nodes_that_help(help_), first="- ", rest="  ")


def print_pending(out: Console, answer: PendingPods) -> None:
    """How many find a node; then, group by group, what the others wait for and what would help."""
    waiting = sum(len(group.pods) for group in answer.groups)
    if not answer.placed and not waiting:
        out.print("No pod waits for a node.")
        return
    total = counted(len(answer.placed) + waiting, "pending pod")
    text = Text.assemble(
        f"{total} on {counted(answer.nodes, 'node')}: ",
        (f"{len(answer.placed)} would find a node now", GOOD),
        ", ",
        (f"{waiting} would not", BAD if waiting else FAINT),
    )
    out.print(text, soft_wrap=True)
    for group in answer.groups:
        out.print()
        _print_pending_group(out, group)


def _print_pending_group(out: Console, group: PendingGroup) -> None:
    paragraph(out, group.title, STRONG)
    paragraph(out, listed(group.pods), FAINT, first="  ", rest="  ")
    for text in group.help_for_all:
        paragraph(out, text, first="  - ", rest="    ")
    remedies = group.help_for_first[:MOST_REMEDIES]
    if remedies:
        paragraph(out, f"What would help {group.pods[0]}:", first="  ", rest="  ")
    for text in remedies:
        paragraph(out, text, first="  - ", rest="    ")
