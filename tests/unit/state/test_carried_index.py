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
namespaces = st.frozensets(st.sampled_from(["here", "there"]))
terms = st.builds(Term, kinds, st.sampled_from(["zone", "host"]), selectors, namespaces, selectors)
weighed = st.builds(lambda term, weight: term._replace(weight=weight), terms, st.integers(0, 100))
carriers = st.lists(weighed, min_size=1, max_size=80).map(lambda found: CarriedTerms(tuple(found)))


@given(
    stay=st.lists(carriers, max_size=4),
    leave=st.lists(carriers, max_size=3),
    labels=st.dictionaries(keys, values),
    namespace_labels=st.dictionaries(keys, values),
    topologies=st.sets(st.sampled_from(["zone", "host", "rack"])),
)
def test_index_finds_what_asking_every_term_finds(
    stay: list[CarriedTerms],
    leave: list[CarriedTerms],
    labels: dict[str, str],
    namespace_labels: dict[str, str],
    topologies: set[str],
) -> None:
    index = CarriedIndex()
    for carried in (*leave[:1], *stay[:2], *leave[1:]):
        index.put(carried)
    list(index.matching(labels, "here", namespace_labels, topologies))
    for carried in leave:
        index.remove(carried)
    for carried in stay[2:]:
        index.put(carried)
    found: dict[object, tuple[int, int]] = {}
    for carried, like, number, weight in index.matching(labels, "here", namespace_labels, topologies):
        key = carried, like.kind, like.topology_key
        so_far = found.get(key, (0, 0))
        found[key] = so_far[0] + number, so_far[1] + weight
    asked: dict[object, tuple[int, int]] = {}
    for carried in stay:
        for term in carried.terms:
            looks_here = "here" in term.namespaces or term.namespace_selector.matches(namespace_labels)
            if term.selector.matches(labels) and looks_here and term.topology_key in topologies:
                key = carried, term.kind, term.topology_key
                number, weight = asked.get(key, (0, 0))
                asked[key] = number + 1, weight + term.weight
    assert found == asked
