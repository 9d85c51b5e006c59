"""An explanation as a page to read: the outcome first, then the verdicts, the scores, and preemption."""

from __future__ import annotations

import re
from collections import defaultdict

from rich.console import Console
from rich.text import Text

from kubesched.cli.printing import BAD, FAINT, GOOD, STRONG, counted, heading, listed, table
from kubesched.framework.plugin import Section
from kubesched.simulate.explanation import Explanation, NodeScore, NodeVerdict, Refusal
from kubesched.simulate.preemption import Eviction, Preemption

LARGE_CLUSTER = 40
MOST_SCORES = 15
MOST_EVICTIONS = 5
MOST_DETAILED_NODES = 3
_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])")


class ExplanationPrinter:
    """Prints one explanation."""

    def __init__(self, out: Console, explanation: Explanation, *, all_nodes: bool) -> None:
        self._out = out
        self._it = explanation
        self._brief = not all_nodes and len(explanation.verdicts) > LARGE_CLUSTER

    def print(self) -> None:
        self._outcome()
        if self._it.verdicts:
            self._verdicts()
        self._details()
        if self._it.scores:
            self._scores()
        if self._it.preemption is not None:
            self._preemption(self._it.preemption)

    # -- the outcome --------------------------------------------------------------------------------------------------

    def _outcome(self) -> None:
        it = self._it
        fitting = sum(verdict.fits for verdict in it.verdicts)
        self._out.print(Text.assemble((it.pod, STRONG), f"  {fitting} of {counted(len(it.verdicts), 'node')} fit"))
        if it.remark:
            self._out.print(
                Text(f"{it.remark[0].upper()}{it.remark[1:]}; this is how it would be placed if it were pending.")
            )
        if it.gate is not None:
            self._out.print(Text(f"Gated by {it.gate.plugin}: {it.gate.text}", style=BAD))
            self._out.print(Text("Without the gate:"))
        self._out.print(self._choice())
        if it.message:
            self._out.print(Text(it.message))
        if it.pre_filters.nodes is not None:
            only = f"{', '.join(it.pre_filters.narrowed_by)} left only {listed(it.pre_filters.nodes)} to look at."
            self._out.print(Text(only))

    def _choice(self) -> Text:
        it = self._it
        if not it.node:
            return Text("Something broke:" if it.outcome == "error" else "It fits nowhere:", style=BAD)
        text = Text.assemble("It goes to ", (it.node, f"{STRONG} {GOOD}"))
        if it.nominated:
            return text.append(", to which it was nominated earlier and which still fits.")
        if it.ties:
            return text.append(
                f", drawn among {len(it.ties)} equally good nodes with seed {it.seed}: {listed(it.ties)}."
            )
        if len(it.scores) == 1:
            return text.append(", the only node that fits.")
        return text.append(", the best of those that fit." if it.scores else ".")

    # -- verdicts -----------------------------------------------------------------------------------------------------

    def _verdicts(self) -> None:
        self._out.print()
        if self._it.pre_filters.refusal is not None:
            refusal = self._it.pre_filters.refusal
            self._out.print(
                Text(f"No node was looked at: {refusal.plugin or 'the pre-filters'} refuse the pod itself.")
            )
        elif self._brief:
            self._verdicts_by_reason()
        else:
            self._verdicts_by_node()

    def _verdicts_by_node(self) -> None:
        rows = table("Node", "Fits", "Plugin", "Reason")
        for verdict in self._it.verdicts:
            if verdict.refusal is None:
                rows.add_row(verdict.node, Text("yes", style=GOOD), "", "")
            else:
                rows.add_row(verdict.node, Text("no", style=BAD), verdict.refusal.plugin, _reason(verdict))
        self._out.print(rows)

    def _verdicts_by_reason(self) -> None:
        nodes: dict[tuple[str, str], list[str]] = defaultdict(list)
        for verdict in self._it.verdicts:
            refusal = verdict.refusal
            nodes[(refusal.plugin, refusal.text) if refusal else ("", "")].append(verdict.node)
        rows = table("Nodes", "Fit", "Plugin", "Reason", "Such as", right=("Nodes",), wrap=("Reason",))
        for (plugin, reason), names in sorted(nodes.items(), key=lambda item: (item[0] != ("", ""), -len(item[1]))):
            fits = Text("no", style=BAD) if reason else Text("yes", style=GOOD)
            rows.add_row(str(len(names)), fits, plugin, reason, listed(names, most=3))
        self._out.print(rows)
        self._out.print(Text("--all-nodes shows every node.", style=FAINT))

    # -- what plugins add ---------------------------------------------------------------------------------------------

    def _details(self) -> None:
        """Sections about the winner; if there is none, about all nodes, or in a large cluster about the first few."""
        for details in self._it.details.values():
            about_nodes = [section for section in details.sections if section.node]
            if self._it.node:
                shown = [section for section in about_nodes if section.node == self._it.node]
            else:
                shown = about_nodes[:MOST_DETAILED_NODES] if self._brief else about_nodes
            for section in details.sections:
                if not section.node or section in shown:
                    self._section(section)

    def _section(self, section: Section) -> None:
        self._out.print()
        if section.title:
            self._out.print(heading(section.title))
        for note in section.notes:
            self._out.print(Text(note))
        if section.columns:
            rows = table(*section.columns, right=section.right, wrap=section.columns[:1])
            for cells in section.rows:
                rows.add_row(*(Text(cell, style={"yes": GOOD, "no": BAD}.get(cell, "")) for cell in cells))
            self._out.print(rows)

    # -- scores -------------------------------------------------------------------------------------------------------

    def _scores(self) -> None:
        """A column per plugin that tells nodes apart; what is the same for all is one column, so that rows add up."""
        scores = self._it.scores
        shown = _best_and_chosen(scores, self._it.node) if self._brief else scores
        telling = [i for i in range(len(scores[0].parts)) if len({score.parts[i].weighted for score in scores}) > 1]
        level = [i for i in range(len(scores[0].parts)) if i not in telling]
        titles = [_title(scores[0].parts[i].plugin, scores[0].parts[i].weight) for i in telling]
        rows = table("Score", *titles, "Equal\nfor all", "Total", "", right=(*titles, "Equal\nfor all", "Total"))
        for score in shown:
            cells = [str(score.parts[i].weighted) for i in telling]
            same = str(sum(score.parts[i].weighted for i in level))
            wins = score.node == self._it.node
            style = f"{STRONG} {GOOD}" if wins else ""
            rows.add_row(score.node, *cells, same, str(score.total), self._remark(score), style=style)
        self._out.print()
        self._out.print(rows)
        self._out.print(Text(self._score_notes(len(shown), level), style=FAINT))

    def _remark(self, score: NodeScore) -> str:
        if score.node == self._it.node:
            return "<- chosen"
        return "equal" if score.node in self._it.ties else ""

    def _score_notes(self, shown: int, level: list[int]) -> str:
        scores, notes = self._it.scores, []
        if shown < len(scores):
            notes.append(f"{shown} of {counted(len(scores), 'node')}; --all-nodes shows all.")
        if level:
            parts = [scores[0].parts[i] for i in level]
            notes.append(f"Equal for all: {', '.join(f'{part.plugin} {part.weighted}' for part in parts)}.")
        if self._it.skipped_scores:
            notes.append(f"Nothing to say: {', '.join(self._it.skipped_scores)}.")
        return " ".join(notes)

    # -- preemption ---------------------------------------------------------------------------------------------------

    def _preemption(self, preemption: Preemption) -> None:
        self._out.print()
        if preemption.chosen is None:
            self._out.print(heading("Preemption cannot help"))
            if not preemption.no_help:
                self._out.print(Text(preemption.message))
        else:
            victims = counted(len(preemption.chosen.victims), "pod")
            self._out.print(heading(f"Preemption would evict {victims} from {preemption.chosen.node}"))
            self._victims(preemption.chosen)
        if preemption.others:
            self._others(preemption.others)
        for group in preemption.no_help:
            self._out.print(
                Text(f"No help on {counted(len(group.nodes), 'node')} ({listed(group.nodes)}): {group.reason}")
            )

    def _victims(self, eviction: Eviction) -> None:
        rows = table("Victim", "Priority", "Guarded by", right=("Priority",))
        for victim in eviction.victims:
            rows.add_row(victim.pod, str(victim.priority), ", ".join(victim.budgets) or "no disruption budget")
        self._out.print(rows)
        if eviction.budget_violations:
            text = (
                f"{counted(eviction.budget_violations, 'victim')} may not be disrupted now: a budget would be broken."
            )
            self._out.print(Text(text, style=BAD))

    def _others(self, others: tuple[Eviction, ...]) -> None:
        self._out.print()
        rows = table("Or from", "Budgets broken", "Victims", right=("Budgets broken",))
        for eviction in others if not self._brief else others[:MOST_EVICTIONS]:
            victims = listed([f"{victim.pod} ({victim.priority})" for victim in eviction.victims])
            rows.add_row(eviction.node, str(eviction.budget_violations), victims)
        self._out.print(rows)
        if self._brief and len(others) > MOST_EVICTIONS:
            self._out.print(Text(f"... and {len(others) - MOST_EVICTIONS} more (--all-nodes shows them)", style=FAINT))


def _best_and_chosen(scores: tuple[NodeScore, ...], chosen: str) -> tuple[NodeScore, ...]:
    """The first few; a node that the pod was nominated to may be chosen without being among the best."""
    return scores[:MOST_SCORES] + tuple(score for score in scores[MOST_SCORES:] if score.node == chosen)


def _reason(verdict: NodeVerdict) -> Text:
    assert verdict.refusal is not None
    text = Text(verdict.refusal.text)
    if verdict.for_nominated:
        text.append(" (with the pods that are nominated to this node)", style=FAINT)
    if verdict.also:
        text.append(f"\nalso {'; '.join(map(_objection, verdict.also))}", style=FAINT)
    return text


def _objection(refusal: Refusal) -> str:
    return f"{refusal.plugin}: {refusal.text}"


def _title(plugin: str, weight: int) -> str:
    """The name of a plugin on several lines, as columns are narrow."""
    return "\n".join([*_CAMEL.split(plugin), f"x{weight}"])
