"""Explanations as one page of HTML that needs nothing else: every node with its verdict, and every score."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kubesched.questions.explain.answer import Answer
from kubesched.questions.explain.pod_groups import GroupExplanation
from kubesched.questions.explain.words import (
    choice,
    group_reason,
    node_reason,
    nodes_that_help,
    nothing_helps,
    outcome_of_group,
    what_would_help,
    which,
)
from kubesched.questions.wording import counted, listed
from kubesched.simulate.explanation import Explanation, NodeScore
from kubesched.simulate.plots import Bad, bullets, legend, paragraphs, section, stacks, table, whole_page
from kubesched.simulate.preemption import PreemptionProposal

MOST_BARS = 25
_STYLES = "abcde"
_EQUAL = "f"
"""The colour of what is the same for all nodes, and of plugins for which there is no other left."""


def page(answers: Sequence[Answer], *, made: str) -> str:
    """The whole page; `made` says when it was made."""
    several = len(answers) > 1
    sections = [
        shown for each in answers for shown in _Page(each, f"{each.explanation.pod}: " if several else "").sections()
    ]
    title = counted(len(answers), "pod") if several else _title(answers[0].explanation)
    profiles = listed(sorted({each.explanation.profile for each in answers}))
    remark = f"Decided by the profile {profiles}, seed {answers[0].explanation.seed}, on {made}."
    return whole_page(f"Explained: {title}", remark, sections)


def _title(it: Explanation) -> str:
    fitting = sum(verdict.fits for verdict in it.verdicts)
    return f"{it.pod}, {fitting} of {counted(len(it.verdicts), 'node')} fit"


class _Page:
    """The sections about one pod. Where a page is about several, each title begins with the name of the pod."""

    def __init__(self, answer: Answer, prefix: str) -> None:
        self._answer = answer
        self._it = answer.explanation
        self._prefix = prefix

    def sections(self) -> Iterator[str]:
        it = self._it
        if self._answer.pod_group is not None:
            yield self._group(self._answer.pod_group)
        yield self._section("Outcome", self._outcome())
        yield self._remedies()
        if it.pre_filters.refusal is None and it.verdicts:
            yield self._groups()
        yield self._misses()
        if it.scores:
            yield self._scores()
        if it.preemption is not None:
            yield self._preemption(it.preemption)
        yield from self._details()
        if it.pre_filters.refusal is None and it.verdicts:
            yield self._every_node()

    def _section(self, title: str, inside: str) -> str:
        return section(f"{self._prefix}{title}", inside)

    def _outcome(self) -> str:
        it, said = self._it, []
        if it.remark:
            said.append(f"{it.remark[0].upper()}{it.remark[1:]}; this is how it would be placed if it were pending.")
        if it.gate is not None:
            said += [Bad(f"Gated by {it.gate.plugin}: {it.gate.text}"), "Without the gate:"]
        said += [choice(it) if it.node else Bad(choice(it)), it.message]
        if it.pre_filters.nodes is not None:
            only = listed(it.pre_filters.nodes)
            said.append(f"{', '.join(it.pre_filters.narrowed_by)} left only {only} to look at.")
        if it.pre_filters.refusal is not None:
            who = it.pre_filters.refusal.plugin or "the pre-filters"
            said.append(f"No node was looked at: {who} refuse the pod itself.")
        return paragraphs(*said)

    def _group(self, it: GroupExplanation) -> str:
        rows = (
            (each.name or "all nodes", str(each.nodes), str(each.fits), each.first_without, each.why)
            for each in it.placements
        )
        head = (it.topology_key or "Placement", "Nodes", "Fit", "Pod that does not", "Nearest miss")
        inside = paragraphs(outcome_of_group(it), it.message) + (table(head, rows) if it.placements else "")
        if it.pools:
            inside += paragraphs("What would help the whole group:") + bullets(map(nodes_that_help, it.pools))
        return self._section(f"Pod group {it.group}", inside)

    def _remedies(self) -> str:
        if self._answer.remedies is None:
            return ""
        helping = what_would_help(self._answer)
        return self._section(
            "What would help", bullets(helping) if helping else paragraphs(nothing_helps(self._answer.remedies))
        )

    def _groups(self) -> str:
        rows = (
            (str(len(group.nodes)), which(group), "fit" if group.refusal is None else Bad(group_reason(group)))
            for group in self._answer.groups
        )
        return self._section("Nodes, by what is said of them", table(("Nodes", "Which", "Verdict"), rows))

    def _misses(self) -> str:
        misses = self._answer.misses
        return self._section("Nearest misses", bullets(f"{m.node} {m.text}" for m in misses)) if misses else ""

    # -- scores -------------------------------------------------------------------------------------------------------

    def _scores(self) -> str:
        """Bars of the best nodes, by the plugins that tell nodes apart; all nodes in a table."""
        scores = self._it.scores
        parts = scores[0].parts
        telling = [i for i in range(len(parts)) if len({score.parts[i].weighted for score in scores}) > 1]
        level = [i for i in range(len(parts)) if i not in telling]
        styles = {i: _STYLES[n] if n < len(_STYLES) else _EQUAL for n, i in enumerate(telling)}
        rows = [
            (score.node, self._bar(score, telling, level, styles), str(score.total)) for score in scores[:MOST_BARS]
        ]
        colours = [(parts[i].plugin, styles[i]) for i in telling[: len(_STYLES)]]
        head = ("Node", *(f"{parts[i].plugin} x{parts[i].weight}" for i in telling), "Equal for all", "Total", "")
        lines = (
            (
                score.node,
                *(str(score.parts[i].weighted) for i in telling),
                str(sum(score.parts[i].weighted for i in level)),
                str(score.total),
                "chosen" if score.node == self._it.node else "equal" if score.node in self._it.ties else "",
            )
            for score in scores
        )
        shown = stacks(rows) + legend([*colours, ("others, and what is equal for all", _EQUAL)])
        return self._section("Scores", shown + table(head, lines))

    def _bar(
        self, score: NodeScore, telling: Sequence[int], level: Sequence[int], styles: dict[int, str]
    ) -> list[tuple[str, str, float]]:
        bar = [(score.parts[i].plugin, styles[i], float(score.parts[i].weighted)) for i in telling]
        return [*bar, ("equal for all", _EQUAL, float(sum(score.parts[i].weighted for i in level)))]

    # -- preemption, what plugins add, and all nodes ------------------------------------------------------------------

    def _preemption(self, preemption: PreemptionProposal) -> str:
        inside = ""
        if preemption.chosen is None:
            title = "Preemption cannot help"
            inside += paragraphs(preemption.message)
        else:
            victims = counted(len(preemption.chosen.victims), "pod")
            title = f"Preemption would evict {victims} from {preemption.chosen.node}"
            guards = (
                (v.pod, str(v.priority), ", ".join(v.budgets) or "no disruption budget")
                for v in preemption.chosen.victims
            )
            inside += table(("Victim", "Priority", "Guarded by"), guards)
        if preemption.others:
            others = (
                (each.node, str(each.budget_violations), ", ".join(f"{v.pod} ({v.priority})" for v in each.victims))
                for each in preemption.others
            )
            inside += table(("Or from", "Budgets broken", "Victims"), others)
        no_help = ((str(len(group.nodes)), listed(group.nodes), group.reason) for group in preemption.no_help)
        if preemption.no_help:
            inside += table(("Nodes", "Which", "Why it is no help there"), no_help)
        return self._section(title, inside)

    def _details(self) -> Iterator[str]:
        """What plugins add about the winner; if there is none, about all nodes."""
        for name, details in self._it.details.items():
            for each in details.sections:
                if not each.node or not self._it.node or each.node == self._it.node:
                    inside = paragraphs(*each.notes) + (table(each.columns, each.rows) if each.columns else "")
                    yield self._section(each.title or f"{name[0].upper()}{name[1:]}", inside)

    def _every_node(self) -> str:
        rows = (
            (each.node, "yes", "", "")
            if each.refusal is None
            else (each.node, "no", each.refusal.plugin, node_reason(each))
            for each in self._it.verdicts
        )
        return self._section("Every node", table(("Node", "Fits", "Plugin", "Reason"), rows))
