"""Pod groups in a simulation: the same scheduler, in virtual time."""

from __future__ import annotations

from tests.unit.scheduler.group_world import ALL_GATES, ALPHA, make_gang, members

from kubesched import config
from kubesched.simulate.simulation import Simulation
from kubesched.testing import make_node


def test_gang_that_does_not_fit_waits_as_a_whole_beside_one_that_does() -> None:
    objects = [
        *[make_node(f"n{i}").capacity(cpu="1").build() for i in range(3)],
        make_gang("fits", 2, api=ALPHA),
        make_gang("large", 3, api=ALPHA),
        *[pod.build() for pod in (*members("fits", 2), *members("large", 3))],
    ]
    report = Simulation(objects, config.default(ALL_GATES)).run()
    placed = {story.pod.partition("/")[2] for story in report.pods if story.node}
    assert placed in ({"fits-0", "fits-1"}, {"large-0", "large-1", "large-2"})
    waiting = [story.message for story in report.pods if not story.node]
    assert all(waiting)
