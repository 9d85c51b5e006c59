from kubesched.api.kinds import BUILT_IN, CORE_EVENTS, EVENTS, KINDS, PODS, WATCHED, watched
from kubesched.framework.events import POD_KINDS, Kind


def test_every_resource_is_listed_under_its_version_and_kind() -> None:
    assert all(key == (resource.api_version, resource.kind) for key, resource in BUILT_IN.items())
    assert len({resource.path for resource in BUILT_IN.values()}) == len(BUILT_IN)


def test_every_kind_is_named_as_its_record() -> None:
    assert all(kind.record.__name__ == name == kind.resource.kind for name, kind in KINDS.items())


def test_every_event_of_a_kind_is_one_that_plugins_can_wait_for() -> None:
    about_no_object = {*POD_KINDS, Kind.ANY}
    assert {kind.event for kind in KINDS.values() if kind.event} == set(Kind) - about_no_object


def test_only_what_others_work_into_pods_is_watched_by_nobody() -> None:
    with_all_gates = {kind.resource.kind for kind in watched(lambda gate: True)}
    assert KINDS.keys() - with_all_gates == {"PriorityClass", "ResourceClaimTemplate", "Workload"}


def test_pod_groups_are_watched_only_with_their_gate() -> None:
    assert watched(lambda gate: False) == WATCHED
    assert {kind.resource.kind for kind in watched(lambda gate: gate == "GenericWorkload")} - {
        kind.resource.kind for kind in WATCHED
    } == {"PodGroup"}


def test_namesakes_of_different_groups_are_different_resources() -> None:
    assert CORE_EVENTS.path == "/api/v1/events"
    assert EVENTS.path == "/apis/events.k8s.io/v1/events"
    assert PODS.qualified == "pods"
