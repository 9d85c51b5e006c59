"""Looks for remedies: every option is tried by itself; if none is enough, pairs that together leave nothing in the way.

A trial of one option says what is still in the way on every row (`Verdict.blocked`). Two options are worth a trial
together if there is a row where neither leaves the same plugin unhappy.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import combinations

from kubesched.api.pod import Pod
from kubesched.plugins.node_resources.fit import NodeResourcesFit
from kubesched.questions.pools import SMALL_CLUSTER
from kubesched.questions.remedies.cluster_options import (
    eviction_option,
    heeded_options,
    leaving_options,
    new_node_options,
    one_per_pool,
    sharing_ports,
    without_pods,
)
from kubesched.questions.remedies.device_options import device_options
from kubesched.questions.remedies.node_options import node_options
from kubesched.questions.remedies.pod_options import pod_options, without_gates
from kubesched.questions.remedies.remedy import Option, Remedies, Remedy, Sort, Step, changes_of, described
from kubesched.questions.remedies.trial import Trials, Verdict
from kubesched.questions.remedies.volume_options import volume_options
from kubesched.simulate.cluster import ClusterModel
from kubesched.state.columns import Int64

MOST_OF_A_SORT = 3
MOST_NEW_NODES = 8
MOST_PAIRS = 5
MOST_NODES = SMALL_CLUSTER
"""How many nodes are looked at for changes of single nodes, nearest misses first; in a small cluster that is all."""
MOST_HEEDED = 40


def trials_for(nodes: int) -> int:
    """How many changed clusters may be looked at: by and by fewer the larger the cluster, so that time is bounded."""
    return 100 + 1_500_000 // max(nodes, 1000)


def remedies(cluster: ClusterModel, pod: Pod, *, out_of_time: Callable[[], bool] = lambda: False) -> Remedies:
    """What would help a pod that is pending and fits nowhere. The cluster is the same afterwards.

    `out_of_time` is asked before each option is tried: what was found until then is the answer.
    """
    return _Search(cluster, pod, out_of_time).remedies()


class _Search:
    def __init__(self, cluster: ClusterModel, pod: Pod, out_of_time: Callable[[], bool]) -> None:
        self._pod = pod
        most = trials_for(cluster.state.nodes.live_count)
        self._trials = Trials(cluster, pod, most=most, out_of_time=out_of_time)
        self._always: tuple[Option, ...] = (without_gates(pod),) if pod.spec.scheduling_gates else ()
        self._skipped = False

    def remedies(self) -> Remedies:
        first = self._trials.run(self._always)
        if first.node:
            helps = self._always and self._trials.node_with(self._always)
            return self._answer([self._remedy((), first.node)] if helps else [])
        found = list(self._preemption())
        options, verdicts = self._singles(first)
        helping = [i for i, verdict in enumerate(verdicts) if verdict.node]
        if found:  # whom to evict is the scheduler's choice then
            helping = [i for i in helping if options[i].sort is not Sort.EVICT]
        found += self._tuned_singles([options[i] for i in helping])
        if not helping and not found:
            found += self._pairs(options, verdicts)
        return self._answer(found)

    def _answer(self, found: Sequence[Remedy]) -> Remedies:
        every = not self._skipped and self._trials.state.nodes.live_count <= MOST_NODES
        return Remedies(self._pod.key, tuple(found), self._trials.tried, exhaustive=every)

    # -- singles ------------------------------------------------------------------------------------------------------

    def _preemption(self) -> Iterator[Remedy]:
        """What the scheduler will do by itself."""
        pod = self._pod
        if self._always or pod.spec.preemption_policy == "Never":
            return
        result = self._trials.decide(pod).post_filter
        if result is None or not result.nominated:
            return
        victims = [victim.pod for victim in result.victims]
        if sharing_ports(victims, self._trials.state, result.nominated):
            return
        names = ", ".join(victim.key for victim in victims[:4])
        more = f" and {len(victims) - 4} more" if len(victims) > 4 else ""
        text = f"Wait: the scheduler makes room by itself on {result.nominated}, by evicting {names}{more}"
        option = Option(Sort.PREEMPTION, text, without_pods(victims, self._trials.state))
        node = self._trials.node_with((option,))
        if node:
            yield self._remedy((option,), node)

    def _options(self, first: Verdict) -> Iterator[Option]:
        pod, state, trials = self._pod, self._trials.state, self._trials
        yield from leaving_options(pod, state)
        yield from volume_options(pod, state)
        only_room = first.blocked == trials.bit(NodeResourcesFit.name)
        yield from pod_options(pod, state, only_room)
        yield from new_node_options(state)
        eviction = eviction_option(trials, pod)
        if eviction is not None:
            yield eviction
        yield from node_options(pod, state, first.blocked, most=MOST_NODES)
        yield from heeded_options(trials, pod, most=MOST_HEEDED)
        yield from device_options(pod, state, most=MOST_HEEDED)

    def _singles(self, first: Verdict) -> tuple[list[Option], list[Verdict]]:
        """All options with what each of them comes to."""
        options: list[Option] = []
        verdicts: list[Verdict] = []
        for option in self._options(first):
            if self._trials.are_over:
                self._skipped = True
                break
            options.append(option)
            verdicts.append(self._trials.run((*self._always, option)))
        return options, verdicts

    def _tuned_singles(self, helping: Iterable[Option]) -> Iterator[Remedy]:
        """Of each sort the smallest few, with the mildest degree that will do."""
        tuned = sorted((self._tuned(option, ()) for option in one_per_pool(helping)), key=lambda option: option.cost)
        shown: Counter[Sort] = Counter()
        relaxed = {option.about for option in tuned if option.sort is Sort.RELAX_SPREAD}
        for option in tuned:
            if option.sort is Sort.DROP_SPREAD and option.about in relaxed:
                continue  # a greater skew is enough
            shown[option.sort] += 1
            if shown[option.sort] <= (MOST_NEW_NODES if option.sort is Sort.ADD_NODE else MOST_OF_A_SORT):
                node = self._trials.node_with((*self._always, option))
                if node:
                    yield self._remedy((option,), node)

    def _tuned(self, option: Option, others: tuple[Option, ...]) -> Option:
        if option.tune is None:
            return option
        return option.tune(lambda milder: self._trials.fits((*self._always, *others, milder)))

    # -- pairs --------------------------------------------------------------------------------------------------------

    def _pairs(self, options: Sequence[Option], verdicts: Sequence[Verdict]) -> list[Remedy]:
        order = sorted(range(len(options)), key=lambda i: options[i].cost)
        pairs = [
            (options[i], options[j])
            for i, j in combinations(order, 2)
            if options[i].about != options[j].about and self._may_do(options, verdicts, i, j)
        ]
        pairs.sort(key=lambda pair: sum(option.sort.rank for option in pair))
        found: list[Remedy] = []
        sorts: Counter[frozenset[Sort]] = Counter()
        for pair in pairs:
            kinds = frozenset(option.sort for option in pair)
            if sorts[kinds] >= 2:
                continue
            if self._trials.are_over or len(found) >= MOST_PAIRS:
                self._skipped |= not found
                break
            if not self._trials.fits((*self._always, *pair)):
                continue
            one = self._tuned(pair[0], (pair[1],))
            other = self._tuned(pair[1], (one,))
            node = self._trials.node_with((*self._always, one, other))
            if node:
                found.append(self._remedy((one, other), node))
                sorts[kinds] += 1
        return found

    def _may_do(self, options: Sequence[Option], verdicts: Sequence[Verdict], i: int, j: int) -> bool:
        """Whether some row is left with nothing in the way."""
        one, other = verdicts[i].blocked, verdicts[j].blocked
        rows = min(len(one), len(other))
        if bool((one[:rows] & other[:rows] == 0).any()):
            return True
        return self._on_new_node(options[i], verdicts[i], other) or self._on_new_node(options[j], verdicts[j], one)

    def _on_new_node(self, option: Option, verdict: Verdict, others: Int64) -> bool:
        """A new node is to the other change what the node is that it is like."""
        if option.new is None:
            return False
        like = self._trials.state.nodes.row_of[option.new.like]
        return int(verdict.blocked[verdict.new_row]) & int(others[like]) == 0

    # -- words --------------------------------------------------------------------------------------------------------

    def _remedy(self, options: tuple[Option, ...], node: str) -> Remedy:
        made = (*self._always, *options)
        steps = tuple(Step(option.sort, option.text) for option in made)
        changes = changes_of(edit for option in made for edit in option.edits)
        return Remedy(steps, node, described(changes))
