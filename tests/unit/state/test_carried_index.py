"""Which terms mean a pod: the index says the same as asking each term."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kubesched.api.selectors import NOTHING, Requirement, Selector
from kubesched.state.carried_index import CarriedIndex
from kubesched.state.carried_terms import CarriedTerms
from kubesched.state.facts import Term, TermKind

keys, values = st.sampled_from("ab"), st.sampled_from("xyz")
requirements = st.builds(
    Requirement, keys, st.sampled_from(["In", "NotIn", "Exists", "DoesNotExist"]), st.frozensets(values)
)
selectors = st.one_of(st.just(NOTHING), st.lists(requirements, max_size=3).map(lambda found: Selector(tuple(found))))
kinds: st.SearchStrategy[TermKind] = st.sampled_from(["required-anti-affinity", "preferred-affinity"])
terms = st.builds(
    Term, kinds, st.sampled_from(["zone", "host"]), selectors, st.just(frozenset({"default"})), st.just(NOTHING)
)
weighed = st.builds(lambda term, weight: term._replace(weight=weight), terms, st.integers(0, 100))
carriers = st.lists(weighed, min_size=1, max_size=80).map(lambda found: CarriedTerms(tuple(found)))


@given(stay=st.lists(carriers, max_size=4), leave=st.lists(carriers, max_size=3), labels=st.dictionaries(keys, values))
def test_index_finds_what_asking_every_term_finds(
    stay: list[CarriedTerms], leave: list[CarriedTerms], labels: dict[str, str]
) -> None:
    index = CarriedIndex()
    for carried in (*leave[:1], *stay[:2], *leave[1:]):
        index.put(carried)
    list(index.that_may_mean(labels))
    for carried in leave:
        index.remove(carried)
    for carried in stay[2:]:
        index.put(carried)
    found = {
        (carried, like.kind, like.topology_key): (number, weight)
        for carried, like, number, weight in index.that_may_mean(labels)
    }
    asked: dict[object, tuple[int, int]] = {}
    for carried in stay:
        for term in carried.terms:
            if term.selector.matches(labels):
                key = carried, term.kind, term.topology_key
                number, weight = asked.get(key, (0, 0))
                asked[key] = number + 1, weight + term.weight
    assert found == asked
